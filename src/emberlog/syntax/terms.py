"""Terms: what stands in arguments and on the sides of a comparison."""

from __future__ import annotations

from abc import ABC, abstractmethod

from emberlog.source import Span
from emberlog.syntax import nodes
from emberlog.syntax.cursor import Cursor
from emberlog.syntax.literals import LiteralError, read_number, read_string
from emberlog.syntax.tokens import Token
from emberlog.syntax.vocabulary import (
    AGGREGATES,
    COLLECTORS,
    INFIX,
    INFIX_WORDS,
    PREFIX_WORDS,
    UNARY,
)

_A_TERM = "a term (a variable, a constant or an expression)"
_WITNESSED = frozenset({"top", "arg_min", "arg_max"})
_CLOSING = {"(": ")", "[": "]", "<": ">"}
_TERM_STARTS = frozenset({"name", "number", "string", "parameter"})


class TermParser(Cursor, ABC):
    """Reads terms by precedence climbing."""

    @abstractmethod
    def alternatives(self) -> nodes.Formula:
        """A body inside brackets: goals with `,` and `;`."""

    @abstractmethod
    def atom(self) -> nodes.Atom:
        """`p(t, ...)` in a body."""

    def term(self, level: int = 0) -> nodes.Term:
        """An expression whose operators bind at least as strongly as `level`."""
        begin = self.at
        left = self.operand()
        while True:
            token = self.tokens[self.at]
            operator = token.text if token.kind == "name" else token.kind
            strength = INFIX.get(operator)
            if strength is None or strength < level:
                if token.kind == "**":
                    raise self.unexpected("an operator", "write `^` for the power")
                return left
            self.at += 1
            right = self.power_operand(token) if operator == "^" else self.term(strength + 1)
            function = "%" if operator == "mod" else operator
            left = nodes.Call(function, (left, right), span=self.since(begin))

    def power_operand(self, token: Token) -> nodes.Term:
        """The right side of `^`, which groups to the right."""
        self.descend(token)
        right = self.term(INFIX["^"])
        self.ascend()
        return right

    def operand(self) -> nodes.Term:
        token = self.tokens[self.at]
        match token.kind:
            case "name":
                return self.named(token)
            case "number" | "string":
                self.at += 1
                return self.literal_term(token)
            case "parameter":
                self.at += 1
                return nodes.Parameter(token.text[1:], span=self.span(token))
            case "(":
                return self.parenthesised(token)
            case "-":
                return self.negative(token)
            case "[":
                raise self.unexpected(_A_TERM, "records are not supported: give each part a column of its own")
            case "{":
                raise self.unexpected(_A_TERM, "an aggregate over a body is written `count : { ... }`")
            case _:
                raise self.unexpected(_A_TERM)

    def parenthesised(self, opening: Token) -> nodes.Term:
        self.descend(opening)
        self.at += 1
        inner = self.term()
        self.expect(")", "an operator or `)`", opened=opening)
        self.ascend()
        return inner

    def negative(self, minus: Token) -> nodes.Term:
        """`-` and its operand. A minus right before a number is part of it, unless the number is a base: `-2 ^ 2`."""
        begin = self.at
        self.at += 1
        number = self.token
        if number.kind == "number" and self.tokens[self.at + 1].kind != "^" and not number.text.endswith("u"):
            self.at += 1
            return self.literal_term(number, self.since(begin), negative=True)
        self.descend(minus)
        inner = self.term(UNARY)
        self.ascend()
        return nodes.Call("neg", (inner,), span=self.since(begin))

    def literal_term(self, token: Token, span: Span | None = None, negative: bool = False) -> nodes.Constant:
        """The constant that a number or string token stands for."""
        span = span or Span(self.source, token.start, token.end)
        try:
            if token.kind == "string":
                return nodes.Constant(read_string(token.text), span=span)
            value, kind = read_number(token.text, negative)
        except LiteralError as error:
            code = "E0106" if token.kind == "string" else "E0105"
            self.report(code, error.message, span, error.help)
            return nodes.Constant("" if token.kind == "string" else 0, span=span)
        return nodes.Constant(value, kind, span=span)

    def named(self, token: Token) -> nodes.Term:
        """A term that starts with a name: variable, constant, call, or an aggregate over a body."""
        name = token.text
        if name in COLLECTORS and self.starts_collection():
            return self.collection()
        if self.tokens[self.at + 1].kind == "(":
            return self.call()
        if name in PREFIX_WORDS and self.tokens[self.at + 1].kind in _TERM_STARTS | {"-"}:
            return self.prefixed()
        self.at += 1
        return self.simple_name(token)

    def simple_name(self, token: Token) -> nodes.Term:
        """A name that stands alone as a term."""
        name, span = token.text, Span(self.source, token.start, token.end)
        if name == "_":
            return nodes.Anonymous(span=span)
        if name in ("true", "false"):
            return nodes.Constant(name == "true", span=span)
        if self.bigdatalog and name[0].islower():
            return nodes.Constant(name, span=span)
        return nodes.Variable(name, span=span)

    def call(self) -> nodes.Term:
        begin = self.at
        name = self.advance()
        if name.text == "as":
            return self.cast()
        arguments = self.arguments()
        return nodes.Call(name.text, arguments, span=self.since(begin))

    def cast(self) -> nodes.Term:
        """`as(term, type)`, after `as`: the term. Types are checked where values enter columns."""
        opening = self.expect("(")
        self.descend(opening)
        inner = self.term()
        self.expect(",")
        self.expect_name("the name of a type")
        self.expect(")", opened=opening)
        self.ascend()
        return inner

    def prefixed(self) -> nodes.Term:
        begin = self.at
        word = self.advance()
        self.descend(word)
        inner = self.term(UNARY)
        self.ascend()
        return nodes.Call(word.text, (inner,), span=self.since(begin))

    def arguments(self) -> tuple[nodes.Term, ...]:
        """`(t, ...)`, with the brackets."""
        opening = self.expect("(")
        if self.accept(")"):
            return ()
        self.descend(opening)
        terms = [self.argument()]
        while self.accept(","):
            terms.append(self.argument())
        self.expect(")", "`,` or `)`", opened=opening)
        self.ascend()
        return tuple(terms)

    def maybe_named_arguments(self) -> tuple[tuple[nodes.Term, ...], tuple[str, ...]]:
        """`(t, ...)` or `(column=t, ...)`, with the brackets: the terms, and their columns."""
        opening = self.expect("(")
        if self.accept(")"):
            return (), ()
        self.descend(opening)
        names = [self.column_name()]
        terms = [self.argument()]
        while self.accept(","):
            place = self.token
            names.append(self.column_name())
            terms.append(self.argument())
            if (names[-1] is None) != (names[0] is None):
                raise self.error("E0111", "arguments by position and by name in one atom", place, "name all or none")
        self.expect(")", "`,` or `)`", opened=opening)
        self.ascend()
        return tuple(terms), tuple(name for name in names if name is not None)

    def column_name(self) -> str | None:
        """The column before a `=`: a name, or a string for one that is no name."""
        token = self.tokens[self.at]
        if token.kind not in ("name", "string") or self.tokens[self.at + 1].kind != "=":
            return None
        self.at += 2
        return token.text if token.kind == "name" else str(self.literal_term(token).value)

    def argument(self) -> nodes.Term:
        """A term that stands between brackets and commas. Most are one token, and programs have many facts."""
        token = self.tokens[self.at]
        if self.tokens[self.at + 1].kind in (",", ")"):
            if token.kind == "number" or token.kind == "string":
                self.at += 1
                return self.literal_term(token)
            if token.kind == "name":
                self.at += 1
                return self.simple_name(token)
        return self.term()

    # --- aggregates over a body of their own ---------------------------------------------------------------------

    def starts_collection(self) -> bool:
        """Does an aggregate's name start `count : { ... }`, rather than being a variable or a function?"""
        following = self.tokens[self.at + 1]
        if following.kind == "(":
            return self.bracket(self.at + 1)[0] == ":"
        if following.kind == "name":
            return following.text not in INFIX_WORDS and not self.on_new_line(self.at + 1)
        return following.kind == ":" or following.kind in _TERM_STARTS

    def collection(self) -> nodes.Term:
        begin = self.at
        name = self.advance()
        target = None if self.kind == ":" else self.target()
        function = COLLECTORS[name.text]
        if function == "count" and target is not None:
            help = "write `count : { ... }`; it counts the bindings of the variables in the braces"
            self.report("E0110", "`count` over a body takes no expression", target.span, help)
        if function != "count" and target is None:
            help = f"write `{name.text} x : {{ ... }}`"
            self.report("E0110", f"`{name.text}` over a body needs what to aggregate", name, help)
        self.expect(":")
        self.descend(name)
        body = self.collected()
        self.ascend()
        return nodes.Collect(function, target, body, span=self.since(begin))

    def target(self) -> nodes.Term:
        """What is aggregated. In `sum count : { ... }` it is a variable of that name."""
        if self.kind == "name" and self.tokens[self.at + 1].kind == ":":
            return self.simple_name(self.advance())
        return self.term()

    def collected(self) -> nodes.Formula:
        opening = self.token
        if not self.accept("{"):
            if self.kind != "name":
                raise self.unexpected("`{` or a relation")
            return self.atom()
        self.depth += 1  # a body takes twice the Python frames of a term
        body = self.alternatives()
        self.expect("}", "`,`, `;` or `}`", opened=opening)
        self.depth -= 1
        return body

    # --- heads ---------------------------------------------------------------------------------------------------

    def head_arguments(self) -> tuple[nodes.Term, ...]:
        """The arguments of a head, with the brackets. Here, and only here, `min<D>` and the like are aggregates."""
        opening = self.expect("(")
        if self.accept(")"):
            return ()
        terms = [self.head_argument()]
        while self.accept(","):
            terms.append(self.head_argument())
        self.expect(")", "`,` or `)`", opened=opening)
        return tuple(terms)

    def head_argument(self) -> nodes.Term:
        token = self.tokens[self.at]
        if token.kind == "name" and token.text in AGGREGATES and self.starts_aggregate(token.text):
            return self.aggregate()
        return self.argument()

    def starts_aggregate(self, name: str) -> bool:
        following = self.tokens[self.at + 1].kind
        if following != "(":
            return following == "[" or self.at_less(ahead=1)
        after, commas = self.bracket(self.at + 1)
        if after == ":" and name in COLLECTORS:
            return False  # sum (x) : { ... }
        return commas == 0 or name not in ("min", "max")

    def aggregate(self) -> nodes.Aggregate:
        begin = self.at
        name = self.advance()
        function, monotonic = AGGREGATES[name.text]
        opening = self.token
        if opening.kind in ("<-", "<"):
            opening = Token("<", "<", opening.start)
            self.take_less()
        else:
            self.at += 1
        closing = _CLOSING[opening.kind]
        limit = None
        if function in ("topk", "top"):
            limit = self.term()
            self.expect(",", "`,` and what to order by", help="write `topk(10, V)` or `top(10, (V, X))`")
        arguments = self.aggregated(name, closing)
        self.expect(closing, opened=opening)
        span = self.since(begin)
        if function in _WITNESSED and len(arguments) != 2:
            help = f"write `{name.text}({'3, ' if limit else ''}(V, X))`"
            raise self.error("E0110", f"`{name.text}` takes a value and what goes with it", span, help)
        if self.kind not in (",", ")"):
            help = "give the aggregate a rule of its own, and compute with its value in another"
            raise self.error("E0110", "an aggregate must be a whole argument of the head", span, help)
        return nodes.Aggregate(function, arguments, limit, monotonic, span=span)

    def aggregated(self, name: Token, closing: str) -> tuple[nodes.Term, ...]:
        """What an aggregate ranges over: one term, or a key and a value in brackets."""
        if self.kind == closing:
            raise self.unexpected("what to aggregate", f"write `{name.text}(_)` to take every binding")
        if self.kind == "(" and self.bracket(self.at) == (closing, 1):
            return self.arguments()
        first = self.term()
        if self.kind == ",":
            help = f"a key and a value are written `{name.text}((K, V))`"
            raise self.error("E0110", f"`{name.text}` takes one argument in a head", self.token, help)
        return (first,)
