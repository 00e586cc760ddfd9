"""Hypothesis strategies for syntax trees that text can say."""

from __future__ import annotations

from hypothesis import strategies as st

from emberlog.syntax import nodes
from emberlog.types import INT64_MIN, UINT64_MAX

# Words with a meaning of their own in the place of a name.
_RESERVED = frozenset(
    {"_", "not", "true", "false", "and", "as", "bnot", "lnot", "contains", "match", "database", "sort", "limit"}
)

_NAMES = ["p", "q", "edge", "X", "x", "min", "count", "sum", "mod", "land", "select", "lambda", "r1", "delta"]


def _is_name(text: str) -> bool:
    return text[0] != "9" and text not in _RESERVED


plain_names = st.sampled_from(_NAMES) | st.text("aXé_9变", min_size=1, max_size=3).filter(_is_name)


# Composites, here and below, keep the printed forms of the strategies built on them short.
@st.composite
def _any_name(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(["", "", "?"])) + draw(plain_names)


names = _any_name()
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


def unsigned(value: float) -> float:
    """0.0 for -0.0: no program can write that."""
    return value + 0.0


floats = st.floats(allow_nan=False, allow_infinity=False).map(unsigned)
constants = st.builds(
    nodes.Constant,
    st.booleans() | st.integers(INT64_MIN, UINT64_MAX) | floats | texts,
) | st.builds(nodes.Constant, st.integers(0, UINT64_MAX), st.just("unsigned"))
variables = st.builds(nodes.Variable, names)


@st.composite
def _leaf(draw: st.DrawFn) -> nodes.Term:
    parameters = st.builds(nodes.Parameter, plain_names)
    return draw(variables | st.builds(nodes.Anonymous) | constants | parameters)


def _calls(inner: st.SearchStrategy[nodes.Term]) -> st.SearchStrategy[nodes.Term]:
    binary = st.sampled_from(["+", "-", "*", "/", "%", "^", "land", "bor", "bshl", "min"])
    return (
        st.builds(nodes.Call, binary, st.tuples(inner, inner))
        | st.builds(nodes.Call, st.just("neg"), st.tuples(inner))
        | st.builds(nodes.Call, names, st.lists(inner, max_size=3).map(tuple))
    )


def _collections(
    terms: st.SearchStrategy[nodes.Term], bodies: st.SearchStrategy[nodes.Formula]
) -> st.SearchStrategy[nodes.Term]:
    return st.builds(nodes.Collect, st.just("count"), st.none(), bodies) | st.builds(
        nodes.Collect, st.sampled_from(["sum", "min", "max", "avg"]), terms, bodies
    )


simple_terms: st.SearchStrategy[nodes.Term] = st.recursive(_leaf(), _calls, max_leaves=6)
comparison_signs = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])


columns = plain_names | st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=4)


def _by_name(predicate: str, given: dict[str, nodes.Term]) -> nodes.Atom:
    return nodes.Atom(predicate, tuple(given.values()), tuple(given))


def _goals(terms: st.SearchStrategy[nodes.Term]) -> st.SearchStrategy[nodes.Formula]:
    tests = st.builds(nodes.Call, st.sampled_from(["contains", "match"]), st.tuples(terms, terms))
    return (
        st.builds(nodes.Atom, names, st.lists(terms, max_size=3).map(tuple))
        | st.builds(_by_name, names, st.dictionaries(columns, terms, min_size=1, max_size=3))
        | st.builds(nodes.Comparison, comparison_signs, terms, terms)
        | st.builds(nodes.Test, tests)
        | st.builds(nodes.Truth, st.booleans())
    )


def _joined(inner: st.SearchStrategy[nodes.Formula]) -> st.SearchStrategy[nodes.Formula]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.builds(nodes.And, several) | st.builds(nodes.Or, several) | st.builds(nodes.Not, inner)


simple_bodies = st.recursive(_goals(simple_terms), _joined, max_leaves=4)
terms = simple_terms | st.recursive(_collections(simple_terms, simple_bodies), _calls, max_leaves=4)
bodies = st.recursive(_goals(terms), _joined, max_leaves=5)

untils = st.builds(nodes.Until, st.sampled_from(["sum", "max"]), names, comparison_signs, simple_terms)
sorts = st.builds(nodes.Sort, st.lists(st.tuples(variables, st.booleans()), min_size=1, max_size=2).map(tuple))
limits = st.builds(nodes.Limit, st.builds(nodes.Constant, st.integers(0, 99)))
rule_bodies = (
    bodies
    | st.builds(lambda body, last: nodes.Or((body, last)), bodies.filter(lambda b: not isinstance(b, nodes.Or)), untils)
    | st.builds(lambda body, *last: nodes.And((body, *last)), bodies, sorts, limits)
)

aggregates = (
    st.builds(nodes.Aggregate, st.sampled_from(["min", "max", "sum", "count", "countd", "avg"]), st.tuples(terms))
    | st.builds(nodes.Aggregate, st.just("sum"), st.tuples(terms, terms), monotonic=st.booleans())
    | st.builds(nodes.Aggregate, st.sampled_from(["min", "max", "count"]), st.tuples(terms), monotonic=st.just(True))
    | st.builds(nodes.Aggregate, st.just("topk"), st.tuples(terms), terms)
)
heads = st.builds(nodes.Atom, names, st.lists(terms | aggregates, max_size=3).map(tuple))
rules = st.builds(nodes.Rule, st.lists(heads, min_size=1, max_size=2).map(tuple), st.none() | rule_bodies)

types = plain_names | st.just("decimal(10,2)")
bounds = st.integers(-9, 9).map(
    lambda number: nodes.Call("neg", (nodes.Constant(-number),)) if number < 0 else nodes.Constant(number)
)


@st.composite
def attributes_with_conditions(draw: st.DrawFn) -> nodes.Attribute:
    name = draw(plain_names)
    signs = draw(st.just(()) | st.tuples(st.sampled_from(["<", "<=", ">", ">=", "!="])) | st.just((">=", "<")))
    where = tuple(nodes.Comparison(sign, nodes.Variable(name), draw(bounds)) for sign in signs)
    return nodes.Attribute(name, draw(types), where)


attributes = st.lists(attributes_with_conditions(), max_size=3).map(tuple)
qualifiers = st.lists(
    st.sampled_from(["inline", "brie", "magic", "eqrel", "choice-domain x", "choice-domain (x, y), z"]), max_size=2
)
options = st.lists(
    st.tuples(plain_names, st.booleans() | st.integers(-99, 99) | st.floats(-9, 9).map(unsigned) | texts), max_size=2
).map(tuple)
plan_texts = st.sampled_from(["0:(1,2)", "0:(2,1), 1:(1,2)"])
items: st.SearchStrategy[nodes.Item] = (
    rules
    | st.builds(nodes.Declaration, plain_names, attributes, qualifiers.map(tuple))
    | st.builds(nodes.TypeDeclaration, plain_names, st.tuples(types), st.booleans())
    | st.builds(nodes.TypeDeclaration, plain_names, st.tuples(types, types), st.just(False))
    | st.builds(nodes.Directive, st.sampled_from(["input", "output", "printsize", "limitsize"]), plain_names, options)
    | st.builds(nodes.Pragma, st.just("pragma"), st.sampled_from(['"a"', '"a" "b\\n"']))
    | st.builds(nodes.Pragma, st.just("plan"), plan_texts)
    | st.builds(nodes.Goal, st.builds(nodes.Atom, names, st.lists(terms, max_size=2).map(tuple)))
)
programs = st.builds(nodes.Program, st.lists(items, max_size=4).map(tuple))
