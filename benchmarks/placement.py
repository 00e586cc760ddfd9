"""Recursion over Spark tables of several sizes: in the driver, in Spark's tasks, and where a run puts it by itself.

A table is a cached frame of random edges with weights, between numbers or between texts as long as an address. Each
program is run over it in a warm session, with `placement="auto"`, `"local"` and `"spark"`, and then once more by
the same engine. What is told at the end of a line is how much slower `auto` is than the better one of the two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa

import emberlog

PROGRAMS = {
    "components": """
        link(X, Y) <- e(X, Y, _). link(Y, X) <- e(X, Y, _).
        cc(X, min<X>) <- link(X, _). cc(Y, min<Z>) <- cc(X, Z), link(X, Y).
        answer(count<X>) <- cc(X, _).
    """,
    "sssp": """
        d(X, min<D>) <- s(X), D = 0. d(Y, min<D>) <- d(X, C), e(X, Y, W), D = C + W.
        answer(count<X>) <- d(X, _).
    """,
    "reach": "r(X) <- s(X). r(Y) <- r(X), e(X, Y, _). answer(count<X>) <- r(X).",
    "pagerank": """
        node(X) <- e(X, _, _). node(X) <- e(_, X, _). size(count<X>) <- node(X). degree(X, count<Y>) <- e(X, Y, _).
        rank(0, X, r) <- node(X), size(n), r = 1.0 / n.
        rank(i+1, Y, sum[r]) <- node(Y), size(n), r = 0.15 / n;
                             <- rank(i, X, q), e(X, Y, _), degree(X, d), r = 0.85 * q / d; {sum[delta r] < 0.001}.
        answer(count<X>) <- rank(X, _).
    """,
}
SIZES = (100_000, 1_000_000, 10_000_000)
QUICK = (2_000,)
PLACES = ("auto", "local", "spark")


def edges(rows: int, kind: str, seed: int = 0) -> tuple[pa.Table, Any]:
    """A table of edges, and the node that searches begin at."""
    draw = np.random.default_rng(seed)
    x, y = (draw.integers(0, max(rows // 4, 2), rows) for _ in range(2))
    weights = draw.integers(1, 100, rows)
    if kind == "numbers":
        return pa.table({"x": x, "y": y, "w": weights}), int(x[0])
    names = pa.array([f"user-{i:09d}@example.org" for i in range(int(max(x.max(), y.max())) + 1)])
    return pa.table({"x": names.take(pa.array(x)), "y": names.take(pa.array(y)), "w": weights}), names[
        int(x[0])
    ].as_py()


def timed(engine: emberlog.Engine, text: str, placement: str) -> tuple[float, list[tuple[Any, ...]]]:
    started = monotonic()
    found = engine.run(text, placement=placement)["answer"].rows()
    return monotonic() - started, found


def run(
    out: Path, programs: Sequence[str], rows: Sequence[int], kinds: Sequence[str], say: Callable[[str], None]
) -> list[Path]:
    """The table of all programs, sizes and kinds of values, in seconds."""
    session = warm_session()
    lines = [
        "| program | rows | values | auto | local | spark | auto again | local again | spark again | auto / best |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    try:
        for count in rows:
            for kind in kinds:
                table, start = edges(count, kind)
                frame = session.createDataFrame(table).cache()
                frame.count()
                for program in programs:
                    lines.append(_line(session, frame, start, program, count, kind))
                    say(lines[-1])
                frame.unpersist()
    finally:
        session.stop()
    out.mkdir(parents=True, exist_ok=True)
    path = out / "placement.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [path]


def _line(session: Any, frame: Any, start: Any, program: str, count: int, kind: str) -> str:
    text, first, again, answers = f"{PROGRAMS[program]}\n.output answer", {}, {}, []
    for place in PLACES:
        with emberlog.Engine(session, warnings="ignore") as engine:
            engine.register("e", frame)
            engine.register("s", [(start,)])
            for seconds in (first, again):
                seconds[place], found = timed(engine, text, place)
                answers.append(found)
    assert all(found == answers[0] for found in answers), f"{program}: {answers}"
    best = first["auto"] / min(first["local"], first["spark"])
    cells = [
        program,
        f"{count:,}",
        kind,
        *(f"{s[place]:.2f}" for s in (first, again) for place in PLACES),
        f"{best:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def warm_session() -> Any:
    """A session on this machine that has run a job, and Python in it."""
    import os

    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "4").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    # The first job, and the first Python workers, take seconds that belong to no program.
    with emberlog.Engine(session) as engine:
        engine.register("e", session.range(1000).selectExpr("id as x", "id + 1 as y"))
        engine.run("r(X) <- e(0, X). r(Y) <- r(X), e(X, Y).", placement="spark")["r"].rows()
    return session
