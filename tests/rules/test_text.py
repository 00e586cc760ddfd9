"""Rules seen from changes and from their heads, as text: each folder of `cases/rules` has a program and what is derived
of its rules, first for rounds, then for inserted and deleted rows of all that they read, then from the head."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from emberlog.analysis.program import CheckedProgram, Component
from emberlog.rules.changes import DeltaRule, Sign, delta_rules
from emberlog.rules.heads import head_rule
from emberlog.rules.text import delta_text, head_text, rule_text
from planned import planned

CASES = sorted(path.parent for path in (Path(__file__).parent.parent / "cases" / "rules").glob("*/program.dl"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_derived_rules_are_as_written(case: Path) -> None:
    _, checked, _ = planned((case / "program.dl").read_text(encoding="utf-8"))
    text = "\n".join(line for component in checked.components for line in _derived(component, checked)) + "\n"
    expected = case / "derived.txt"
    if os.environ.get("UPDATE_CASES"):
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8")


def _derived(component: Component, checked: CheckedProgram) -> Iterator[str]:
    inside = frozenset(component.predicates) if component.recursive else frozenset[str]()
    for rule in component.rules:
        yield rule_text(rule)
        rounds = delta_rules(rule, inside, checked.signatures)
        yield from (f"    rounds   {delta_text(delta)}{_contribution(delta)}" for delta in rounds)
        everything = frozenset(rule.reads())
        signs: tuple[Sign, ...] = ("+", "-")
        for sign in signs:
            for delta in delta_rules(rule, everything, checked.signatures, sign):
                yield f"    change   {delta_text(delta)}"
        yield f"    head     {head_text(head_rule(rule, inside))}"


def _contribution(delta: DeltaRule) -> str:
    """What tells contributions apart, where they are added up."""
    if delta.idempotent:
        return ""
    moved = f", moved {', '.join(sorted(delta.moved))}" if delta.moved else ""
    return f"  -- one for each {', '.join(delta.identity)}{moved}"
