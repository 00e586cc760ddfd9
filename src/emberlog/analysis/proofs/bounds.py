"""Bounds of a column: what a proof may ask of the data, and what is known of it already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import TypeAlias

from emberlog.analysis.program import Bound
from emberlog.analysis.proofs.steps import Origin, Setting, Step

Bounds: TypeAlias = tuple[Bound, ...]
Needs: TypeAlias = Mapping[Origin, Bounds]

NOT_ZERO: Bounds = (Bound("!=", 0),)
NOT_NEGATIVE: Bounds = (Bound(">=", 0),)
NOT_POSITIVE: Bounds = (Bound("<=", 0),)
POSITIVE: Bounds = (Bound(">", 0),)
NEGATIVE: Bounds = (Bound("<", 0),)
FROM_ONE: Bounds = (Bound(">=", 1),)
TO_ONE: Bounds = (Bound("<=", 1),)
SHARE: Bounds = (Bound(">=", 0), Bound("<=", 1))

# What a proof tries to assume of one column, the weakest first, and of several columns at once.
FAMILY: tuple[Bounds, ...] = (NOT_ZERO, NOT_NEGATIVE, TO_ONE, NOT_POSITIVE, POSITIVE, NEGATIVE, FROM_ONE, SHARE)
MIXED: tuple[tuple[Bounds, Bounds], ...] = (
    (NOT_NEGATIVE, NOT_POSITIVE),
    (NOT_POSITIVE, NOT_NEGATIVE),
    (NOT_POSITIVE, NOT_POSITIVE),
)
OWN: tuple[Bounds, ...] = (NOT_NEGATIVE, NOT_POSITIVE, POSITIVE, NEGATIVE)
TOGETHER: tuple[Bounds, ...] = (NOT_NEGATIVE, POSITIVE, SHARE, FROM_ONE)

# A sum of values within these bounds is within them too.
ADDITIVE = frozenset({NOT_NEGATIVE, NOT_POSITIVE, POSITIVE, NEGATIVE, FROM_ONE})


def show_bounds(name: str, bounds: Bounds) -> str:
    """`w >= 0`, or `0 <= w <= 1`."""
    if len(bounds) == 2 and bounds[0].operator == ">=" and bounds[1].operator == "<=":
        return f"{_number(bounds[0].value)} <= {name} <= {_number(bounds[1].value)}"
    return ", ".join(f"{name} {bound.operator} {_number(bound.value)}" for bound in bounds)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def within(value: Fraction | float, bounds: Bounds) -> bool:
    """Does a number meet the bounds?"""
    return all(_meets(value, bound) for bound in bounds)


def _meets(value: Fraction | float, bound: Bound) -> bool:
    match bound.operator:
        case ">=":
            return value >= bound.value
        case "<=":
            return value <= bound.value
        case ">":
            return value > bound.value
        case "<":
            return value < bound.value
        case _:
            return value != bound.value


@dataclass(frozen=True)
class Knowledge:
    """What is known of columns without looking at data: declared domains, and that counts start at 1."""

    setting: Setting

    def of(self, origin: Origin) -> Bounds:
        setting = self.setting
        match origin.kind:
            case "lower":
                signature = setting.signatures[origin.relation]
                given = signature.external or setting.facts.get(origin.relation)
                # What is declared holds for what is loaded; a count that is also given may be anything.
                return () if given and signature.aggregates else signature.domains.get(origin.position, ())
            case "value":
                return FROM_ONE if setting.only_counts(origin.relation) else ()
            case _:
                return ()

    def of_step(self, step: Step) -> dict[Origin, Bounds]:
        """What is known of the columns that a step reads."""
        found = {origin: self.of(origin) for origin in step.origins.values()}
        return {origin: bounds for origin, bounds in found.items() if bounds}


def merged(needs: Iterable[Needs]) -> dict[Origin, Bounds]:
    """Everything that several proofs need."""
    found: dict[Origin, Bounds] = {}
    for need in needs:
        for origin, bounds in need.items():
            before = found.get(origin, ())
            found[origin] = before + tuple(bound for bound in bounds if bound not in before)
    return {origin: _strongest(bounds) for origin, bounds in found.items()}


def leaves_room(needs: Needs) -> bool:
    """Is there more than one value that each column may have?"""
    return all(_lowest(bounds) < _highest(bounds) for bounds in needs.values())


def _lowest(bounds: Bounds) -> float:
    return max((bound.value for bound in bounds if bound.operator in (">", ">=")), default=-inf)


def _highest(bounds: Bounds) -> float:
    return min((bound.value for bound in bounds if bound.operator in ("<", "<=")), default=inf)


def _strongest(bounds: Bounds) -> Bounds:
    """The bounds without those that others imply."""
    return tuple(b for b in bounds if not any(other != b and _implies(other, b) for other in bounds))


def _implies(strong: Bound, weak: Bound) -> bool:
    match weak.operator:
        case ">=":
            return strong.operator in (">", ">=") and strong.value >= weak.value
        case "<=":
            return strong.operator in ("<", "<=") and strong.value <= weak.value
        case ">":
            return (strong.operator == ">" and strong.value >= weak.value) or (
                strong.operator == ">=" and strong.value > weak.value
            )
        case "<":
            return (strong.operator == "<" and strong.value <= weak.value) or (
                strong.operator == "<=" and strong.value < weak.value
            )
        case _:
            return not _meets(weak.value, strong)
