"""Functions and aggregates as they are written: known names, the right number of arguments, the right places."""

from __future__ import annotations

from collections.abc import Iterator

from emberlog.analysis.arithmetic import UNITS
from emberlog.analysis.functions import FUNCTIONS, function_of
from emberlog.analysis.terms import is_ground, walk
from emberlog.diagnostics import Diagnostic, Label, did_you_mean
from emberlog.patterns import BadPattern, read, read_finder
from emberlog.source import Span
from emberlog.syntax.nodes import (
    Aggregate,
    Anonymous,
    Atom,
    Call,
    Collect,
    Constant,
    Goal,
    Limit,
    Parameter,
    Program,
    Rule,
    Term,
)
from emberlog.syntax.vocabulary import AGGREGATES
from emberlog.types import MAX_DIGITS

_OPERATORS = frozenset({"+", "-", "*", "/", "%", "^", "neg"})


def check_calls(program: Program) -> Iterator[tuple[int, Diagnostic]]:
    """Mistakes in calls and aggregates, each with the number of the item it stands in."""
    for number, item in enumerate(program.items):
        match item:
            case Rule() if is_ground(item):
                continue
            case Rule(heads, body):
                for head in heads:
                    yield from ((number, found) for found in _head(head))
                if body is not None:
                    for node in walk(body):
                        yield from ((number, found) for found in _body(node))
            case Goal(atom):
                for argument in atom.arguments:
                    yield from ((number, found) for found in _goal(argument))
            case _:
                pass


def _head(head: Atom) -> Iterator[Diagnostic]:
    for argument in head.arguments:
        match argument:
            case Aggregate(function, arguments, limit):
                yield from _aggregate(argument)
                if function in ("topk", "top"):
                    yield from _positive(limit, f"the first argument of `{function}`", argument)
                inside = [node for inner in arguments for node in walk(inner)]
            case Anonymous():
                yield _anonymous(span_of=argument, where="a head")
                inside = []
            case _:
                inside = list(walk(argument))
        for node in inside:
            yield from _body(node)


def _pattern(call: Call) -> Iterator[Diagnostic]:
    """A pattern that is written in the program must be one."""
    pattern = call.arguments[0]
    if not isinstance(pattern, Constant) or not isinstance(pattern.value, str):
        return
    try:
        read(pattern.value)
    except BadPattern as error:
        yield _bad_pattern(pattern, error)


def _extraction(call: Call) -> Iterator[Diagnostic]:
    """Pattern and group of `regexp_extract` stand in the program."""
    _, pattern, group = call.arguments
    match pattern, group:
        case Constant(str(text)), Constant(int(number)) if number >= 0 and not isinstance(group.value, bool):
            try:
                read_finder(text, number)
            except BadPattern as error:
                yield _bad_pattern(pattern, error)
        case (Parameter(), _) | (_, Parameter()):  # without a value, which has its own message
            return
        case _:
            message = "`regexp_extract` takes a pattern and a group that are constants"
            help = 'write `regexp_extract(S, "([a-z]+)=", 1)`; group 0 is all that the pattern matches'
            yield Diagnostic("E0220", message, (Label(pattern.span), Label(group.span)), help)


def _constants(call: Call) -> Iterator[Diagnostic]:
    """Units and numbers of digits stand in the program: types depend on them."""
    wrong: tuple[Term, ...]
    match call.function, call.arguments:
        case "date_trunc", (unit, _):
            good = isinstance(unit, Constant) and unit.value in UNITS
            wrong, what = (() if good else (unit,)), f"a unit: {', '.join(UNITS)}"
        case "round", (_, places):
            wrong, what = _not_within(0, MAX_DIGITS, places), f"a number of digits from 0 to {MAX_DIGITS}"
        case "to_decimal", (_, precision, scale):
            most = precision.value if isinstance(precision, Constant) else MAX_DIGITS
            wrong = (*_not_within(1, MAX_DIGITS, precision), *_not_within(0, most, scale))
            what = f"the digits of a decimal: 1 to {MAX_DIGITS} in all, and of them those behind the point"
        case _:
            return
    for term in wrong:
        if not isinstance(term, Parameter):  # without a value, which has its own message
            yield Diagnostic("E0224", f"`{call.function}` takes {what}, as a constant", (Label(term.span),))


