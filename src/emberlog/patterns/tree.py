"""A pattern as a tree, and sets of characters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]  # first and last code point of each, in order

LAST = 0x10FFFF


class BadPattern(ValueError):
    """A text that is no pattern; the message goes on after `this is not a pattern: `."""


@dataclass(frozen=True)
class Chars:
    """One character: one of these, or with `negated` any other."""

    ranges: Ranges
    negated: bool = False


@dataclass(frozen=True)
class Anchor:
    """A place: the start or end of the text or of a line, a border of a word of ASCII letters, or none."""

    kind: Literal["start", "end", "line start", "line end", "border", "no border"]


@dataclass(frozen=True)
class Repeat:
    """`part` at least `least` times and at most `most` (None: any number), as often as it goes or, if `lazy`, as
    seldom."""

    part: Pattern
    least: int
    most: int | None
    lazy: bool = False


@dataclass(frozen=True)
class Group:
    """What `regexp_extract` gives: the text that `part` matches. There is one at most in a pattern."""

    part: Pattern


@dataclass(frozen=True)
class Sequence:
    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class Choice:
    parts: tuple[Pattern, ...]


Pattern: TypeAlias = Chars | Anchor | Repeat | Group | Sequence | Choice


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The ranges in order, those that touch as one."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def others(ranges: Ranges) -> Ranges:
    """All characters but these."""
    starts = [0, *(high + 1 for _, high in ranges)]
    ends = [*(low - 1 for low, _ in ranges), LAST]
    return tuple((low, high) for low, high in zip(starts, ends, strict=True) if low <= high)
