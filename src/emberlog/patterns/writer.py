"""From the tree of a pattern to the text that an engine reads."""

from __future__ import annotations

from typing import Literal, TypeAlias, assert_never

from emberlog.patterns.tree import LAST, Anchor, Chars, Choice, Group, Pattern, Repeat, Sequence

Engine: TypeAlias = Literal["re2", "java", "python"]


class Writer:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def text(self, pattern: Pattern) -> str:
        match pattern:
            case Chars(((low, high),), False) if low == high:
                return self._char(low)
            case Chars((), _):
                return f"[{self._range((0, LAST))}]"
            case Chars(ranges, negated):
                return f"[{'^' if negated else ''}{''.join(map(self._range, ranges))}]"
            case Anchor(kind):
                return self._anchor(kind)
            case Repeat(Chars() as part, least, most, lazy):
                return self.text(part) + _times(least, most, lazy)
            case Repeat(part, least, most, lazy):
                return f"(?:{self.text(part)}){_times(least, most, lazy)}"
            case Group(part):
                return f"({self.text(part)})"
            case Sequence(parts):
                return "".join(self._grouped(part) for part in parts)
            case Choice(parts):
                return "|".join(self.text(part) for part in parts)
            case _:
                assert_never(pattern)

    def _grouped(self, part: Pattern) -> str:
        return f"(?:{self.text(part)})" if isinstance(part, Choice) else self.text(part)

    def _anchor(self, kind: str) -> str:
        word, own = "[0-9A-Za-z_]", self.engine == "re2"
        match kind:
            case "start":
                return r"\A"
            case "end":
                return r"\Z" if self.engine == "python" else r"\z"
            case "line start":
                return "(?m:^)" if own else r"(?<![^\n])"
            case "line end":
                return "(?m:$)" if own else r"(?![^\n])"
            case "border":
                return r"\b" if own else f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))"
            case _:
                return r"\B" if own else f"(?:(?<={word})(?={word})|(?<!{word})(?!{word}))"

    def _range(self, ends: tuple[int, int]) -> str:
        low, high = ends
        return self._char(low) if low == high else f"{self._char(low)}-{self._char(high)}"

    def _char(self, code: int) -> str:
        """A character, so that it stands for itself in a class and outside."""
        char = chr(code)
        if char == " " or (char.isascii() and char.isalnum()):
            return char
        return f"\\U{code:08X}" if self.engine == "python" else rf"\x{{{code:X}}}"


def _times(least: int, most: int | None, lazy: bool) -> str:
    signs = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    counted = f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
    return signs.get((least, most), counted) + ("?" if lazy else "")
