"""Random programs that are wide: relations of up to five columns of every type, rings of up to four predicates,
aggregates one in the other, values that are missing and then used, numbers at the ends.

Recursive rules make few new values, so that every program ends.
"""

from __future__ import annotations

from hypothesis import strategies as st

from naive.values import Row
from strategies import universe
from strategies.cases import Case
from strategies.goals import SUMMABLE, Body, Goals
from strategies.rules import Predicate
from strategies.universe import BOOL, DATE, DECIMAL, FLOAT, NUMBER, REAL, SYMBOL, TYPES, UNSIGNED


class Draft(Goals):
    """A program under construction."""

    def __init__(self, draw: st.DrawFn, unsure: bool) -> None:
        super().__init__(draw, unsure)
        self.lines: list[str] = []
        self.facts: dict[str, list[Row]] = {}
        self.columns: dict[str, tuple[str, ...]] = {}
        self.derived: list[str] = []

    def case(self) -> Case:
        """The program; in one of four, only some predicates are asked for."""
        asked = self.derived
        if self.chance(4):
            asked = self.draw(st.lists(st.sampled_from(self.derived), min_size=1, max_size=2, unique=True))
            self.lines += [f".output {name}" for name in asked]
        return Case("\n".join(self.lines), self.facts, self.columns, tuple(asked))

    # --- relations -----------------------------------------------------------------------------------------------

    def base(self) -> None:
        self.give(*(self.pick(*TYPES) for _ in range(self.pick(1, 2, 2, 3, 3, 4, 5))))

    def give(self, *types: str) -> Predicate:
        """A base relation with rows."""
        predicate = Predicate(f"e{len(self.facts)}", types)
        rows = st.lists(st.tuples(*map(self.values, types)), min_size=self.pick(0, 3, 6, 6), max_size=9, unique=True)
        self.facts[predicate.name] = self.draw(rows)
        self.columns[predicate.name] = types
        self.readable.append(predicate)
        return predicate

    def new(self, *types: str) -> Predicate:
        """A derived predicate, not yet readable."""
        predicate = Predicate(f"p{len(self.derived)}", types)
        self.derived.append(predicate.name)
        return predicate

    # --- rules ---------------------------------------------------------------------------------------------------

    def write(self, head: str, body: Body) -> None:
        self.lines.append(f"{head} {self.pick(':-', '<-')} {', '.join(body.goals)}.")

    def head(self, predicate: Predicate, body: Body, *, invent: bool = True) -> str:
        return predicate.atom([self.head_term(type, body, invent) for type in predicate.types])

    def head_term(self, type: str, body: Body, invent: bool) -> str:
        names = [name for name, _ in body.of(type) if invent or not name.startswith("W")]
        if type == REAL:
            return self.pick(*names)
        if names and not self.chance(5):
            return self.pick(*names)
        return self.term(type, Body(bound=[(name, type) for name in names], simple=body.simple))

    def fitting(self, body: Body, wanted: int) -> tuple[str, ...]:
        """Types of head columns: those of bound variables, and some that constants give."""
        known = [type for _, type in body.bound if type != REAL]
        return tuple(self.pick(*known, NUMBER, SYMBOL) for _ in range(wanted))

    # --- predicates ----------------------------------------------------------------------------------------------

    def plain(self) -> None:
        body = self.body()
        predicate = self.new(*self.fitting(body, self.pick(0, 1, 2, 3, 4, 5)))
        self.write(self.head(predicate, body), body)
        self.readable.append(predicate)

    def aggregate(self) -> None:
        """Aggregates in a head, of any type."""
        body = self.body()
        groups = self.fitting(body, self.pick(0, 1, 2, 3))
        heads, types = [self.head_term(type, body, True) for type in groups], list(groups)
        for _ in range(self.pick(1, 1, 2)):
            function = self.pick("count", "countd", "sum", "min", "max", "avg")
            # The mean of numbers is computed with floats: exact as long as they are small.
            means = (NUMBER, FLOAT) if self.numbers == universe.SMALL else ()
            allowed = {"sum": SUMMABLE, "avg": means, "count": TYPES, "countd": TYPES}
            fits = body.of(*allowed.get(function, (*SUMMABLE, SYMBOL, DATE)))
            if not fits:
                function, fits = "count", [("_", NUMBER)]
            name, type = self.pick(*fits)
            if function in ("count", "countd") and self.unsure and self.chance(2):
                name, type = self.unsure_term(body)
            heads.append(f"{function}<{name}>")
            counts = function in ("count", "countd")
            rounds = function == "avg" or (function == "sum" and type == FLOAT)
            wide = "decimal(38,2)" if function == "sum" and type == DECIMAL else type
            types.append(NUMBER if counts else REAL if rounds or wide == "decimal(38,2)" else wide)
        predicate = self.new(*types)
        self.write(predicate.atom(heads), body)
        self.readable.append(predicate)

    def ring(self) -> None:
        """Plain predicates of any types, each of which reads the next."""
        sources = [self.body() for _ in range(self.pick(1, 2, 3, 3, 4))]
        tables = [self.new(*self.fitting(body, self.pick(1, 2, 3, 3, 4, 5))) for body in sources]
        for i, (table, body) in enumerate(zip(tables, sources, strict=True)):
            if i == 0 or self.chance(2):
                self.write(self.head(table, body), body)
            following = tables[(i + 1) % len(tables)]
            for must in [[following], *([[self.pick(*tables), following]] if self.chance(3) else [])]:
                step = self.body(must, most=1)
                self.head_or_constant(table, step)
        self.readable += tables

    def head_or_constant(self, table: Predicate, step: Body) -> None:
        """The rule, with an atom that binds what the head needs of types that have no constants."""
        for type in (DATE, DECIMAL):
            if type in table.types and not any(pair[1] == type and pair[0][0] != "W" for pair in step.bound):
                source = next(p for p in self.readable if type in p.types)
                name = universe.VARIABLES[type][0]
                step.goals.append(source.atom([name if t == type else "_" for t in source.types]))
                step.bound.append((name, type))
        self.write(self.head(table, step, invent=False), step)

    def threshold(self) -> None:
        """Who counts enough different values of a type comes in, and counts for others."""
        type, key = self.pick(*TYPES), self.pick(NUMBER, NUMBER, SYMBOL, DATE, BOOL, UNSIGNED)
        start = self.give(key)
        told = self.give(key, key, type)
        inside, counted = self.new(key), self.new(key, NUMBER)
        count, least = self.pick("count", "countd", "countd", "mcount"), self.pick(">= 2", "> 0", "> 1")
        value = self.pick("T", "T", "X") if count == "countd" else "T"
        self.lines += [
            f"{inside.name}(X) <- {start.name}(X).",
            f"{counted.name}(Y, {count}<{value}>) <- {inside.name}(X), {told.name}(Y, X, T).",
        ]
        if self.chance(3):
            middle = self.new(key, NUMBER)
            self.lines.append(f"{middle.name}(X, N) <- {counted.name}(X, N), N {least}.")
            self.lines.append(f"{inside.name}(X) <- {middle.name}(X, N), N {least}.")
            self.readable.append(Predicate(middle.name, (key, NUMBER)))
        else:
            self.lines.append(f"{inside.name}(X) <- {counted.name}(X, N), N {least}.")
        self.readable += [inside, counted]

    def extremum(self) -> None:
        """The least or greatest value of a type that reaches a key of one to three columns, through a ring."""
        type = self.pick(SYMBOL, DATE, FLOAT, UNSIGNED, NUMBER, DECIMAL)
        keys = tuple(self.pick(NUMBER, NUMBER, SYMBOL, BOOL) for _ in range(self.pick(1, 1, 2, 3)))
        start = self.give(*keys, type)
        arc = self.give(*keys, *keys)
        fold = self.pick("min", "max", "mmin", "mmax")
        tables = [self.new(*keys, type) for _ in range(self.pick(1, 2, 3))]
        ones, others = [f"A{i}" for i in range(len(keys))], [f"B{i}" for i in range(len(keys))]
        for i, table in enumerate(tables):
            following = tables[(i + 1) % len(tables)]
            if i == 0 or self.chance(2):
                self.lines.append(f"{table.atom([*ones, f'{fold}<V>'])} <- {start.atom([*ones, 'V'])}.")
            step = f"{following.atom([*ones, 'V'])}, {arc.atom([*ones, *others])}"
            self.lines.append(f"{table.atom([*others, f'{fold}<V>'])} <- {step}.")
        self.readable += tables


