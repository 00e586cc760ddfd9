-- reach, duckdb
SELECT v1 AS c0 FROM (SELECT DISTINCT * FROM (SELECT c0 AS v1 FROM node WHERE (c0) = (CAST($p0 AS BIGINT))) AS t) AS t;
SELECT v0 AS c0 FROM (SELECT l.* FROM (SELECT l.*, r.v0 FROM (SELECT c0 AS v1 FROM reach_recent) AS l INNER JOIN (SELECT c0 AS v1, c1 AS v0 FROM arc) AS r ON (l.v1) = (r.v1)) AS l WHERE NOT (EXISTS(SELECT 1 AS u FROM (SELECT c0 AS v0 FROM blocked) AS r WHERE (l.v0) = (r.v0)))) AS t;
-- reach, spark
SELECT v1 AS c0 FROM (SELECT DISTINCT * FROM (SELECT c0 AS v1 FROM node WHERE (c0) = (CAST(:p0 AS BIGINT))) AS t) AS t;
SELECT v0 AS c0 FROM (SELECT l.* FROM (SELECT l.*, r.v0 FROM (SELECT c0 AS v1 FROM reach_recent) AS l INNER JOIN (SELECT c0 AS v1, c1 AS v0 FROM arc) AS r ON (l.v1) = (r.v1)) AS l WHERE NOT (EXISTS(SELECT 1 AS u FROM (SELECT c0 AS v0 FROM blocked) AS r WHERE (l.v0) = (r.v0)))) AS t;
