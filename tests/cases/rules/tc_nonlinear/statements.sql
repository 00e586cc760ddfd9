-- tc, duckdb
SELECT v2 AS c0, v3 AS c1 FROM (SELECT DISTINCT * FROM (SELECT c0 AS v2, c1 AS v3 FROM arc) AS t) AS t;
SELECT v2 AS c0, v1 AS c1 FROM (SELECT l.*, r.v1 FROM (SELECT c0 AS v2, c1 AS v0 FROM tc_recent) AS l INNER JOIN (SELECT c0 AS v0, c1 AS v1 FROM tc_stable) AS r ON (l.v0) = (r.v0)) AS t;
SELECT v0 AS c0, v2 AS c1 FROM (SELECT l.*, r.v0 FROM (SELECT c0 AS v1, c1 AS v2 FROM tc_recent) AS l INNER JOIN (SELECT c0 AS v0, c1 AS v1 FROM tc) AS r ON (l.v1) = (r.v1)) AS t;
-- tc, spark
SELECT v2 AS c0, v3 AS c1 FROM (SELECT DISTINCT * FROM (SELECT c0 AS v2, c1 AS v3 FROM arc) AS t) AS t;
SELECT v2 AS c0, v1 AS c1 FROM (SELECT l.*, r.v1 FROM (SELECT c0 AS v2, c1 AS v0 FROM tc_recent) AS l INNER JOIN (SELECT c0 AS v0, c1 AS v1 FROM tc_stable) AS r ON (l.v0) = (r.v0)) AS t;
SELECT v0 AS c0, v2 AS c1 FROM (SELECT l.*, r.v0 FROM (SELECT c0 AS v1, c1 AS v2 FROM tc_recent) AS l INNER JOIN (SELECT c0 AS v0, c1 AS v1 FROM tc) AS r ON (l.v1) = (r.v1)) AS t;
