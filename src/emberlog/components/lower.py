"""Which components the kernels can evaluate, and as what.

`lower` gives the component's `KernelProgram`, or the reason why it stays with the relational evaluator. The decision
is made from the rules alone; what depends on the data (numbers at the edge of 64 bits) is seen when it is encoded.
Strata above a component, which are computed once from its finished facts, may be part of its program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal as OneOf

from emberlog.analysis.functions import fallible
from emberlog.analysis.program import CoreRule, Match
from emberlog.components.domains import Kinds, Reader, column, goal_variables, variables_of
from emberlog.components.goals import Unfit, goals_of, lower_term, types_of, without_unread
from emberlog.components.linear import is_multiple
from emberlog.components.program import (
    Atom,
    Check,
    Fold,
    Goal,
    Ineligible,
    KernelProgram,
    KernelRule,
    Kind,
    Let,
    Missing,
    Static,
    Table,
)
from emberlog.plan.logical import scans
from emberlog.plan.names import given_part
from emberlog.plan.strata import ProgramPlan, Stratum, plans
from emberlog.rules.changes import computed_from, delta_rules
from emberlog.syntax.nodes import Aggregate, Constant, Term, Variable


def lower(stratum: Stratum, plan: ProgramPlan, above: tuple[Stratum, ...] = ()) -> KernelProgram | Ineligible:
    """The component as tables and loops, with strata `above` that read its facts; or why it is none."""
    if stratum.evaluation == "once":
        return Ineligible("it is not recursive")
    if stratum.keeps_states:
        return Ineligible("every state of the iteration is kept")
    try:
        return _Lowering(stratum, plan, above).program()
    except Unfit as unfit:
        return Ineligible(str(unfit))


class _Lowering:
    def __init__(self, stratum: Stratum, plan: ProgramPlan, above: tuple[Stratum, ...]) -> None:
        self.stratum = stratum
        self.signatures = plan.signatures
        self.recursive = frozenset(stratum.names)
        self.finished = tuple(name for other in above for name in other.names)
        self.inside = self.recursive | frozenset(self.finished)
        own = (rule for name in stratum.names for rule in plan.rules_of.get(name, ()))
        self.rules = [rule for rule in sorted(own, key=lambda rule: rule.id) if self._is_recursive(rule)]
        self.above = [rule for other in above for rule in self._rules_above(other, plan)]

    def _is_recursive(self, rule: CoreRule) -> bool:
        return any(isinstance(literal, Match) and literal.predicate in self.recursive for literal in rule.body)

    def _rules_above(self, stratum: Stratum, plan: ProgramPlan) -> tuple[CoreRule, ...]:
        """The rules of a stratum above, all of which start from facts of this one or of others above it."""
        (relation,) = stratum.relations
        rules = plan.rules_of.get(relation.name, ())
        given = given_part(relation.name)
        if not rules or any(scan.relation == given for root in plans(relation) for scan in scans(root)):
            raise Unfit(f"`{relation.name}` has rows that no rule derives")
        for rule in rules:
            if not any(isinstance(literal, Match) and literal.predicate in self.inside for literal in rule.body):
                raise Unfit(f"a rule of `{relation.name}` reads none of {', '.join(self.stratum.names)}")
        return rules

    def program(self) -> KernelProgram:
        raw = [self._rule(rule, self._changing) for rule in self.rules]
        above = [self._rule(rule, self._starting) for rule in self.above]
        folds = {name: self._fold(name) for name in (*self.stratum.names, *self.finished)}
        statics = self._statics([*raw, *above])
        reader = Reader(self.signatures)
        summed = {name: value for name, (fold, value) in folds.items() if fold == "sum" and value is not None}
        for rule in (*raw, *above):
            reader.read(rule, summed)
        self.read = _read_columns([*raw, *above], statics) | {
            (name, spot) for name in folds for spot in range(len(self.signatures[name].columns))
        }
        columns = (
            (name, i, c.type) for name in (*folds, *statics) for i, c in enumerate(self.signatures[name].columns)
        )
        kinds = Kinds(
            reader.classes,
            [(name, spot, type) for name, spot, type in columns if (name, spot) in self.read],
            [(rule.id, name, type) for rule in (*self.rules, *self.above) for name, type in types_of(rule).items()],
        )
        tables = tuple(Table(name, self._kinds(kinds, name), *fold) for name, fold in folds.items())
        program = KernelProgram(
            tables,
            tuple(Static(name, self._kinds(kinds, name), self._unique(name)) for name in statics),
            kinds.domains,
            tuple(self._kinded(rule, kinds) for rule in raw),
            self.signatures,
            mode="delta" if self.stratum.evaluation == "delta" else "replace",
            above=tuple(self._kinded(rule, kinds) for rule in above),
        )
        return self._checked(program)

    # --- relations -----------------------------------------------------------------------------------------------

    def _fold(self, name: str) -> tuple[Fold, int | None]:
        aggregates = self.signatures[name].aggregates
        if not self.signatures[name].columns:
            raise Unfit(f"`{name}` has no columns")
        if not aggregates:
            return "set", None
        if len(aggregates) > 1:
            raise Unfit(f"`{name}` has several aggregates")
        position, function = next(iter(aggregates.items()))
        match function:
            case "min" | "max":
                return function, position
            case "sum" | "count":
                return "sum", position
            case _:
                raise Unfit(f"`{name}` has the aggregate {function}")

    def _statics(self, rules: list[KernelRule]) -> tuple[str, ...]:
        names = (goal.relation for rule in rules for goal in rule.body if isinstance(goal, Atom | Missing))
        found = tuple(name for name in dict.fromkeys(names) if name not in self.inside)
        bare = next((name for name in found if not self.signatures[name].columns), None)
        if bare is not None:
            raise Unfit(f"`{bare}` has no columns")
        return found

    def _unique(self, name: str) -> tuple[int, ...] | None:
        signature = self.signatures[name]
        return signature.groups if signature.aggregates else None

    def _kinds(self, kinds: Kinds, name: str) -> tuple[Kind, ...]:
        found: list[Kind] = []
        for position, described in enumerate(self.signatures[name].columns):
            if (name, position) not in self.read:
                found.append("unread")
                continue
            kind = kinds.of(column(name, position))
            if kind is None:
                raise Unfit(f"it computes with the column {described.name} of `{name}`, which is {described.type}")
            # Integers are checked where they go in, but a sum only when it is whole.
            unchecked = kind == "float" or (kind == "int" and self._fold(name) == ("sum", position))
            if described.type.bits != 64 and name in self.inside and unchecked:
                raise Unfit(f"the column {described.name} of `{name}` is {described.type}")
            found.append(kind)
        return tuple(found)

    def _checked(self, program: KernelProgram) -> KernelProgram:
        """Raises for what the loops cannot do."""
        for table in program.tables:
            if any(table.kinds[key] == "float" for key in table.keys):
                raise Unfit(f"a key of `{table.name}` is a float")
            if program.mode == "replace" and table.fold == "set":
                raise Unfit(f"`{table.name}` has no aggregate, and in naive rounds its rows may go again")
        for rule in program.rules:
            self._check_sum(rule, program)
        for rule in (*program.rules, *program.above):
            self._check_joins(rule, program)
        for rule in program.above:
            self._check_above(rule, program)
        return replace(program, unique=tuple(_contributors(program)), mode=self._mode(program))

    def _mode(self, program: KernelProgram) -> OneOf["delta", "accumulate", "replace"]:
        """Iterations that may accumulate do, where the loops see that too; others replace their state."""
        if program.mode == "delta":
            return "delta"
        recursive = [[a for a in _atoms(rule) if a.relation in self.inside] for rule in program.rules]
        if any(len(atoms) > 1 for atoms in recursive):
            raise Unfit("a rule of an iteration reads the last state twice")
        if any(rule.contributor is not None for rule in program.rules):
            raise Unfit("a sum of an iteration names its contributors")
        proved = self.stratum.evaluation == "accumulate"
        return "accumulate" if proved and all(is_multiple(rule, program) for rule in program.rules) else "replace"

    def _check_sum(self, rule: KernelRule, program: KernelProgram) -> None:
        head = program.table(rule.head)
        assert head is not None
        sources = [table for table in program.tables for goal in _atoms(rule) if goal.relation == table.name]
        if head.fold == "sum" and program.mode == "delta":
            if any(table.fold in ("min", "max") for table in sources):
                raise Unfit(f"the sum of `{rule.head}` reads a minimum or maximum")
            if len({table.name for table in sources}) < len(sources):
                raise Unfit(f"the sum of `{rule.head}` reads a recursive relation twice")
            if sum(table.fold == "sum" for table in sources) > 1:
                raise Unfit(f"the sum of `{rule.head}` reads two recursive sums")

    def _check_joins(self, rule: KernelRule, program: KernelProgram) -> None:
        for goal in rule.body:
            if isinstance(goal, Atom | Missing) and program.table(goal.relation) is None:
                for position, argument in enumerate(goal.arguments):
                    if program.kinds(goal.relation)[position] == "float" and _joins(rule, goal, argument):
                        raise Unfit(f"it joins `{goal.relation}` on a float")

    def _check_above(self, rule: KernelRule, program: KernelProgram) -> None:
        """Raises where what a rule negates is not one fact, known by all of its keys."""
        if rule.contributor is not None:
            raise Unfit(f"the sum of `{rule.head}` names its contributors")
        for goal in rule.body:
            table = program.table(goal.relation) if isinstance(goal, Missing) else None
            if table is not None and isinstance(goal, Missing):
                named = {spot for spot, argument in enumerate(goal.arguments) if argument is not None}
                if named != set(table.keys):
                    raise Unfit(f"`{rule.head}` negates `{goal.relation}` by some of its columns")

    # --- rules ---------------------------------------------------------------------------------------------------

    def _changing(self, rule: CoreRule) -> tuple[tuple[int, ...], frozenset[str]]:
        """The literals of a recursive rule that carry changes, and the variables that they move."""
        deltas = delta_rules(rule, self.recursive, self.signatures)
        return tuple(delta.at[0] for delta in deltas), deltas[0].moved

    def _starting(self, rule: CoreRule) -> tuple[tuple[int, ...], frozenset[str]]:
        """The literal that a rule above starts from: its first one of finished facts."""
        places = enumerate(rule.body)
        return (next(i for i, one in places if isinstance(one, Match) and one.predicate in self.inside),), frozenset()

    def _rule(
        self, rule: CoreRule, carrying: Callable[[CoreRule], tuple[tuple[int, ...], frozenset[str]]]
    ) -> KernelRule:
        if rule.order or rule.limit is not None:
            raise Unfit("a rule sorts or limits its rows")
        arguments: list[Term] = []
        contributor: Term | None = None
        for argument in rule.arguments:
            match argument:
                case Aggregate("count", counted):
                    if any(fallible(term, rule.types) for term in counted):
                        raise Unfit("it counts what may have no value")
                    arguments.append(Constant(1))
                case Aggregate(_, (key, value)):
                    contributor = key
                    arguments.append(value)
                case Aggregate(_, (value,)):
                    arguments.append(value)
                case _:
                    arguments.append(argument)
        arguments = [lower_term(argument, rule.types) for argument in arguments]
        contributor = None if contributor is None else lower_term(contributor, rule.types)
        body: list[Goal] = []
        places: list[int] = []  # the goal that each literal became, after what computes its arguments
        for number, literal in enumerate(rule.body):
            body += goals_of(rule, number, literal)
            places.append(len(body) - 1)
        carriers, moved = carrying(rule)
        equations = ((goal.variable, variables_of(goal.term)) for goal in body if isinstance(goal, Let))
        made = KernelRule(
            rule.id,
            rule.predicate,
            tuple(arguments),
            tuple(body),
            {},
            contributor,
            tuple(places[literal] for literal in carriers),
            computed_from(moved, equations),
        )
        return without_unread(made)

    def _kinded(self, rule: KernelRule, kinds: Kinds) -> KernelRule:
        found = {}
        names = {name for goal in rule.body for name in goal_variables(goal)}
        names.update(name for argument in rule.arguments for name in variables_of(argument))
        for name in sorted(names):
            kind = kinds.of(("variable", rule.id, name))
            if kind is None:
                raise Unfit(f"it computes with `{name}`, whose type the loops do not have")
            found[name] = kind
        return replace(rule, kinds=found)


def _read_columns(rules: list[KernelRule], statics: tuple[str, ...]) -> set[tuple[str, int]]:
    """The columns of statics that some rule reads; the first one where none does: rows must be counted."""
    goals = [goal for rule in rules for goal in rule.body if isinstance(goal, Atom | Missing)]
    read = {(g.relation, spot) for g in goals for spot, term in enumerate(g.arguments) if term is not None}
    return read | {(name, 0) for name in statics if not any(name == other for other, _ in read)}


def _atoms(rule: KernelRule) -> list[Atom]:
    return [goal for goal in rule.body if isinstance(goal, Atom)]


def _joins(rule: KernelRule, goal: Atom | Missing, argument: Term | None) -> bool:
    """Is this argument bound elsewhere, so that a row is found by it?"""
    if isinstance(argument, Variable):
        others = [other for other in rule.body if other is not goal]
        return any(argument.name in goal_variables(other) and not isinstance(other, Check) for other in others) and (
            any(argument.name in goal_variables(o) for o in others if isinstance(o, Atom | Missing))
            or any(isinstance(o, Let) and o.variable == argument.name for o in others)
        )
    return argument is not None


def _contributors(program: KernelProgram) -> Iterator[tuple[str, tuple[int, ...]]]:
    """For `sum<(K,V)>`: what must determine the rows of a static, so that a contributor has one value at a time."""
    for rule in program.rules:
        if rule.contributor is None:
            continue
        head = program.table(rule.head)
        assert head is not None
        # A computed term does not tell the values that it was computed from.
        terms = [rule.contributor, *(rule.arguments[key] for key in head.keys)]
        named = {term.name for term in terms if isinstance(term, Variable)}
        free = {name for goal in rule.body for name in goal_variables(goal)} - rule.moved - named
        held = [
            goal
            for goal in rule.body
            if isinstance(goal, Atom) and (_unread(goal, program) or not free.isdisjoint(goal_variables(goal)))
        ]
        if any(isinstance(goal, Let) and goal.variable in free for goal in rule.body) or len(held) > 1:
            raise Unfit(f"the contributor of the sum of `{rule.head}` does not name one binding")
        if held and held[0].relation in {table.name for table in program.tables}:
            raise Unfit(f"the contributor of the sum of `{rule.head}` does not name one binding")
        for goal in held:
            known = (
                spot
                for spot, arg in enumerate(goal.arguments)
                if arg is not None and free.isdisjoint(variables_of(arg))
            )
            yield goal.relation, tuple(known)


def _unread(atom: Atom, program: KernelProgram) -> bool:
    """Has the atom a column that is not read, and so may match several rows?"""
    table = program.table(atom.relation)
    value = None if table is None else table.value
    return any(argument is None and spot != value for spot, argument in enumerate(atom.arguments))
