-- attend, duckdb
SELECT v1 AS c0 FROM (SELECT DISTINCT * FROM (SELECT c0 AS v1 FROM organizer) AS t) AS t;
SELECT c0 AS c0 FROM cnt_recent WHERE (c1) >= (CAST($p0 AS BIGINT));
-- cnt, duckdb
SELECT v1 AS c0, v0 AS c1, v0 AS c2, CAST($p0 AS BIGINT) AS c3 FROM (SELECT l.*, r.v0 FROM (SELECT c0 AS v1 FROM attend_recent) AS l INNER JOIN (SELECT c0 AS v0, c1 AS v1 FROM friend) AS r ON (l.v1) = (r.v1)) AS t;
-- attend, spark
SELECT v1 AS c0 FROM (SELECT DISTINCT * FROM (SELECT c0 AS v1 FROM organizer) AS t) AS t;
SELECT c0 AS c0 FROM cnt_recent WHERE (c1) >= (CAST(:p0 AS BIGINT));
-- cnt, spark
SELECT v1 AS c0, v0 AS c1, v0 AS c2, CAST(:p0 AS BIGINT) AS c3 FROM (SELECT l.*, r.v0 FROM (SELECT c0 AS v1 FROM attend_recent) AS l INNER JOIN (SELECT c0 AS v0, c1 AS v1 FROM friend) AS r ON (l.v1) = (r.v1)) AS t;
