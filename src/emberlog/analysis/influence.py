"""How a value depends on the aggregated values of its own recursion.

`Influence` says of a term through which of them it goes, whether it grows or falls with them, whether it is linear in
them, and which factors must not be negative for that. Values that are computed from base relations alone have `NONE`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal as OneOf
from typing import assert_never

from emberlog.analysis.functions import NARROWING, type_of
from emberlog.analysis.program import Absent, Bind, CoreRule, Filter, Gather, Match, Spread
from emberlog.syntax.nodes import Aggregate, Anonymous, Call, Collect, Constant, Parameter, Term, Variable
from emberlog.types import Type

Direction = OneOf["none", "up", "down", "other"]

_FLIPPED: Mapping[Direction, Direction] = {"none": "none", "up": "down", "down": "up", "other": "other"}
_GROWING = frozenset({"exp", "log", "sqrt", "relu", "tanh", "clip"})
BENT = frozenset({"min", "max", "relu", "clip"})
"""Functions that are linear but for a bend: a sum through one of them is wrong, and an example shows it."""


@dataclass(frozen=True, slots=True)
class Influence:
    """`sources` are the aggregated predicates, `through` the variables that carry their values, `operations` what is
    computed on the way, and `factors` the terms that must be at least 0 for `direction` to be right."""

    sources: frozenset[str] = frozenset()
    direction: Direction = "none"
    linear: bool = True
    through: frozenset[str] = frozenset()
    operations: frozenset[str] = frozenset()
    factors: tuple[Term, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.sources)


NONE = Influence()


def join(parts: Iterable[Influence]) -> Influence:
    """The influence of a value that may be any of several, or grows with each of them."""
    joined = NONE
    for part in parts:
        if not part:
            continue
        same = joined.direction in ("none", part.direction)
        joined = Influence(
            joined.sources | part.sources,
            part.direction if same else "other",
            joined.linear and part.linear,
            joined.through | part.through,
            joined.operations | part.operations,
            tuple(dict.fromkeys(joined.factors + part.factors)),
        )
    return joined


def constant_value(term: Term) -> float | None:
    """The value of a term that is a number in the text."""
    match term:
        case Constant(value) if not isinstance(value, bool | str):
            return value
        case Call("neg", (inner,)):
            negated = constant_value(inner)
            return None if negated is None else -negated
        case Call("to_float", (inner,)):
            return constant_value(inner)
        case _:
            return None


def influence(term: Term, of: Mapping[str, Influence], types: Mapping[str, Type]) -> Influence:
    """The influence of a term, given that of its variables."""
    match term:
        case Variable(name):
            return of.get(name, NONE)
        case Call(function, arguments):
            parts = [influence(argument, of, types) for argument in arguments]
            if not any(parts):
                return NONE
            computed = _call(term, parts, types)
            return replace(computed, operations=computed.operations | {function})
        case Aggregate(_, arguments):
            return influence(arguments[-1], of, types)
        case Constant() | Anonymous() | Parameter() | Collect():
            return NONE
        case _:
            assert_never(term)


def _call(call: Call, parts: list[Influence], types: Mapping[str, Type]) -> Influence:
    both = join(parts)
    match call.function:
        case "+":
            return both
        case "-":
            return join([parts[0], _flip(parts[1])])
        case "neg":
            return _flip(both)
        case "*":
            return _product(call, parts)
        case "/":
            return _quotient(call, parts, types)
        case "min" | "max":
            return replace(both, linear=False)
        case name if name in _GROWING:
            return replace(both, linear=False) if not any(parts[1:]) else _any(both)
        case "to_number":
            return replace(both, linear=type_of(call.arguments[0], types).is_integer)
        case name if name == "to_float" or name in NARROWING:
            return both
        case _:
            return _any(both)


def _flip(part: Influence) -> Influence:
    return replace(part, direction=_FLIPPED[part.direction])


def _any(part: Influence) -> Influence:
    return replace(part, direction="other", linear=False)


def _product(call: Call, parts: list[Influence]) -> Influence:
    if all(parts):
        return _any(join(parts))
    value, factor = (parts[0], call.arguments[1]) if parts[0] else (parts[1], call.arguments[0])
    known = constant_value(factor)
    if known is None:
        return replace(value, factors=(*value.factors, factor))
    return value if known >= 0 else _flip(value)


def _quotient(call: Call, parts: list[Influence], types: Mapping[str, Type]) -> Influence:
    value, divisor = parts[0], constant_value(call.arguments[1])
    if parts[1]:
        return _any(join(parts))
    # The quotient of whole numbers is cut off: it grows with the value, but it is not linear in it.
    linear = value.linear and type_of(call, types).kind == "float"
    if divisor is None:
        return replace(value, direction="other", linear=linear)
    return replace(value if divisor > 0 else _flip(value), linear=linear)


# --- rules -----------------------------------------------------------------------------------------------------------

Spot = tuple[str, int]
"""A predicate of the component and a position of its arguments."""


def of_variables(
    rule: CoreRule, members: frozenset[str], aggregated: Mapping[str, int], plain: Mapping[Spot, Influence]
) -> dict[str, Influence]:
    """The influence of each variable of a rule. `plain` has that of the columns that are not aggregated."""
    of: dict[str, Influence] = {}
    for literal in rule.body:
        match literal:
            case Match(predicate, arguments) if predicate in members:
                for position, argument in enumerate(arguments):
                    if isinstance(argument, Variable):
                        read = _column(predicate, position, argument.name, aggregated, plain)
                        of[argument.name] = join([of.get(argument.name, NONE), read])
            case Bind(variable, term):
                of[variable] = influence(term, of, rule.types)
            case Spread(variable, start, stop, step):
                of[variable] = _any(join(influence(term, of, rule.types) for term in (start, stop, step)))
            case Gather(variable, injected=injected, witnesses=witnesses):
                inner = _any(join(of.get(name, NONE) for name in injected))
                of |= dict.fromkeys((variable, *witnesses), inner)
            case Match() | Absent() | Filter():
                pass
    return {name: part for name, part in of.items() if part}


def _column(
    predicate: str, position: int, name: str, aggregated: Mapping[str, int], plain: Mapping[Spot, Influence]
) -> Influence:
    if aggregated.get(predicate) == position:
        return Influence(frozenset({predicate}), "up", True, frozenset({name}))
    read = plain.get((predicate, position), NONE)
    return replace(read, through=frozenset({name})) if read else NONE


def of_columns(
    rules: Iterable[CoreRule], members: frozenset[str], aggregated: Mapping[str, int]
) -> dict[Spot, Influence]:
    """The influence of the columns that are not aggregated: of those of plain predicates, and of groups."""
    rules = list(rules)
    plain: dict[Spot, Influence] = {}
    while True:
        found: dict[Spot, Influence] = {}
        for rule in rules:
            of = of_variables(rule, members, aggregated, plain)
            for position, argument in enumerate(rule.arguments):
                if aggregated.get(rule.predicate) != position:
                    spot = (rule.predicate, position)
                    # What a factor is called inside of a rule means nothing outside of it.
                    part = _closed(influence(argument, of, rule.types))
                    found[spot] = join([found.get(spot, NONE), plain.get(spot, NONE), part])
        found = {spot: part for spot, part in found.items() if part}
        if found == plain:
            return plain
        plain = found


def _closed(part: Influence) -> Influence:
    if part.factors:
        part = replace(part, direction="other", factors=())
    return replace(part, through=frozenset())
