"""Random programs with aggregates inside recursion, right and wrong ones, and data on which they end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

import naive
from emberlog.syntax import nodes
from emberlog.types import FLOAT, NUMBER, Column
from naive.values import Row

VALUES = {"base": (False, True), "arc": (False, False, True), "gate": (True,), "pair": (False, False, False)}
"""The columns of the base relations: which of them hold values, whole numbers or floats, and not names of nodes."""

PLAIN = frozenset({"m"})
"""Predicates that only pass values on: one application of the rules goes through them."""


@dataclass(frozen=True)
class Drawn:
    """A program over `base(x, d)`, `arc(x, y, w)`, `gate(c)` and `pair(x, z, y)`, and rows of these."""

    text: str
    facts: dict[str, list[Row]]
    floats: bool
    iterated: bool = False

    @property
    def catalog(self) -> dict[str, tuple[Column, ...]]:
        kind = FLOAT if self.floats else NUMBER
        return {
            name: tuple(Column(f"c{i}", kind if value else NUMBER) for i, value in enumerate(values))
            for name, values in VALUES.items()
        }

    def evaluated(self, program: nodes.Program, facts: Mapping[str, list[Row]]) -> dict[str, set[Row]]:
        """What the reference evaluator makes of it; the rows that `p` and `q` are given hold values too."""
        columns = [(name, i) for name, values in VALUES.items() for i, value in enumerate(values) if value]
        return naive.evaluate(program, facts, floats=[*columns, ("p", 1), ("q", 1)] if self.floats else ())

    @property
    def derived(self) -> tuple[str, ...]:
        return tuple(name for name in ("p", "q", "m", "on") if f"\n{name}(" in f"\n{self.text}")


def expressions(*names: str) -> st.SearchStrategy[str]:
    """Whole-number expressions, simple ones more often."""
    leaves = st.sampled_from((*names, *names, "1", "2", "-1", "-2"))

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return (
            st.tuples(inner, st.sampled_from(("+", "-", "*", "*")), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
            | st.tuples(st.sampled_from(("min", "max")), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})")
            | st.tuples(st.sampled_from(("abs", "relu", "-")), inner).map(lambda t: f"{t[0]}({t[1]})")
            | st.tuples(inner, st.sampled_from(("/", "%")), st.sampled_from("23")).map(
                lambda t: f"({t[0]} {t[1]} {t[2]})"
            )
        )

    return st.recursive(leaves, larger, max_leaves=4)


aggregates = st.sampled_from(("min", "max", "sum", "min", "max", "sum", "count"))
bounds = st.integers(-2, 4).map(str)
signs = st.sampled_from(("<", "<=", ">", ">=", "=", "!="))
guards = st.one_of(
    st.just(""),
    st.just(""),
    st.just(""),
    st.tuples(signs, bounds).map(lambda t: f", C {t[0]} {t[1]}"),
    st.sampled_from((", C > W", ", C <= W", ", W >= 0", ", gate(C)", ", !gate(C)", ", gate(W)")),
)
rows: st.SearchStrategy[dict[str, list[Row]]] = st.fixed_dictionaries(
    {
        "base": st.lists(st.tuples(st.integers(0, 3), st.integers(-3, 5)), max_size=4, unique=True),
        "arc": st.lists(
            st.tuples(st.integers(0, 4), st.integers(1, 3), st.integers(-2, 3)).map(
                lambda t: (t[0], t[0] + t[1], t[2])
            ),
            max_size=7,
            unique=True,
        ),
        "gate": st.lists(st.tuples(st.integers(-1, 4)), max_size=3, unique=True),
        "pair": st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(3, 5)), max_size=4, unique=True),
    }
)


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    """A program and its data."""
    aggregate, guard = draw(aggregates), draw(guards)
    value = draw(expressions("C", "W", "C"))
    exit = f"p(X, {aggregate}<D>) <- base(X, D).\n"
    match draw(st.sampled_from(("plain", "plain", "plain", "two", "through", "tested", "mutual"))):
        case "plain":
            text = f"p(Y, {aggregate}<D>) <- p(X, C), arc(X, Y, W){guard}, D = {value}."
        case "two":
            both = draw(expressions("C", "B")).replace("W", "B")
            text = f"p(Y, {aggregate}<D>) <- p(X, C), p(Z, B), pair(X, Z, Y), D = {both}."
        case "through":
            read = f"p(Y, {aggregate}<D>) <- m(_, Y, D)."
            text = f"m(X, Y, E) <- p(X, C), arc(X, Y, W){guard}, E = {value}.\n{read}"
        case "tested":
            test = f"on(X) <- p(X, C), C {draw(signs)} {draw(bounds)}.\n"
            text = f"{test}p(Y, {aggregate}<D>) <- on(X), arc(X, Y, D)."
        case _:
            other, back = draw(aggregates), draw(expressions("C", "W"))
            text = (
                f"q(Y, {other}<D>) <- p(X, C), arc(X, Y, W){guard}, D = {value}.\n"
                f"p(Y, {aggregate}<D>) <- q(X, C), arc(X, Y, W), D = {back}."
            )
    floats, facts = draw(st.booleans()), draw(rows)
    return Drawn(
        exit + text, {name: [typed(name, row) for row in facts[name]] for name in facts} if floats else facts, floats
    )


def typed(name: str, row: Row) -> Row:
    """The row with its values as floats."""
    return tuple(float(cell) if value else cell for cell, value in zip(row, VALUES[name], strict=True))  # type: ignore[arg-type]


@st.composite
def iterations(draw: st.DrawFn) -> Drawn:
    """A program with an iteration index: from a start, or from nothing, until nothing changes."""
    aggregate, guard = draw(st.sampled_from(("sum", "sum", "sum", "min", "max"))), draw(guards)
    value = draw(st.sampled_from(("C * W", "2 * C", "-(C)", "C - W * C", "C")) | expressions("C", "W", "C"))
    match draw(st.sampled_from(("none", "same", "other"))):
        case "none":
            start = ""
        case "same":
            start = f"p(0, X, {aggregate}<D>) <- base(X, D).\n"
        case _:
            start = f"p(0, X, {aggregate}<W>) <- arc(X, _, W).\n"
    mutual = draw(st.booleans())
    read = "q" if mutual else "p"
    rules = [
        f"p(i+1, X, {aggregate}<D>) <- base(X, D).",
        f"p(i+1, Y, {aggregate}<D>) <- {read}(i, X, C), arc(X, Y, W){guard}, D = {value}.",
    ]
    if mutual:
        rules.append(f"q(i+1, Y, {aggregate}<D>) <- p(i, X, C), arc(X, Y, W), D = C.")
    floats, facts = draw(st.booleans()) or aggregate == "sum", draw(rows)
    typed_rows = {name: [typed(name, row) for row in facts[name]] for name in facts}
    return Drawn(start + "\n".join(rules), typed_rows if floats else facts, floats, iterated=True)
