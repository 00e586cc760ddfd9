"""Rules as text: bodies drawn goal by goal, so that every variable is bound before it is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import strategies as st

from strategies import terms
from strategies.terms import EXACT, FLOAT, NUMBER, REAL, SYMBOL

T = TypeVar("T")

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
# Names that differ in case only are different variables.
NAMES = ("x", "X", "y", "Y", "z", "Z", "u", "v", "w", "W", *(f"v{i}" for i in range(60)))


@dataclass(frozen=True)
class Predicate:
    name: str
    types: tuple[str, ...]

    def atom(self, arguments: Sequence[str]) -> str:
        return f"{self.name}({', '.join(arguments)})"


class Body:
    """A body under construction: its goals, and the variables that they bind, with their types."""

    def __init__(
        self,
        draw: st.DrawFn,
        readable: Sequence[Predicate],
        names: Iterator[str] | None = None,
        bound: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.draw = draw
        self.readable = readable
        self.names = iter(NAMES) if names is None else names
        self.bound = list(bound)
        self.goals: list[str] = []

    def __str__(self) -> str:
        return ", ".join(self.goals)

    def pick(self, *choices: T) -> T:
        return self.draw(st.sampled_from(choices))

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == one_in

    def fresh(self, type: str) -> str:
        name = next(self.names)
        self.bound.append((name, type))
        return name

    def operand(self, type: str) -> str:
        return self.draw(terms.operands(type, self.bound))

    # --- goals ---------------------------------------------------------------------------------------------------

    def atom(self, predicate: Predicate) -> None:
        """A positive atom. Its variables may be bound already, stand in it twice, or be new."""
        before = list(self.bound)
        self.goals.append(predicate.atom([self.argument(type, before) for type in predicate.types]))

    def argument(self, type: str, before: Sequence[tuple[str, str]]) -> str:
        if type == REAL:
            return self.fresh(type) if self.chance(2) else "_"
        kind = self.pick("known", "known", "new", "new", "new", "_", "constant", "computed")
        if kind == "known" and terms.has(type, self.bound):
            return self.draw(terms.variables(type, self.bound))
        if kind == "computed" and terms.has(type, before):
            return self.draw(terms.expressions(type, before))
        if kind == "_":
            return "_"
        return self.draw(terms.constants(type)) if kind == "constant" else self.fresh(type)

    def absent(self) -> None:
        """A negated atom over what is bound."""
        predicate = self.pick(*self.readable)
        arguments = ["_" if type == REAL or self.chance(4) else self.operand(type) for type in predicate.types]
        self.goals.append(self.pick("!", "~", "not ") + predicate.atom(arguments))

    def comparison(self) -> str | None:
        """A comparison of something that is bound, or None."""
        known = [type for type in EXACT if terms.has(type, self.bound)]
        if not known:
            return None
        type = self.pick(*known)
        left = self.draw(terms.variables(type, self.bound))
        given = type == NUMBER and self.chance(8)
        right = "$K" if given else self.draw(terms.expressions(type, self.bound))
        return f"{left} {self.pick(*COMPARISONS)} {right}"

    def filter(self) -> None:
        if terms.has(SYMBOL, self.bound) and self.chance(4):
            text = self.draw(terms.variables(SYMBOL, self.bound))
            self.goals.append(
                self.pick(f'contains("a", {text})', f'match("a.*|b", {text})', f'!match("[ab]+", {text})')
            )
        elif (goal := self.comparison()) is not None:
            self.goals.append(goal)

    def assignment(self) -> None:
        type = self.draw(terms.types)
        term = self.draw(terms.expressions(type, self.bound))
        self.goals.append(f"{self.fresh(type)} = {term}")

    def spread(self) -> None:
        low, high = self.draw(st.tuples(terms.numbers, terms.numbers))
        self.goals.append(f"{self.fresh(NUMBER)} = range({low}, {high})")

    def disjunction(self) -> None:
        """Either two conditions, or two atoms that bind the same new variable."""
        left, right = self.comparison(), self.comparison()
        sources = [(p, i) for p in self.readable for i, type in enumerate(p.types) if type in EXACT]
        if sources and self.chance(2):
            predicate, i = self.pick(*sources)
            type = predicate.types[i]
            others = [(p, j) for p, j in sources if p.types[j] == type]
            name = next(self.names)
            parts = [self.atom_with(name, *chosen) for chosen in ((predicate, i), self.pick(*others))]
            self.bound.append((name, type))
            self.goals.append(f"({'; '.join(parts)})")
        elif left and right:
            self.goals.append(f"({left}; {right})")

    def atom_with(self, name: str, predicate: Predicate, place: int) -> str:
        arguments = ["_" if type == REAL or self.chance(2) else self.operand(type) for type in predicate.types]
        arguments[place] = name
        return predicate.atom(arguments)

    def collect(self) -> None:
        """An aggregate with a body of its own, which may mention what is bound here."""
        inner = Body(self.draw, self.readable, self.names, [pair for pair in self.bound if pair[1] != REAL])
        inner.atom(self.pick(*self.readable))
        for _ in range(self.draw(st.integers(0, 1))):
            self.pick(inner.filter, inner.absent)()
        own = [pair for pair in inner.bound if pair not in self.bound]
        numeric = [pair for pair in own if pair[1] in (NUMBER, FLOAT)]
        function = self.pick("count", "sum", "min", "max") if numeric else "count"
        if function == "count":
            self.goals.append(f"{self.fresh(NUMBER)} = count : {{{inner}}}")
            return
        target, type = self.pick(*numeric)
        name = self.fresh(type)
        self.goals.append(f"{name} = {function} {target} : {{{inner}}}")
        # A witness: a variable of a min or max that is used outside takes its value from where the extremum is.
        witnesses = [pair for pair in own if pair[0] != target and pair[1] in EXACT]
        if function != "sum" and witnesses and self.chance(3):
            witness = self.pick(*witnesses)
            self.bound.append(witness)
            # Used outside for sure: a name that only two aggregates' bodies share is a variable of each.
            self.goals.append(f"{witness[0]} = {witness[0]}")

    # --- whole bodies --------------------------------------------------------------------------------------------

    def fill(self, *, must: Sequence[Predicate] = (), invent: bool = True, disjunction: bool = True) -> None:
        """Atoms (those of `must` among them) and other goals. Without `invent` no goal makes new values."""
        chosen = [*must, *(self.pick(*self.readable) for _ in range(self.draw(st.integers(0 if must else 1, 2))))]
        for predicate in self.draw(st.permutations(chosen[:3])):
            self.atom(predicate)
        extras = [self.filter, self.filter, self.absent]
        extras += [self.disjunction] if disjunction else []
        extras += [self.assignment, self.spread, self.collect, self.collect] if invent else []
        for _ in range(self.draw(st.integers(0, 2))):
            self.pick(*extras)()

    def head_term(self, type: str, *, invent: bool = True) -> str:
        """A head argument: mostly a bound variable."""
        if type == REAL:
            return self.draw(terms.variables(REAL, self.bound)) if terms.has(REAL, self.bound) else self.operand(FLOAT)
        if terms.has(type, self.bound) and not self.chance(4):
            return self.draw(terms.variables(type, self.bound))
        return self.draw(terms.expressions(type, self.bound)) if invent else self.operand(type)

    def numeric(self) -> list[tuple[str, str]]:
        return [(name, type) for name, type in self.bound if type in (NUMBER, FLOAT)]