@st.composite
def wide_programs(draw: st.DrawFn) -> Case:
    """Programs of one to three steps over one to three base relations; in every other one, values may be missing."""
    draft = Draft(draw, unsure=draw(st.booleans()))
    for _ in range(draw(st.integers(1, 3))):
        draft.base()
    steps = (Draft.plain, Draft.plain, Draft.aggregate, Draft.ring, Draft.ring, Draft.threshold, Draft.extremum)
    for _ in range(draw(st.integers(1, 3))):
        draw(st.sampled_from(steps))(draft)
    return draft.case()


@st.composite
def broken_programs(draw: st.DrawFn) -> Case:
    """Wide programs with a rule that has no meaning: a variable that nothing binds, or a negation through recursion."""
    draft = Draft(draw, unsure=False)
    draft.base()
    draft.ring()
    base, last = draft.readable[0], draft.readable[-1]
    read = base.atom(["_"] * len(base.types))
    mistake = draft.pick(
        f"bad(Q) <- {read}.",
        f"bad(1) <- {read}, Q > 0.",
        f"bad(1) <- {read}, Q = R + 1.",
        f"bad(1) <- {read}, !{base.atom(['Q'] * len(base.types))}.",
        f"bad(1) <- {read}, !bad(1).",
        f"bad(1) <- {read}, !{last.atom(['_'] * len(last.types))}.\n{draft.lines[-1].rstrip('.')}, bad(1).",
    )
    program = "\n".join([*draft.lines, mistake])
    return Case(program, draft.facts, draft.columns, (*draft.derived, "bad"))
