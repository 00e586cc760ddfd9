"""Every program under `examples/`, on small generated data, against an oracle that knows nothing of Emberlog."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import emberlog
import naive
import oracles
from emberlog import generate
from emberlog.diagnostics import UsageError
from emberlog.generate import Tables
from emberlog.source import Source
from emberlog.syntax.parser import parse
from oracles import Answer, Facts, Row

FOLDER = Path(__file__).parent.parent / "examples"


@dataclass(frozen=True)
class Tolerance:
    """How far a float may lie from the oracle's: relatively, or absolutely."""

    relative: float = 1e-9
    absolute: float = 0.0


def contraction(epsilon: float, factor: float) -> Tolerance:
    """A program that stops when a round changes less than epsilon and whose rounds shrink changes by the factor."""
    return Tolerance(relative=0.0, absolute=epsilon * factor / (1 - factor))


@dataclass(frozen=True)
class Example:
    """A program, its data and its answer. `files` has the generated table that a relation of another name reads."""

    path: str
    data: partial[Tables]
    oracle: Callable[[Facts], Answer]
    params: Mapping[str, int | float] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    tolerance: Tolerance = Tolerance()

    @property
    def text(self) -> str:
        return (FOLDER / self.path).read_text(encoding="utf-8")

    def relations(self, tables: Tables) -> Tables:
        return {**tables, **{relation: tables[name] for relation, name in self.files.items()}}


def by_reference(name: str, data: partial[Tables]) -> Example:
    """A program of `program-analysis`: its answer is that of the reference, which applies rules to sets of rows."""
    path = f"program-analysis/{name}.dl"

    def answer(facts: Facts) -> Answer:
        text = (FOLDER / path).read_text(encoding="utf-8")
        wanted = tuple(re.findall(r"^\.output (\w+)", text, re.MULTILINE))
        rows = {name: sorted(found) for name, found in facts.items()}
        return naive.evaluate(parse(Source(path, text)), rows, {}, wanted=wanted)

    return Example(path, data, answer)


