"""Arithmetic in the loops. An operation without a value sets `fail`: the run is then given to the relational evaluator,
which knows how to tell it, or finds that the binding did not count.

Sums, differences and products are computed without signs: the compiler takes it that signed ones never overflow, and
drops the tests of what did.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from emberlog.analysis.functions import NARROWING
from emberlog.syntax.nodes import Call, Term
from emberlog.types import integer_range

# A product of floats near this may be off by its rounding: products this large are left to exact arithmetic.
LARGE_PRODUCT = "9.2e18"
LEAST = "-9223372036854775808"


class Lines(Protocol):
    def line(self, text: str) -> None: ...

    def fresh(self, prefix: str = "x") -> str: ...


class Arithmetic:
    """Writes the lines that compute a call, and gives the expression of its value."""

    def __init__(self, out: Lines) -> None:
        self.out = out

    def call(self, term: Call, value: Callable[[Term], str], is_float: Callable[[Term], bool]) -> str:
        arguments = [self._named(value(argument)) for argument in term.arguments]
        if is_float(term.arguments[0]) or term.function == "to_float":
            return self._float(term.function, arguments)
        return self._integer(term.function, arguments)

    def _named(self, text: str) -> str:
        """A name for an expression: it is written more than once."""
        if text.isidentifier():
            return text
        name = self.out.fresh()
        self.out.line(f"{name} = {text}")
        return name

    def sum(self, one: str, other: str) -> str:
        """The name of the sum of two integers."""
        name = self.out.fresh()
        self.out.line(f"{name} = {_wrapped(one, '+', other)}")
        self._fail(f"(({one} ^ {name}) & ({other} ^ {name})) < 0")
        return name

    def difference(self, one: str, other: str) -> str:
        name = self.out.fresh()
        self.out.line(f"{name} = {_wrapped(one, '-', other)}")
        self._fail(f"(({one} ^ {other}) & ({one} ^ {name})) < 0")
        return name

    def _fail(self, condition: str) -> None:
        self.out.line(f"if {condition}:")
        self.out.line("    fail = 1")

    def _float(self, function: str, arguments: list[str]) -> str:
        match function, arguments:
            case "to_float", [a]:
                return f"float({a})"
            case (("+" | "-" | "*"), [a, b]):
                return f"({a} {function} {b})"
            case "/", [a, b]:
                self._fail(f"{b} == 0.0")
                return f"({a} / ({b} if {b} != 0.0 else 1.0))"
            case "%", [a, b]:
                self._fail("True")  # left to the relational evaluator
                return a
            case "neg", [a]:
                return f"(-{a})"
            case (("abs" | "exp" | "tanh"), [a]):
                return f"abs({a})" if function == "abs" else f"np.{function}({a})"
            case (("log" | "sqrt"), [a]):
                self._fail(f"not ({a} {'>' if function == 'log' else '>='} 0.0)")
                return f"np.{function}({a} if {a} > 0.0 else {'1.0' if function == 'log' else '0.0'})"
            case "relu", [a]:
                return f"({a} if {a} > 0.0 else 0.0)"
            case _:
                return self._either(function, arguments)

    def _integer(self, function: str, arguments: list[str]) -> str:
        if function in ("+", "-") and len(arguments) == 2:
            return self.sum(*arguments) if function == "+" else self.difference(*arguments)
        name = self.out.fresh()
        match function, arguments:
            case "*", [a, b]:
                self._fail(f"abs(float({a}) * float({b})) >= {LARGE_PRODUCT}")
                self.out.line(f"{name} = {_wrapped(a, '*', b)}")
            case (("/" | "%"), [a, b]):
                none = self._named(f"{b} == 0 or ({b} == -1 and {a} == {LEAST})")
                self._fail(none)
                # The machine traps on what has no quotient.
                self.out.line(f"{name} = {'truncated' if function == '/' else 'remainder'}({a}, 1 if {none} else {b})")
            case (("neg" | "abs"), [a]):
                self._fail(f"{a} == {LEAST}")
                negative = _wrapped("0", "-", a)
                self.out.line(f"{name} = {negative if function == 'neg' else f'{a} if {a} >= 0 else {negative}'}")
            case "relu", [a]:
                self.out.line(f"{name} = {a} if {a} > 0 else 0")
            case "to_number", [a]:
                return a  # unsigned numbers of 2^63 and more are not in the loops
            case "to_unsigned", [a]:
                self._fail(f"{a} < 0")
                return a
            case _, [a] if function in NARROWING:
                low, high = integer_range(NARROWING[function])
                self._fail(f"not {low} <= {a} <= {high}")
                return a
            case _:
                self.out.line(f"{name} = {self._either(function, arguments)}")
        return name

    def _either(self, function: str, arguments: list[str]) -> str:
        match function, arguments:
            case "clip", [a, low, high]:
                return self._either("min", [self._named(self._either("max", [a, low])), high])
            case (("min" | "max"), [a]):
                return a
            case (("min" | "max"), [a, *rest]):
                other = self._named(self._either(function, rest))
                return f"({a} if {a} {'<' if function == 'min' else '>'} {other} else {other})"
            case _:
                raise AssertionError(f"no loop computes {function}")


def _wrapped(one: str, operator: str, other: str) -> str:
    return f"np.int64(np.uint64({one}) {operator} np.uint64({other}))"
