"""Random programs: base relations with rows, then derived predicates, each reading only what stands before it.

A predicate is drawn as plain rules, as aggregates, as a recursive component (one or two predicates), or from one of the
`templates` for aggregates inside recursion. What comes later negates and aggregates what came before, so every program
is stratified.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from naive.values import Row
from strategies import templates, terms
from strategies.cases import Case
from strategies.rules import Body, Predicate
from strategies.terms import EXACT, FLOAT, NUMBER, REAL, SYMBOL

ARROWS = (":-", "<-")
BASE_NAMES = ("e", "E", "f", "select", "edge_2")
DERIVED_NAMES = ("p", "P", "q", "group", "r1x", "table", "order", "s", "S", "where", "from", "h")


class Draft:
    """A program under construction."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.facts: dict[str, list[Row]] = {}
        self.columns: dict[str, tuple[str, ...]] = {}
        self.readable: list[Predicate] = []
        self.derived: list[str] = []
        self.base_names = iter(BASE_NAMES)
        self.derived_names = iter(DERIVED_NAMES)

    def case(self) -> Case:
        program = "\n".join(self.lines)
        params = {"K": self.draw(terms.numbers)} if "$K" in program else {}
        return Case(program, self.facts, self.columns, tuple(self.derived), params)

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == one_in

    # --- predicates ----------------------------------------------------------------------------------------------

    def base(self, types: tuple[str, ...], rows: Sequence[Row], name: str | None = None) -> Predicate:
        """A base relation. An empty one is declared, for nothing else says what its columns are."""
        predicate = Predicate(name or next(self.base_names), types)
        self.facts[predicate.name] = list(rows)
        self.columns[predicate.name] = types
        if not rows or self.chance(2):
            self.declare(predicate)
        self.readable.append(predicate)
        return predicate

    def random_base(self) -> Predicate:
        types = tuple(self.draw(st.lists(terms.types, min_size=1, max_size=3)))
        row = st.tuples(*(terms.values(type) for type in types))
        least = self.draw(st.sampled_from((0, 3, 5)))
        return self.base(types, self.draw(st.lists(row, min_size=least, max_size=8, unique=True)))

    def new(self, types: tuple[str, ...], name: str | None = None) -> Predicate:
        """A derived predicate, not yet readable."""
        predicate = Predicate(name or next(self.derived_names), types)
        self.derived.append(predicate.name)
        if self.chance(3):
            self.declare(predicate)
        return predicate

    def declare(self, predicate: Predicate) -> None:
        columns = ", ".join(
            f"{name}: {FLOAT if type == REAL else type}" for name, type in zip("abcdef", predicate.types, strict=False)
        )
        self.lines.append(f".decl {predicate.name}({columns})")

    def rule(self, head: str, body: str) -> None:
        arrow = self.draw(st.sampled_from(ARROWS))
        self.lines.append(f"{head} {arrow} {body}." if body else f"{head}.")

    def body(self) -> Body:
        return Body(self.draw, self.readable)

    # --- plain rules ---------------------------------------------------------------------------------------------

    def plain(self) -> None:
        types = tuple(self.draw(st.lists(terms.types, max_size=2)))
        predicate = self.new(types)
        for _ in range(self.draw(st.integers(1, 2))):
            self.plain_rule(predicate)
        if types and self.chance(4):
            self.rule(predicate.atom([self.draw(terms.constants(type)) for type in types]), "")
        self.readable.append(predicate)

    def plain_rule(self, predicate: Predicate) -> None:
        if self.chance(5):
            self.alternatives(predicate)
            return
        body = self.body()
        body.fill()
        self.rule(predicate.atom([body.head_term(type) for type in predicate.types]), str(body))

    def alternatives(self, predicate: Predicate, heads: Sequence[str] | None = None) -> None:
        """A rule of two bodies: each gives values to the same head variables."""
        names = [f"k{i}" for i in range(len(predicate.types))]
        bodies = []
        for _ in range(2):
            body = self.body()
            body.fill(disjunction=False)
            given = [f"{name} = {body.head_term(type)}" for name, type in zip(names, predicate.types, strict=True)]
            bodies.append(", ".join([*body.goals, *given]))
        self.rule(predicate.atom(heads or names), "; ".join(bodies))

    # --- aggregates outside of recursion -------------------------------------------------------------------------

    def aggregate(self) -> None:
        """One or two rules with the same aggregates, perhaps one that contributes plain values."""
        groups = tuple(self.draw(st.lists(terms.types, max_size=1)))
        chosen = self.draw(st.lists(aggregate_columns, min_size=1, max_size=3))
        results = tuple(result_type(function, type) for function, type in chosen)
        predicate = self.new(groups + results)
        for _ in range(self.draw(st.integers(1, 2))):
            self.aggregate_rule(predicate, groups, chosen)
        if all(function in ("sum", "min", "max") for function, _ in chosen) and self.chance(3):
            self.rule(predicate.atom([self.draw(terms.constants(type)) for type in predicate.types]), "")
        self.readable.append(predicate)

    def aggregate_rule(self, predicate: Predicate, groups: Sequence[str], chosen: Sequence[tuple[str, str]]) -> None:
        if self.chance(5):
            names = [f"k{i}" for i in range(len(predicate.types))]
            heads = [*names[: len(groups)]]
            heads += [self.spelled(f, n) for (f, _), n in zip(chosen, names[len(groups) :], strict=True)]
            self.alternatives(Predicate(predicate.name, (*groups, *(type for _, type in chosen))), heads)
            return
        body = self.body()
        body.fill(disjunction=False)
        arguments = [body.head_term(type) for type in groups]
        for function, type in chosen:
            known = terms.has(type, body.bound)
            term = self.draw(terms.variables(type, body.bound)) if known else self.draw(terms.constants(type))
            arguments.append(self.spelled(function, "_" if function == "count" and self.chance(3) else term))
        self.rule(predicate.atom(arguments), str(body))

    def spelled(self, function: str, term: str) -> str:
        opening, closing = self.draw(st.sampled_from((("(", ")"), ("<", ">"), ("[", "]"))))
        return f"{function}{opening}{term}{closing}"

    def topk(self) -> None:
        """The best groups of an aggregate: one row a group, so ties are decided by the groups."""
        body = self.body()
        body.atom(body.pick(*self.readable))
        group = next((pair for pair in body.bound if pair[1] in EXACT), None)
        value = next((pair for pair in body.bound if pair[1] in (NUMBER, FLOAT)), None)
        if group is None or value is None:
            self.plain()
            return
        best = self.new((group[1], value[1]))
        self.rule(best.atom([group[0], self.spelled("max", value[0])]), str(body))
        kept = self.new(best.types)
        self.rule(kept.atom(["x", f"topk({self.draw(st.integers(1, 3))}, y)"]), best.atom(["x", "y"]))
        self.readable += [best, kept]

    # --- recursion -----------------------------------------------------------------------------------------------

    def recursive(self) -> None:
        """One or two predicates that read each other. Recursive rules make no new values, so the fixpoint is finite."""
        shape = st.lists(st.sampled_from((NUMBER, NUMBER, SYMBOL)), min_size=1, max_size=2)
        component = [self.new(tuple(self.draw(shape))) for _ in range(self.draw(st.integers(1, 2)))]
        for predicate in component:
            body = self.body()
            body.fill()
            self.rule(predicate.atom([body.head_term(type) for type in predicate.types]), str(body))
        for i, predicate in enumerate(component):
            # With two predicates each reads the other at least once.
            must = [component[(i + 1) % len(component)], *self.draw(st.lists(st.sampled_from(component), max_size=1))]
            body = self.body()
            body.fill(must=must, invent=False)
            arguments = [body.head_term(type, invent=False) for type in predicate.types]
            self.rule(predicate.atom(arguments), str(body))
        self.readable += component

    def template(self) -> None:
        """An aggregate inside recursion."""
        chosen = self.draw(st.sampled_from(templates.TEMPLATES))
        if chosen.name in self.derived:
            self.recursive()
            return
        rows = self.draw(chosen.rows)
        self.base((NUMBER,) * chosen.width, rows, name=f"{chosen.name}_arc")
        self.lines.append(self.draw(chosen.text))
        for name, arity in chosen.derived.items():
            self.derived.append(name)
            self.readable.append(Predicate(name, (NUMBER,) * arity))


