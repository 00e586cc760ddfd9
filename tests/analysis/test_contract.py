"""Checked programs keep the promises that planning relies on; wrong ones give a ProgramError and nothing else."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.contract import assert_contract
from emberlog.analysis.check import check
from emberlog.diagnostics import ProgramError
from emberlog.source import Source
from emberlog.syntax.parser import parse
from emberlog.types import BOOL, FLOAT, NUMBER, SYMBOL, UNSIGNED, Column, Value
from strategies import Case, aggregate_programs, arithmetic_programs, programs, recursive_programs

ROOT = Path(__file__).parents[2]
FILES = sorted(path for folder in ("tests/cases", "examples") for path in (ROOT / folder).rglob("*.dl"))
KINDS = {"number": NUMBER, "float": FLOAT, "symbol": SYMBOL, "unsigned": UNSIGNED, "bool": BOOL}
FRACTIONS = ("alpha", "ALPHA", "BETA", "EPS")  # the parameters that are floats
TOKENS = re.compile(r'"[^"\n]*"|\w+|\s+|[<>!:=]+|.', re.DOTALL)


@given(st.one_of(programs(), recursive_programs(), aggregate_programs(), arithmetic_programs()))
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_random_programs(case: Case) -> None:
    catalog = {
        name: tuple(Column(f"c{i}", KINDS[kind]) for i, kind in enumerate(case.columns[name])) for name in case.facts
    }
    params: dict[str, Value] = {k: v for k, v in case.params.items() if isinstance(v, bool | int | float | str)}
    assert_contract(check(parse(Source("test.dl", case.program)), catalog, params))


@pytest.mark.parametrize("path", FILES, ids=lambda path: "/".join(path.parts[-3:]))
def test_programs_of_cases_and_examples(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    params: dict[str, Value] = {name: 0.5 if name in FRACTIONS else 1 for name in re.findall(r"\$(\w+)", text)}
    try:
        program = check(parse(Source(path.name, text)), {}, params, naive=True)
    except ProgramError as error:
        # Some programs read sources that a test registers.
        assert "errors" in path.parts or {diagnostic.code for diagnostic in error.diagnostics()} == {"E0208"}
        return
    assert_contract(program)


@pytest.mark.parametrize("seed", range(300))
def test_damaged_programs_are_refused_or_right(seed: int) -> None:
    choose = random.Random(seed)
    tokens = TOKENS.findall(choose.choice(FILES).read_text(encoding="utf-8"))[:600]
    for _ in range(choose.randint(1, 4)):
        spot, other = choose.randrange(len(tokens)), choose.randrange(len(tokens))
        match choose.randrange(3):
            case 0:
                tokens[spot] = tokens[other]
            case 1:
                tokens[spot] = ""
            case _:
                tokens[spot], tokens[other] = tokens[other], tokens[spot]
    try:
        program = check(parse(Source("test.dl", "".join(tokens))), {}, naive=True)
    except ProgramError as error:
        assert str(error)
        return
    assert_contract(program)
