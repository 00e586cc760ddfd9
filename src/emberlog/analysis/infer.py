"""Type inference: the types of columns and of the variables of rules.

Components are typed in the order of evaluation. Within one, the rules feed the columns of their heads until nothing
changes, in the order unknown < integer literal < number < float, literal < unsigned; a literal that met nothing else is
a number then. A declared or registered type is never changed. Conflicts are not reported here: `elaborate` finds them,
with the final types, when it converts every term to what its place wants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from emberlog.analysis.arithmetic import is_mixed, mixed_type, rounded_type
from emberlog.analysis.constants import as_written, decimal_type
from emberlog.analysis.draft import Draft, Fact
from emberlog.analysis.functions import FUNCTIONS, NARROWING, aggregate_type
from emberlog.analysis.layout import Layout
from emberlog.analysis.program import Absent, Bind, Filter, Gather, Literal, Match, Spread
from emberlog.analysis.strata import Part
from emberlog.analysis.terms import operands
from emberlog.callables import PythonFunction
from emberlog.diagnostics import Label
from emberlog.source import NOWHERE
from emberlog.syntax.nodes import Aggregate, Call, Constant, Term, Variable
from emberlog.types import BOOL, DATE, FLOAT, NUMBER, SYMBOL, TIMESTAMP, UNSIGNED, Type

LITERAL = Type("number", bits=0)
"""The type of a whole number in the text: it becomes what its place wants."""

Guess = Type | None
"""A type, or None as long as nothing is known."""


def show(type: Type) -> str:
    """The type for a message."""
    return "number" if type == LITERAL else str(type)


def fit(left: Guess, right: Guess) -> Guess:
    """The type in which values of both meet; None if there is none, or nothing is known."""
    if left is None or right is None:
        return left or right
    if left.kind == right.kind:
        if left.kind == "decimal":
            return left.with_room_for(right)
        return LITERAL if left == right == LITERAL else left.wide
    kinds = {left.kind, right.kind}
    if "float" in kinds and kinds <= {"float", "number", "unsigned"}:
        return FLOAT
    if LITERAL in (left, right) and "unsigned" in kinds:
        return UNSIGNED
    if LITERAL in (left, right) and "decimal" in kinds:
        return left if left.kind == "decimal" else right
    return None


def literal_type(constant: Constant) -> Type:
    """The type of a constant as written."""
    match constant.value:
        case bool():
            return BOOL
        case int():
            return UNSIGNED if constant.kind == "unsigned" else LITERAL
        case float():
            return FLOAT
        case _ if constant.kind == "decimal":
            return decimal_type(constant)
        case _:
            return {"date": DATE, "timestamp": TIMESTAMP}.get(constant.kind, SYMBOL)


def term_type(term: Term, types: Mapping[str, Guess]) -> Guess:
    """The type of a term that is not elaborated yet, as far as it is known."""
    match term:
        case Variable(name):
            return types.get(name)
        case Constant():
            return literal_type(term)
        case Call(given=PythonFunction(result=given)):
            return given
        case Call(function, arguments):
            if function in NARROWING:
                return NARROWING[function].wide
            return FUNCTIONS[function].result or _result_type(function, arguments, types)
        case Aggregate(function, arguments):
            inner = term_type(arguments[-1], types)
            if inner is None:
                return aggregate_type(function, FLOAT) if function in ("count", "countd", "avg") else None
            return inner if inner == LITERAL and function in ("min", "max", "sum") else aggregate_type(function, inner)
        case _:
            return None


def _result_type(function: str, arguments: Sequence[Term], types: Mapping[str, Guess]) -> Guess:
    """The type of a call whose type depends on its arguments, as far as theirs are known."""
    given = [term_type(argument, types) for argument in arguments]
    match function, arguments:
        case "to_decimal", (_, Constant(int(precision)), Constant(int(scale))):
            return Type("decimal", precision=precision, scale=scale)
        case "round", (_, Constant(int(places))) if given[0] is not None and given[0].kind == "decimal":
            return rounded_type(given[0], places)
        case "date_trunc", (_, _):
            return given[1]
        case _, (_, _) if is_mixed(function, known := tuple(type for type in given if type is not None)):
            if len(known) == 1:  # what meets a decimal, or is added to a date, is likely a number
                return known[0]
            return mixed_type(function, *(operand_type(argument, types, known) for argument in arguments))
        case _:
            return common(given)


def operand_type(term: Term, types: Mapping[str, Guess], beside: Sequence[Type]) -> Type:
    """The type of an operand of arithmetic beside others: where one is a decimal, a number in the text is one too, with
    the digits that it is written with."""
    written = as_written(term) if isinstance(term, Constant) else None
    if written is not None and any(type.kind == "decimal" for type in beside):
        return decimal_type(written)
    found = term_type(term, types)
    assert found is not None
    return found.wide if found != LITERAL else NUMBER


def common(types: Iterable[Guess]) -> Guess:
    """The type in which these meet; what conflicts is left out."""
    result: Guess = None
    for type in types:
        result = fit(result, type) or result
    return result


# --- variables of a rule ---------------------------------------------------------------------------------------------


_ANYWHERE = Label(NOWHERE)


@dataclass
class Columns:
    """The types of columns as inferred so far, and the place that gave each its type."""

    layout: Layout
    types: dict[tuple[str, int], Guess] = field(default_factory=dict)
    places: dict[tuple[str, int], Label] = field(default_factory=dict)

    def of(self, reader: str, name: str, position: int) -> tuple[Guess, Label]:
        """Type and place of the column that an argument of `name` in a rule of `reader` stands for."""
        key = (name, position + self.layout.shift(reader, name))
        return self.types.get(key), self.places.get(key, _ANYWHERE)


@dataclass
class Variables:
    """The types of a rule's variables, the place that gave each its type, and those that come from an atom."""

    types: dict[str, Guess] = field(default_factory=dict)
    places: dict[str, Label] = field(default_factory=dict)
    matched: set[str] = field(default_factory=set)


