"""Elaboration: every implicit conversion becomes a call or another constant, and what has none is a type conflict.

A number is converted to a float where it is computed, compared or aggregated with one, and where it enters a column of
floats. Variables are never converted where atoms share them: a join of a number and a float is a conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from emberlog.analysis.arithmetic import UNITS_OF_DATES, is_mixed, mixed_type
from emberlog.analysis.conflicts import conflict, instead_of, instead_of_number, instead_of_operands
from emberlog.analysis.constants import as_constant, as_written
from emberlog.analysis.draft import Draft, Fact
from emberlog.analysis.functions import Family, aggregate_type, function_of
from emberlog.analysis.infer import (
    LITERAL,
    Columns,
    Guess,
    common,
    fit,
    literal_type,
    matches,
    settled,
    show,
    term_type,
)
from emberlog.analysis.program import Absent, Bind, CoreRule, Filter, Gather, Literal, Match, Spread
from emberlog.diagnostics import Diagnostic, Label
from emberlog.source import Span
from emberlog.syntax.nodes import (
    Aggregate,
    Anonymous,
    Call,
    Collect,
    Comparison,
    Constant,
    Goal,
    Parameter,
    Term,
    Test,
    Variable,
)
from emberlog.types import DATE, FLOAT, NUMBER, Type, Value

Typed = tuple[Term, Guess]


def elaborate(draft: Draft, columns: Columns) -> tuple[CoreRule, list[Diagnostic]]:
    """The rule in core form, and its type conflicts."""
    return _Elaborator(draft, columns).rule()


def elaborate_fact(fact: Fact, columns: Columns) -> tuple[tuple[Value, ...], list[Diagnostic]]:
    """The values of a fact, converted to its columns' types."""
    values: list[Value] = []
    found: list[Diagnostic] = []
    for position, constant in enumerate(fact.arguments):
        converted, mistakes = _column_constant(fact.predicate, position, constant, columns)
        values.append(converted.value)
        found.extend(mistakes)
    return tuple(values), found


def elaborate_goal(goal: Goal, columns: Columns) -> tuple[Goal, list[Diagnostic]]:
    """The goal with its constants converted to its columns' types."""
    arguments: list[Term] = []
    found: list[Diagnostic] = []
    for position, argument in enumerate(goal.atom.arguments):
        if isinstance(argument, Constant):
            argument, mistakes = _column_constant(goal.atom.predicate, position, argument, columns)
            found.extend(mistakes)
        arguments.append(argument)
    return replace(goal, atom=replace(goal.atom, arguments=tuple(arguments))), found


def _column_constant(
    predicate: str, position: int, constant: Constant, columns: Columns
) -> tuple[Constant, list[Diagnostic]]:
    """A constant as a value of a column, seen from outside of the predicate's own rules."""
    key = (predicate, position)
    want, place = columns.types.get(key), columns.places.get(key)
    if want is None:
        return constant, []
    converted = as_constant(constant, want)
    if isinstance(converted, Constant):
        return converted, []
    if converted is not None:
        return constant, [converted]
    return constant, [conflict(constant.span, literal_type(constant), want, place)]


# Where no NaN can be, a negated comparison is the opposite one.
_NEGATED = {"!<": ">=", "!<=": ">", "!>": "<=", "!>=": "<"}


