"""The patterns of `match` and `regexp_extract`: read by us, and written out so that all engines mean the same by them.

RE2 (DuckDB) and Java (Spark) differ in what `.`, `$`, `\\s`, `\\b` and `(?i)` match, and each takes what the other does
not. Here a pattern becomes sets of characters, anchors, repetitions and alternatives (`tree`, made by `reader`), with
case folded away (`case`); `writer` writes it in the few forms that all read alike. `read` refuses what has none.

Engines get the functions of this package for patterns that come from facts, and Spark sends them to its workers as they
are. So nothing here imports another part of Emberlog, and what is remembered is a plain value: an `lru_cache` would be
sent by its name, and looked for in this package there.
"""

from __future__ import annotations

import re
from typing import assert_never

from emberlog.patterns.reader import Reader
from emberlog.patterns.tree import Anchor, BadPattern, Chars, Choice, Group, Pattern, Repeat, Sequence
from emberlog.patterns.writer import Engine, Writer

__all__ = [
    "BadPattern", "extract", "finder", "for_java", "for_java_or_none", "for_re2", "for_re2_or_none", "matches",
    "may_go_deep", "read", "read_finder"
]  # fmt: skip

MOST_KNOWN = 1024
_KNOWN: dict[tuple[str, Engine], str | None] = {}


def for_re2(pattern: str) -> str:
    """The pattern for RE2, to be matched with a whole text."""
    return Writer("re2").text(read(pattern))


def for_java(pattern: str) -> str:
    """The pattern for Java, to be found in a text: it matches whole texts only."""
    return rf"\A(?:{Writer('java').text(read(pattern))})\z"


def matches(text: str | None, pattern: str) -> bool | None:
    """Does the whole text match? None for what is no pattern. By Python's own engine, which long texts do not harm."""
    if text is None:
        return None
    written = _remembered(pattern, "python")
    return None if written is None else re.fullmatch(written, text) is not None


def finder(pattern: str, group: int, engine: Engine) -> str:
    """The pattern for an engine, to be found somewhere in a text. Its only group is the wanted one; none for 0."""
    return Writer(engine).text(read_finder(pattern, group))


def extract(text: str | None, pattern: str, group: int) -> str | None:
    """What the group (0: the whole pattern) matches where the pattern is found first in a text; empty if nowhere. By
    Python's own engine, which long texts do not harm."""
    if text is None:
        return None
    found = re.search(finder(pattern, group, "python"), text)
    return "" if found is None else found[min(group, 1)] or ""


def may_go_deep(pattern: str) -> bool:
    """True if Java's engine may nest a call for each repetition: long texts would take more stack than there is."""
    return _goes_deep(read(pattern))


def _goes_deep(pattern: Pattern) -> bool:
    match pattern:
        case Chars() | Anchor():
            return False
        case Repeat(part):
            return _is_open(part) or _goes_deep(part)
        case Group(part):
            return _goes_deep(part)
        case Sequence(parts) | Choice(parts):
            return any(map(_goes_deep, parts))
        case _:
            assert_never(pattern)


def _is_open(pattern: Pattern) -> bool:
    """True for a part that matches in several ways, as far as its form tells."""
    match pattern:
        case Chars() | Anchor():
            return False
        case Repeat(part, least, most):
            return least != most or _is_open(part)
        case Group(part):
            return _is_open(part)
        case Sequence(parts):
            return any(map(_is_open, parts))
        case Choice():
            return True
        case _:
            assert_never(pattern)


def for_re2_or_none(pattern: str | None) -> str | None:
    """The pattern for RE2; None for what is no pattern."""
    return None if pattern is None else _remembered(pattern, "re2")


def for_java_or_none(pattern: str | None) -> str | None:
    """The pattern for Java; None for what is no pattern."""
    return None if pattern is None else _remembered(pattern, "java")


def _remembered(pattern: str, engine: Engine) -> str | None:
    """The pattern for an engine, None if it is none. Facts repeat few patterns many times."""
    if (pattern, engine) in _KNOWN:
        return _KNOWN[pattern, engine]
    try:
        written = for_java(pattern) if engine == "java" else Writer(engine).text(read(pattern))
    except BadPattern:
        written = None
    if len(_KNOWN) < MOST_KNOWN:
        _KNOWN[pattern, engine] = written
    return written


def read(pattern: str, group: int = 0) -> Pattern:
    """The pattern that a text writes, of whose groups only one is kept (0: none). Raises BadPattern."""
    try:
        return Reader(pattern, group).whole()
    except RecursionError:
        raise BadPattern("its groups are nested too deeply") from None


def read_finder(pattern: str, group: int) -> Pattern:
    """The pattern, to be found in texts. Raises BadPattern, also if engines may not agree on what they find first: they
    differ in when they leave a repetition of nothing, and in what a repeated group is."""
    found = read(pattern, group)
    _check_repetitions(found)
    return found


def _check_repetitions(pattern: Pattern, repeated: bool = False) -> None:
    match pattern:
        case Chars() | Anchor():
            pass
        case Repeat(part, most=0 | 1):
            _check_repetitions(part, repeated)
        case Repeat(part):
            if _may_be_empty(part):
                raise BadPattern("a part that may be empty is repeated")
            _check_repetitions(part, repeated=True)
        case Group(part):
            if repeated:
                raise BadPattern("the group is inside of a repetition")
            _check_repetitions(part)
        case Sequence(parts) | Choice(parts):
            for part in parts:
                _check_repetitions(part, repeated)
        case _:
            assert_never(pattern)


def _may_be_empty(pattern: Pattern) -> bool:
    match pattern:
        case Chars():
            return False
        case Anchor():
            return True
        case Repeat(part, least):
            return least == 0 or _may_be_empty(part)
        case Group(part):
            return _may_be_empty(part)
        case Sequence(parts):
            return all(map(_may_be_empty, parts))
        case Choice(parts):
            return any(map(_may_be_empty, parts))
        case _:
            assert_never(pattern)
