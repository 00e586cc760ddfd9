-- even, duckdb
SELECT v1 AS c0 FROM (SELECT DISTINCT * FROM (SELECT CAST($p0 AS BIGINT) AS v1) AS t) AS t;
SELECT v1 AS c0 FROM (SELECT l.*, r.v1 FROM (SELECT c0 AS v0 FROM odd_recent) AS l INNER JOIN (SELECT c0 AS v0, c1 AS v1 FROM step) AS r ON (l.v0) = (r.v0)) AS t;
-- odd, duckdb
SELECT v1 AS c0 FROM (SELECT l.*, r.v1 FROM (SELECT c0 AS v0 FROM even_recent) AS l INNER JOIN (SELECT c0 AS v0, c1 AS v1 FROM step) AS r ON (l.v0) = (r.v0)) AS t;
-- even, spark
SELECT v1 AS c0 FROM (SELECT DISTINCT * FROM (SELECT CAST(:p0 AS BIGINT) AS v1) AS t) AS t;
SELECT v1 AS c0 FROM (SELECT l.*, r.v1 FROM (SELECT c0 AS v0 FROM odd_recent) AS l INNER JOIN (SELECT c0 AS v0, c1 AS v1 FROM step) AS r ON (l.v0) = (r.v0)) AS t;
-- odd, spark
SELECT v1 AS c0 FROM (SELECT l.*, r.v1 FROM (SELECT c0 AS v0 FROM even_recent) AS l INNER JOIN (SELECT c0 AS v0, c1 AS v1 FROM step) AS r ON (l.v0) = (r.v0)) AS t;
