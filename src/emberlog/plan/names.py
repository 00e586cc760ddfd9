"""Names of columns and relations that the planner makes; no name of a program can look like them."""

from __future__ import annotations


def position(index: int) -> str:
    """The column at a position of a relation."""
    return f"#{index}"


def positions(arity: int) -> tuple[str, ...]:
    return tuple(position(index) for index in range(arity))


def given_part(predicate: str) -> str:
    """The relation of the rows that a predicate with rules has from facts and sources."""
    return f"{predicate}/given"


def given_name(relation: str) -> str:
    """The predicate whose given rows a relation has."""
    return relation.removesuffix("/given")


def state_part(predicate: str) -> str:
    """The current state of an iteration whose states are all kept."""
    return f"{predicate}/state"


def stateless(relation: str) -> str:
    """The relation itself, also where it is the current state of an iteration."""
    return relation.removesuffix("/state")


def auxiliary(number: int) -> str:
    """A relation that a rewrite made for a shared sub-plan."""
    return f"aux/{number}"
