"""Where the parser stands in the tokens: looking ahead, stepping on, and saying what was expected.

`Cursor` knows no grammar. A mistake from which the clause cannot be read on raises `Rejected`; the driver in
`parser.py` records it and goes on at the next clause. A mistake with one plain meaning (`==` for `=`) is recorded
by `report` and the parser goes on as if it had been written well.
"""

from __future__ import annotations

from emberlog.diagnostics import Diagnostic, Label
from emberlog.source import Source, Span
from emberlog.syntax.tokens import Token

MAX_DEPTH = 64
"""How deep brackets and prefixes may nest. The parser needs up to 7 Python frames a level, of 1000 in all."""

_OPENERS = frozenset("([{")
_CLOSERS = frozenset(")]}")
_OPERANDS = frozenset({"name", "number", "string", "parameter"})


class Rejected(Exception):
    """This clause cannot be read on. `diagnostic` is None when the reason was reported before."""

    def __init__(self, diagnostic: Diagnostic | None) -> None:
        super().__init__(diagnostic)
        self.diagnostic = diagnostic


class Cursor:
    """A position in the tokens of `source`, and the mistakes found so far."""

    def __init__(self, source: Source, tokens: list[Token], *, bigdatalog: bool = False) -> None:
        self.source = source
        self.tokens = tokens + [tokens[-1]] * 2  # the parser looks up to two tokens past the current one
        self.bigdatalog = bigdatalog
        self.at = 0
        self.depth = 0
        self.found: list[Diagnostic] = []

    # --- looking -----------------------------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    @property
    def kind(self) -> str:
        return self.tokens[self.at].kind

    def is_word(self, word: str, ahead: int = 0) -> bool:
        token = self.tokens[self.at + ahead]
        return token.kind == "name" and token.text == word

    def on_new_line(self, index: int) -> bool:
        """Is the token the first one on its line?"""
        before = self.tokens[index - 1].end if index else 0
        return index == 0 or "\n" in self.source.text[before : self.tokens[index].start]

    def column(self, index: int) -> int:
        """The distance of the token from the start of its line."""
        start = self.tokens[index].start
        return start - self.source.text.rfind("\n", 0, start) - 1

    def touches(self, index: int) -> bool:
        """Does the token stand right before the next one, with nothing between?"""
        return self.tokens[index].end == self.tokens[index + 1].start

    def bracket(self, opening: int) -> tuple[str, int]:
        """What follows the bracket that the token `opening` opens, and the number of commas right inside it.

        A token after the bracket is told by its kind, a name by its text. The kind is `end` if it never closes.
        """
        level = commas = 0
        for index in range(opening, len(self.tokens)):
            kind = self.tokens[index].kind
            if kind in _OPENERS:
                level += 1
            elif kind in _CLOSERS:
                level -= 1
                if level == 0:
                    after = self.tokens[index + 1]
                    return (after.text if after.kind == "name" else after.kind), commas
            elif kind == "," and level == 1:
                commas += 1
            elif kind in (".", "end"):  # a clause ends here; no bracket goes on
                break
        return "end", commas

    # --- stepping ----------------------------------------------------------------------------------------------------

    def advance(self) -> Token:
        token = self.tokens[self.at]
        if token.kind != "end":
            self.at += 1
        return token

    def accept(self, kind: str) -> bool:
        """Step over the token if it is of `kind`."""
        if self.tokens[self.at].kind == kind:
            self.at += 1
            return True
        return False

    def expect(
        self, kind: str, expected: str | None = None, *, opened: Token | None = None, help: str | None = None
    ) -> Token:
        """Step over a token of `kind`, or reject the clause. `opened` is the bracket that this token would close."""
        token = self.tokens[self.at]
        if token.kind == kind:
            self.at += 1
            return token
        raise self.unexpected(expected or f"`{kind}`", help, opened)

    def expect_name(self, expected: str) -> Token:
        """Step over a name that is more than `_`."""
        if self.is_word("_"):
            raise self.unexpected(expected)
        return self.expect("name", expected)

    def take_less(self) -> None:
        """Step over `<`. In `X <-1` the minus of the arrow stays behind as a token."""
        token = self.token
        if token.kind == "<":
            self.at += 1
        else:
            self.tokens[self.at] = Token("-", "-", token.start + 1)

    def at_less(self, ahead: int = 0) -> bool:
        """Is this `<`, or an arrow `<-` that stands where only `<` and a minus make sense?"""
        token = self.tokens[self.at + ahead]
        return token.kind == "<" or (token.kind == "<-" and token.text == "<-")

    def descend(self, token: Token) -> None:
        """Begin a level of nesting, opened by `token`. The caller ends it with `ascend`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error("E0107", "this is nested too deeply", token, f"at most {MAX_DEPTH} levels are read")

    def ascend(self) -> None:
        self.depth -= 1

    # --- places and mistakes -----------------------------------------------------------------------------------------

    def since(self, index: int) -> Span:
        """From the token `index` to the last token that was stepped over."""
        return Span(self.source, self.tokens[index].start, self.tokens[self.at - 1].end)

    def span(self, token: Token) -> Span:
        return Span(self.source, token.start, token.end)

    def report(self, code: str, message: str, place: Token | Span, help: str | None = None) -> None:
        self.found.append(self._diagnostic(code, message, place, help))

    def error(self, code: str, message: str, place: Token | Span, help: str | None = None) -> Rejected:
        return Rejected(self._diagnostic(code, message, place, help))

    def unexpected(self, expected: str, help: str | None = None, opened: Token | None = None) -> Rejected:
        """The current token is not what the grammar wants."""
        token = self.token
        if token.kind == "broken":
            return Rejected(None)
        labels = [Label(self.span(token), f"expected {expected}")]
        if opened is not None:
            labels.append(Label(self.span(opened), f"this `{opened.text}` is open"))
            missing = "put a `,` between the two" if token.kind in _OPERANDS else f"close the `{opened.text}`"
            help = help or missing
        code = "E0102" if token.kind == "end" else "E0101"
        return Rejected(Diagnostic(code, f"found {describe(token)}, expected {expected}", tuple(labels), help))

    def _diagnostic(self, code: str, message: str, place: Token | Span, help: str | None) -> Diagnostic:
        span = place if isinstance(place, Span) else self.span(place)
        return Diagnostic(code, message, (Label(span),), help)


def describe(token: Token) -> str:
    """The token as messages name it."""
    if token.kind == "end":
        return "the end of the text"
    text = token.text if len(token.text) <= 40 else token.text[:37] + "..."
    return {"number": "the number ", "string": "the string "}.get(token.kind, "") + f"`{text}`"