EXAMPLES: tuple[Example, ...] = (
    Example("bigdatalog/tc.dl", partial(generate.gnp, 60, 0.03, seed=1), oracles.tc),
    Example("bigdatalog/sg.dl", partial(generate.tree, 4, seed=1), oracles.sg),
    Example("bigdatalog/tc_nonlinear.dl", partial(generate.grid, 6), oracles.tc),
    Example("bigdatalog/triangles.dl", partial(generate.rmat, 64, seed=1), oracles.triangles),
    Example(
        "bigdatalog/sssp.dl",
        partial(generate.rmat, 64, seed=2),
        partial(oracles.sssp, edges="arc", source=1, answer="sssp"),
        files={"arc": "warc"},
    ),
    Example("bigdatalog/attend.dl", partial(generate.social, 80, seed=1), partial(oracles.attend, counts="cntComing")),
    Example(
        "bigdatalog/reach.dl", partial(generate.gnp, 80, 0.02, seed=5), partial(oracles.reach, source=1), {"ID": 1}
    ),
    Example("bigdatalog/cc.dl", partial(generate.gnp, 100, 0.015, seed=2), oracles.cc),
    Example("bigdatalog/pymk.dl", partial(generate.social, 60, seed=2), partial(oracles.pymk, person=3), {"ID": 3}),
    Example("bigdatalog/mlm.dl", partial(generate.mlm, 0.001, seed=1), oracles.mlm),
    Example("dcdatalog/tc.dl", partial(generate.tree, 4, seed=2), oracles.tc),
    Example("dcdatalog/cc.dl", partial(generate.rmat, 40, seed=3), oracles.cc),
    Example(
        "dcdatalog/apsp.dl",
        partial(generate.gnp, 25, 0.1, seed=1),
        partial(oracles.apsp, edges="warc", answer="apsp"),
    ),
    Example("dcdatalog/attend.dl", partial(generate.social, 80, seed=3), partial(oracles.attend, counts="cnt")),
    Example("dcdatalog/sg.dl", partial(generate.gnp, 30, 0.06, seed=1), oracles.sg),
    Example(
        "dcdatalog/pagerank.dl",
        partial(generate.gnp, 40, 0.06, seed=1),
        partial(oracles.pagerank_by_contributor, alpha=0.85, nodes=40),
        {"ALPHA": 0.85, "VNUM": 40},
    ),
    Example(
        "dcdatalog/sssp.dl",
        partial(generate.grid, 8, seed=1),
        partial(oracles.sssp, edges="warc", source=0, answer="results"),
        {"ID": 0},
    ),
    Example("dcdatalog/delivery.dl", partial(generate.bom, 300, seed=1), oracles.delivery),
    Example("graphs/cc_undirected.dl", partial(generate.gnp, 120, 0.008, seed=1), oracles.cc_undirected),
    Example("graphs/paths.dl", partial(generate.dag, 80, seed=1), oracles.paths, files={"edge": "arc"}),
    Example(
        "graphs/apsp_linear.dl",
        partial(generate.rmat, 16, seed=1),
        partial(oracles.apsp, edges="arc", answer="path"),
        files={"arc": "warc"},
    ),
    Example(
        "graphs/pagerank.dl",
        partial(generate.rmat, 40, seed=4),
        oracles.pagerank,
        files={"edge": "arc"},
        tolerance=contraction(1e-4, 0.85),
    ),
    Example("graphs/lca.dl", partial(generate.tree, 4, seed=3), oracles.lca),
    Example(
        "business/cost.dl", partial(generate.bom, 300, seed=2), oracles.cost, files={"assbl": "uses", "basic": "price"}
    ),
    Example("business/company_control.dl", partial(generate.social, 80, seed=4), oracles.company_control),
    Example(
        "powerlog/sssp.dl",
        partial(generate.rmat, 64, seed=5),
        partial(oracles.sssp, edges="edge", source=1, answer="sssp"),
        {"ID": 1},
        files={"edge": "warc"},
    ),
    Example(
        "powerlog/pagerank.dl",
        partial(generate.network, 40, seed=1),
        oracles.pagerank,
        tolerance=contraction(1e-4, 0.85),
    ),
    Example(
        "powerlog/cc.dl",
        partial(generate.gnp, 100, 0.015, seed=3),
        partial(oracles.cc, edges="edge"),
        files={"edge": "arc"},
    ),
    Example(
        "powerlog/adsorption.dl",
        partial(generate.network, 40, seed=2),
        oracles.adsorption,
        files={"A": "link", "p_i": "inject", "p_c": "carry"},
        tolerance=contraction(1e-3, 0.7),
    ),
    Example(
        "powerlog/katz.dl",
        partial(generate.network, 40, seed=3),
        partial(oracles.katz, beta=0.1),
        {"BETA": 0.1},
        tolerance=contraction(1e-3, 0.4),
    ),
    Example(
        "powerlog/belief_propagation.dl",
        partial(generate.network, 30, seed=4),
        oracles.belief_propagation,
        files={"I": "prior", "E": "link", "H": "coupling"},
        tolerance=contraction(1e-4, 0.8),
    ),
    Example("powerlog/paths.dl", partial(generate.dag, 80, seed=2), oracles.paths, files={"edge": "arc"}),
    Example(
        "powerlog/cost.dl", partial(generate.bom, 300, seed=3), oracles.cost, files={"assbl": "uses", "basic": "price"}
    ),
    Example("powerlog/viterbi.dl", partial(generate.hmm, 30, seed=1), oracles.viterbi),
    Example(
        "powerlog/simrank.dl",
        partial(generate.network, 15, seed=5),
        oracles.simrank,
        tolerance=contraction(1e-4, 0.95),
    ),
    Example("powerlog/lca.dl", partial(generate.tree, 4, seed=4), oracles.lca),
    Example(
        "powerlog/apsp.dl",
        partial(generate.gnp, 25, 0.1, seed=2),
        partial(oracles.apsp, edges="arc", answer="path"),
        files={"arc": "warc"},
    ),
    Example(
        "powerlog/commnet.dl",
        partial(generate.network, 40, seed=6),
        oracles.commnet,
        tolerance=contraction(1e-4, 0.5),
    ),
    Example(
        "powerlog/gcn_forward.dl",
        partial(generate.network, 40, seed=7),
        oracles.gcn_forward,
        files={"A": "link"},
        tolerance=contraction(1e-4, 0.5),
    ),
    Example("business/permissions.dl", partial(generate.org, 60, seed=1), oracles.permissions),
    Example("business/fraud_rings.dl", partial(generate.accounts, 60, seed=1), oracles.fraud_rings),
    Example("code/points_to.dl", partial(generate.heap, 100, seed=1), oracles.points_to),
    by_reference("fields", partial(generate.objects, 200, seed=1)),
    by_reference("doop", partial(generate.objects, 120, seed=3)),
    by_reference("cspa", partial(generate.aliases, 40, seed=1)),
    by_reference("csda", partial(generate.flow, 60, seed=1)),
    by_reference("dyck", partial(generate.brackets, 60, seed=1)),
    by_reference("ontology", partial(generate.ontology, 60, seed=1)),
    by_reference("crdt", partial(generate.edits, 60, seed=1)),
    by_reference("polonius", partial(generate.loans, 60, seed=1)),
    by_reference("symbols", partial(generate.modules, 30, seed=1)),
)

