"""How workers share a component out: who owns a fact, who needs a copy of it, where its rules meet.

Every relation is divided by some of its columns, its *home*: there facts are made distinct and aggregated. For an
aggregate these columns lie in its group-by key, so that each part keeps PreM (SSP, Theorem 1). A rule meets where the
values lie that its recursive atoms share: a new fact goes there as well, one copy for each distinct list of columns by
which some rule looks the relation up (DCDatalog 4.3; SSP's path^(1) of rules r6.1 to r6.4), not to all workers. So

    path(X, Y, min<D>) <- path(X, Z, A), path(Z, Y, B), D = A + B.

has copies by column 1 and by column 0, and a pair of facts meets at the owner of Z alone, when the later of the two
copies is taken up. Statics are divided by the columns in which they hold those values. A rule that also reads one that
does not hold them is cut there (`cuts`); where it cannot be cut, and where a static is small, it is replicated.

Iterations are shared out in the same way where their sums may hand on changes (`accumulate`). Others replace their
state in every round (`replace`): contributions are made where the group lies that they read, and no copy is made.

The plan is again a program of the kernels: copies are tables of their own, with a rule each that fills them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from emberlog.components.cuts import closest_pair, cut_rules
from emberlog.components.domains import goal_variables
from emberlog.components.nests import Meet, Nest, Probe, Step, Walk, nests
from emberlog.components.program import (
    Atom,
    Check,
    Goal,
    Ineligible,
    KernelProgram,
    KernelRule,
    Let,
    Missing,
    Static,
    Table,
)
from emberlog.syntax.nodes import Term, Variable
from emberlog.thresholds import REPLICATED_ROWS

Columns = tuple[int, ...]
MOST_ATOMS = 2  # recursive ones in a rule: what more of them have in common lies with no single worker


@dataclass(frozen=True)
class WorkerPlan:
    """A component that workers share out. `placed` is the program that each of them runs on its part.

    `homes` has the columns by which each table of `placed` is divided, `copies` the relation that a copy is of.
    `statics` has the columns by which a static of `placed` is divided (None: replicated) and `sources` what it is of.
    """

    program: KernelProgram = field(repr=False)
    placed: KernelProgram = field(repr=False)
    homes: Mapping[str, Columns]
    copies: Mapping[str, str]
    statics: Mapping[str, Columns | None]
    sources: Mapping[str, str]

    @property
    def condenses(self) -> bool:
        """True if values of one key replace each other or add up, so that buffers shrink (SSP 6.1)."""
        return any(table.fold != "set" for table in self.program.tables)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The plan in the papers' operators."""
        for table in self.placed.tables:
            if table.name in self.copies:
                continue
            why = "" if table.fold == "set" else ", which lie in its group-by key (SSP, Theorem 1)"
            yield f"{table.name}: partition by {_listed(self.homes[table.name])}{why}"
        for copy, relation in self.copies.items():
            yield f"{copy}: a copy of {relation} by {_listed(self.homes[copy])}"
        for name, columns in self.statics.items():
            placed = "replicated" if columns is None else f"partition by {_listed(columns)}"
            yield f"{self.sources[name]}: {placed}"
        for nest in nests(self.placed, {}):
            yield " -> ".join(self._operators(nest))

    def _operators(self, nest: Nest) -> Iterator[str]:
        yield f"delta {nest.table}"
        for step in (*nest.checks, *nest.steps):
            yield self._operator(step)
        table = self.placed.table(nest.rule.head)
        assert table is not None
        partial = {"set": "distinct"}.get(table.fold, table.fold)
        yield f"Distribute {partial} by {_listed(self.homes[table.name])}"
        yield f"Gather {table.name}"

    def _operator(self, step: Step) -> str:
        match step:
            case Walk(relation, bound):
                return f"Join {relation} by its index {_listed(bound)}"
            case Probe(relation, bound, absent=absent):
                return f"{'Without' if absent else 'Join'} {self.sources[relation]} by its index {_listed(bound)}"
            case Meet(_, one, other):
                return f"Intersect {self.sources[one.relation]}, {self.sources[other.relation]}"
            case Check():
                return "Filter"
            case Let(variable):
                return f"Let {variable}"