def matches(body: Iterable[Literal]) -> Iterator[Match]:
    """The positive atoms of a body, those inside of aggregates too."""
    for literal in body:
        if isinstance(literal, Match):
            yield literal
        elif isinstance(literal, Gather):
            for inner in literal.bodies:
                yield from matches(inner)


def variables_of(draft: Draft, columns: Columns, chosen: Mapping[str, Type] | None = None) -> Variables:
    """The types of the variables, as the atoms and then the equations give them; `chosen` are decided already."""
    found = Variables(dict(chosen or {}))
    for atom in matches(draft.body):
        for position, argument in enumerate(atom.arguments):
            if not isinstance(argument, Variable):
                continue
            type, _ = columns.of(draft.predicate, atom.predicate, position)
            found.matched.add(argument.name)
            if type is not None:
                if argument.name not in found.places:
                    told = f"`{argument.name}` is a {show(type)} here"
                    found.places[argument.name] = Label(argument.span, told)
                known = found.types.get(argument.name)
                found.types[argument.name] = fit(known, type.wide if type != LITERAL else type) or known
    _bind(draft.body, found, chosen or {})
    return found


def _bind(body: Iterable[Literal], found: Variables, chosen: Mapping[str, Type]) -> None:
    for literal in body:
        match literal:
            case Bind(variable, term):
                type = term_type(term, found.types)
            case Spread(variable, start, stop, step):
                type = common(term_type(term, found.types) for term in (start, stop, step))
            case Gather(variable, function, target, bodies):
                for inner in bodies:
                    _bind(inner, found, chosen)
                type = NUMBER if target is None else term_type(Aggregate(function, (target,)), found.types)
            case Match() | Absent() | Filter():
                continue
        if variable not in found.matched and variable not in chosen:
            found.types[variable] = type
            found.places[variable] = Label(literal.span, f"`{variable}` gets its value here")


def settled(draft: Draft, columns: Columns) -> Variables:
    """The final types: a variable that only literals gave a value becomes what its places want, or a number."""
    chosen: dict[str, Type] = {}
    while True:
        found = variables_of(draft, columns, chosen)
        open = [name for name, type in found.types.items() if type == LITERAL]
        if not open:
            return found
        wanted = _Wants(draft, found, columns).found
        picked = {name: _pick(wanted[name]) for name in open if name in wanted}
        chosen |= picked or dict.fromkeys(open, NUMBER)


def _pick(wanted: Sequence[Type]) -> Type:
    kinds = {type.kind for type in wanted}
    if "decimal" in kinds:
        return reduce(Type.with_room_for, (type for type in wanted if type.kind == "decimal"))
    return UNSIGNED if "unsigned" in kinds else NUMBER if "number" in kinds else FLOAT if "float" in kinds else NUMBER


# Aggregates whose result says nothing of the type of what goes in.
_RESULTS_OF_THEIR_OWN = frozenset({"avg", "count", "countd"})


