"""Names of the predicates that the pass makes. No program can write them: names there have no `/`."""

from __future__ import annotations

from typing import TypeAlias

Bound: TypeAlias = tuple[int, ...]
"""The positions of a predicate's columns that are asked for, in order; none where it is evaluated whole."""

WHOLE: Bound = ()


def pattern(bound: Bound, arity: int) -> str:
    """`bf` for a predicate of two columns that is asked for by the first: bound, free."""
    return "".join("b" if position in bound else "f" for position in range(arity))


def version_name(predicate: str, bound: Bound, arity: int) -> str:
    """The predicate, as far as it is asked for by these columns; the predicate itself if it is evaluated whole."""
    return f"{predicate}/{pattern(bound, arity)}" if bound else predicate


def demand_name(version: str) -> str:
    """The predicate of the values that a version is asked for."""
    return f"demand/{version}"


def origin_name(version: str, predicate: str) -> str:
    """The predicate of pairs: values that the version is asked for, and those of `predicate` that they lead to."""
    return f"from/{version}/{predicate}"


def exits_name(predicate: str) -> str:
    """The predicate of the rows that the exit rules of a closure give."""
    return f"{predicate}/exit"


def facts_name(predicate: str) -> str:
    """The relation of the facts that a program has of a derived predicate."""
    return f"{predicate}/facts"


def is_demand(name: str) -> bool:
    """True for predicates of what is asked for."""
    return name.startswith(("demand/", "from/"))