FUNCTIONS = ("min", "max", "sum", "count", "countd", "avg")


def result_type(function: str, type: str) -> str:
    return NUMBER if function in ("count", "countd") else REAL if function == "avg" else type


aggregate_columns = st.one_of(
    st.tuples(st.sampled_from(FUNCTIONS), st.sampled_from((NUMBER, NUMBER, FLOAT))),
    st.tuples(st.sampled_from(("count", "countd")), st.just(SYMBOL)),
)


def drafted(draw: st.DrawFn, kinds: Sequence[Callable[[Draft], None]], most: int) -> Case:
    draft = Draft(draw)
    for _ in range(draw(st.integers(1, 3))):
        draft.random_base()
    for _ in range(draw(st.integers(1, most))):
        draw(st.sampled_from(kinds))(draft)
    return draft.case()


@st.composite
def programs(draw: st.DrawFn) -> Case:
    """Programs of one to four steps, of everything."""
    kinds = (Draft.plain, Draft.plain, Draft.aggregate, Draft.aggregate, Draft.recursive, Draft.template)
    return drafted(draw, kinds, 4)


@st.composite
def recursive_programs(draw: st.DrawFn) -> Case:
    """Recursion (linear, non-linear, mutual), with and without aggregates inside, and a step on top of it."""
    return drafted(draw, (Draft.recursive, Draft.template, Draft.recursive, Draft.plain), 3)


@st.composite
def aggregate_programs(draw: st.DrawFn) -> Case:
    """Aggregates in heads and bodies, and topk."""
    return drafted(draw, (Draft.aggregate, Draft.aggregate, Draft.topk, Draft.plain), 3)


@st.composite
def arithmetic_programs(draw: st.DrawFn) -> Case:
    """Rules with expressions that may have no value: every evaluator must fail then, and only then."""
    draft = Draft(draw)
    for _ in range(draw(st.integers(1, 2))):
        draft.random_base()
    for _ in range(draw(st.integers(1, 2))):
        failing(draft)
    return draft.case()


def failing(draft: Draft) -> None:
    body = draft.body()
    body.fill(disjunction=False)
    term, type = draft.draw(terms.failing_expressions(body.bound))
    predicate = draft.new((type,))
    place = draft.draw(st.sampled_from(("head", "bound", "compared", "negated")))
    if place == "compared" and type == NUMBER:
        body.goals.append(f"{term} {body.pick('<', '=', '!=')} {body.operand(NUMBER)}")
        term = body.operand(NUMBER)
    elif place == "negated" and type == NUMBER:
        tested = next((p for p in draft.readable if p.types == (NUMBER,)), None)
        if tested is not None:
            body.goals.append(f"!{tested.atom([term])}")
            term = body.operand(NUMBER)
    elif place == "bound":
        name = body.fresh(type)
        body.goals.append(f"{name} = {term}")
        term = name
    draft.rule(predicate.atom([term]), str(body))
    draft.readable.append(predicate)
