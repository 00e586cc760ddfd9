"""Programs with an aggregate inside recursion that the rules of the language allow and that end on every data drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from naive.values import Row


@dataclass(frozen=True)
class Template:
    """`text` defines the `derived` predicates (with their arities) over `NAME_arc`, which has `width` numbers."""

    name: str
    width: int
    rows: st.SearchStrategy[list[Row]]
    derived: Mapping[str, int]
    text: st.SearchStrategy[str]


nodes = st.integers(0, 6)
weights = st.integers(0, 6)


def graphs(*columns: st.SearchStrategy[int], acyclic: bool = False) -> st.SearchStrategy[list[Row]]:
    """Edges, with further columns; from smaller to larger nodes if acyclic."""
    edge = st.tuples(nodes, nodes, *columns)
    if acyclic:
        edge = edge.map(lambda row: (min(row[:2]), max(row[:2]), *row[2:])).filter(lambda row: row[0] < row[1])
    return st.sampled_from((0, 4, 6)).flatmap(lambda least: st.lists(edge, min_size=least, max_size=10, unique=True))


def spelled(function: str) -> st.SearchStrategy[str]:
    """The aggregate of `D`, in one of its spellings."""
    return st.sampled_from([f"{m}{function}{b[0]}D{b[1]}" for m in ("", "m") for b in ("<>", "()", "[]")])


def filled(*texts: str, **choices: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """One of the texts, with a choice for each `{name}` in it."""
    return st.builds(lambda text, values: text.format(**values), st.sampled_from(texts), st.fixed_dictionaries(choices))


steps = st.sampled_from(("C + W", "W + C", "C + W + 1", "C + 2"))

shortest = Template(
    "near",
    3,
    graphs(weights),
    {"near": 2},
    filled(
        "near(X, {min}) <- X = 1, D = 0.\nnear(Y, {min}) <- near(X, C), near_arc(X, Y, W), D = {step}.",
        "near(X, {min}) <- near_arc(X, _, D).\nnear(Y, {min}) <- near(X, C), near_arc(X, Y, W), D = {step}.",
        "near(1, 0).\nnear(Y, {min}) <- near_arc(X, Y, W), near(X, C), X != 3, D = {step}.",
        min=spelled("min"),
        step=steps,
    ),
)
all_pairs = Template(
    "path",
    3,
    graphs(weights),
    {"path": 3},
    filled(
        "path(X, Y, {min}) <- path_arc(X, Y, D).\npath(X, Y, {min}) <- path(X, Z, C), path_arc(Z, Y, W), D = C + W.",
        "path(X, Y, {min}) <- path_arc(X, Y, D).\npath(X, Y, {min}) <- path(X, Z, C), path(Z, Y, W), D = C + W.",
        min=spelled("min"),
    ),
)
longest = Template(
    "far",
    3,
    graphs(weights, acyclic=True),
    {"far": 2},
    filled(
        "far(X, {max}) <- far_arc(X, _, _), D = 0.\nfar(Y, {max}) <- far(X, C), far_arc(X, Y, W), D = {step}.",
        max=spelled("max"),
        step=steps,
    ),
)
labels = Template(
    "label",
    2,
    graphs(),
    {"label": 2},
    filled(
        "label(X, X) :- label_arc(X, _).\nlabel(Y, {min}) :- label(X, D), label_arc(X, Y).",
        "label(X, {min}) :- label_arc(X, D).\nlabel(Y, {min}) :- label(X, D), label_arc(X, Y).",
        "label(X, {max}) :- label_arc(X, D).\nlabel(Y, {max}) :- label(X, D), (label_arc(X, Y); label_arc(Y, X)).",
        min=spelled("min"),
        max=spelled("max"),
    ),
)
mutual = Template(
    "odd",
    3,
    graphs(weights),
    {"odd": 2, "even": 2},
    filled(
        "even(X, {min}) <- X = 0, D = 0.\n"
        "odd(Y, {min}) <- even(X, C), odd_arc(X, Y, W), D = C + W.\n"
        "even(Y, {min}) <- odd(X, C), odd_arc(X, Y, W), D = C + W.",
        min=spelled("min"),
    ),
)
paths = Template(
    "ways",
    3,
    graphs(st.integers(0, 2), acyclic=True),
    {"ways": 2},
    filled(
        "ways(Y, {sum}) <- Y = 0, D = 1.\nways(Y, {sum}) <- ways(X, D), ways_arc(X, Y, _).",
        "ways(Y, {sum}) <- Y = 0, D = 1.\nways(Y, {sum}) <- ways(X, C), ways_arc(X, Y, W), D = C * W.",
        "ways(Y, {sum}) <- ways_arc(Y, _, D).\nways(Y, {sum}) <- ways_arc(X, Y, W), ways(X, C), D = W * C.",
        "ways(Y, {count}) <- Y = 0, D = 1.\nways(Y, {count}) <- ways(X, D), ways_arc(X, Y, _).",
        sum=spelled("sum"),
        count=spelled("count"),
    ),
)
keyed = Template(
    "flow",
    2,
    graphs(acyclic=True),
    {"flow": 2},
    filled(
        "flow(X, sum<(X, I)>) <- flow_arc(X, _), I = 1.\nflow(Y, sum<(X, C)>) <- flow(X, C), flow_arc(X, Y).",
    ),
)
attend = Template(
    "cnt",
    2,
    graphs(),
    {"cnt": 2, "attend": 1},
    filled(
        "attend(X) <- X = {who}.\nattend(X) <- cnt_arc(X, {who}).\n"
        "cnt(Y, {count}) <- attend(D), cnt_arc(Y, D).\nattend(X) <- cnt(X, N), N {least}.",
        count=spelled("count"),
        who=nodes.map(str),
        least=st.sampled_from((">= 2", ">= 3", "> 1")),
    ),
)
control = Template(
    "share",
    3,
    graphs(weights),
    {"share": 3, "part": 4, "control": 2},
    filled(
        "share(X, Y, {sum}) <- part(X, Y, _, D).\npart(X, Y, X, V) <- share_arc(X, Y, V).\n"
        "part(X, Y, Z, V) <- control(X, Z), share_arc(Z, Y, V).\ncontrol(X, Y) <- share(X, Y, S), S > {most}.",
        sum=spelled("sum"),
        most=st.sampled_from(("3", "5")),
    ),
)

TEMPLATES = (shortest, all_pairs, longest, labels, mutual, paths, keyed, attend, control)
