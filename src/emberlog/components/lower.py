"""Which components the kernels can evaluate, and as what.

`lower` gives the component's `KernelProgram`, or the reason why it stays with the relational evaluator. The decision
is made from the rules alone; what depends on the data (numbers at the edge of 64 bits) is seen when it is encoded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal as OneOf

from emberlog.analysis.functions import NARROWING, fallible, type_of
from emberlog.analysis.program import Absent, Bind, CoreRule, Filter, Gather, Literal, Match, Signature, Spread
from emberlog.components.domains import Kinds, Reader, column, goal_variables, variables_of
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
from emberlog.plan.strata import ProgramPlan, Stratum
from emberlog.rules.changes import computed_from, delta_rules
from emberlog.syntax.nodes import Aggregate, Anonymous, Call, Comparison, Constant, Term, Test, Variable
from emberlog.types import Type

FUNCTIONS = frozenset(
    {"+", "-", "*", "/", "%", "neg", "abs", "relu", "clip", "min", "max", "exp", "log", "sqrt", "tanh", "to_float"}
)
# Of integers alone: the loops check that the value stays what it is.
CHECKS = frozenset({"to_number", "to_unsigned", *(name for name, type in NARROWING.items() if type.is_integer)})


class _Unfit(Exception):
    """A rule has something that the kernels do not know."""


def lower(stratum: Stratum, plan: ProgramPlan) -> KernelProgram | Ineligible:
    """The component as tables and loops, or why it is none."""
    if stratum.evaluation == "once":
        return Ineligible("it is not recursive")
    if stratum.keeps_states:
        return Ineligible("every state of the iteration is kept")
    rules = sorted((rule for name in stratum.names for rule in plan.rules_of.get(name, ())), key=lambda rule: rule.id)
    try:
        return _Lowering(stratum, plan.signatures, rules).program()
    except _Unfit as unfit:
        return Ineligible(str(unfit))


class _Lowering:
    def __init__(self, stratum: Stratum, signatures: Mapping[str, Signature], rules: list[CoreRule]) -> None:
        self.stratum = stratum
        self.inside = frozenset(stratum.names)
        self.signatures = signatures
        self.rules = [rule for rule in rules if self._is_recursive(rule)]

    def _is_recursive(self, rule: CoreRule) -> bool:
        return any(isinstance(literal, Match) and literal.predicate in self.inside for literal in rule.body)

    def program(self) -> KernelProgram:
        raw = [self._rule(rule) for rule in self.rules]
        folds = {name: self._fold(name) for name in self.stratum.names}
        statics = self._statics(raw)
        reader = Reader(self.signatures)
        summed = {name: value for name, (fold, value) in folds.items() if fold == "sum" and value is not None}
        for rule in raw:
            reader.read(rule, summed)
        self.read = _read_columns(raw, statics) | {
            (name, spot) for name in folds for spot in range(len(self.signatures[name].columns))
        }
        columns = (
            (name, i, c.type) for name in (*folds, *statics) for i, c in enumerate(self.signatures[name].columns)
        )
        kinds = Kinds(
            reader.classes,
            [(name, spot, type) for name, spot, type in columns if (name, spot) in self.read],
            [(rule.id, name, type) for rule in self.rules for name, type in _types(rule).items()],
        )
        tables = tuple(Table(name, self._kinds(kinds, name), *fold) for name, fold in folds.items())
        program = KernelProgram(
            tables,
            tuple(Static(name, self._kinds(kinds, name), self._unique(name)) for name in statics),
            kinds.domains,
            tuple(self._kinded(rule, kinds) for rule in raw),
            self.signatures,
            mode="delta" if self.stratum.evaluation == "delta" else "replace",
        )
        return self._checked(program)

    # --- relations -----------------------------------------------------------------------------------------------

    def _fold(self, name: str) -> tuple[Fold, int | None]:
        aggregates = self.signatures[name].aggregates
        if not self.signatures[name].columns:
            raise _Unfit(f"`{name}` has no columns")
        if not aggregates:
            return "set", None
        if len(aggregates) > 1:
            raise _Unfit(f"`{name}` has several aggregates")
        position, function = next(iter(aggregates.items()))
        match function:
            case "min" | "max":
                return function, position
            case "sum" | "count":
                return "sum", position
            case _:
                raise _Unfit(f"`{name}` has the aggregate {function}")

    def _statics(self, rules: list[KernelRule]) -> tuple[str, ...]:
        names = (goal.relation for rule in rules for goal in rule.body if isinstance(goal, Atom | Missing))
        found = tuple(name for name in dict.fromkeys(names) if name not in self.inside)
        bare = next((name for name in found if not self.signatures[name].columns), None)
        if bare is not None:
            raise _Unfit(f"`{bare}` has no columns")
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
                raise _Unfit(f"it computes with the column {described.name} of `{name}`, which is {described.type}")
            # Integers are checked where they go in, but a sum only when it is whole.
            unchecked = kind == "float" or (kind == "int" and self._fold(name) == ("sum", position))
            if described.type.bits != 64 and name in self.inside and unchecked:
                raise _Unfit(f"the column {described.name} of `{name}` is {described.type}")
            found.append(kind)
        return tuple(found)

    def _checked(self, program: KernelProgram) -> KernelProgram:
        """Raises for what the loops cannot do."""
        for table in program.tables:
            if any(table.kinds[key] == "float" for key in table.keys):
                raise _Unfit(f"a key of `{table.name}` is a float")
            if program.mode == "replace" and table.fold == "set":
                raise _Unfit(f"`{table.name}` has no aggregate, and in naive rounds its rows may go again")
        for rule in program.rules:
            self._check_rule(rule, program)
        return replace(program, unique=tuple(_contributors(program)), mode=self._mode(program))

    def _mode(self, program: KernelProgram) -> OneOf["delta", "accumulate", "replace"]:
        """Iterations that may accumulate do, where the loops see that too; others replace their state."""
        if program.mode == "delta":
            return "delta"
        recursive = [[a for a in _atoms(rule) if a.relation in self.inside] for rule in program.rules]
        if any(len(atoms) > 1 for atoms in recursive):
            raise _Unfit("a rule of an iteration reads the last state twice")
        if any(rule.contributor is not None for rule in program.rules):
            raise _Unfit("a sum of an iteration names its contributors")
        proved = self.stratum.evaluation == "accumulate"
        return "accumulate" if proved and all(is_multiple(rule, program) for rule in program.rules) else "replace"

    def _check_rule(self, rule: KernelRule, program: KernelProgram) -> None:
        head = program.table(rule.head)
        assert head is not None
        inside = [goal for goal in rule.body if isinstance(goal, Atom) and goal.relation in self.inside]
        sources = [table for table in program.tables for goal in inside if goal.relation == table.name]
        for goal in rule.body:
            if isinstance(goal, Atom | Missing) and goal.relation not in self.inside:
                for position, argument in enumerate(goal.arguments):
                    if program.static(goal.relation).kinds[position] == "float" and _joins(rule, goal, argument):
                        raise _Unfit(f"it joins `{goal.relation}` on a float")
        if head.fold == "sum" and program.mode == "delta":
            if any(table.fold in ("min", "max") for table in sources):
                raise _Unfit(f"the sum of `{rule.head}` reads a minimum or maximum")
            if len({table.name for table in sources}) < len(sources):
                raise _Unfit(f"the sum of `{rule.head}` reads a recursive relation twice")
            if sum(table.fold == "sum" for table in sources) > 1:
                raise _Unfit(f"the sum of `{rule.head}` reads two recursive sums")

    # --- rules ---------------------------------------------------------------------------------------------------

    def _rule(self, rule: CoreRule) -> KernelRule:
        if rule.order or rule.limit is not None:
            raise _Unfit("a rule sorts or limits its rows")
        arguments: list[Term] = []
        contributor: Term | None = None
        for argument in rule.arguments:
            match argument:
                case Aggregate("count", counted):
                    if any(fallible(term, rule.types) for term in counted):
                        raise _Unfit("it counts what may have no value")
                    arguments.append(Constant(1))
                case Aggregate(_, (key, value)):
                    contributor = key
                    arguments.append(value)
                case Aggregate(_, (value,)):
                    arguments.append(value)
                case _:
                    arguments.append(argument)
        arguments = [_lowered(argument, rule.types) for argument in arguments]
        contributor = None if contributor is None else _lowered(contributor, rule.types)
        body: list[Goal] = []
        places: list[int] = []  # the goal that each literal became, after what computes its arguments
        for number, literal in enumerate(rule.body):
            body += _goals(rule, number, literal)
            places.append(len(body) - 1)
        deltas = delta_rules(rule, self.inside, self.signatures)
        equations = ((goal.variable, variables_of(goal.term)) for goal in body if isinstance(goal, Let))
        lowered = KernelRule(
            rule.id,
            rule.predicate,
            tuple(arguments),
            tuple(body),
            {},
            contributor,
            tuple(places[delta.at[0]] for delta in deltas),
            computed_from(deltas[0].moved, equations),
        )
        return _without_unread(lowered)

    def _kinded(self, rule: KernelRule, kinds: Kinds) -> KernelRule:
        found = {}
        names = {name for goal in rule.body for name in goal_variables(goal)}
        names.update(name for argument in rule.arguments for name in variables_of(argument))
        for name in sorted(names):
            kind = kinds.of(("variable", rule.id, name))
            if kind is None:
                raise _Unfit(f"it computes with `{name}`, whose type the loops do not have")
            found[name] = kind
        return replace(rule, kinds=found)


def _without_unread(rule: KernelRule) -> KernelRule:
    """The rule in which columns whose variable stands nowhere else are not read."""
    names = Counter(name for goal in rule.body for name in goal_variables(goal))
    names.update(name for argument in rule.arguments for name in variables_of(argument))
    names.update(() if rule.contributor is None else variables_of(rule.contributor))

    def argument(term: Term | None) -> Term | None:
        return None if isinstance(term, Variable) and names[term.name] == 1 else term

    body = tuple(
        replace(goal, arguments=tuple(argument(term) for term in goal.arguments)) if isinstance(goal, Atom) else goal
        for goal in rule.body
    )
    return replace(rule, body=body)


def _read_columns(rules: list[KernelRule], statics: tuple[str, ...]) -> set[tuple[str, int]]:
    """The columns of statics that some rule reads; the first one where none does: rows must be counted."""
    goals = [goal for rule in rules for goal in rule.body if isinstance(goal, Atom | Missing)]
    read = {(g.relation, spot) for g in goals for spot, term in enumerate(g.arguments) if term is not None}
    return read | {(name, 0) for name in statics if not any(name == other for other, _ in read)}


def _atoms(rule: KernelRule) -> list[Atom]:
    return [goal for goal in rule.body if isinstance(goal, Atom)]


def _types(rule: CoreRule) -> dict[str, Type]:
    """The variables of a rule, those of computed arguments too."""
    made = {
        _made(number, spot): type_of(argument, rule.types)
        for number, literal in enumerate(rule.body)
        if isinstance(literal, Match | Absent)
        for spot, argument in enumerate(literal.arguments)
        if isinstance(argument, Call)
    }
    return {**rule.types, **made}


def _made(number: int, spot: int) -> str:
    return f"#{number}.{spot}"


def _goals(rule: CoreRule, number: int, literal: Literal) -> Iterator[Goal]:
    match literal:
        case Match(predicate, arguments) | Absent(predicate, arguments):
            plain: list[Term | None] = []
            for spot, argument in enumerate(arguments):
                match argument:
                    case Anonymous():
                        plain.append(None)
                    case Call():
                        yield Let(_made(number, spot), _lowered(argument, rule.types))
                        plain.append(Variable(_made(number, spot)))
                    case _:
                        plain.append(argument)
            kind = Atom if isinstance(literal, Match) else Missing
            yield kind(predicate, tuple(plain))
        case Filter(Test()):
            raise _Unfit("a rule tests text")
        case Filter(condition):
            assert isinstance(condition, Comparison)
            if len({type_of(side, rule.types).kind == "decimal" for side in (condition.left, condition.right)}) > 1:
                raise _Unfit("it compares decimals with numbers")
            left, right = _lowered(condition.left, rule.types), _lowered(condition.right, rule.types)
            yield Check(replace(condition, left=left, right=right))
        case Bind(variable, term):
            yield Let(variable, _lowered(term, rule.types))
        case Spread():
            raise _Unfit("a rule has a range")
        case Gather():
            raise _Unfit("a recursive rule has an aggregate in its body")


def _lowered(term: Term, types: Mapping[str, Type]) -> Term:
    """The term in what the loops compute; raises for a function that they do not have.

    They hold unsigned numbers as signed ones, so that a difference may be below zero: it is checked then.
    """
    match term:
        case Call(function, arguments):
            if function not in FUNCTIONS | CHECKS:
                narrows = function in NARROWING
                raise _Unfit(f"a value is narrowed to {function}" if narrows else f"it calls `{function}`")
            for argument in arguments:
                type = type_of(argument, types)
                if not (type.is_integer if function in CHECKS else type.is_numeric):
                    raise _Unfit(f"it computes with values of type {type} (`{function}`)")
            lowered = replace(term, arguments=tuple(_lowered(argument, types) for argument in arguments))
            natural = function in ("-", "neg") and type_of(term, types).kind == "unsigned"
            return Call("to_unsigned", (lowered,), span=term.span) if natural else lowered
        case _:
            return term


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
            raise _Unfit(f"the contributor of the sum of `{rule.head}` does not name one binding")
        if held and held[0].relation in {table.name for table in program.tables}:
            raise _Unfit(f"the contributor of the sum of `{rule.head}` does not name one binding")
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