class _Wants:
    """What the places of variables with the type LITERAL want them to be: `found`, by name."""

    def __init__(self, draft: Draft, variables: Variables, columns: Columns) -> None:
        self._draft = draft
        self._types = variables.types
        self._columns = columns
        self.found: dict[str, list[Type]] = {}
        self._body(draft.body)
        for position, argument in enumerate(draft.arguments):
            column, _ = columns.of(draft.predicate, draft.predicate, position)
            if not isinstance(argument, Aggregate):
                self._push(argument, column)
            elif argument.function not in _RESULTS_OF_THEIR_OWN:
                self._push(argument.arguments[-1], column)

    def _body(self, body: Iterable[Literal]) -> None:
        for literal in body:
            match literal:
                case Bind(variable, term):
                    self._push(term, self._types.get(variable))
                case Filter(condition):
                    meeting = common(term_type(term, self._types) for term in operands(condition))
                    # A number is compared with a float as it is: it need not be one itself.
                    want = None if meeting is not None and meeting.kind == "float" else meeting
                    for term in operands(condition):
                        self._push(term, want)
                case Gather(variable, function, target, bodies):
                    if target is not None and function not in _RESULTS_OF_THEIR_OWN:
                        self._push(target, self._types.get(variable))
                    for inner in bodies:
                        self._body(inner)
                case Spread(variable, start, stop, step):
                    for term in (start, stop, step):
                        self._push(term, self._types.get(variable))
                case Match(predicate, arguments) | Absent(predicate, arguments):
                    for position, term in enumerate(arguments):
                        self._push(term, self._columns.of(self._draft.predicate, predicate, position)[0])

    def _push(self, term: Term, want: Guess) -> None:
        """Notes what the variables of `term` are to be, if the term is to be of type `want`."""
        match term:
            case Variable(name) if want is not None and want != LITERAL and self._types.get(name) == LITERAL:
                self.found.setdefault(name, []).append(want)
            case Call(function, arguments):
                given = [term_type(argument, self._types) for argument in arguments]
                inner = None if is_mixed(function, tuple(type for type in given if type)) else common(given)
                if inner == LITERAL and want is not None and want.kind in ("number", "unsigned"):
                    inner = want
                for argument in arguments:
                    own = term.given is not None or FUNCTIONS[function].result is not None
                    self._push(argument, None if own else inner)
            case _:
                pass


# --- columns ---------------------------------------------------------------------------------------------------------


def infer(parts: Iterable[Part], facts: Iterable[Fact], layout: Layout, *, tolerant: bool) -> Columns:
    """The types of all columns. A `tolerant` inference leaves unknown what nothing determines."""
    columns = Columns(layout)
    fixed: set[tuple[str, int]] = set()
    for name, predicate in layout.predicates.items():
        for position, type in enumerate(layout.types(name)):
            columns.types[name, position] = type
            if type is not None or predicate.types:
                fixed.add((name, position))
            if predicate.places:
                place = predicate.places[position - layout.arity(name)]
                columns.places[name, position] = Label(place, f"declared {type}")
    for fact in facts:
        for position, constant in enumerate(fact.arguments):
            _feed(columns, fixed, (fact.predicate, position), literal_type(constant), constant)
    derived = {name for part in parts for name in part.predicates}
    _close(columns, [key for key in columns.types if key[0] not in derived], tolerant)
    for part in parts:
        _feed_heads(part, columns, fixed)
        keys = [(name, position) for name in part.predicates for position in range(layout.arity(name))]
        if _close(columns, keys, tolerant):
            _feed_heads(part, columns, fixed)
    return columns


def _feed_heads(part: Part, columns: Columns, fixed: set[tuple[str, int]]) -> None:
    """Feeds the rules of a component until nothing changes: after a change, those that read the predicate."""
    readers: dict[str, dict[int, Draft]] = {}
    for edge in part.inner:
        readers.setdefault(edge.body, {})[edge.rule.id] = edge.rule
    waiting = {draft.id: draft for draft in part.drafts}
    while waiting:
        draft = waiting.pop(next(iter(waiting)))
        if _feed_head(draft, columns, fixed):
            waiting |= readers.get(draft.predicate, {})


def _feed_head(draft: Draft, columns: Columns, fixed: set[tuple[str, int]]) -> bool:
    """Joins the types of a rule's head into its columns. Says whether something changed."""
    found = variables_of(draft, columns)
    shift = columns.layout.shift(draft.predicate, draft.predicate)
    return any([
        _feed(columns, fixed, (draft.predicate, position + shift), term_type(argument, found.types), argument)
        for position, argument in enumerate(draft.arguments)
    ])  # fmt: skip


def _feed(columns: Columns, fixed: set[tuple[str, int]], key: tuple[str, int], type: Guess, place: Term) -> bool:
    if key in fixed or type is None:
        return False
    known = columns.types.get(key)
    meeting = fit(known, type)
    if meeting is None or meeting == known:
        return False
    columns.types[key] = meeting
    columns.places[key] = Label(place.span, f"{show(meeting)} here")
    return True


def _close(columns: Columns, keys: Iterable[tuple[str, int]], tolerant: bool) -> bool:
    """Makes numbers of columns whose type nothing else tells. Says whether there were some."""
    changed = False
    for key in keys:
        known = columns.types.get(key)
        if known == LITERAL or (known is None and not tolerant):
            columns.types[key] = NUMBER
            changed = True
    return changed
