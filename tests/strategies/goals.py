"""Goals of wide programs: atoms, conditions, computed variables, ranges and aggregates with bodies of their own.

Variables are shared by their names, of which a type has few. The goals of a body stand in any order: what a program
means does not depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hypothesis import strategies as st

from naive.values import Value
from strategies import universe
from strategies.rules import COMPARISONS, Predicate
from strategies.universe import BOOL, DATE, DECIMAL, FLOAT, NUMBER, REAL, SYMBOL, UNSIGNED, written

T = TypeVar("T")
Bound = list[tuple[str, str]]

SUMMABLE = (NUMBER, UNSIGNED, FLOAT, DECIMAL)
COMPUTED = (NUMBER, UNSIGNED, FLOAT)
NOTHING: Mapping[int, str] = {}


@dataclass
class Body:
    """Goals, and the variables that they bind with their types. `outer` are given by the body around this one.

    A `simple` body computes only with numbers.
    """

    goals: list[str] = field(default_factory=list)
    bound: Bound = field(default_factory=list)
    outer: Bound = field(default_factory=list)
    simple: bool = False

    @property
    def known(self) -> Bound:
        return self.outer + self.bound

    def of(self, *types: str) -> Bound:
        return [pair for pair in self.known if pair[1] in types]


class Goals:
    """Draws goals over the `readable` predicates. `unsure` says whether values may be missing."""

    def __init__(self, draw: st.DrawFn, unsure: bool) -> None:
        self.draw = draw
        self.unsure = unsure
        self.simple = draw(st.integers(1, 3)) < 3  # recursive rules compute only what loops can
        self.numbers = universe.NUMBERS[self.pick("small", "small", "2^53", "2^63")]
        self.readable: list[Predicate] = []
        self.fresh = (f"W{i}" for i in range(1000))

    def pick(self, *choices: T) -> T:
        return self.draw(st.sampled_from(choices))

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == one_in

    def values(self, type: str) -> st.SearchStrategy[Value]:
        return st.sampled_from(self.numbers if type == NUMBER else universe.VALUES[type])

    # --- terms ---------------------------------------------------------------------------------------------------

    def constant(self, type: str) -> str:
        text = written(self.draw(self.values(type)))
        return text.capitalize() if type == BOOL and self.chance(3) else text

    def operand(self, type: str, body: Body) -> str:
        """A variable of the type, or a constant."""
        names = [name for name, _ in body.of(type)]
        if type in (DATE, DECIMAL):
            return self.pick(*names)
        return self.constant(type) if not names or self.chance(5) else self.pick(*names)

    def term(self, type: str, body: Body) -> str:
        """A term of the type that has a value."""
        one = self.operand(type, body)
        if body.simple and type != NUMBER:
            return one
        terms = universe.safe_terms(type, one, self.operand(type, body))
        return self.pick(one, one, *(terms[:3] if body.simple else terms))

    def unsure_term(self, body: Body, type: str = "") -> tuple[str, str]:
        """A term that may have no value, and its type, if none is given."""
        type = type or (self.pick(*COMPUTED) if not body.simple else NUMBER)
        choices = [*universe.unsure_terms(type, self.operand(type, body), self.operand(type, body))]
        choices += universe.converted_terms(type, body.known)
        return self.pick(*choices), type

    # --- goals ---------------------------------------------------------------------------------------------------

    def atom(self, predicate: Predicate, body: Body, fixed: Mapping[int, str] = NOTHING) -> str:
        """An atom that binds variables, with the terms `fixed` at their places."""
        arguments = []
        for i, type in enumerate(predicate.types):
            if i in fixed:
                arguments.append(fixed[i])
            elif type == REAL or self.chance(7):
                arguments.append("_")
            elif type not in (DATE, DECIMAL) and self.chance(12):
                arguments.append(self.constant(type))
            else:
                unused = [name for name in universe.VARIABLES[type] if (name, type) not in body.known]
                names = unused if unused and not self.chance(3) else universe.VARIABLES[type]
                arguments.append(self.pick(*names))
                if (arguments[-1], type) not in body.known:
                    body.bound.append((arguments[-1], type))
        return predicate.atom(arguments)

    def comparison(self, body: Body) -> str | None:
        """A comparison of something that is bound: mostly with its own type, of a number also with a float."""
        exact = [pair for pair in body.known if pair[1] != REAL]
        if not exact:
            return None
        name, type = self.pick(*exact)
        if type in (NUMBER, FLOAT) and self.chance(4):
            other = FLOAT if type == NUMBER else NUMBER
            # No equation: it would bind where it stands first, and then types would differ.
            return f"{name} {self.pick('!=', '<', '>=')} {self.operand(other, body)}"
        if type == DECIMAL and self.chance(2):
            other = self.operand(DECIMAL, body)
            right = self.pick("1", "0.5", f"{other} * 2", f"{other} + 0.25", f"{other} * {name}", f"-{other}")
            return f"{name} {self.pick('!=', '<', '>=')} {right}"
        if type == DATE and self.chance(3):
            return f"{name} {self.pick('!=', '<', '>=')} {self.operand(DATE, body)} {self.pick('+', '-')} 1"
        right = self.constant(DATE) if type == DATE and self.chance(2) else self.term(type, body)
        operators = COMPARISONS if right != name and type != DATE else ("!=", "<=", ">")
        return f"{name} {self.pick(*operators)} {right}"

    def condition(self, body: Body) -> str | None:
        """A comparison, a negated atom, a test of a text, or one of two comparisons."""
        kind = self.pick("compare", "compare", "absent", "test", "either")
        names = [name for name, _ in body.of(SYMBOL)]
        if kind == "test" and names and not body.simple:
            test = f'match("{self.pick(*universe.PATTERNS)}", {self.pick(*names)})'
            return self.pick(test, f"!{test}")
        if kind == "absent":
            return self.absent(self.pick(*self.readable), body)
        left, right = self.comparison(body), self.comparison(body)
        return f"({left}; {right})" if kind == "either" and left and right and "=" not in (left, right) else left

    def absent(self, predicate: Predicate, body: Body, place: int = -1, term: str = "") -> str:
        """A negated atom over what is bound, with `term` at `place`."""
        arguments = []
        for i, type in enumerate(predicate.types):
            known = bool(body.of(type)) if type in (DATE, DECIMAL) else type != REAL
            arguments.append(term if i == place else self.operand(type, body) if known and self.chance(2) else "_")
        return f"{self.pick('!', 'not ')}{predicate.atom(arguments)}"

    def computed(self, body: Body) -> list[str]:
        """A new variable for a term, which may have no value, and what becomes of the variable."""
        if self.unsure and not self.chance(4):
            term, type = self.unsure_term(body)
        else:
            type = NUMBER if body.simple else self.pick(NUMBER, SYMBOL, FLOAT, UNSIGNED, BOOL)
            term = self.term(type, body)
        name = next(self.fresh)
        goals = [f"{name} = {term}" if not self.chance(4) else f"{term} = {name}"]
        if self.unsure:
            goals += self.guards(body)
        uses = self.draw(
            st.lists(
                st.sampled_from(("compared", "matched", "absent", "aggregated", "again", "twice", "equal")), max_size=2
            )
        )
        for use in uses:
            goals += self.use(use, name, type, body)
        body.bound.append((name, type))
        return goals

    def keyed(self, body: Body) -> list[str]:
        """Two atoms of one relation that share a variable, with computed keys."""
        places = [
            (predicate, i, j)
            for predicate in self.readable
            for i, key in enumerate(predicate.types)
            for j, shared in enumerate(predicate.types)
            if i != j and key in COMPUTED and shared != REAL
        ]
        if not places:
            return []
        predicate, key, place = self.pick(*places)
        type = predicate.types[place]
        name = self.pick(*universe.VARIABLES[type])
        terms = [self.unsure_term(body, predicate.types[key])[0] for _ in range(2)]
        if (name, type) not in body.known:
            body.bound.append((name, type))
        return [self.atom(predicate, body, {key: term, place: name}) for term in terms]

    def guards(self, body: Body) -> list[str]:
        """Conditions that often leave out what has no value."""
        type, condition = self.pick(
            ("", ""),
            ("", ""),
            (NUMBER, "{} != 0"),
            (NUMBER, self.pick("{} < 1", "{} > 1")),
            (SYMBOL, 'match("[01]+", {})'),
            (FLOAT, "{} > 0.0"),
        )
        return [condition.format(name) for name, _ in body.of(type)][:2]

    def use(self, how: str, name: str, type: str, body: Body) -> list[str]:
        places = [(p, i) for p in self.readable for i, column in enumerate(p.types) if column == type]
        match how:
            case "compared":
                return [f"{name} {self.pick(*COMPARISONS)} {self.operand(type, body)}"]
            case "again":
                again = next(self.fresh)
                other = self.operand(type, body)
                term = name if body.simple else self.pick(*universe.safe_terms(type, name, other))
                return [f"{again} = {term}", f"{again} {self.pick('!=', '<=', '>')} {self.operand(type, body)}"]
            case "twice":
                term = self.unsure_term(body, type)[0] if self.unsure and type in COMPUTED else self.term(type, body)
                return [f"{name} = {term}" if self.chance(2) else f"{term} = {name}"]
            case "equal":
                others = [other for other, _ in body.of(type)] or [self.constant(type)]
                return [f"{name} = {self.pick(next(self.fresh), *others)}"]
            case _ if not places:
                return []
            case "matched" | "aggregated":
                predicate, i = self.pick(*places)
                if how == "matched" or body.simple:
                    return [self.atom(predicate, body, {i: name})]
                count = next(self.fresh)
                inside = self.atom(predicate, Body(outer=body.known), {i: name})
                body.bound.append((count, NUMBER))
                return [f"{count} = count : {{ {inside} }}"]
            case _:
                predicate, i = self.pick(*places)
                return [self.absent(predicate, body, i, name)]

    def spread(self, body: Body) -> list[str]:
        """A range: of constants, near the ends too, or from a variable on."""
        name = next(self.fresh)
        starts = ("0", "9007199254740992", "9223372036854775804", "-9223372036854775808")
        start = self.pick(*starts)
        ends = {starts[0]: "3", starts[1]: "9007199254740995", starts[2]: "9223372036854775807"}
        term = f"range({start}, {ends.get(start, '-9223372036854775805')})"
        names = [name for name, _ in body.of(NUMBER) if not name.startswith("W")]
        if names and self.chance(2):
            one = self.pick(*names)
            term = self.pick(
                f"range(min({one}, 3), 3, {self.pick('2', one)})" if self.numbers == universe.SMALL else term,
                f"range({one}, {one} + 2)" if self.unsure else term,
                f"range(max({one}, 5), 5, 100000000000000000)",
            )
        elif self.chance(4):
            name_type = FLOAT
            body.bound.append((name, name_type))
            return [f"{name} = range(0.0, 1.5, 0.5)"]
        body.bound.append((name, NUMBER))
        return [f"{name} = {term}"]

    def collected(self, body: Body, depth: int) -> list[str]:
        """An aggregate over a body of its own, in which another one may stand."""
        inner = Body(outer=body.known)
        goals = [self.atom(self.pick(*self.readable), inner)]
        if self.chance(2):
            goals.append(self.atom(self.pick(*self.readable), inner))
        for _ in range(self.draw(st.integers(0, 1))):
            goals += [condition] if (condition := self.condition(inner)) else []
        if self.unsure and self.chance(3):
            goals += self.computed(inner)
        if depth > 1:
            goals += self.collected(inner, depth - 1)
        own = [pair for pair in inner.bound if pair not in body.known]
        function = self.pick("count", "sum", "min", "max")
        targets = [pair for pair in own if pair[1] in (SUMMABLE if function == "sum" else (*SUMMABLE, SYMBOL, DATE))]
        name = next(self.fresh)
        joined = ", ".join(self.draw(st.permutations(goals)))
        if function == "count" or not targets:
            body.bound.append((name, NUMBER))
            return [f"{name} = count : {{ {joined} }}"]
        target, type = self.pick(*targets)
        body.bound.append((name, REAL if function == "sum" and type == FLOAT else type))
        return [f"{name} = {function} {target} : {{ {joined} }}"]

    # --- bodies --------------------------------------------------------------------------------------------------

    def body(self, must: Sequence[Predicate] = (), *, most: int = 2) -> Body:
        """Atoms, those of `must` among them, and other goals. In recursion (`must`) no goal makes new values."""
        body = Body(simple=self.simple and bool(must))
        atoms = [*must, *(self.pick(*self.readable) for _ in range(self.draw(st.integers(0 if must else 1, most))))]
        goals = [self.atom(predicate, body) for predicate in atoms[:3]]
        extras = ["condition", "computed", "computed"] + ([] if must else ["spread", "collected", "collected"])
        extras += ["keyed"] if self.unsure and not must else []
        chosen = [self.pick(*extras) for _ in range(self.pick(0, 1, 1, 2))]
        for kind in [*chosen, *(["computed"] if self.unsure and not must and self.chance(2) else [])]:
            match kind:
                case "computed":
                    goals += self.computed(body)
                case "keyed":
                    goals += self.keyed(body)
                case "spread":
                    goals += self.spread(body)
                case "collected":
                    goals += self.collected(body, self.pick(1, 1, 2, 3))
                case _:
                    goals += [condition] if (condition := self.condition(body)) else []
        body.goals = self.draw(st.permutations(goals))
        return body
