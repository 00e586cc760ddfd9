"""Random recursive components of the kind that compiled loops evaluate: ids, numbers, one aggregate a predicate.

A component is a ring of one to three predicates, so that each reads the next. Plain ones have any arity up to four;
others carry a minimum, maximum, sum or count. Values are drawn from a universe of the program: small numbers, or ones
around zero, 2^31, 2^62 or the ends of 64 bits, far apart, or texts. Everything ends: what is computed stays in a range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

from naive.values import Row, Value
from strategies.cases import Case
from strategies.rules import COMPARISONS, Predicate
from strategies.terms import NUMBER, SYMBOL, written

T = TypeVar("T")

SMALL = (0, 1, 2, 3, 4, 5)
UNIVERSES: dict[str, tuple[int, ...]] = {
    "small": SMALL,
    "around zero": (-3, -2, -1, 0, 1, 2),
    "2^31": tuple(2**31 + i for i in range(-3, 3)),
    "-2^31": tuple(-(2**31) + i for i in range(-3, 3)),
    "2^62": tuple(2**62 + i for i in range(-3, 3)),
    "ends": (-(2**63), -(2**63) + 1, 0, 1, 2**63 - 2, 2**63 - 1),
    "far apart": (-(10**12), -70000, 0, 1, 65536, 2**40),
}
TEXTS = ("a", "b", "B", "", "ü", "it's")


class Component:
    """A program under construction."""

    def __init__(self, draw: st.DrawFn, computes: bool) -> None:
        self.draw = draw
        self.computes = computes  # with numbers: then they are small
        self.numbers = SMALL if computes else UNIVERSES[self.pick(*UNIVERSES)]
        self.lines: list[str] = []
        self.facts: dict[str, list[Row]] = {}
        self.columns: dict[str, tuple[str, ...]] = {}
        self.statics: list[Predicate] = []
        self.tables: list[Predicate] = []

    def pick(self, *choices: T) -> T:
        return self.draw(st.sampled_from(choices))

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == one_in

    def values(self, type: str) -> st.SearchStrategy[Value]:
        return st.sampled_from(TEXTS) if type == SYMBOL else st.sampled_from(self.numbers)

    def constant(self, type: str) -> str:
        if type == NUMBER and self.chance(6) and not self.computes:
            return self.pick("7", "-1", "2147483648", "4611686018427387905")  # perhaps nowhere in the data
        return written(self.draw(self.values(type)))

    def case(self) -> Case:
        return Case("\n".join(self.lines), self.facts, self.columns, tuple(table.name for table in self.tables))

    # --- relations -----------------------------------------------------------------------------------------------

    def base(self) -> None:
        types = tuple(self.pick(NUMBER, NUMBER, NUMBER, SYMBOL) for _ in range(self.pick(1, 2, 2, 2, 3, 4)))
        row = st.tuples(*(self.values(type) for type in types))
        rows = self.draw(st.lists(row, min_size=self.pick(0, 1, 6, 10), max_size=16, unique=True))
        self.give(Predicate(f"e{len(self.statics)}", types), rows)

    def give(self, predicate: Predicate, rows: Sequence[Row]) -> None:
        self.facts[predicate.name] = list(rows)
        self.columns[predicate.name] = predicate.types
        self.declare(predicate)
        self.statics.append(predicate)

    def declare(self, predicate: Predicate) -> None:
        columns = ", ".join(f"{name}: {type}" for name, type in zip("abcdef", predicate.types, strict=False))
        self.lines.append(f".decl {predicate.name}({columns})")

    def ring(self) -> None:
        """Plain predicates, each of which reads the next."""
        for i in range(self.pick(1, 1, 1, 2, 2, 3)):
            types = tuple(self.pick(NUMBER, NUMBER, NUMBER, SYMBOL) for _ in range(self.pick(1, 2, 2, 2, 3, 4)))
            self.tables.append(Predicate(f"p{i}", types))
            self.declare(self.tables[-1])
        for i, table in enumerate(self.tables):
            for _ in range(self.draw(st.integers(1 if i == 0 else 0, 2))):
                self.rule(table, [])
            following = self.tables[(i + 1) % len(self.tables)]
            self.rule(table, [following])
            for _ in range(self.draw(st.integers(0, 2))):
                self.rule(table, self.draw(st.lists(st.sampled_from(self.tables), min_size=1, max_size=3)))

    # --- rules ---------------------------------------------------------------------------------------------------

    def rule(self, head: Predicate, inside: Sequence[Predicate]) -> None:
        """Variables are shared by their names, of which there are few of each type."""
        atoms = [*inside, *(self.pick(*self.statics) for _ in range(self.draw(st.integers(0 if inside else 1, 2))))]
        goals, bound = [], list[tuple[str, str]]()
        for predicate in self.draw(st.permutations(atoms)):
            goals.append(predicate.atom([self.argument(type, bound) for type in predicate.types]))
        for _ in range(self.draw(st.sampled_from((0, 0, 1, 1, 2)))):
            goals += self.extra(bound)
        self.write(head.atom([self.head_term(type, bound) for type in head.types]), goals)

    def write(self, head: str, goals: Sequence[str]) -> None:
        self.lines.append(f"{head} <- {', '.join(goals)}.")

    def argument(self, type: str, bound: list[tuple[str, str]]) -> str:
        kind = self.pick("variable", "variable", "variable", "variable", "variable", "variable", "_", "constant")
        if kind == "_":
            return "_"
        if kind == "constant":
            return self.constant(type)
        name = self.pick("X", "Y", "Z", "U") if type == NUMBER else self.pick("S", "T")
        if (name, type) not in bound:
            bound.append((name, type))
        return name

    def known(self, type: str, bound: Sequence[tuple[str, str]]) -> str:
        names = [name for name, other in bound if other == type]
        return self.constant(type) if not names or self.chance(8) else self.pick(*names)

    def extra(self, bound: list[tuple[str, str]]) -> list[str]:
        """A comparison, a negated atom or a computed variable."""
        kind = self.pick("compared", "absent", "bound", "computed")
        if kind == "absent":
            predicate = self.pick(*self.statics)
            arguments = ["_" if self.chance(4) else self.known(type, bound) for type in predicate.types]
            return [f"!{predicate.atom(arguments)}"]
        if kind == "compared" and bound:
            name, type = self.pick(*bound)
            other = self.known(type, bound)
            if type == NUMBER and self.computes and self.chance(3):
                other = self.computed(bound)
            return [f"{name} {self.pick(*COMPARISONS)} {other}"]
        type = self.pick(NUMBER, SYMBOL) if kind == "bound" else NUMBER
        term = self.computed(bound) if kind == "computed" and self.computes else self.known(type, bound)
        name = f"V{len(bound)}"
        goal = f"{name} = {term}"
        bound.append((name, type))
        return [goal]

    def computed(self, bound: Sequence[tuple[str, str]]) -> str:
        """An expression over small numbers whose value is one."""
        one, other = self.known(NUMBER, bound), self.known(NUMBER, bound)
        return self.pick(
            f"({one} + {other}) % 6",
            f"({one} * {other} + 1) % 5",
            f"min({one} + 1, {other})",
            f"max({one} - {other}, 0)",
            f"abs({one} - {other})",
            f"clip({one} * 2, 1, 5)",
            f"relu({one} - 1)",
            f"{one} / 2",
            f"-({one} - 5) / 2",
        )

    def head_term(self, type: str, bound: Sequence[tuple[str, str]]) -> str:
        if type == NUMBER and self.computes and self.chance(5):
            return self.computed(bound)
        return self.known(type, bound)


@st.composite
def plain_components(draw: st.DrawFn) -> Case:
    """Sets: linear, non-linear and mutual recursion."""
    component = Component(draw, computes=draw(st.booleans()))
    for _ in range(draw(st.integers(1, 3))):
        component.base()
    component.ring()
    return component.case()


# --- aggregates ------------------------------------------------------------------------------------------------------


def arcs(component: Component, weights: Sequence[Value], acyclic: bool = False, width: int = 2) -> list[Row]:
    """Edges between keys of some columns, with a weight; from smaller to larger keys if acyclic."""
    keys = st.tuples(*(st.sampled_from(component.numbers) for _ in range(width)))
    edges = st.tuples(keys, keys, st.sampled_from(weights))
    if acyclic:
        edges = edges.map(lambda edge: (min(edge[:2]), max(edge[:2]), edge[2])).filter(lambda edge: edge[0] < edge[1])
    rows = component.draw(st.lists(edges, min_size=component.pick(0, 1, 6, 9), max_size=16, unique=True))
    return [(*one, *other, weight) for one, other, weight in rows]


@st.composite
def extremum_components(draw: st.DrawFn) -> Case:
    """Minima and maxima: alone, in pairs, beside plain predicates; what is added is a number or a float."""
    component = Component(draw, computes=False)
    width = component.pick(0, 1, 1, 1, 2)
    fold = component.pick("min", "max")
    real = component.chance(4)
    weights: Sequence[Value] = (0.0, 0.25, 1.5, 3.0) if real else (0, 1, 2, 5)
    kind = "float" if real else NUMBER
    # Values of a maximum grow on a cycle.
    component.give(Predicate("arc", (NUMBER,) * 2 * width + (kind,)), arcs(component, weights, fold == "max", width))
    far: Sequence[Value] = () if real else (10**6, 10**15, -(10**15))
    component.give(Predicate("start", (NUMBER,) * width + (kind,)), some(component, width, (*weights, *far)))
    component.give(Predicate("ok", (NUMBER,)), some(component, 1))
    # A predicate without keys gets no better for ever if its value grows.
    grows = width > 0
    for i in range(component.pick(1, 1, 2)):
        component.tables.append(Predicate(f"d{i}", (NUMBER,) * width + (kind,)))
    for i, table in enumerate(component.tables):
        following = component.tables[(i + 1) % len(component.tables)]
        if i == 0 or component.chance(2):
            exit_rule(component, table, fold, width)
        step_rule(component, table, [following], fold, width, grows)
        for _ in range(draw(st.integers(0, 1))):
            step_rule(component, table, [component.pick(*component.tables)], fold, width, grows)
    if width and component.chance(3):
        plain_reader(component, width)
    return component.case()


def some(component: Component, width: int, weights: Sequence[Value] = ()) -> list[Row]:
    row = st.tuples(
        *(st.sampled_from(component.numbers) for _ in range(width)), *([st.sampled_from(weights)] if weights else [])
    )
    return component.draw(st.lists(row, min_size=component.pick(0, 1, 3), max_size=6, unique=True))


def names(prefix: str, width: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(width)]


def exit_rule(component: Component, table: Predicate, fold: str, width: int) -> None:
    keys = names("X", width)
    component.write(table.atom([*keys, f"{fold}<D>"]), [f"start({', '.join([*keys, 'D'])})"])


def step_rule(
    component: Component, table: Predicate, inside: Sequence[Predicate], fold: str, width: int, grows: bool
) -> None:
    keys, others = names("X", width), names("Y", width)
    goals = [f"{inside[0].name}({', '.join([*keys, 'C'])})", f"arc({', '.join([*keys, *others, 'W'])})"]
    term = component.pick("C", "C + W", "C + W", "min(C, W)", "max(C, W)") if grows else component.pick("C", "W")
    if component.chance(3) and width:
        goals.append(component.pick(f"ok({others[0]})", f"!ok({others[0]})", f"{keys[0]} != {others[0]}", "ok(_)"))
    goals = component.draw(st.permutations(goals))
    head = others if not component.chance(6) or not width else [component.constant(NUMBER), *others[1:]]
    if component.chance(3):
        component.write(table.atom([*head, f"{fold}<D>"]), [*goals, f"D = {term}"])
    else:
        component.write(table.atom([*head, f"{fold}<{term}>"]), goals)


def plain_reader(component: Component, width: int) -> None:
    """A plain predicate that reads the extrema, and that they read."""
    keys, table = names("X", width), component.tables[0]
    component.tables.append(Predicate("seen", (NUMBER,) * width))
    component.write(f"seen({', '.join(keys)})", [table.atom([*keys, "_"])])
    fold = "min" if any("min<" in line for line in component.lines) else "max"
    others = names("Y", width)
    component.write(
        table.atom([*others, f"{fold}<W>"]),
        [f"seen({', '.join(keys)})", f"arc({', '.join([*keys, *others, 'W'])})"],
    )


@st.composite
def pair_components(draw: st.DrawFn) -> Case:
    """Minima over pairs, linear and not: they have pivots, or chains."""
    component = Component(draw, computes=False)
    component.give(Predicate("arc", (NUMBER, NUMBER, NUMBER)), arcs(component, (0, 1, 2, 5), width=1))
    component.tables.append(Predicate("path", (NUMBER, NUMBER, NUMBER)))
    component.write("path(X, Y, min<D>)", ["arc(X, Y, D)"])
    for _ in range(draw(st.integers(1, 2))):
        goals = component.pick(
            ["path(X, Z, C)", "arc(Z, Y, W)"],
            ["arc(X, Z, W)", "path(Z, Y, C)"],
            ["path(X, Z, C)", "path(Z, Y, W)"],
            ["path(X, Z, C)", "path(Z, Y, W)", "path(X, Y, _)"],
            ["path(Y, X, C)", "arc(_, _, W)"],
            ["path(X, _, C)", "path(_, Y, W)"],
            ["path(X, Z, C)", "arc(Z, Y, 1)", "W = 2"],
            ["path(X, Z, C)", "arc(Z, Y, W)", "W < 3"],
            ["path(X, Z, C)", "arc(Z, Y, W)", "X != Y"],
            ["path(X, Z, C)", "path(Y, Z, W)"],
            ["path(X, Z, C)", "arc(Z, U, W)", "arc(U, Y, W)"],
        )
        component.write(
            "path(X, Y, min<D>)", [*goals, f"D = {component.pick('C + W', 'max(C, W)', 'C', 'W', 'C + 1')}"]
        )
    return component.case()


@st.composite
def sum_components(draw: st.DrawFn) -> Case:
    """Sums and counts over acyclic edges, and counts that plain predicates feed and read."""
    component = Component(draw, computes=False)
    real = component.chance(4)
    weights: Sequence[Value] = (0.0, 0.25, 0.5, 1.5) if real else (0, 1, 2, 3)
    kind = "float" if real else NUMBER
    width = component.pick(1, 1, 2)
    component.give(Predicate("arc", (NUMBER,) * 2 * width + (kind,)), arcs(component, weights, True, width))
    component.give(Predicate("start", (NUMBER,) * width + (kind,)), some(component, width, weights))
    component.give(Predicate("ok", (NUMBER,)), some(component, 1))
    {"flow": flow, "attend": attend, "control": control, "mixed": mixed}[
        component.pick("flow", "flow", "attend", "control", "mixed")
    ](component, width)
    return component.case()


def spelled(component: Component, function: str) -> str:
    return component.pick("", "m") + function


def flow(component: Component, width: int) -> None:
    keys, others = names("X", width), names("Y", width)
    for i in range(component.pick(1, 1, 2)):
        component.tables.append(Predicate(f"s{i}", ()))
    add = spelled(component, "sum")
    for i, table in enumerate(component.tables):
        following = component.tables[(i + 1) % len(component.tables)]
        if i == 0 or component.chance(2):
            component.write(table.atom([*keys, f"{add}<D>"]), [f"start({', '.join([*keys, 'D'])})"])
        for _ in range(component.pick(1, 1, 2)):
            goals = [f"{following.name}({', '.join([*keys, 'C'])})", f"arc({', '.join([*keys, *others, 'W'])})"]
            if component.chance(3):
                goals.append(component.pick(f"ok({others[0]})", f"!ok({others[0]})", "ok(_)", "ok(K)"))
            term = component.pick("C", "W * C", "C * W", "C * W + C", "C * 2")
            goals = component.draw(st.permutations(goals))
            if component.chance(3):
                others_of = "K" if "ok(K)" in goals else "1"
                key = component.pick(keys[0], keys[0], others_of, f"{keys[0]} % 3")
                component.write(table.atom([*others, f"{add}<({key}, {term})>"]), goals)
            else:
                component.write(table.atom([*others, f"{add}<{term}>"]), goals)


def attend(component: Component, width: int) -> None:
    component.tables += [Predicate("attend", (NUMBER,)), Predicate("cnt", (NUMBER, NUMBER))]
    columns = ", ".join([*names("X", width), *names("Y", width), "_"])
    count = spelled(component, "count")
    component.write("attend(X)", ["ok(X)"])
    component.write(f"cnt(X0, {count}<Y0>)", ["attend(Y0)", f"arc({columns})"])
    component.write("attend(X)", ["cnt(X, N)", f"N {component.pick('>= 2', '> 0', '>= 1', '>= 3')}"])
    if component.chance(3):
        component.write(
            f"cnt(Y0, {count}<X0>)", ["attend(X0)", f"arc({columns})", component.pick("attend(Y0)", "ok(_)")]
        )


def control(component: Component, width: int) -> None:
    component.tables += [Predicate("share", ()), Predicate("part", ()), Predicate("control", ())]
    arc = f"arc({', '.join([*names('X', width), *names('Y', width), 'V'])})"
    add = spelled(component, "sum")
    component.write(f"share(X, Y, {add}<D>)", ["part(X, Y, _, D)"])
    component.write("part(X0, Y0, X0, V)", [arc])
    component.write("part(X, Y0, X0, V)", ["control(X, X0)", arc])
    component.write("control(X, Y)", ["share(X, Y, S)", f"S > {component.pick('1', '2')}"])


def mixed(component: Component, width: int) -> None:
    """A sum that reads a plain predicate and itself."""
    component.tables += [Predicate("member", (NUMBER,)), Predicate("total", (NUMBER,))]
    arc = f"arc({', '.join([*names('X', width), *names('Y', width), 'W'])})"
    component.write("member(X)", ["ok(X)"])
    component.write("total(X0, sum<D>)", [f"start({', '.join([*names('X', width), 'D'])})"])
    component.write(
        "total(Y0, sum<D>)", ["member(X0)", "total(X0, C)", arc, f"D = {component.pick('C', 'C * W', 'C * 3')}"]
    )
    component.write("member(Y0)", ["total(X0, C)", arc, f"C {component.pick('> 1', '>= 0', '>= 2')}"])


kernel_components = st.one_of(
    plain_components(),
    plain_components(),
    plain_components(),
    extremum_components(),
    pair_components(),
    sum_components(),
)