def _not_within(low: int, high: object, term: Term) -> tuple[Term, ...]:
    """The term, if it is no whole number of the text from `low` to `high`."""
    match term:
        case Constant(int(value)) if (
            not isinstance(term.value, bool) and isinstance(high, int) and low <= value <= high
        ):
            return ()
        case _:
            return (term,)


def _bad_pattern(pattern: Term, error: BadPattern) -> Diagnostic:
    message = f"this is not a regular expression: {error}"
    return Diagnostic("E0220", message, (Label(pattern.span),), "in a string a backslash is written \\\\")


def _aggregate(aggregate: Aggregate) -> Iterator[Diagnostic]:
    keyed = len(aggregate.arguments) == 2 and aggregate.function == "sum"
    if len(aggregate.arguments) != 1 and not keyed:
        help = "`sum<(K, V)>` takes a key and a value, `min<(V, X)>` and `max<(V, X)>` a value and its witness"
        labels = (Label(aggregate.span, f"{len(aggregate.arguments)} values"),)
        yield Diagnostic("E0211", f"`{aggregate.function}` aggregates one value", labels, help)
    for argument in aggregate.arguments:
        if isinstance(argument, Anonymous) and aggregate.function != "count":
            yield _anonymous(span_of=argument, where=f"`{aggregate.function}`")


def _body(node: object) -> Iterator[Diagnostic]:
    match node:
        case Call("match", (_, _)):
            yield from _pattern(node)
        case Call("regexp_extract", (_, _, _)):
            yield from _extraction(node)
        case Call():
            yield from _call(node)
            yield from _constants(node)
        case Aggregate(function):
            yield _misplaced(function, node.span)
        case Collect(function, target) if target is None and function != "count":
            help = f"write `{function} X : {{ ... }}`"
            yield Diagnostic("E0211", f"`{function}` needs a value to aggregate", (Label(node.span),), help)
        case Limit(count):
            yield from _positive(count, "`limit`", count)
        case _:
            pass


def _misplaced(function: str, span: Span) -> Diagnostic:
    help = "an aggregate is a whole argument of a rule's head; name its result in a rule of its own"
    labels = (Label(span, "an aggregate inside of something else"),)
    return Diagnostic("E0211", f"the aggregate `{function}` may not stand here", labels, help)


def _call(call: Call) -> Iterator[Diagnostic]:
    function = function_of(call)
    count = len(call.arguments)
    if function is None and call.function in AGGREGATES:
        yield _misplaced(call.function, call.span)
    elif function is None:
        help = did_you_mean(call.function, (name for name in FUNCTIONS if name not in _OPERATORS))
        yield Diagnostic("E0205", f"there is no function `{call.function}`", (Label(call.span),), help)
    elif not function.takes(count):
        labels = (Label(call.span, f"{count} given"),)
        help = f"it is `{call.function}{function.signature}`" if function.signature else None
        if call.function in ("min", "max") and count == 1:
            help = f"the aggregate stands in a head, or in a body as `{call.function} X : {{ ... }}`"
        yield Diagnostic("E0206", f"`{call.function}` takes {function.arity}", labels, help)
    for argument in call.arguments:
        if isinstance(argument, Anonymous):
            yield _anonymous(span_of=argument, where="an expression")


def _positive(term: Term | None, what: str, place: Term) -> Iterator[Diagnostic]:
    match term:
        case Constant(bool()):
            pass
        case Constant(int(value)) if value > 0:
            return
        case Parameter():  # without a value, which has its own message
            return
        case _:
            pass
    where = place.span if term is None else term.span
    yield Diagnostic("E0213", f"{what} must be a whole number above 0", (Label(where),))


def _goal(argument: Term) -> Iterator[Diagnostic]:
    match argument:
        case Call("neg", (Constant(),)):
            return
        case Call() | Aggregate() | Collect():
            help = "put what is computed into a rule, and ask for that rule's predicate"
            yield Diagnostic("E0216", "a goal takes variables, `_` and constants", (Label(argument.span),), help)
        case _:
            return


def _anonymous(*, span_of: Anonymous, where: str) -> Diagnostic:
    labels = (Label(span_of.span, "this has no value"),)
    return Diagnostic("E0215", f"`_` has no value that {where} could use", labels, "name the variable")
