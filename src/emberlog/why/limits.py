"""How much is looked at for an answer, and how much of it is shown."""

from __future__ import annotations

from dataclasses import dataclass

from emberlog.diagnostics import UsageError

DEPTH, WIDTH, BUDGET = 30, 10, 100_000


@dataclass(frozen=True)
class Shape:
    """How much of a tree is shown: so many levels, and so many contributions of a total."""

    depth: int = DEPTH
    width: int = WIDTH


def at_least(name: str, number: object, least: int) -> int:
    """A number that a caller gave. Raises UsageError where it is none, or too small."""
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise UsageError(f"{name} is a number of at least {least}, not {number!r}")
    return number
