"""Rules as nests of loops: what is found by what, in which order.

A rule has a nest for each atom that carries a change. It starts from a fact of that atom; the others are found through
indexes, among all facts that were taken up before it or with it. Facts are taken up one by one, so that this is the
same as `old` and `new` for a rule that reads each relation once; others have heads that may meet a binding twice. A
rule above has one nest, which starts from every finished fact of one atom.

In a nest a condition stands as far out as its variables allow, then atoms all of whose columns are known, then those of
which one row is known to match, then the others in the order of the text. An atom waits while one of its variables can
still be computed: the loops must meet every value that may be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from emberlog.components.domains import goal_variables, variables_of
from emberlog.components.pivots import Pivots
from emberlog.components.program import Atom, Check, Goal, KernelProgram, KernelRule, Kind, Let, Missing
from emberlog.syntax.nodes import Comparison, Constant, Term, Variable
from emberlog.thresholds import MOST_LOOPS, MOST_STEPS


@dataclass(frozen=True, slots=True)
class Probe:
    """The rows of a static in which the columns `bound` have the values of `terms`; `binds` are read from each.

    With `exists` one row is enough; with `absent` there must be none.
    """

    relation: str
    bound: tuple[int, ...]
    terms: tuple[Term, ...]
    binds: tuple[tuple[int, str], ...]
    exists: bool = False
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Walk:
    """The facts of a table in which the columns `bound` have the values of `terms`.

    With `absent` there must be none.
    """

    relation: str
    bound: tuple[int, ...]
    terms: tuple[Term, ...]
    binds: tuple[tuple[int, str], ...]
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Meet:
    """The values of `variable` that two statics have in common.

    Their rows are sorted by it, and the loops jump from one to the other over what the other does not have. The last
    of the `bound` columns of each probe is the one they share.
    """

    variable: str
    one: Probe
    other: Probe


Step: TypeAlias = Probe | Walk | Check | Let | Meet
Key: TypeAlias = tuple[str, tuple[int, ...]]  # a static index: relation, bound columns


@dataclass(frozen=True, slots=True)
class Nest:
    """The loops of a rule that start from a fact of `table`, whose columns `binds` are read. `kinds` has the variables
    of the rule, and those of columns that are compared with what is known. A rule `above` reads finished facts."""

    rule: KernelRule
    kinds: Mapping[str, Kind] = field(compare=False, repr=False)
    table: str
    binds: tuple[tuple[int, str], ...]
    checks: tuple[Check, ...]
    steps: tuple[Step, ...]
    above: bool = False


def nests(program: KernelProgram, pivots: Pivots, narrow: bool = False) -> tuple[Nest, ...]:
    """Every nest of the program. The variables in pivot positions are known from the start. With `narrow`, atoms that
    leave the fewest columns open come first, and of these the ones that do not grow."""
    rules = ((rule, rule in program.above) for rule in (*program.rules, *program.above))
    return tuple(
        replace(_nest(rule, spot, program, pivots, narrow), above=above)
        for rule, above in rules
        for spot in rule.carriers
    )


def too_large(planned: tuple[Nest, ...]) -> str:
    """Why Python cannot nest these loops, or why they would take minutes to compile; empty if neither holds."""
    deepest = max((sum(isinstance(step, Probe | Walk | Meet) for step in nest.steps) for nest in planned), default=0)
    if deepest > MOST_LOOPS:
        return f"a rule needs {deepest} loops inside one another, and at most {MOST_LOOPS} are compiled"
    steps = sum(len(nest.steps) for nest in planned)
    if steps > MOST_STEPS:
        return f"the rules need {steps} loops and conditions, and at most {MOST_STEPS} are compiled"
    return ""


def _nest(rule: KernelRule, spot: int, program: KernelProgram, pivots: Pivots, narrow: bool) -> Nest:
    start = rule.body[spot]
    assert isinstance(start, Atom)
    head = program.table(rule.head)
    assert head is not None
    order = _Order(rule, spot, program, once=head.fold == "sum", narrow=narrow)
    pivoted = pivots.get(start.relation, ())
    order.known.update(name for p in pivoted for name in variables_of(start.arguments[p] or Constant(0)))
    read = Atom(start.relation, tuple(None if p in pivoted else a for p, a in enumerate(start.arguments)))
    binds, checks = order.read(read)
    rest = [goal for i, goal in enumerate(rule.body) if i != spot]
    steps = order.steps(rest)
    return Nest(rule, order.kinds, start.relation, binds, checks, steps)


class _Order:
    """Orders the goals of the nest that starts from goal number `spot`. `once` says that each binding counts, so that
    none may be skipped; `narrow` prefers atoms with few open columns."""

    def __init__(self, rule: KernelRule, spot: int, program: KernelProgram, once: bool, narrow: bool) -> None:
        self.rule = rule
        self.spot = spot
        self.program = program
        self.once = once
        self.narrow = narrow
        self.known: set[str] = set()
        self.kinds = dict(rule.kinds)

    def read(self, atom: Atom) -> tuple[tuple[tuple[int, str], ...], tuple[Check, ...]]:
        """The columns of an atom that give new variables, and what the others must equal."""
        binds: list[tuple[int, str]] = []
        checks: list[Check] = []
        for position, argument in enumerate(atom.arguments):
            match argument:
                case None:
                    continue
                case Variable(name) if name not in self.known:
                    self.known.add(name)
                    binds.append((position, name))
                case _:
                    name = self._extra(atom, position)
                    binds.append((position, name))
                    checks.append(Check(Comparison("=", Variable(name), argument)))
        return tuple(binds), tuple(checks)

    def _extra(self, atom: Atom, position: int) -> str:
        """A variable for a column that is compared with what is known already."""
        name = f"@{len(self.kinds)}"
        self.kinds[name] = self.program.kinds(atom.relation)[position]
        self.known.add(name)
        return name

    def steps(self, goals: list[Goal]) -> tuple[Step, ...]:
        waiting = list(goals)
        found: list[Step] = []
        while waiting:
            goal = next((goal for goal in waiting if self._is_ready(goal)), None)
            computed = {other.variable for other in waiting if isinstance(other, Let)} - self.known
            pair = None if goal is not None else self._pair(waiting, computed)
            if pair is not None:
                found.append(self._meet(*pair))
                waiting = [other for other in waiting if other not in pair]
                continue
            goal = goal or self._best(waiting, computed)
            waiting.remove(goal)
            found += self._step(goal, waiting)
        return tuple(found)

    def _pair(self, waiting: list[Goal], computed: set[str]) -> tuple[Atom, Atom] | None:
        """Two statics that are known but for one and the same variable, which is not computed: they close a cycle."""
        open_: dict[str, Atom] = {}
        for goal in waiting:
            if not isinstance(goal, Atom) or self.program.table(goal.relation) is not None:
                continue
            free = [a.name for a in goal.arguments if isinstance(a, Variable) and a.name not in self.known]
            whole = all(argument is not None for argument in goal.arguments)
            if len(free) == 1 and free[0] not in computed and self._bound(goal) and (whole or not self.once):
                if free[0] in open_:
                    return open_[free[0]], goal
                open_[free[0]] = goal
        return None

    def _meet(self, one: Atom, other: Atom) -> Meet:
        probes = [self._sorted(atom) for atom in (one, other)]
        (name,) = {a.name for a in one.arguments if isinstance(a, Variable) and a.name not in self.known}
        self.known.add(name)
        return Meet(name, probes[0], probes[1])

    def _sorted(self, atom: Atom) -> Probe:
        bound = self._bound(atom)
        terms = tuple(term for spot in bound if (term := atom.arguments[spot]) is not None)
        shared = next(
            spot
            for spot, argument in enumerate(atom.arguments)
            if isinstance(argument, Variable) and argument.name not in self.known
        )
        return Probe(atom.relation, (*bound, shared), terms, ())

    def _is_ready(self, goal: Goal) -> bool:
        match goal:
            case Check() | Missing():
                return self.known.issuperset(goal_variables(goal))
            case Let(_, term):
                return self.known.issuperset(variables_of(term))
            case Atom():
                return all(a is None or self.known.issuperset(variables_of(a)) for a in goal.arguments) and any(
                    a is not None for a in goal.arguments
                )

    def _best(self, waiting: list[Goal], computed: set[str]) -> Goal:
        atoms = [goal for goal in waiting if isinstance(goal, Atom)]
        return max(
            atoms,
            key=lambda atom: (computed.isdisjoint(goal_variables(atom)), *self._promise(atom), -waiting.index(atom)),
        )

    def _promise(self, atom: Atom) -> tuple[bool, bool, int, bool]:
        bound = self._bound(atom)
        grows = self.program.table(atom.relation) is not None
        unique = None if grows else self.program.static(atom.relation).unique
        read = sum(argument is not None for argument in atom.arguments)
        open_ = read - len(bound) if self.narrow else 0
        return unique is not None and set(unique) <= set(bound), bool(bound), -open_, self.narrow and not grows

    def _bound(self, atom: Atom) -> tuple[int, ...]:
        return tuple(
            position
            for position, argument in enumerate(atom.arguments)
            if argument is not None and self.known.issuperset(variables_of(argument))
        )

    def _step(self, goal: Goal, later: list[Goal]) -> Iterable[Step]:
        match goal:
            case Check():
                return [goal]
            case Let(variable, term):
                if variable in self.known:
                    return [Check(Comparison("=", Variable(variable), term))]
                self.known.add(variable)
                return [goal]
            case Missing(relation, arguments):
                terms = {position: argument for position, argument in enumerate(arguments) if argument is not None}
                kind = Probe if self.program.table(relation) is None else Walk
                return [kind(relation, tuple(terms), tuple(terms.values()), (), absent=True)]
            case Atom():
                return self._found(goal, later)

    def _found(self, atom: Atom, later: list[Goal]) -> Iterable[Step]:
        table = self.program.table(atom.relation)
        bound = tuple(p for p in self._bound(atom) if table is None or p != table.value)
        terms = tuple(argument for p in bound if (argument := atom.arguments[p]) is not None)
        rest = Atom(atom.relation, tuple(None if p in bound else a for p, a in enumerate(atom.arguments)))
        needed = self._needed(later)
        binds, checks = self.read(rest)
        if table is not None:
            return [Walk(atom.relation, bound, terms, binds), *checks]
        used = tuple((p, name) for p, name in binds if name in needed or checks)
        return [Probe(atom.relation, bound, terms, used, exists=not used and not self.once), *checks]

    def _needed(self, later: list[Goal]) -> set[str]:
        """The variables that the goals after this one, or the head, read."""
        names = {name for goal in later for name in goal_variables(goal)}
        names.update(name for argument in self.rule.arguments for name in variables_of(argument))
        return names


def index_orders(nests: Iterable[Nest]) -> Mapping[tuple[str, tuple[int, ...]], None]:
    """The static indexes that the nests need: a relation and the columns by which rows are found."""
    return dict.fromkeys((probe.relation, probe.bound) for nest in nests for probe in probes(nest))


def probes(nest: Nest) -> Iterator[Probe]:
    """Every look-up in a static."""
    for step in nest.steps:
        match step:
            case Probe():
                yield step
            case Meet(_, one, other):
                yield one
                yield other
            case _:
                pass


def read_by(step: Step) -> set[str]:
    """The variables that a step reads."""
    match step:
        case Probe(_, _, terms) | Walk(_, _, terms):
            return {name for term in terms for name in variables_of(term)}
        case Meet(_, one, other):
            return read_by(one) | read_by(other)
        case Let(_, term):
            return set(variables_of(term))
        case Check():
            return set(goal_variables(step))
