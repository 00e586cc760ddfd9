"""The five papers that Emberlog follows: what each of them shows, and the command that shows it here.

Programs are those of `examples/`, with the data that `examples/README.md` names for each.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import emberlog
from emberlog import generate

EXAMPLES = Path(__file__).parents[1] / "examples"
ROW = re.compile(r"\| \[`([\w/]+\.dl)`\]\([^)]*\) \| (.*?) \| `(.*?)`<br>`(.*?)` \|")


@dataclass(frozen=True)
class Paper:
    """A paper: the name by which it is asked for, its title, and pairs of what it shows and a command."""

    name: str
    title: str
    shows: tuple[tuple[str, str], ...]


PAPERS = (
    Paper(
        "bigdatalog",
        "Big Data Analytics with Datalog Queries on Spark (SIGMOD 2016)",
        (
            ("Programs 1 to 10", "emberlog papers bigdatalog --run"),
            ("Figs. 4 to 8: plans", "emberlog explain examples/bigdatalog/sg.dl"),
            ("Tables 1 to 5: ways of evaluation", "emberlog bench kernels --variants"),
            ("Section 6: against GraphX and a loop of DataFrames", "emberlog bench kernels --spark"),
        ),
    ),
    Paper(
        "powerlog",
        "Automating Incremental and Asynchronous Evaluation for Recursive Aggregate Data Processing (SIGMOD 2020)",
        (
            ("Table 1: fourteen programs, proved or refuted", "emberlog papers powerlog --run"),
            ("Sections 3 and 4: proofs and counter-examples", "emberlog check examples/powerlog/gcn_forward.dl"),
            ("Incremental (MRA) against naive evaluation", "emberlog bench mra"),
            ("Sections 5.3, 6.5: modes", "emberlog bench coordination --mode async --mode adaptive --mode aap"),
        ),
    ),
    Paper(
        "ssp",
        "A Case for Stale Synchronous Distributed Model for Declarative Recursive Computation (2019)",
        (
            ("Section 2: aggregates that move into the recursion", "emberlog explain examples/dcdatalog/apsp.dl"),
            ("Fig. 3, Tables 1 and 2: stragglers", "emberlog bench coordination --mode bsp --mode ssp:3 --mode ssp:6"),
            ("The same for many workers", "emberlog bench coordination --simulate"),
        ),
    ),
    Paper(
        "dcdatalog",
        "Optimizing Parallel Recursive Datalog Evaluation on Multicore Machines (SIGMOD 2022)",
        (
            ("Queries 1 to 8", "emberlog papers dcdatalog --run"),
            ("Fig. 8: strategies", "emberlog bench coordination --mode bsp --mode ssp:5:1 --mode dws"),
            ("Operators: Join, Distribute, Gather", "emberlog explain examples/dcdatalog/apsp.dl --coordination dws"),
        ),
    ),
    Paper(
        "scheduling",
        "A Scheduling Approach to Incremental Maintenance of Datalog Programs (2020)",
        (
            ("Tables I, II, III", "emberlog schedule tables"),
            ("Fig. 2: the tight example", "emberlog schedule slopes"),
            ("Views that follow changes", "emberlog maintain PROGRAM SCRIPT --stats"),
        ),
    ),
)


@dataclass(frozen=True)
class Program:
    """A program of `examples/`: its file, what it computes, and the words of the commands that make data and run it."""

    path: str
    computes: str
    making: tuple[str, ...]
    running: tuple[str, ...]

    def data(self) -> generate.Tables:
        size, p = after(self.making, "--size"), after(self.making, "--p")
        return generate.make(self.making[2], float(size[0]) if size else None, p=float(p[0]) if p else None, seed=0)

    def params(self) -> dict[str, float]:
        given = (pair.split("=") for pair in after(self.running, "--param"))
        return {name: float(value) if "." in value else int(value) for name, value in given}


@dataclass(frozen=True)
class Ran:
    """A program that was run: its verdicts, the rows of its results, and seconds."""

    program: Program
    verdicts: str
    rows: int
    seconds: float
    how: str


def programs(paper: str) -> Iterator[Program]:
    """The programs of a paper, in the order of `examples/README.md`."""
    for match in ROW.finditer((EXAMPLES / "README.md").read_text(encoding="utf-8")):
        path, computes, making, running = match.groups()
        if path.startswith(f"{paper}/"):
            yield Program(path, computes, tuple(shlex.split(making)), tuple(shlex.split(running)))


def after(words: tuple[str, ...], option: str) -> list[str]:
    """The words that follow an option, each time it is given."""
    return [words[spot + 1] for spot, word in enumerate(words) if word == option]


def run(paper: str, executor: str, say: Callable[[str], None]) -> list[Ran]:
    """Runs every program of a paper on the data that is generated for it."""
    ran = []
    with emberlog.Engine(executor=executor, warnings="ignore") as engine, TemporaryDirectory() as scratch:
        for number, program in enumerate(programs(paper)):
            say(f"{program.path}: {program.computes}")
            facts, out = Path(scratch) / f"facts{number}", Path(scratch) / f"out{number}"
            generate.write(program.data(), facts, "facts")
            ran.append(_ran(engine, program, facts, out))
    return ran


def _ran(engine: emberlog.Engine, program: Program, facts: Path, out: Path) -> Ran:
    path = EXAMPLES / program.path
    text, params = path.read_text(encoding="utf-8"), program.params()
    verdicts = {f"{verdict.aggregate} {verdict.status}" for verdict in engine.check(text, params)}
    result = engine.run_file(path, facts_dir=facts, output_dir=out, params=params)
    strata = result.stats.strata
    slowest = max(strata, key=lambda stratum: stratum.seconds)
    rows = sum(result[name].count() for name in result)
    how = f"{slowest.evaluator}: {slowest.how}" if slowest.how else slowest.evaluator
    return Ran(program, ", ".join(sorted(verdicts)), rows, sum(stratum.seconds for stratum in strata), how)
