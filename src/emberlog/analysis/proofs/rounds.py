"""PreM, checked in every round of an evaluation: gamma(T(I)) = gamma(T(gamma(I))) for the rows I of that round.

T applies the rules of a component once, gamma keeps the extreme row of each group. The rounds are naive and in plain
Python: this is for looking at a program on a sample of its data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from emberlog.analysis.proofs.replay import Indexed, Relations, Row, contributions, derive, same, settle
from emberlog.analysis.proofs.steps import Setting
from emberlog.types import Value


@dataclass(frozen=True, slots=True)
class Violation:
    """A group of `predicate` for which it matters in the round `round` whether what the rules read was aggregated."""

    predicate: str
    round: int
    group: Row
    first: Value | None  # what aggregating first gives
    last: Value | None


def find_violation(
    setting: Setting, relations: Relations, given: Relations, rounds: int, look: Callable[[], None] = lambda: None
) -> Violation | None:
    """The first violation of PreM in the fixpoint of a component.

    `relations` are those of lower strata, `given` the rows that predicates of the component have without rules. Ends
    without an answer after so many rounds: the evaluation itself will tell of that. `look` is called before each one.
    """
    lower = {name: Indexed(rows) for name, rows in relations.items()}
    state: Mapping[str, list[Row]] = {}
    for number in range(1, rounds + 1):
        look()
        raw = _applied(setting, lower, state, given)
        following = _settled(setting, raw)
        if number > 1 and _same(following, state):
            return None
        found = _compared(setting, lower, raw, following, given, number)
        if found is not None:
            return found
        state = following
    return None


def _applied(setting: Setting, lower: Relations, state: Relations, given: Relations) -> dict[str, list[Row]]:
    """Every row that the rules derive from a state; sums and counts are added up, extrema are not taken."""
    known = {**lower, **{name: Indexed(rows) for name, rows in state.items()}}
    found: dict[str, list[Row]] = {}
    for name in setting.members:
        rules = [rule for rule in setting.rules if rule.predicate == name]
        spot = setting.spots.get(name)
        if spot is not None and spot[1] not in ("min", "max"):
            found[name] = derive(rules, known, spot)
        else:
            found[name] = list(dict.fromkeys((*given.get(name, ()), *contributions(rules, known))))
    return found


def _settled(setting: Setting, raw: Mapping[str, list[Row]]) -> dict[str, list[Row]]:
    return {name: settle(rows, *setting.spots[name]) if name in setting.spots else rows for name, rows in raw.items()}


def _compared(
    setting: Setting, lower: Relations, raw: Relations, settled: Relations, given: Relations, number: int
) -> Violation | None:
    first, last = (_settled(setting, _applied(setting, lower, rows, given)) for rows in (settled, raw))
    for name, (position, function) in setting.spots.items():
        if function not in ("min", "max"):
            continue
        one, other = _by_group(first[name], position), _by_group(last[name], position)
        for group in sorted({*one, *other}, key=repr):
            a, b = one.get(group), other.get(group)
            if a is None or b is None or not same(a, b):
                return Violation(name, number, group, a, b)
    return None


def _by_group(rows: Iterable[Row], position: int) -> dict[Row, Value]:
    return {(*row[:position], *row[position + 1 :]): row[position] for row in rows}


def _same(left: Mapping[str, list[Row]], right: Mapping[str, list[Row]]) -> bool:
    return all(set(rows) == set(right.get(name, ())) for name, rows in left.items())
