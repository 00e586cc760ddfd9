-- paths, duckdb
SELECT CAST($p0 AS BIGINT) AS c0, CAST($p1 AS BIGINT) AS c1;
SELECT v0 AS c0, v1 AS c1, v1 AS c2, v2 AS c3 FROM (SELECT l.*, r.v1 FROM (SELECT c0 AS v0, c1 AS v2 FROM paths_recent) AS l INNER JOIN (SELECT c0 AS v0, c1 AS v1 FROM arc) AS r ON (l.v0) = (r.v0)) AS t;
-- paths, spark
SELECT CAST(:p0 AS BIGINT) AS c0, CAST(:p1 AS BIGINT) AS c1;
SELECT v0 AS c0, v1 AS c1, v1 AS c2, v2 AS c3 FROM (SELECT l.*, r.v1 FROM (SELECT c0 AS v0, c1 AS v2 FROM paths_recent) AS l INNER JOIN (SELECT c0 AS v0, c1 AS v1 FROM arc) AS r ON (l.v0) = (r.v0)) AS t;
