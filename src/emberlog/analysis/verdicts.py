"""May an aggregate stand inside recursion? `proofs` finds out; components without aggregates need no proof."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from emberlog.analysis.program import CoreRule, Match, Signature, Verdict, atoms
from emberlog.syntax.nodes import Until
from emberlog.types import FLOAT, Value

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


def accumulates(
    members: Iterable[str], rules: Iterable[CoreRule], signatures: Mapping[str, Signature], judged: Recursion
) -> bool:
    """May an iteration hand on what its sums change by?

    Both properties of MRA evaluation must be proved of all its aggregates. These are sums of floats, which alone go on
    changing by less and less; a rule that reads two of them would need the values of both beside their changes.
    """
    inside = set(members)
    if judged.spills or not judged.verdicts or not all(v.holds and v.licence == "mra" for v in judged.verdicts):
        return False
    for name in inside:
        signature = signatures[name]
        if list(signature.aggregates.values()) != ["sum"]:
            return False
        if any(signature.columns[spot].type != FLOAT for spot in signature.aggregates):
            return False
    return all(_hands_on_one(rule, inside) for rule in rules)


def _hands_on_one(rule: CoreRule, inside: set[str]) -> bool:
    """Does the rule read one sum of its component at most, as an atom of its own, and name no contributors?"""
    read = [atom for atom in atoms(rule.body) if atom.predicate in inside]
    plain = all(any(atom is literal for literal in rule.body) and isinstance(atom, Match) for atom in read)
    keyed = any(len(aggregate.arguments) > 1 for _, aggregate in rule.aggregates)
    return len(read) <= 1 and plain and not keyed and rule.limit is None and not rule.order
