"""Arithmetic in the loops. An operation without a value sets `fail`: the run is then given to the relational evaluator,
which knows how to tell it, or finds that the binding did not count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from emberlog.syntax.nodes import Call, Term

# A product of floats near this may be off by its rounding: products this large are left to exact arithmetic.
LARGE_PRODUCT = "9.2e18"


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

    def overflow(self, one: str, other: str, sum_: str) -> None:
        self._fail(f"(({one} ^ {sum_}) & ({other} ^ {sum_})) < 0")

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
        name = self.out.fresh()
        match function, arguments:
            case "+", [a, b]:
                self.out.line(f"{name} = {a} + {b}")
                self.overflow(a, b, name)
            case "-", [a, b]:
                self.out.line(f"{name} = {a} - {b}")
                self._fail(f"(({a} ^ {b}) & ({a} ^ {name})) < 0")
            case "*", [a, b]:
                self._fail(f"abs(float({a}) * float({b})) >= {LARGE_PRODUCT}")
                self.out.line(f"{name} = {a} * {b}")
            case (("/" | "%"), [a, b]):
                self._fail(f"{b} == 0 or {b} == -1 and {a} == -9223372036854775808")
                self.out.line(
                    f"{name} = {'truncated' if function == '/' else 'remainder'}({a}, {b} if {b} != 0 else 1)"
                )
            case (("neg" | "abs"), [a]):
                self._fail(f"{a} == -9223372036854775808")
                self.out.line(f"{name} = {'-' if function == 'neg' else 'abs'}({a})")
            case "relu", [a]:
                self.out.line(f"{name} = {a} if {a} > 0 else 0")
            case _:
                self.out.line(f"{name} = {self._either(function, arguments)}")
        return name

    def _either(self, function: str, arguments: list[str]) -> str:
        match function, arguments:
            case "clip", [a, low, high]:
                return self._either("max", [self._named(self._either("min", [a, high])), low])
            case (("min" | "max"), [a]):
                return a
            case (("min" | "max"), [a, *rest]):
                other = self._named(self._either(function, rest))
                return f"({a} if {a} {'<' if function == 'min' else '>'} {other} else {other})"
            case _:
                raise AssertionError(f"no loop computes {function}")
