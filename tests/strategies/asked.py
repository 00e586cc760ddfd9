"""Questions about random programs: a goal, and which rows of its predicate answer it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import assume
from hypothesis import strategies as st

from naive.values import Row, Value
from strategies import terms, universe
from strategies.cases import Case, expected
from strategies.terms import NUMBER

LIST = "wanted_0"


@dataclass(frozen=True)
class Question:
    """A goal for a predicate of a case that has rows. `right` are those that answer it."""

    case: Case
    goal: str
    predicate: str
    right: Sequence[Row]


@st.composite
def questions(draw: st.DrawFn, cases: st.SearchStrategy[Case]) -> Question:
    """A case, and a goal with constants, lists of constants, a relation as a list, or equal variables."""
    case = draw(cases)
    whole = expected(case)
    predicate = draw(st.sampled_from(case.derived))
    rows = [] if isinstance(whole, type) else sorted(whole[predicate], key=repr)
    row = draw(st.sampled_from(rows)) if rows else None
    assume(row is not None)
    assert row is not None
    spots = [spot for spot, value in enumerate(row) if _can_stand(value)]
    bound = draw(st.lists(st.sampled_from(spots), min_size=1, max_size=2, unique=True)) if spots else []
    kind = draw(st.sampled_from(("constants", "constants", "list", "relation", "equal"))) if bound else "constants"
    return _asked(draw, case, predicate, rows, row, bound, kind)


def written(value: Value) -> str:
    """The constant as it stands in a goal."""
    return terms.written(value) if isinstance(value, str) else universe.written(value)


def _can_stand(value: Value) -> bool:
    """True for values that are exact, and that a program can write."""
    return isinstance(value, bool | int | str)


def _asked(
    draw: st.DrawFn, case: Case, predicate: str, rows: list[Row], row: Row, bound: list[int], kind: str
) -> Question:
    variables = [f"V{spot}" for spot in range(len(row))]
    arguments, rest = list(variables), list[str]()
    keep: Callable[[Row], bool]
    match kind:
        case "constants":
            for spot in bound:
                arguments[spot] = written(row[spot])

            def keep(other: Row) -> bool:
                return all(_same(other[spot], row[spot]) for spot in bound)

        case "list" | "relation":
            spot = bound[0]
            others = draw(st.lists(st.sampled_from(rows), max_size=2))
            values = [row[spot], *(one[spot] for one in others)]
            if kind == "relation" and type(row[spot]) is int:
                distinct = sorted({value for value in values if isinstance(value, int)})
                case = _with_list(case, distinct)
                rest.append(f"{LIST}(V{spot})")
            else:
                rest.append(f"({'; '.join(f'V{spot} = {written(value)}' for value in values)})")

            def keep(other: Row) -> bool:
                return any(_same(other[spot], value) for value in values)

        case _:
            spot = bound[0]
            twin = next((i for i, value in enumerate(row) if i != spot and type(value) is type(row[spot])), spot)
            arguments[twin] = variables[spot]

            def keep(other: Row) -> bool:
                return _same(other[spot], other[twin])

    goal = ", ".join([f"{predicate}({', '.join(arguments)})", *rest])
    return Question(case, goal, predicate, [other for other in rows if keep(other)])


def _same(one: Value, other: Value) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _with_list(case: Case, values: list[int]) -> Case:
    """The case with one more base relation."""
    return Case(
        case.program,
        {**case.facts, LIST: [(value,) for value in values]},
        {**case.columns, LIST: (NUMBER,)},
        case.derived,
        case.params,
    )


# --- recursion of the kinds that are turned --------------------------------------------------------------------------

EXITS = (
    "r(X,Y) <- e(X,Y).",
    "r(X,Y) <- e(X,Y), X != Y.",
    "r(X,Y) <- e(X,Y). r(X,Y) <- f(X,Y).",
    "r(X,Y) <- e(X,Y). r(1,2).",
)
STEPS = (
    "r(X,Y) <- r(X,Z), e(Z,Y).",
    "r(X,Y) <- e(X,Z), r(Z,Y).",
    "r(X,Y) <- r(X,Z), r(Z,Y).",
    "r(X,Y) <- f(X,A), r(A,B), f(Y,B).",
    "r(X,Y) <- e(X,Z), s(Z,Y). s(X,Y) <- f(X,Z), r(Z,Y).",
    "r(X,Y) <- s(X,Z), e(Z,Y). s(X,Y) <- r(X,Y), Y != 3.",
    "r(X,Y) <- r(Y,X), f(X,_).",
    "r(X,Y) <- e(X,Z), !f(Z,Z), r(Z,Y).",
    "r(X,Y) <- f(X,Z), g(Z), r(Z,Y).",
    "r(X,Y) <- r(X,Z), v(Z,Y).",
    "r(X,Y) <- e(X,Z), Z > 1, r(Z,Y).",
    "r(X,Y) <- r(X,Z), f(Z,W), r(W,Y).",
)
ABOVE = (
    "t(X,Y) <- r(X,Y).",
    "t(X,Y) <- e(X,Y), !r(Y,X).",
    "t(X,count<Y>) <- r(X,Y).",
    "t(X,sum<Y>) <- r(X,Y). t(X,Y) <- f(X,Y).",
    "t(X,N) <- g(X), N = count : { r(X,_) }.",
    "t(X,N) <- e(X,_), N = sum Y : { r(X,Y), r(Y,_) }.",
    "t(X,min<Y>) <- r(X,Y). t(X,min<Y>) <- t(Z,Y), e(X,Z).",
    "t(X,Y,min<D>) <- e(X,Y), D = 1. t(X,Y,min<D>) <- t(X,Z,C), r(Z,Y), D = C + 1, D < 5.",
    "t(X,Y,min<D>) <- e(X,Y), D = 1. t(X,Y,min<D>) <- e(X,Z), t(Z,Y,C), D = C + 1, D < 5.",
    "t(Y) <- r(1,Y). u(X,Y) <- t(X), r(X,Y).",
    "t(X) <- g(X), !r(1,X). u(X,Y) <- t(X), r(X,Y).",
    "t(X,Y) <- r(X,Y), r(Y,X). u(X,Y) <- t(X,Z), t(Z,Y).",
    "t(X,Y) <- r(X,Z), Y = Z + 1. u(X,Y) <- t(X,Y), r(Y,X).",
    "t(X,Y) <- t(X,Z), r(Z,Y). t(X,Y) <- f(X,Y).",
)


@st.composite
def closures(draw: st.DrawFn) -> Case:
    """Closures in all spellings over two small graphs, and something that reads them."""
    nodes = st.integers(0, 5)
    pairs = st.lists(st.tuples(nodes, nodes), max_size=10, unique=True)
    facts: dict[str, list[Row]] = {
        "e": [*draw(pairs)],
        "f": [*draw(pairs)],
        "g": [(value,) for value in sorted(draw(st.sets(nodes)))],
    }
    rules = [draw(st.sampled_from(EXITS)), *draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=2, unique=True))]
    rules.append(draw(st.sampled_from(ABOVE)))
    text = "\n".join(rules)
    if "v(" in text:
        text += "\nv(X,Y) <- e(X,Z), f(Z,Y)."
    derived = tuple(name for name in "rstuv" if f"{name}(" in text)
    columns = {"e": (NUMBER, NUMBER), "f": (NUMBER, NUMBER), "g": (NUMBER,)}
    return Case(text, facts, columns, derived)