class _Elaborator:
    def __init__(self, draft: Draft, columns: Columns) -> None:
        self.draft = draft
        self.columns = columns
        self.variables = settled(draft, columns)
        self.spots = self._spots()
        self.found: list[Diagnostic] = []
        self._reported: set[str] = set()

    def rule(self) -> tuple[CoreRule, list[Diagnostic]]:
        draft = self.draft
        body = self._body(draft.body)
        arguments = tuple(self._head(position, argument) for position, argument in enumerate(draft.arguments))
        types = {name: type or NUMBER for name, type in self.variables.types.items()}
        for name in self.variables.matched:
            types.setdefault(name, NUMBER)
        rule = CoreRule(
            draft.id, draft.predicate, arguments, body, types, draft.order, draft.limit, draft.start, draft.span
        )
        return rule, self.found

    def _spots(self) -> dict[str, list[tuple[Type, Span]]]:
        """The types of the columns that each variable stands for, in the order of the atoms."""
        spots: dict[str, list[tuple[Type, Span]]] = {}
        for atom in matches(self.draft.body):
            for position, argument in enumerate(atom.arguments):
                type, _ = self.columns.of(self.draft.predicate, atom.predicate, position)
                if isinstance(argument, Variable) and type is not None:
                    spots.setdefault(argument.name, []).append((type, argument.span))
        return spots

    # --- literals ---

    def _body(self, body: Iterable[Literal]) -> tuple[Literal, ...]:
        return tuple(self._literal(literal) for literal in body)

    def _literal(self, literal: Literal) -> Literal:
        match literal:
            case Match(predicate, arguments) | Absent(predicate, arguments):
                terms = enumerate(arguments)
                return replace(literal, arguments=tuple(self._argument(predicate, i, term) for i, term in terms))
            case Filter(condition):
                return Filter(self._condition(condition))
            case Bind(variable, term):
                want = self.variables.types.get(variable)
                place = self.variables.places.get(variable)
                return replace(literal, term=self._convert(self._term(term), want, place))
            case Spread():
                return self._spread(literal)
            case Gather():
                return self._gather(literal)
            case _:
                assert_never(literal)

    def _argument(self, predicate: str, position: int, term: Term) -> Term:
        want, place = self.columns.of(self.draft.predicate, predicate, position)
        match term:
            case Anonymous():
                return term
            case Variable(name):
                given = self.variables.types.get(name)
                if given is not None and want is not None and given.kind != want.kind:
                    self._disagreement(term, given, want)
                return term
            case _:
                return self._convert(self._term(term), None if want is None else want.wide, place)

    def _disagreement(self, variable: Variable, given: Type, want: Type) -> None:
        """A variable whose places are of different types, reported once."""
        if variable.name in self._reported:
            return
        self._reported.add(variable.name)
        here, there = Label(variable.span, f"{show(want)} here"), self.variables.places.get(variable.name)
        for type, span in self.spots.get(variable.name, ()):
            if type.kind != want.kind:
                given, there = type, Label(span, f"{show(type)} here")
                break
        places = [(want, here)] if there is None else [(want, here), (given, there)]
        places.sort(key=lambda place: place[1].span.start)
        kinds = " and ".join(show(type) for type in ([type for type, _ in places] if there else (want, given)))
        message = f"type conflict: the variable `{variable.name}` is both {kinds}"
        labels = tuple(label for _, label in places)
        self.found.append(Diagnostic("E0501", message, labels, instead_of(given, want)))

    def _spread(self, spread: Spread) -> Spread:
        want = self.variables.types.get(spread.variable)
        ends = [self._term(spread.start), self._term(spread.stop)]
        if not self._operands(Call("range", ()), Family.NUMERIC, ends):
            return spread
        step = self._term(spread.step)
        if not self._operands(Call("range", ()), Family.NUMERIC, [step]):
            return spread
        first, last, by = (self._convert(typed, want) for typed in (*ends, step))
        return replace(spread, start=first, stop=last, step=by)

    def _gather(self, gather: Gather) -> Gather:
        bodies = tuple(self._body(body) for body in gather.bodies)
        want = self.variables.types.get(gather.variable)
        if gather.function in ("count", "avg") and want is not None:
            result = aggregate_type(gather.function, want if want.kind == "decimal" else NUMBER)
            if result.kind != want.kind:
                self._disagreement(Variable(gather.variable, span=gather.span), want, result)
        if gather.target is None:
            return replace(gather, bodies=bodies)
        target = self._aggregated(gather.function, gather.target, want)
        return replace(gather, bodies=bodies, target=target)

    def _aggregated(self, function: str, term: Term, want: Guess) -> Term:
        """A term that goes into an aggregate whose result is to be of type `want`."""
        term, given = self._term(term)
        if function in ("sum", "avg") and given is not None and not (given.is_numeric or given.kind == "decimal"):
            message = f"`{function}` of a {show(given)}"
            self.found.append(Diagnostic("E0502", message, (Label(term.span, show(given)),), instead_of_number(given)))
            return term
        match function:
            case "count" | "countd":
                return term if given != LITERAL else self._convert((term, given), NUMBER)
            case "avg":
                exact = given is not None and given.kind == "decimal" and (want is None or want.kind == "decimal")
                return term if exact else self._floated((term, given))
            case "sum" if given is not None and given.kind == "decimal" and (want is None or want.scale >= given.scale):
                return term  # how many digits its sum has is seen when it is there
            case _:
                return self._convert((term, given), want)

    # --- heads ---

    def _head(self, position: int, argument: Term) -> Term:
        want, place = self.columns.of(self.draft.predicate, self.draft.predicate, position)
        match argument:
            case Aggregate(function, arguments):
                *keys, value = arguments
                self._check_result(argument, want, place)
                inner = self._aggregated(function, value, want)
                if function in ("min", "max", "topk", "top") and want is not None:
                    inner = self._narrowed(inner, want)
                others = (self._settled(self._term(key)) for key in keys)
                return replace(argument, arguments=(*others, inner))
            case _:
                converted = self._convert(self._term(argument), want, place)
                return converted if want is None else self._narrowed(converted, want)

    def _check_result(self, aggregate: Aggregate, want: Guess, place: Label) -> None:
        """A count or an average is what it is; the others follow what goes in."""
        if aggregate.function in ("count", "countd", "avg") and want is not None:
            inner = term_type(aggregate.arguments[-1], self.variables.types) or NUMBER
            result = aggregate_type(aggregate.function, inner)
            if result.kind != want.kind and not (result.kind == "decimal" and want.kind == "float"):
                self.found.append(conflict(aggregate.span, result, want, place))

    def _narrowed(self, term: Term, want: Type) -> Term:
        """The term, checked or rounded where it enters a column of a sized type."""
        if want.bits == 64 or isinstance(term, Constant):
            return term
        if isinstance(term, Variable):
            # A variable that comes from a column of this type, or a narrower one, fits already.
            if any(have.kind == want.kind and have.bits <= want.bits for have, _ in self.spots.get(term.name, ())):
                return term
        return Call(str(want), (term,), span=term.span)

    # --- conditions and terms ---

    def _condition(self, condition: Comparison | Test) -> Comparison | Test:
        if isinstance(condition, Comparison):
            return self._comparison(condition)
        call, _ = self._call(condition.call)
        if call.function == "match" and not isinstance(call.arguments[0], Constant):
            # A pattern from the facts may be none: a comparison has no value then.
            return Comparison("=", call, Constant(True), span=condition.span)
        return replace(condition, call=call)

    def _comparison(self, condition: Comparison) -> Comparison:
        left, right = self._term(condition.left), self._term(condition.right)
        kinds = {type.kind for _, type in (left, right) if type is not None}
        if "decimal" in kinds and kinds & {"number", "unsigned", "float"}:
            first, second = self._decimals(left, right)
            return replace(condition, left=first, right=second)
        meeting = fit(left[1], right[1])
        if meeting is None and left[1] is not None and right[1] is not None:
            for side, other in ((left, right), (right, left)):
                if isinstance(side[0], Constant) and other[1] is not None and other[1].kind in ("date", "timestamp"):
                    meeting = other[1]
            if meeting is None:
                self._incomparable(condition, left, right)
                return condition
        place = Label(condition.span)
        operator = condition.operator
        if meeting is None or meeting.kind != "float":
            operator = _NEGATED.get(operator, operator)
        return replace(
            condition,
            operator=operator,
            left=self._convert(left, meeting, place),
            right=self._convert(right, meeting, place),
        )

    def _incomparable(self, condition: Comparison, left: Typed, right: Typed) -> None:
        assert left[1] is not None and right[1] is not None
        labels = (Label(condition.left.span, show(left[1])), Label(condition.right.span, show(right[1])))
        message = f"type conflict: {show(left[1])} compared with {show(right[1])}"
        self.found.append(Diagnostic("E0501", message, labels, instead_of(left[1], right[1])))

    def _term(self, term: Term) -> Typed:
        """The term elaborated by itself, and its type; a whole number in the text is still LITERAL."""
        match term:
            case Variable(name):
                return term, self.variables.types.get(name)
            case Constant():
                return term, literal_type(term)
            case Call():
                return self._call(term)
            case Anonymous() | Parameter() | Collect() | Aggregate():
                return term, None
            case _:
                assert_never(term)

    def _call(self, call: Call) -> tuple[Call, Guess]:
        function = function_of(call)
        assert function is not None
        arguments = [self._term(argument) for argument in call.arguments]
        if isinstance(function.parameters, tuple):
            wanted = (*function.parameters, *[function.parameters[-1]] * len(arguments))
            terms = [self._parameter(call, typed, want) for typed, want in zip(arguments, wanted, strict=False)]
            return replace(call, arguments=tuple(terms)), function.result
        if function.parameters is Family.ANY:
            self._check_kinds(call, arguments)
            plain = replace(call, arguments=tuple(self._settled(typed) for typed in arguments))
            return plain, function.result or term_type(plain, self.variables.types)
        if is_mixed(call.function, tuple(type for _, type in arguments if type is not None)):
            return self._mixed(call, arguments)
        if not self._operands(call, function.parameters, arguments):
            return call, function.result or common(type for _, type in arguments)
        meeting = common(type for _, type in arguments)
        terms = [self._convert(typed, meeting, Label(call.span)) for typed in arguments]
        return replace(call, arguments=tuple(terms)), function.result or meeting

    def _mixed(self, call: Call, arguments: list[Typed]) -> tuple[Call, Guess]:
        """Arithmetic on decimals, dates and timestamps."""
        left, right = arguments
        if left[1] is None or right[1] is None:
            return call, None
        if "decimal" in (left[1].kind, right[1].kind):
            terms = self._decimals(left, right)
        else:
            terms = [self._moment(typed, other) for typed, other in ((left, right), (right, left))]
        one, other = (term_type(term, self.variables.types) or NUMBER for term in terms)
        found = FLOAT if one == other == FLOAT else mixed_type(call.function, one, other)
        if found is None:
            shown = " and ".join(f"a {show(type)}" for type in (left[1], right[1]))
            labels = (Label(left[0].span, show(left[1])), Label(right[0].span, show(right[1])))
            message = f"`{call.function}` has no meaning for {shown}"
            self.found.append(Diagnostic("E0502", message, labels, instead_of_operands(left[1], right[1])))
        return replace(call, arguments=tuple(terms)), found

    def _decimals(self, left: Typed, right: Typed) -> list[Term]:
        """A decimal and what it is computed or compared with: as decimals and whole numbers, or, beside a float that is
        no number of the text, as floats."""
        terms: list[Term] = []
        for term, given in (left, right):
            written = as_written(term) if isinstance(term, Constant) else None
            terms.append(self._settled((term, given)) if written is None else written)
        if not any(typed[1] == FLOAT and typed[0] is term for typed, term in zip((left, right), terms, strict=True)):
            return terms
        return [self._floated(typed) for typed in (left, right)]

    def _moment(self, typed: Typed, other: Typed) -> Term:
        """An operand beside a date or timestamp: a text of the program is one, too."""
        term, given = typed
        if isinstance(term, Constant) and given is not None and given.kind == "symbol":
            return self._convert(typed, other[1])
        return self._settled(typed)

    def _check_kinds(self, call: Call, arguments: list[Typed]) -> None:
        """Functions that take values of some types only, beside constants."""
        match call.function:
            case "round":
                self._operands(call, Family.DECIMAL, arguments[:1])
            case "to_decimal":
                self._operands(call, Family.WRITTEN_NUMBER, arguments[:1])
            case "date_trunc" if self._operands(call, Family.MOMENT, arguments[1:]):
                unit, type = call.arguments[0], arguments[1][1]
                if type == DATE and isinstance(unit, Constant) and unit.value not in UNITS_OF_DATES:
                    message = f"a date has no {unit.value}"
                    self.found.append(Diagnostic("E0502", message, (Label(unit.span),), "use `to_timestamp(...)`"))
            case _:
                pass

    def _settled(self, typed: Typed) -> Term:
        return self._convert(typed, NUMBER) if typed[1] == LITERAL else typed[0]

    def _operands(self, call: Call, family: Family, arguments: Iterable[Typed]) -> bool:
        """Are the operands of the family that the function takes? Reports those that are not."""
        allowed: Mapping[Family, tuple[str, ...]] = {
            Family.NUMERIC: ("number", "unsigned", "float"),
            Family.INTEGER: ("number", "unsigned"),
            Family.AMOUNT: ("number", "unsigned", "float", "decimal"),
            Family.DECIMAL: ("decimal",),
            Family.WRITTEN_NUMBER: ("symbol", "number", "unsigned", "decimal"),
            Family.MOMENT: ("date", "timestamp"),
            Family.WRITTEN_MOMENT: ("symbol", "date", "timestamp"),
            Family.LOGICAL: ("number", "bool"),
        }
        kinds = allowed.get(family)
        wrong = [(t, type) for t, type in arguments if kinds and type is not None and type.kind not in kinds]
        for term, type in wrong:
            message = f"`{_shown(call.function)}` takes {family.value}, not a {show(type)}"
            labels = (Label(term.span, show(type)),)
            self.found.append(Diagnostic("E0502", message, labels, instead_of_number(type)))
        return not wrong

    def _parameter(self, call: Call, typed: Typed, want: Type) -> Term:
        term, given = typed
        if given is not None and fit(given, want) != want:
            message = f"`{_shown(call.function)}` takes a {want} here, not a {show(given)}"
            self.found.append(Diagnostic("E0502", message, (Label(term.span, show(given)),), instead_of(given, want)))
            return term
        return self._convert(typed, want)

    # --- conversions ---

    def _floated(self, typed: Typed) -> Term:
        term, given = typed
        if given is not None and given.kind == "decimal":
            return Call("to_float", (term,), span=term.span)
        return self._convert(typed, FLOAT)

    def _convert(self, typed: Typed, want: Guess, place: Label | None = None) -> Term:
        """The term as a value of the type `want`."""
        term, given = typed
        if given is None:
            return term
        if want is None or want == LITERAL:
            return term
        if isinstance(term, Constant):
            constant = as_constant(term, want)
            if isinstance(constant, Constant):
                return constant
            self.found.append(constant or conflict(term.span, given, want, place))
            return term
        if given == LITERAL and isinstance(term, Call):
            inner = want if want.is_integer else NUMBER
            term = replace(term, arguments=tuple(self._convert((part, LITERAL), inner) for part in term.arguments))
            given = inner
        if given.kind == want.kind and not _loses(given, want):
            return term
        if want.kind == "float" and given.is_integer:
            return Call("to_float", (term,), span=term.span)
        self.found.append(conflict(term.span, given, want, place))
        return term


def _loses(given: Type, want: Type) -> bool:
    """Are there decimals of the one type that the other does not hold?"""
    return given.kind == "decimal" and given.with_room_for(want) != want


def _shown(function: str) -> str:
    return "-" if function == "neg" else function
