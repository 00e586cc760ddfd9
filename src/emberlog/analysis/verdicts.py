"""May an aggregate stand inside recursion? `proofs` finds out; components without aggregates need no proof."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from emberlog.analysis.program import CoreRule, Signature, Verdict
from emberlog.syntax.nodes import Until
from emberlog.types import Value

_ONE_AT_A_TIME = Lock()  # Z3's terms belong to one thread at a time


@dataclass(frozen=True, slots=True)
class Recursion:
    """The aggregates of a recursive component: their verdicts, and whether values reach columns of plain predicates."""

    verdicts: tuple[Verdict, ...]
    spills: bool


def examine(
    members: Iterable[str],
    rules: Iterable[CoreRule],
    signatures: Mapping[str, Signature],
    facts: Mapping[str, tuple[tuple[Value, ...], ...]],
    until: Until | None,
    invents: bool,
) -> Recursion:
    """The verdicts of the aggregates of a recursive component."""
    rules = tuple(rules)
    if not any(rule.aggregates for rule in rules):
        return Recursion((), False)
    from emberlog.analysis.proofs.examine import Examiner  # loads Z3
    from emberlog.analysis.proofs.steps import Setting

    setting = Setting(frozenset(members), rules, signatures, facts)
    with _ONE_AT_A_TIME:
        return Recursion(tuple(Examiner(setting).verdicts(until, invents)), bool(setting.carried))
