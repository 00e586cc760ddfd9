-- cs, duckdb
SELECT v3 AS c0, v4 AS c1, v5 AS c2, v6 AS c3 FROM (SELECT DISTINCT * FROM (SELECT c0 AS v3, c1 AS v4, c0 AS v5, c2 AS v6 FROM own) AS t) AS t;
SELECT v3 AS c0, v1 AS c1, v0 AS c2, v2 AS c3 FROM (SELECT l.*, r.v1, r.v2 FROM (SELECT c0 AS v3, c1 AS v0 FROM control_recent) AS l INNER JOIN (SELECT c0 AS v0, c1 AS v1, c2 AS v2 FROM own) AS r ON (l.v0) = (r.v0)) AS t;
-- control, duckdb
SELECT c0 AS c0, c1 AS c1 FROM cv_recent WHERE (c2) > (CAST($p0 AS BIGINT));
-- cv, duckdb
SELECT c0 AS c0, c1 AS c1, c2 AS c2, c3 AS c3, c0 AS c4, c1 AS c5, c3 AS c6 FROM cs_recent;
-- cs, spark
SELECT v3 AS c0, v4 AS c1, v5 AS c2, v6 AS c3 FROM (SELECT DISTINCT * FROM (SELECT c0 AS v3, c1 AS v4, c0 AS v5, c2 AS v6 FROM own) AS t) AS t;
SELECT v3 AS c0, v1 AS c1, v0 AS c2, v2 AS c3 FROM (SELECT l.*, r.v1, r.v2 FROM (SELECT c0 AS v3, c1 AS v0 FROM control_recent) AS l INNER JOIN (SELECT c0 AS v0, c1 AS v1, c2 AS v2 FROM own) AS r ON (l.v0) = (r.v0)) AS t;
-- control, spark
SELECT c0 AS c0, c1 AS c1 FROM cv_recent WHERE (c2) > (CAST(:p0 AS BIGINT));
-- cv, spark
SELECT c0 AS c0, c1 AS c1, c2 AS c2, c3 AS c3, c0 AS c4, c1 AS c5, c3 AS c6 FROM cs_recent;
