"""DuckDB: recursive queries, with USING KEY where a value of each key is improved; PageRank as a loop of statements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.limits.common import Columns, Inputs, Limit, Watch
from benchmarks.programs import SOURCE
from benchmarks.rivals import THREADS

NAMES = {
    "arc": ("x", "y"), "warc": ("x", "y", "d"), "node": ("x",), "assbl": ("p", "s"), "basic": ("p", "d"),
    "address": ("v", "o"), "assign": ("v", "w"), "load": ("v", "p"), "store": ("p", "w"),
}  # fmt: skip

CC = """
WITH RECURSIVE cc(x, l) USING KEY (x) AS (
    SELECT DISTINCT x, x FROM {arc}
    UNION (
        SELECT a.y, min(cc.l) FROM cc JOIN {arc} a ON cc.x = a.x LEFT JOIN recurring.cc k ON k.x = a.y
        WHERE k.l IS NULL OR cc.l < k.l GROUP BY a.y))
SELECT x, l FROM cc"""

QUERIES = {
    "tc": """
WITH RECURSIVE tc(x, y) AS (SELECT x, y FROM arc UNION SELECT tc.x, a.y FROM tc JOIN arc a ON tc.y = a.x)
SELECT x, y FROM tc""",
    "sg": """
WITH RECURSIVE sg(x, y) AS (
    SELECT a.y, b.y FROM arc a JOIN arc b ON a.x = b.x WHERE a.y <> b.y
    UNION SELECT a.y, b.y FROM sg JOIN arc a ON a.x = sg.x JOIN arc b ON b.x = sg.y)
SELECT x, y FROM sg""",
    "reach": f"""
WITH RECURSIVE reach(x) USING KEY (x) AS (
    SELECT {SOURCE}::BIGINT
    UNION SELECT DISTINCT a.y FROM reach JOIN arc a ON reach.x = a.x
          WHERE NOT EXISTS (SELECT 1 FROM recurring.reach k WHERE k.x = a.y))
SELECT x FROM reach""",
    "cc": CC.format(arc="arc"),
    "cc_undirected": "WITH uarc AS MATERIALIZED (SELECT x, y FROM arc UNION SELECT y, x FROM arc)"
    + CC.format(arc="uarc").replace("WITH RECURSIVE", "SELECT * FROM (WITH RECURSIVE", 1)
    + ")",
    "sssp": f"""
WITH RECURSIVE sp(x, d) USING KEY (x) AS (
    SELECT {SOURCE}::BIGINT, 0::BIGINT
    UNION (
        SELECT a.y, min(sp.d + a.d) FROM sp JOIN warc a ON sp.x = a.x LEFT JOIN recurring.sp k ON k.x = a.y
        WHERE k.d IS NULL OR sp.d + a.d < k.d GROUP BY a.y))
SELECT x, d FROM sp""",
    "delivery": """
WITH RECURSIVE v(p, d) USING KEY (p) AS (
    SELECT p, max(d) FROM basic GROUP BY p
    UNION (
        SELECT a.p, max(v.d) FROM v JOIN assbl a ON v.p = a.s LEFT JOIN recurring.v k ON k.p = a.p
        WHERE k.d IS NULL OR v.d > k.d GROUP BY a.p))
SELECT p, d FROM v""",
    "apsp": """
WITH RECURSIVE path(x, y, d) USING KEY (x, y) AS (
    SELECT x, y, min(d) FROM warc GROUP BY x, y
    UNION (
        SELECT p.x, a.y, min(p.d + a.d) FROM path p JOIN warc a ON p.y = a.x
        LEFT JOIN recurring.path k ON k.x = p.x AND k.y = a.y
        WHERE k.d IS NULL OR p.d + a.d < k.d GROUP BY p.x, a.y))
SELECT x, y, d FROM path""",
    # The delta must meet what is known on either side: a load or store joins points with points.
    "andersen": """
WITH RECURSIVE points(v, o) USING KEY (v, o) AS (
    SELECT v, o FROM address
    UNION (
        SELECT DISTINCT n.v, n.o FROM (
            SELECT a.v, d.o FROM points d JOIN assign a ON a.w = d.v
            UNION ALL SELECT l.v, k.o FROM points d JOIN load l ON l.p = d.v JOIN recurring.points k ON k.v = d.o
            UNION ALL SELECT l.v, d.o FROM points d JOIN recurring.points k ON k.o = d.v JOIN load l ON l.p = k.v
            UNION ALL SELECT d.o, k.o FROM points d JOIN store s ON s.p = d.v JOIN recurring.points k ON k.v = s.w
            UNION ALL SELECT k.o, d.o FROM points d JOIN store s ON s.w = d.v JOIN recurring.points k ON k.v = s.p
        ) n(v, o) WHERE NOT EXISTS (SELECT 1 FROM recurring.points k WHERE k.v = n.v AND k.o = n.o)))
SELECT v, o FROM points""",
}

PROGRAMS = (*QUERIES, "pagerank")


def evaluate(program: str, inputs: Inputs) -> Limit:
    import duckdb

    connection = duckdb.connect(config={"threads": THREADS})
    watch = Watch()
    for name, values in inputs.items():
        given = pa.table(dict(zip(NAMES[name], values, strict=True)))
        connection.register("given", given)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        connection.unregister("given")
    build = watch.lap()
    if program == "pagerank":
        rounds = _pagerank(connection)
    else:
        rounds = None
        connection.execute(f"CREATE TABLE answer AS {QUERIES[program]}")
    seconds = watch.lap()
    count = connection.execute("SELECT count(*) FROM answer").fetchone()
    assert count is not None

    def answer() -> Columns:
        found = connection.execute("SELECT * FROM answer").fetchnumpy()
        return tuple(np.asarray(column) for column in found.values())

    return Limit(int(count[0]), None, build, seconds, answer, rounds)


def _pagerank(connection: Any) -> int:
    connection.execute("CREATE TABLE degree AS SELECT x, count(*) AS d FROM arc GROUP BY x")
    connection.execute("CREATE TABLE answer AS SELECT x, 1.0::DOUBLE / (SELECT count(*) FROM node) AS r FROM node")
    rounds, change = 0, 1.0
    while change >= 1e-4:
        rounds += 1
        connection.execute("""
CREATE OR REPLACE TABLE next AS
SELECT n.x, 0.15 / (SELECT count(*) FROM node) + coalesce(s.r, 0) AS r
FROM node n LEFT JOIN (
    SELECT a.y, sum(0.85 * r.r / g.d) AS r FROM answer r JOIN degree g ON g.x = r.x JOIN arc a ON a.x = r.x GROUP BY a.y
) s ON s.y = n.x""")
        found = connection.execute("SELECT sum(abs(n.r - a.r)) FROM next n JOIN answer a ON a.x = n.x").fetchone()
        change = float(found[0])
        connection.execute("DROP TABLE answer")
        connection.execute("ALTER TABLE next RENAME TO answer")
    return rounds