every_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.path)


def rows_of(table: Any) -> set[Row]:
    return set(zip(*(column.to_pylist() for column in table.columns), strict=True))


def assert_same(got: Iterable[Row], want: Iterable[Row], tolerance: Tolerance) -> None:
    """The same rows; floats may differ within the tolerance, so rows are paired by their other columns."""
    mine, theirs = (
        sorted(rows, key=lambda row: tuple(v for v in row if not isinstance(v, float))) for rows in (got, want)
    )
    assert len(mine) == len(theirs)
    wrong = [(a, b) for a, b in zip(mine, theirs, strict=True) if not _same_row(a, b, tolerance)]
    assert not wrong, f"{len(wrong)} rows differ, the first: got {wrong[0][0]}, want {wrong[0][1]}"


def _same_row(mine: Row, theirs: Row, tolerance: Tolerance) -> bool:
    return len(mine) == len(theirs) and all(
        type(a) is type(b)
        and (
            math.isclose(a, b, rel_tol=tolerance.relative, abs_tol=tolerance.absolute)
            if isinstance(a, float)
            else a == b
        )
        for a, b in zip(mine, theirs, strict=True)
    )


def run_and_compare(example: Example, engine: emberlog.Engine, **options: Any) -> None:
    relations = example.relations(example.data())
    for name, table in relations.items():
        engine.register(name, table)
    result = engine.run(example.text, params=dict(example.params), **options)
    want = example.oracle({name: rows_of(table) for name, table in relations.items()})
    for name in asked_for(example, want):
        assert_same(result[name].rows(), want[name], example.tolerance)


def asked_for(example: Example, want: Answer) -> list[str]:
    """What the program outputs; all that the oracle knows where it says nothing."""
    return re.findall(r"^\.output (\w+)", example.text, re.MULTILINE) or list(want)


@every_example
def test_example_on_local(example: Example) -> None:
    with emberlog.Engine(executor="local") as engine:
        run_and_compare(example, engine)


@pytest.mark.spark_sample(5)
@pytest.mark.spark
@every_example
def test_example_on_spark(example: Example, spark: Any) -> None:
    with emberlog.Engine(spark=spark, executor="spark") as engine:
        run_and_compare(example, engine)


POWERLOG = [example for example in EXAMPLES if example.path.startswith("powerlog/")]
of_powerlog = pytest.mark.parametrize("example", POWERLOG, ids=lambda example: example.path)


