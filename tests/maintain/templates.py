"""Programs with recursion of every kind over one small graph, for sequences of many changes."""

from __future__ import annotations

from hypothesis import strategies as st

from naive.values import Row
from strategies.cases import Case
from strategies.templates import TEMPLATES, Template, graphs, weights

SETS = (
    "p(X, Y) <- p_arc(X, Y, _). p(X, Y) <- p(X, Z), p_arc(Z, Y, _).",
    "p(X, Y) <- p_arc(X, Y, _). p(X, Y) <- p(X, Z), p(Z, Y).",
    "p(X, Y) <- p_arc(Z, X, _), p_arc(Z, Y, _). p(X, Y) <- p_arc(A, X, _), p(A, B), p_arc(B, Y, _).",
    "p(X, Y) <- q(X, Y). q(X, Y) <- p_arc(X, Y, _). q(X, Y) <- p(X, Z), q(Z, Y), !r(Z). r(X) <- p_arc(X, _, 3).",
    "p(X, Y) <- p_arc(X, Y, _). p(X, Y) <- p(Y, X), X > 1. p(X, Z) <- p(X, Y), p_arc(Y, Z, W), W > 2.",
    "p(0, 1). p(X, Y) <- p(_, X), p_arc(X, Y, _). top(X, max(Y)) <- p(X, Y). gap(X) <- p_arc(X, _, _), !top(X, _).",
    "p(X, min(D)) <- p_arc(X, D, _). p(Y, min(D)) <- p(X, C), p_arc(X, Y, W), D = min(C, W).",
    "p(X, min(D)) <- p_arc(X, _, D). p(Y, min(D)) <- p(X, C), p_arc(X, Y, _), D = max(C - 1, 0).",
    "p(X, max(D)) <- p_arc(X, _, D). p(Y, max(D)) <- p(X, C), p_arc(X, Y, W), D = min(C, W). r(X) <- p(X, 3).",
)


def _case(template: Template, rows: list[Row], text: str) -> Case:
    arc = f"{template.name}_arc"
    return Case(text, {arc: rows}, {arc: ("number",) * template.width}, tuple(template.derived))


@st.composite
def maintained_templates(draw: st.DrawFn) -> Case:
    """A program with recursion, and a graph."""
    if draw(st.booleans()):
        text = draw(st.sampled_from(SETS))
        return Case(text, {"p_arc": draw(graphs(weights))}, {"p_arc": ("number",) * 3}, ("p",))
    template = draw(st.sampled_from(TEMPLATES))
    return _case(template, draw(template.rows), draw(template.text))