def plan_workers(
    program: KernelProgram, partition: Mapping[str, int] | None = None, small: Collection[str] = ()
) -> WorkerPlan | Ineligible:
    """How workers share the component out, or why they do not. `partition` has homes of the caller's choice, `small`
    the statics that each worker may have whole."""
    whole = program.mode == "replace"  # a state that lies at its homes, without copies
    cut = program
    if not whole:
        cut = cut_rules(cut_rules(program, closest_pair), lambda rule, program: _held_here(rule, program, small))
    most = 1 if whole else MOST_ATOMS
    for rule in cut.rules:
        if len(rule.carriers) > most:
            many = f"{len(rule.carriers)} recursive atoms, and at most {most} can meet"
            return Ineligible(f"a rule of `{rule.head}` reads {many}")
    meetings = {rule.id: None if whole else _meeting(rule, cut) for rule in cut.rules}
    homes = {table.name: _home(table, cut, meetings, partition or {}) for table in cut.tables}
    return _Placement(program, cut, meetings, homes, small).plan()


def small_statics(rows: Mapping[str, int]) -> list[str]:
    """Of relations with so many rows those that every worker may have whole."""
    return [name for name, count in rows.items() if count <= REPLICATED_ROWS]


def _held_here(rule: KernelRule, program: KernelProgram, small: Collection[str]) -> Sequence[int] | None:
    """The atoms of a rule that are read where it meets, if it also reads a static that lies elsewhere."""
    names = _meeting(rule, program)
    if not names:
        return None
    statics = [
        spot
        for spot, goal in enumerate(rule.body)
        if isinstance(goal, Atom | Missing) and spot not in rule.carriers and goal.relation not in small
    ]
    here = [spot for spot in statics if all(Variable(name) in _arguments(rule, spot) for name in names)]
    atoms = [*rule.carriers, *(spot for spot in here if isinstance(rule.body[spot], Atom))]
    elsewhere = [spot for spot in statics if spot not in here]
    known = {name for spot in atoms for name in goal_variables(rule.body[spot])}
    # What shares nothing with the bindings so far is nowhere in particular: it is replicated.
    reached = any(not known.isdisjoint(goal_variables(rule.body[spot])) for spot in elsewhere)
    return sorted(atoms) if reached and len(atoms) > 1 else None


def _arguments(rule: KernelRule, spot: int) -> tuple[Term | None, ...]:
    goal = rule.body[spot]
    assert isinstance(goal, Atom | Missing)
    return goal.arguments


def _meeting(rule: KernelRule, program: KernelProgram) -> tuple[str, ...] | None:
    """The variables whose values say where a rule meets; None where it may be anywhere."""
    atoms = [_atom(rule, spot) for spot in rule.carriers]
    known = [_key_variables(atom, program) for atom in atoms]
    if len(atoms) == MOST_ATOMS:
        return tuple(name for name in known[0] if name in known[1])
    for goal in rule.body:
        if isinstance(goal, Atom | Missing) and program.table(goal.relation) is None:
            shared = tuple(name for name in known[0] if Variable(name) in goal.arguments)
            if shared:
                return shared
    return None


def _atom(rule: KernelRule, spot: int) -> Atom:
    atom = rule.body[spot]
    assert isinstance(atom, Atom)
    return atom


def _key_variables(atom: Atom, program: KernelProgram) -> dict[str, int]:
    """The variables in key columns of a recursive atom, and the first column of each."""
    table = program.table(atom.relation)
    assert table is not None
    found: dict[str, int] = {}
    for key in table.keys:
        argument = atom.arguments[key]
        if isinstance(argument, Variable):
            found.setdefault(argument.name, key)
    return found


def _home(
    table: Table, program: KernelProgram, meetings: Mapping[int, tuple[str, ...] | None], partition: Mapping[str, int]
) -> Columns:
    """The columns by which a relation is divided: those by which it is looked up most often, so that no copy is made
    for them; else the first one."""
    if table.name in partition:
        return (partition[table.name],)
    wanted: Counter[Columns] = Counter()
    for rule in program.rules:
        names = meetings[rule.id]
        for spot in rule.carriers if names else ():
            atom = _atom(rule, spot)
            if atom.relation == table.name:
                wanted[_columns_of(atom, names or (), program)] += 1
    return wanted.most_common(1)[0][0] if wanted else table.keys[:1]


def _columns_of(atom: Atom, names: tuple[str, ...], program: KernelProgram) -> Columns:
    known = _key_variables(atom, program)
    return tuple(known[name] for name in names)


