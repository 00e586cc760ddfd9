"""The aggregates of each predicate: all its rules feed one group, so they agree on every aggregated column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from emberlog.analysis.draft import Draft
from emberlog.diagnostics import Diagnostic, Label
from emberlog.syntax.nodes import Aggregate


def aggregates_of(drafts: Iterable[Draft]) -> tuple[Mapping[str, Mapping[int, str]], list[Diagnostic]]:
    """The aggregated positions of the heads of each predicate, with the function; and where rules differ.

    A head with a plain argument in such a position contributes its value.
    """
    first: dict[str, dict[int, Aggregate]] = {}
    found = []
    for draft in drafts:
        for position, aggregate in draft.aggregates:
            other = first.setdefault(draft.predicate, {}).setdefault(position, aggregate)
            if (other.function, other.limit) != (aggregate.function, aggregate.limit):
                message = f"the rules of `{draft.predicate}` aggregate one column in different ways"
                labels = (Label(aggregate.span, _shown(aggregate)), Label(other.span, f"{_shown(other)} before"))
                help = "all rules of a predicate feed one group: give one of them a predicate of its own"
                found.append(Diagnostic("E0212", message, labels, help))
    return {name: {spot: a.function for spot, a in spots.items()} for name, spots in first.items()}, found


def _shown(aggregate: Aggregate) -> str:
    return aggregate.span.text or aggregate.function
