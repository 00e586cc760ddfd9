"""From the text of a pattern to its tree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import assert_never

from emberlog.patterns.case import folded
from emberlog.patterns.tree import (
    LAST,
    Anchor,
    BadPattern,
    Chars,
    Choice,
    Group,
    Pattern,
    Ranges,
    Repeat,
    Sequence,
    joined,
    others,
)

MOST_REPEATED = 1000  # times, of nested repetitions together: RE2 takes no more

DIGITS: Ranges = ((0x30, 0x39),)
WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
BLANKS: Ranges = ((0x09, 0x0D), (0x20, 0x20))
LINE_FEED: Ranges = ((0x0A, 0x0A),)
CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}


@dataclass(frozen=True)
class _Flags:
    ignores_case: bool = False  # i
    lines: bool = False  # m: ^ and $ are those of lines
    dot_is_all: bool = False  # s

    def changed(self, text: str) -> _Flags:
        on, _, off = text.partition("-")
        for letters, value in ((on, True), (off, False)):
            for letter in letters:
                if letter not in "ims":
                    raise BadPattern(f"the flag `{letter}` has no meaning (i, m and s have one)")
                field = {"i": "ignores_case", "m": "lines", "s": "dot_is_all"}[letter]
                self = _Flags(**{**self.__dict__, field: value})
        return self


class Reader:
    """Reads a pattern. Of its groups only number `wanted` is kept as one; they are counted from 1."""

    def __init__(self, text: str, wanted: int = 0) -> None:
        self.text = text
        self.at = 0
        self.wanted = wanted
        self.groups = 0

    def whole(self) -> Pattern:
        found = self._choice(_Flags())
        if self.at < len(self.text):
            raise BadPattern("a `)` has no `(`")
        if _times_over(found) > MOST_REPEATED:
            raise BadPattern(f"a part is repeated more than {MOST_REPEATED} times")
        if self.wanted > self.groups:
            raise BadPattern(f"it has no group {self.wanted}")
        return found

    def _take(self, expected: str) -> bool:
        found = self.text.startswith(expected, self.at)
        self.at += len(expected) if found else 0
        return found

    def _matched(self, pattern: str) -> re.Match[str] | None:
        found = re.compile(pattern).match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found

    def _choice(self, flags: _Flags) -> Pattern:
        """Alternatives up to a `)` or the end. A flag that is set inside holds to there."""
        alternatives: list[Pattern] = []
        parts: list[Pattern] = []
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self._take("|"):
                alternatives.append(_sequence(parts))
                parts = []
            elif found := self._matched(r"\(\?([a-zA-Z]+(?:-[a-zA-Z]+)?|-[a-zA-Z]+)\)"):
                flags = flags.changed(found[1])
            else:
                parts.append(self._repeated(flags))
        alternatives.append(_sequence(parts))
        return _alternatives(alternatives)

    def _repeated(self, flags: _Flags) -> Pattern:
        part = self._part(flags)
        bounds = self._bounds()
        if bounds is None:
            return part
        if isinstance(part, Anchor):
            raise BadPattern("a repetition has nothing to repeat")
        lazy = self._take("?")
        if self._take("+"):
            raise BadPattern("possessive repetitions (`*+`) are not supported")
        if self._bounds() is not None:
            raise BadPattern("a repetition is repeated")
        least, most = bounds
        if most is not None and most < least:
            raise BadPattern(f"{{{least},{most}}} has its bounds in the wrong order")
        return Repeat(part, least, most, lazy)

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, least, most in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self._take(sign):
                return least, most
        if self._matched(r"\{,\d+\}"):
            raise BadPattern("`{,n}` is not supported: write `{0,n}`")
        found = self._matched(r"\{([0-9]{1,9})(?:(,)([0-9]{1,9})?)?\}")
        if found is None:
            return None
        least = int(found[1])
        return least, least if found[2] is None else None if found[3] is None else int(found[3])

    def _part(self, flags: _Flags) -> Pattern:
        char = self.text[self.at]
        self.at += 1
        match char:
            case "(":
                return self._group(flags)
            case "[":
                return self._class(flags)
            case "\\":
                return self._escape(flags)
            case ".":
                return Chars((), negated=True) if flags.dot_is_all else Chars(LINE_FEED, negated=True)
            case "^":
                return Anchor("line start" if flags.lines else "start")
            case "$":
                return Anchor("line end" if flags.lines else "end")
            case "*" | "+" | "?":
                raise BadPattern("a repetition has nothing to repeat")
            case _:
                return _of_case(((ord(char), ord(char)),), flags)

    def _group(self, flags: _Flags) -> Pattern:
        number = None
        if found := self._matched(r"\?([a-zA-Z]*(?:-[a-zA-Z]+)?):"):
            flags = flags.changed(found[1])
        elif self._take("?") and not self._matched(r"P?<[^\W\d]\w*>"):
            raise BadPattern("look-around, back-references and other groups with `(?` are not supported")
        else:
            self.groups += 1
            number = self.groups
        inside = self._choice(flags)
        if not self._take(")"):
            raise BadPattern("a `(` has no `)`")
        return Group(inside) if number is not None and number == self.wanted else inside

    def _escape(self, flags: _Flags) -> Pattern:
        anchors: dict[str, Anchor] = {
            "A": Anchor("start"), "z": Anchor("end"), "b": Anchor("border"), "B": Anchor("no border")
        }  # fmt: skip
        if self.at < len(self.text) and self.text[self.at] in anchors:
            self.at += 1
            return anchors[self.text[self.at - 1]]
        ranges, negated = self._escaped()
        return Chars(ranges, negated) if len(ranges) > 1 or negated or ranges == DIGITS else _of_case(ranges, flags)

    def _escaped(self) -> tuple[Ranges, bool]:
        """What stands behind a backslash, in a class or outside: characters, or all but these."""
        if self.at == len(self.text):
            raise BadPattern("it ends in a backslash")
        if found := self._matched(r"x(?:\{([0-9A-Fa-f]{1,8})\}|([0-9A-Fa-f]{2}))|u([0-9A-Fa-f]{4})"):
            code = int(found[1] or found[2] or found[3], 16)
            if code > LAST or 0xD800 <= code <= 0xDFFF:
                raise BadPattern(f"`\\{found[0]}` is no character")
            return ((code, code),), False
        char = self.text[self.at]
        self.at += 1
        if char in "dwsDWS":
            return {"d": DIGITS, "w": WORD, "s": BLANKS}[char.lower()], char.isupper()
        code = ord(CONTROLS.get(char, char))
        if char not in CONTROLS and char.isascii() and char.isalnum():
            more = "patterns have no back-references" if char.isdigit() else "it is not supported"
            raise BadPattern(f"`\\{char}`: {more}")
        return ((code, code),), False

    def _class(self, flags: _Flags) -> Pattern:
        negated = self._take("^")
        plain: list[tuple[int, int]] = []  # what case matters for
        fixed: list[tuple[int, int]] = []
        first = True
        while first or not self._take("]"):
            if self.at == len(self.text):
                raise BadPattern("a `[` has no `]`")
            first = False
            low, set_ = self._member()
            if low is None:
                fixed.extend(set_)
                continue
            high = low
            if self._matched(r"-(?=[^\]])"):
                end, _ = self._member()
                if end is None or end < low:
                    raise BadPattern("a range in `[...]` has its ends in the wrong order, or a class for an end")
                high = end
            plain.append((low, high))
        case_free = folded(joined(plain)) if flags.ignores_case else joined(plain)
        return Chars(joined((*case_free, *fixed)), negated)

    def _member(self) -> tuple[int | None, Ranges]:
        """A member of a class: a character, or None and the characters of `\\d` and its like."""
        char = self.text[self.at]
        self.at += 1
        if char == "\\":
            ranges, negated = self._escaped()
            if negated or ranges in (DIGITS, WORD, BLANKS):
                return None, others(ranges) if negated else ranges
            return ranges[0][0], ()
        if char == "[":
            raise BadPattern("a `[` inside of `[...]` is written `\\[`")
        if char == "&" and self.text.startswith("&", self.at):
            raise BadPattern("`&&` inside of `[...]` is not supported; a `&` twice is written `\\&`")
        return ord(char), ()


def _sequence(parts: list[Pattern]) -> Pattern:
    return parts[0] if len(parts) == 1 else Sequence(tuple(parts))


def _alternatives(parts: list[Pattern]) -> Pattern:
    """The alternatives; those of one character each are one set, which engines match without going back."""
    if len(parts) == 1:
        return parts[0]
    single = [part for part in parts if isinstance(part, Chars) and not part.negated]
    if len(single) == len(parts):
        return Chars(joined(ends for part in single for ends in part.ranges))
    return Choice(tuple(parts))


def _times_over(pattern: Pattern) -> int:
    """How many times the innermost part of nested repetitions is written down."""
    match pattern:
        case Chars() | Anchor():
            return 1
        case Repeat(part, least, most):
            return max(least, most or 0, 1) * _times_over(part)
        case Group(part):
            return _times_over(part)
        case Sequence(parts) | Choice(parts):
            return max(map(_times_over, parts), default=1)
        case _:
            assert_never(pattern)


def _of_case(ranges: Ranges, flags: _Flags) -> Chars:
    return Chars(folded(ranges) if flags.ignores_case else ranges)
