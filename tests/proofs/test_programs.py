"""The fourteen programs of PowerLog's Table 1, and traps: what the checker says of them, and how long it takes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import emberlog
from emberlog.cli.check import Checked, as_json, check_file, lines_of

ROOT = Path(__file__).parent.parent.parent
POWERLOG = ROOT / "examples" / "powerlog"
TRAPS = sorted((Path(__file__).parent / "traps").glob("*.dl"))
PARAMS = {"ID": 1, "BETA": 0.1}

TABLE = {
    "sssp": ("sssp", "min", "proved", "prem"),
    "pagerank": ("rank", "sum", "proved", "mra"),
    "cc": ("cc", "min", "proved", "prem"),
    "adsorption": ("L", "sum", "proved", "mra"),
    "katz": ("K", "sum", "proved", "mra"),
    "belief_propagation": ("B", "sum", "proved", "mra"),
    "paths": ("paths", "sum", "proved", "mra"),
    "cost": ("cost", "sum", "proved", "mra"),
    "viterbi": ("v", "max", "conditional", "prem"),
    "simrank": ("sim", "sum", "proved", "mra"),
    "lca": ("up", "min", "proved", "prem"),
    "apsp": ("path", "min", "proved", "prem"),
    "commnet": ("comm", "sum", "refuted", ""),
    "gcn_forward": ("gcn", "sum", "refuted", ""),
}


@pytest.mark.parametrize("name", TABLE)
def test_table_1(name: str) -> None:
    (verdict,) = check_file(POWERLOG / f"{name}.dl", PARAMS).verdicts
    assert (verdict.predicate, verdict.aggregate, verdict.status, verdict.licence) == TABLE[name]
    assert (verdict.counterexample is not None) == (verdict.status == "refuted")


def test_table_1_is_whole() -> None:
    assert {path.stem for path in POWERLOG.glob("*.dl")} == set(TABLE)


def test_the_numbers_of_the_paper_refute_gcn() -> None:
    (verdict,) = check_file(POWERLOG / "gcn_forward.dl", PARAMS).verdicts
    assert verdict.counterexample == (
        "with gcn(1, -1), gcn(1, 2), gcn(3, 1), gcn(3, -2), A(1, 2, 1), A(3, 2, 1), para(1): "
        "aggregating first gives 1, aggregating last gives 3"
    )


@pytest.mark.parametrize("path", TRAPS, ids=lambda path: path.stem)
def test_trap(path: Path) -> None:
    """The first line of a trap says what is wrong: predicate, status, and how the reason begins."""
    predicate, status, reason = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("// ").split(": ", 2)
    checked = check_file(path, {})
    assert not checked.right
    if status == "mistake":
        assert checked.mistakes[0].message.startswith(reason)
        return
    found = next(verdict for verdict in checked.verdicts if verdict.predicate == predicate)
    assert found.status == status
    assert found.reason.startswith(reason)
    assert bool(found.facts) == (status == "refuted")


def test_checking_them_all_takes_less_than_two_seconds() -> None:
    paths = [*sorted(POWERLOG.glob("*.dl")), *TRAPS]
    assert len(paths) >= 24
    started = time.process_time()
    for path in paths:
        check_file(path, PARAMS)
    assert time.process_time() - started < 2


# --- how it is shown -------------------------------------------------------------------------------------------------


def test_a_verdict_as_text() -> None:
    lines = [line for line, _ in lines_of(check_file(POWERLOG / "viterbi.dl", {}), alone=True)]
    assert lines[0].endswith("viterbi.dl:13:9: max in v: conditional (PreM: max over a non-decreasing function)")
    assert lines[2] == "     |         ^^^^^^"
    assert "  assumes: L1 >= 0, L2 >= 0; the data are checked before the recursion starts" in lines


def test_verdicts_as_json() -> None:
    found = [check_file(POWERLOG / "gcn_forward.dl", {}), check_file(TRAPS[0], {})]
    one, other = json.loads(json.dumps(as_json(found)))
    (verdict,) = one["verdicts"]
    assert (verdict["predicate"], verdict["status"], verdict["holds"]) == ("gcn", "refuted", False)
    assert verdict["facts"][0] == ["gcn", [1, -1.0]]
    assert (verdict["line"], verdict["column"]) == (12, 13)
    assert other["program"] == str(TRAPS[0])


def test_mistakes_as_json(tmp_path: Path) -> None:
    path = tmp_path / "wrong.dl"
    path.write_text("p(X) <- q(Y).")
    (entry,) = as_json([check_file(path, {})])
    assert entry["mistakes"][0]["code"] == "E0401"


def test_no_aggregates() -> None:
    assert Checked(Path("a.dl")).right


def test_the_engine_tells_the_same() -> None:
    with emberlog.Engine(executor="local") as engine:
        (verdict,) = engine.check("p(X, min<D>) <- q(X, D).\np(Y, min<D>) <- p(X, C), q(X, Y), D = 3 - C.")
    assert verdict.status == "refuted"
    assert verdict.counterexample is not None


def test_programs_without_aggregates_in_recursion_do_not_load_z3() -> None:
    code = (
        "import sys; from emberlog.analysis.check import check_aggregates; from emberlog.source import Source;"
        "from emberlog.syntax.parser import parse;"
        "text = 't(X, Y) <- a(X, Y). t(X, Y) <- t(X, Z), a(Z, Y). c(count(X)) <- t(X, _).';"
        "check_aggregates(parse(Source('', text)));"
        "print('z3' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
