"""Program text to tokens, by one regular expression.

`scan` never fails: what is wrong with the characters becomes diagnostics, and a token that lets the parser go on.
The kind of an operator's token is its canonical spelling (`<-` for `:-`, `!=` for `≠`), so that later stages
know one spelling. Values of literals are read by the parser (`literals.py`), where they are needed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from emberlog.diagnostics import Diagnostic, Label, ProgramError
from emberlog.source import Source, Span
from emberlog.syntax.facts import PLAIN_FACT


class Token(NamedTuple):
    """`kind` is `name`, `number`, `string`, `parameter`, `fact`, `end`, `broken`, or an operator.

    A `fact` is a whole clause (see `facts.py`); `broken` is text whose mistake is already reported.
    """

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


# Preprocessor lines change what a program says, so only line markers (`# 1 "file"`) and plain remarks are passed over.
_PREPROCESSOR = r"[ \t]*(?:include|define|undef|if|ifdef|ifndef|else|elif|endif)\b"
_SKIPPED = rf"""(?:
      [^\S\n]++
    | (?: \n | \A ) \ufeff? [^\S\n]*+ (?: % | \#(?!{_PREPROCESSOR}) ) [^\n]*+
    | \n | \A\ufeff
    | //[^\n]*+
    | /\*(?s:.*?)\*/
)*"""
_MINUS, _TIMES = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"  # as papers print them
_OPERATORS = (
    ":-", "<-", "←", "?-", "===", "==", "=<", "=>", "<:", "<=", "<>", ">=", "=!=", "\\=", "**", "&&", "||",
    "=", "<", ">", "≤", "≥", "≠", "⟨", "⟩", "!", "~", "¬", "+", "-", _MINUS, "*", "·", "⋅", _TIMES, "/", "%", "^",
    "(", ")", "[", "]", "{", "}", ",", ";", ":", ".", "|",
)  # fmt: skip
_TOKEN = re.compile(
    rf"""{_SKIPPED}(?:
      (\??[^\W\d]\w*+ | ∆\w*+)
    | (0[xXbB]\w*+ | (?<!\w)\.[0-9]\w*+ | [0-9]++(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\w*+)
    | ([!~][ \t]*=|{"|".join(re.escape(operator) for operator in _OPERATORS if operator != "/")}|/(?!\*))
    | ("(?:[^"\\\n]|\\[^\n])*+" | '(?:[^'\\\n]|\\[^\n])*+')
    | (\$[^\W\d]\w*+)
    | (\Z)
    | ((?s:.))
    )""",
    re.VERBOSE,
)
_FACT = re.compile(rf"{_SKIPPED}({PLAIN_FACT})", re.VERBOSE)
_KINDS = {1: "name", 2: "number", 4: "string", 5: "parameter", 6: "end", 7: "foreign"}  # by group; 3 is an operator
_CANONICAL = {
    ":-": "<-", "←": "<-", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">=", "⟨": "<", "⟩": ">",
    "~": "!", "¬": "!", _MINUS: "-", "·": "*", "⋅": "*", _TIMES: "*",
}  # fmt: skip


def tokenize(source: Source) -> list[Token]:
    """The tokens of `source`; the last one is `end`. Raises ProgramError for text that is no token."""
    tokens, found = scan(source)
    if found:
        raise ProgramError(found)
    return tokens


def scan(source: Source) -> tuple[list[Token], list[Diagnostic]]:
    """The tokens of `source` and everything that is wrong with its characters."""
    tokens: list[Token] = []
    found: list[Diagnostic] = []
    text, at, last = source.text, 0, "."
    while True:
        # Only where a clause may start is a whole fact one token.
        match = _FACT.match(text, at) if last in (".", "fact") else None
        if match is not None:
            last, group = "fact", 1
        else:
            match = _TOKEN.match(text, at)
            assert match is not None and match.lastindex is not None  # the last alternative takes any character
            group = match.lastindex
            last = _KINDS.get(group) or _kind_of_operator(match[group])
        start, at = match.span(group)
        if last == "foreign":
            token, diagnostic = _foreign(source, start)
            found.append(diagnostic)
            at = token.end
            if token.kind == "skipped":
                continue
        else:
            token = Token(last, match[group], start)
        tokens.append(token)
        if last == "end":
            return tokens, found


def _kind_of_operator(text: str) -> str:
    return "!=" if text[0] in "!~" and text[-1] == "=" else _CANONICAL.get(text, text)


_INSTEAD = {
    "&": (",", "write `,` between goals that must all hold"),
    "\N{LOGICAL AND}": (",", "write `,` between goals that must all hold"),
    "\N{LOGICAL OR}": (";", "write `;` between alternatives"),
}
_PLAIN_QUOTES = "quote text with plain quotes, \" or '"
_ADVICE = {
    "@": "functors of the user are not supported; call a built-in function by its plain name",
    "$": "a parameter is `$` and a name, as in `$ID`",
    **dict.fromkeys("`\u2018\u2019\u201c\u201d", _PLAIN_QUOTES),
}


def _foreign(source: Source, start: int) -> tuple[Token, Diagnostic]:
    """The token for text at `start` that is none, and what to say of it."""
    text = source.text
    char = text[start]
    line_end = text.find("\n", start)
    rest = text[start:] if line_end < 0 else text[start:line_end]
    if char in "\"'":
        return Token("broken", rest, start), _diagnose(
            "E0103",
            "this string has no end",
            Span(source, start, start + len(rest)),
            f"close it with {char} on the line where it starts; a line break inside is written \\n",
        )
    if text.startswith("/*", start):
        where = Span(source, start, start + 2)
        return Token("skipped", text[start:], start), _diagnose(
            "E0103", "this comment has no end", where, "close it with `*/`"
        )
    if char == "#" and re.match(_PREPROCESSOR, rest[1:]):
        where = Span(source, start, start + len(rest))
        return Token("skipped", rest, start), _diagnose(
            "E0109", "preprocessor lines are not supported", where, "run `cpp` first, or put the text in place"
        )
    kind, help = _INSTEAD.get(char, ("skipped", _ADVICE.get(char)))
    return Token(kind, char, start), _diagnose(
        "E0104", f"{_name_of(char)} has no meaning here", Span(source, start, start + 1), help
    )


def _name_of(char: str) -> str:
    return f"`{char}`" if char.isprintable() else f"the character U+{ord(char):04X}"


def _diagnose(code: str, message: str, span: Span, help: str | None) -> Diagnostic:
    return Diagnostic(code, message, (Label(span),), help)
