"""The aggregates of each predicate: all its rules feed one group, so they agree on every aggregated column, and on what
a `countd` counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from emberlog.analysis.draft import Draft
from emberlog.analysis.functions import type_of
from emberlog.analysis.program import CoreRule
from emberlog.diagnostics import Diagnostic, Label
from emberlog.syntax.nodes import Aggregate, Call, Term
from emberlog.types import Type


def aggregates_of(drafts: Iterable[Draft]) -> tuple[Mapping[str, Mapping[int, str]], list[Diagnostic]]:
    """The aggregated positions of the heads of each predicate, with the function; and where rules differ.

    A head with a plain argument in such a position contributes its value.
    """
    first: dict[str, dict[int, Aggregate]] = {}
    found = []
    drafts = list(drafts)
    for draft in drafts:
        for position, aggregate in draft.aggregates:
            other = first.setdefault(draft.predicate, {}).setdefault(position, aggregate)
            if (other.function, other.limit) != (aggregate.function, aggregate.limit):
                message = f"the rules of `{draft.predicate}` aggregate one column in different ways"
                labels = (Label(aggregate.span, _shown(aggregate)), Label(other.span, f"{_shown(other)} before"))
                help = "all rules of a predicate feed one group: give one of them a predicate of its own"
                found.append(Diagnostic("E0212", message, labels, help))
    aggregates = {name: {spot: a.function for spot, a in spots.items()} for name, spots in first.items()}
    return aggregates, [*found, *_half_counted(drafts, aggregates)]


def _half_counted(drafts: Iterable[Draft], aggregates: Mapping[str, Mapping[int, str]]) -> Iterator[Diagnostic]:
    """Rules that count in one `countd` column of their predicate and give a count to another."""
    for draft in drafts:
        counted = {spot for spot, name in aggregates.get(draft.predicate, {}).items() if name == "countd"}
        own = {spot: aggregate for spot, aggregate in draft.aggregates if spot in counted}
        if own and counted - own.keys():
            message = f"this rule of `{draft.predicate}` counts in one `countd` column and gives a count to another"
            label = Label(next(iter(own.values())).span, "counts here")
            help = "write a rule that counts, and one that gives counts to both"
            yield Diagnostic("E0212", message, (label,), help)


def agree_on_counted(rules: Mapping[int, CoreRule]) -> tuple[dict[int, CoreRule], list[Diagnostic]]:
    """The rules with what each `countd` counts of one type, and where it has none.

    A number counts as a float where another rule of the predicate counts floats: values are compared so, too.
    """
    spots: dict[tuple[str, int], dict[int, Aggregate]] = {}
    for rule in rules.values():
        for spot, aggregate in rule.aggregates:
            if aggregate.function == "countd":
                spots.setdefault((rule.predicate, spot), {})[rule.id] = aggregate
    changed = dict(rules)
    found: list[Diagnostic] = []
    for (predicate, spot), counted in spots.items():
        types = {number: type_of(aggregate.arguments[0], rules[number].types) for number, aggregate in counted.items()}
        kinds = {type.kind for type in types.values()}
        if len(kinds) == 1:
            continue
        if not kinds <= {"number", "float"} and not kinds <= {"unsigned", "float"}:
            found.append(_counted_conflict(predicate, counted, types))
            continue
        for number, type in types.items():
            if type.kind != "float":
                changed[number] = _counting_floats(changed[number], spot)
    return changed, found


def _counting_floats(rule: CoreRule, spot: int) -> CoreRule:
    arguments: list[Term] = list(rule.arguments)
    aggregate = arguments[spot]
    assert isinstance(aggregate, Aggregate)
    (value,) = aggregate.arguments
    arguments[spot] = replace(aggregate, arguments=(Call("to_float", (value,), span=value.span),))
    return replace(rule, arguments=tuple(arguments))


def _counted_conflict(predicate: str, counted: Mapping[int, Aggregate], types: Mapping[int, Type]) -> Diagnostic:
    first, *others = counted
    other = next(number for number in others if types[number].kind != types[first].kind)
    message = f"type conflict: the `countd` of `{predicate}` counts {types[other]} and {types[first]}"
    labels = (
        Label(counted[other].span, f"{types[other]} here"),
        Label(counted[first].span, f"{types[first]} before"),
    )
    return Diagnostic(
        "E0501", message, labels, "one group counts values of one type: `to_string(...)` makes text of any"
    )


def _shown(aggregate: Aggregate) -> str:
    return aggregate.span.text or aggregate.function