class _Placement:
    """Writes the rules with copies in place of relations."""

    def __init__(
        self,
        whole: KernelProgram,
        program: KernelProgram,
        meetings: Mapping[int, tuple[str, ...] | None],
        homes: dict[str, Columns],
        small: Collection[str],
    ) -> None:
        self.component = whole
        self.program = program
        self.meetings = meetings
        self.homes = homes
        self.copies: dict[str, str] = {}
        self.statics: dict[str, Columns | None] = {}
        self.sources: dict[str, str] = {}
        self.whole = self._replicated() | set(small)

    def plan(self) -> WorkerPlan:
        program = self.program
        rules = tuple(self._placed(rule) for rule in program.rules)
        tables = [program.table(relation) for relation in self.copies.values()]
        made = tuple(replace(table, name=copy) for copy, table in zip(self.copies, tables, strict=True) if table)
        filling = tuple(_copy_rule(-1 - number, table, self.copies) for number, table in enumerate(made))
        statics = tuple(self._static(name) for name in self.statics)
        placed = replace(program, tables=(*program.tables, *made), statics=statics, rules=(*filling, *rules), unique=())
        return WorkerPlan(self.component, placed, self.homes, self.copies, self.statics, self.sources)

    def _static(self, name: str) -> Static:
        return replace(self.program.static(self.sources[name]), name=name)

    def _replicated(self) -> set[str]:
        """The statics that some rule needs where it is not known which of their rows it needs."""
        found = set()
        for rule in self.program.rules:
            for goal in rule.body:
                if isinstance(goal, Atom | Missing) and self.program.table(goal.relation) is None:
                    if self._divided(rule, goal) is None:
                        found.add(goal.relation)
        return found

    def _divided(self, rule: KernelRule, goal: Atom | Missing) -> Columns | None:
        """The columns of a static that hold the values by which the rule meets; None if it does not hold them all."""
        names = self._names(rule)
        if names is None or any(Variable(name) not in goal.arguments for name in names):
            return None
        return tuple(goal.arguments.index(Variable(name)) for name in names)

    def _names(self, rule: KernelRule) -> tuple[str, ...] | None:
        """The variables by which a rule meets; without any, those of the home of its only recursive atom."""
        names = self.meetings[rule.id]
        if names is not None:
            return names
        atom = _atom(rule, rule.carriers[0])
        terms = [atom.arguments[column] for column in self.homes[atom.relation]]
        held = tuple(term.name for term in terms if isinstance(term, Variable))
        return held if len(held) == len(terms) else None

    def _placed(self, rule: KernelRule) -> KernelRule:
        return replace(rule, body=tuple(self._goal(rule, spot, goal) for spot, goal in enumerate(rule.body)))

    def _goal(self, rule: KernelRule, spot: int, goal: Goal) -> Goal:
        match goal:
            case Atom(relation) if spot in rule.carriers:
                return replace(goal, relation=self._copy(rule, goal, relation))
            case Atom(relation) | Missing(relation):
                columns = None if relation in self.whole else self._divided(rule, goal)
                name = relation if columns is None else _named(relation, columns)
                self.statics[name] = columns
                self.sources[name] = relation
                return replace(goal, relation=name)
            case _:
                return goal

    def _copy(self, rule: KernelRule, atom: Atom, relation: str) -> str:
        """The table in which the rule reads an atom: the relation itself where it lies at home there."""
        names = self.meetings[rule.id]
        columns = self.homes[relation] if names is None else _columns_of(atom, names, self.program)
        if columns == self.homes[relation]:
            return relation
        name = _named(relation, columns)
        self.copies[name] = relation
        self.homes[name] = columns
        return name


def _copy_rule(number: int, table: Table, copies: Mapping[str, str]) -> KernelRule:
    """`copy(C0, C1, ..) <- relation(C0, C1, ..).`"""
    names = [f"C{spot}" for spot in range(len(table.kinds))]
    terms = tuple(Variable(name) for name in names)
    moved = frozenset() if table.value is None else frozenset({names[table.value]})
    kinds = dict(zip(names, table.kinds, strict=True))
    body = (Atom(copies[table.name], terms),)
    return KernelRule(number, table.name, terms, body, kinds, carriers=(0,), moved=moved)


def _named(relation: str, columns: Columns) -> str:
    return f"{relation}@{','.join(map(str, columns))}"


def _listed(columns: Columns) -> str:
    return f"({', '.join(map(str, columns))})"
