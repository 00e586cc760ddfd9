"""Random recursive components of relations with three to five columns, whose rules join two growing atoms or more."""

from __future__ import annotations

from hypothesis import strategies as st

from strategies.cases import Case

NAMES = ("A", "B", "C", "D", "E", "F", "G")
SMALL = st.integers(0, 4)


@st.composite
def wide_joins(draw: st.DrawFn) -> Case:
    """One or two predicates of three to five columns and one of two, rules with two or three of them in the body and
    at times a base relation, a constant, a condition; numbers or texts."""
    type = draw(st.sampled_from(("number", "symbol")))
    sizes = {"p": 2, "q": draw(st.integers(3, 5))}
    if draw(st.booleans()):
        sizes["o"] = draw(st.integers(3, 4))
    bases = {f"e{name}": size for name, size in sizes.items()} | {"r": 2, "t": 3}
    facts = {
        name: draw(st.lists(st.tuples(*[_value(type)] * size), min_size=2, max_size=6, unique=True))
        for name, size in bases.items()
    }
    lines = [f"{name}({_names(size)}) <- e{name}({_names(size)})." for name, size in sizes.items()]
    for name in sizes:
        lines += [draw(_rule(name, sizes, type)) for _ in range(draw(st.integers(1, 2)))]
    columns = {name: (type,) * size for name, size in bases.items()}
    return Case("\n".join(lines), facts, columns, tuple(sizes))


def _names(size: int) -> str:
    return ", ".join(NAMES[:size])


def _value(type: str) -> st.SearchStrategy[int | str]:
    return SMALL if type == "number" else SMALL.map(lambda number: f"v{number}")


@st.composite
def _rule(draw: st.DrawFn, head: str, sizes: dict[str, int], type: str) -> str:
    body, known = [], list[str]()
    pool = NAMES[: draw(st.integers(3, len(NAMES)))]
    for _ in range(draw(st.sampled_from((2, 2, 2, 3)))):
        name = draw(st.sampled_from(tuple(sizes)))
        terms = [draw(st.sampled_from(pool)) for _ in range(sizes[name])]
        known += terms
        if draw(st.integers(0, 5)) == 0:
            terms[0] = draw(st.sampled_from(("_", "1" if type == "number" else '"v1"')))
        body.append(f"{name}({', '.join(terms)})")
        known = [term for term in known if any(term in atom for atom in body)]
    for name, size in (("r", 2), ("t", 3)):
        if draw(st.integers(0, 2)) == 0:
            terms = [draw(st.sampled_from(pool)) for _ in range(size)]
            body.insert(draw(st.integers(0, len(body))), f"{name}({', '.join(terms)})")
            known += terms
    if draw(st.integers(0, 4)) == 0:
        body.append(f"{draw(st.sampled_from(known))} != {draw(st.sampled_from(known))}")
    arguments = [draw(st.sampled_from(known)) for _ in range(sizes[head])]
    return f"{head}({', '.join(arguments)}) <- {', '.join(body)}."