@of_powerlog
@pytest.mark.parametrize("naive", [False, True], ids=["", "naive"])
@pytest.mark.parametrize("evaluator", ["sql", "kernel"])
def test_aggregates_in_recursion_by_each_evaluator(example: Example, evaluator: str, naive: bool) -> None:
    with emberlog.Engine(executor="local") as engine, _refused(example, evaluator, naive):
        run_and_compare(example, engine, evaluator=evaluator, naive=naive)


def _refused(example: Example, evaluator: str, naive: bool) -> AbstractContextManager[object]:
    """The one thing that an evaluator does not do, and says so."""
    if evaluator == "kernel" and naive and example.path == "powerlog/apsp.dl":
        return pytest.raises(UsageError, match="a rule of an iteration reads the last state twice")
    return nullcontext()


# A round of SQL is half a second of jobs on Spark: a program with deltas and one with states run always. Sums that hand
# on changes take a minute; `test_stats` has a small one. Loops are compiled in Spark's tasks: a minimum by pivots, sums
# that hand on changes, states, and a maximum of products.
ALWAYS = {
    "sql": ("powerlog/sssp.dl", "powerlog/commnet.dl"),
    "kernel": ("powerlog/apsp.dl", "powerlog/pagerank.dl", "powerlog/commnet.dl", "powerlog/viterbi.dl"),
}
ON_SPARK = [
    pytest.param(
        example,
        evaluator,
        id=f"{evaluator}-{example.path}",
        marks=() if example.path in ALWAYS[evaluator] else pytest.mark.slow,
    )
    for example in POWERLOG
    for evaluator in ("sql", "kernel")
]


@pytest.mark.spark
@pytest.mark.parametrize(("example", "evaluator"), ON_SPARK)
def test_aggregates_in_recursion_on_spark(example: Example, evaluator: str, spark: Any) -> None:
    with emberlog.Engine(spark=spark, executor="spark") as engine:
        run_and_compare(example, engine, evaluator=evaluator, placement="spark")


@pytest.mark.parametrize("example", EXAMPLES[::3], ids=lambda example: example.path)
def test_example_from_files(example: Example, tmp_path: Path) -> None:
    """As on the command line: facts from a folder, results into a folder."""
    tables = example.data()
    facts, out = tmp_path / "facts", tmp_path / "out"
    generate.write(tables, facts)
    with emberlog.Engine(executor="local") as engine:
        engine.run_file(FOLDER / example.path, facts_dir=facts, output_dir=out, params=dict(example.params))
    want = example.oracle({name: rows_of(table) for name, table in example.relations(tables).items()})
    for name in re.findall(r"^\.output (\w+)", example.text, re.MULTILINE):
        got = [
            tuple(type(value)(text) for text, value in zip(line.split("\t"), next(iter(want[name])), strict=True))
            for line in (out / f"{name}.csv").read_text(encoding="utf-8").splitlines()
        ]
        assert_same(got, want[name], example.tolerance)


def test_every_program_is_tested() -> None:
    assert {example.path for example in EXAMPLES} == {
        path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.dl")
    }


@every_example
def test_data_is_not_trivial(example: Example) -> None:
    relations = {name: rows_of(table) for name, table in example.relations(example.data()).items()}
    assert all(example.oracle(relations).values())


def commands() -> dict[str, tuple[list[str], list[str]]]:
    """From the README's table: for each program, the words of the two commands."""
    found = {}
    for line in (FOLDER / "README.md").read_text(encoding="utf-8").splitlines():
        match = re.search(r"`emberlog (generate .*)`<br>`emberlog (run .*)`", line)
        if match:
            make, run = (shlex.split(part) for part in match.groups())
            found[run[1].removeprefix("examples/")] = (make, run)
    return found


@every_example
def test_readme_tells_how_to_run_it(example: Example) -> None:
    make, run = commands()[example.path]
    assert make[1] == example.data.func.__name__
    assert make[make.index("--out") + 1] == run[run.index("-F") + 1]
    given = {run[i + 1].partition("=")[0] for i, word in enumerate(run) if word == "--param"}
    assert given == set(example.params)
