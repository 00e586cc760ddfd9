"""Three recursive programs on Spark: delivery times of a bill of materials, components and shortest paths of a graph.

Prints the first rows, what each stratum cost and a plan; writes Parquet and pictures of the plans to `out`.

    make demo                                or: python examples/demo.py --parts 1000000 --nodes 100000
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

import emberlog
from emberlog import generate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

console = Console()


@dataclass(frozen=True, slots=True)
class Job:
    """A program, the relation that answers its question, and the order in which its first rows are worth seeing."""

    title: str
    question: str
    program: str
    answer: str
    order: tuple[str, ...]  # columns; `-` before a name: largest first


JOBS = (
    Job(
        title="Delivery",
        question="When is each part ready, if an assembly waits for its last subpart?",
        program="""
.decl delivery(part: number, days: number)
delivery(P, max<D>) <- basic(P, D).
delivery(P, max<D>) <- assbl(P, S), delivery(S, D).
""",
        answer="delivery",
        order=("part",),
    ),
    Job(
        title="Connected components",
        question="Which nodes hang together, and how large are the components?",
        program="""
.decl cc(node: number, component: number)
.decl size(component: number, nodes: number)
uarc(X, Y) <- arc(X, Y).
uarc(X, Y) <- arc(Y, X).
cc(X, min<X>) <- uarc(X, _).
cc(Y, min<C>) <- cc(X, C), uarc(X, Y).
size(C, count(X)) <- cc(X, C).
""",
        answer="size",
        order=("-nodes", "component"),
    ),
    Job(
        title="Shortest paths",
        question="How far is each node from node 0?",
        program="""
.decl sp(node: number, distance: number)
sp(Y, min<D>) <- Y = 0, D = 0.
sp(Y, min<D>) <- sp(X, C), warc(X, Y, W), D = C + W.
""",
        answer="sp",
        order=("-distance", "node"),
    ),
)


def start_spark() -> SparkSession:
    """A session on all cores of this machine, quiet and without a web page."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers are whatever `python3` is on the PATH
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # the machine's own name may not resolve
    return (
        SparkSession.builder.master("local[*]")
        .appName("emberlog-demo")
        .config("spark.log.level", "ERROR")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")  # Emberlog shows its own progress
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", str(os.cpu_count() or 1))  # the default of 200 is for clusters
        .getOrCreate()
    )


def first_rows(frame: DataFrame, order: tuple[str, ...], count: int = 5) -> Table:
    from pyspark.sql import functions as sql

    keys = [sql.desc(name[1:]) if name.startswith("-") else sql.asc(name) for name in order]
    table = Table(*frame.columns, title="first rows", title_justify="left")
    for row in frame.orderBy(*keys).limit(count).collect():
        table.add_row(*(f"{value:,}" for value in row))
    return table


def costs(result: emberlog.Result) -> Table:
    table = Table("stratum", "evaluator", "placement", title="what it cost", title_justify="left")
    for name in ("rounds", "facts", "seconds"):
        table.add_column(name, justify="right")
    for stratum in result.stats:
        table.add_row(
            ", ".join(stratum.predicates),
            stratum.evaluator,
            stratum.placement,
            f"{stratum.rounds:,}",
            "" if stratum.facts is None else f"{stratum.facts:,}",
            f"{stratum.seconds:.2f}",
        )
    return table


def run(job: Job, engine: emberlog.Engine, out: Path) -> None:
    console.rule(f"[bold]{job.title}[/]")
    console.print(f"{job.question}\n")
    console.print(Syntax(job.program.strip(), "prolog", theme="ansi_dark", background_color="default"))
    started = time.perf_counter()
    result = engine.run(job.program)
    answer = result[job.answer]
    rows = answer.count()  # a relation that is not recursive is computed when something asks for it
    seconds = time.perf_counter() - started
    console.print(f"\n[bold]{job.answer}[/], rows: {rows:,}, seconds: {seconds:.1f}\n")
    console.print(first_rows(answer.to_spark(), job.order))
    console.print(costs(result))
    answer.write(out / f"{job.answer}.parquet")
    (out / f"{job.answer}.svg").write_text(engine.explain(job.program).to_svg(), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=int, default=200_000, help="parts of the bill of materials")
    parser.add_argument("--nodes", type=int, default=20_000, help="nodes of the graph; it has ten times as many edges")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the results")
    options = parser.parse_args()

    options.out.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    with console.status("Making data ..."):
        tables = generate.bom(options.parts) | generate.rmat(options.nodes)
    needed = {name: tables[name] for name in ("assbl", "basic", "arc", "warc")}
    console.print("Data: " + ", ".join(f"{name} {table.num_rows:,} rows" for name, table in needed.items()))

    with console.status("Starting Spark ..."):
        spark = start_spark()
    console.print(f"Spark {spark.version} on {spark.conf.get('spark.master', 'local')}")
    try:
        with emberlog.Engine(spark=spark) as engine:
            for name, table in needed.items():
                engine.register(name, table)
            for job in JOBS:
                run(job, engine, options.out)
            console.rule("[bold]The plan of the shortest paths[/]")
            # A `Text`, because a plan has brackets that would be read as mark-up.
            console.print(Text(str(engine.explain(JOBS[-1].program))), soft_wrap=True)
    finally:
        spark.stop()

    console.rule(f"[bold]Done in {time.perf_counter() - started:.0f} s[/]")
    for job in JOBS:
        console.print(f"{options.out / job.answer}.parquet    plan: {options.out / job.answer}.svg")


if __name__ == "__main__":
    main()
