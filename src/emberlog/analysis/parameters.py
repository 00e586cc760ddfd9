"""Parameters: `$NAME` becomes the constant that the caller gives, and `$NAME(X)` a relation with the values of a list.

A parameter has the type of its Python value. A list is a base relation named `$NAME` of one column; its rows come from
the caller's side, as those of a registered relation do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from emberlog.analysis.constants import decimal_constant
from emberlog.analysis.infer import fit, literal_type, show
from emberlog.analysis.terms import is_ground, map_formula, map_term, walk
from emberlog.diagnostics import Diagnostic, Label, UsageError, did_you_mean
from emberlog.syntax.nodes import Atom, Constant, Formula, Goal, Item, Parameter, Program, Rule, Term
from emberlog.types import INT64_MIN, UINT64_MAX, Params, without_sign

_ALLOWED = "a parameter is a bool, int, float, str, date, datetime or Decimal, or a list of such values of one type"


# --- values of the caller --------------------------------------------------------------------------------------------


def check_parameters(params: Params) -> None:
    """Raises UsageError for values that parameters cannot have."""
    if not isinstance(params, Mapping):
        raise UsageError(f"params are values by name, not {_shown(params)}", fix='params={"ID": 1}')
    for name, value in params.items():
        if not isinstance(name, str):
            raise UsageError(f"the name of a parameter is a text, not {_shown(name)}")
        if isinstance(value, list):
            _check_list(name, value)
        else:
            _constant(f"the parameter `{name}`", value)


def lists_of(params: Params) -> dict[str, list[Any]]:
    """The rows of the relations that lists are, by the names that these relations have in programs."""
    return {f"${name}": [(value,) for value in values] for name, values in params.items() if isinstance(values, list)}


def _check_list(name: str, values: Sequence[object]) -> None:
    common = None
    for place, value in enumerate(values):
        what = f"value {place + 1} of the list `{name}`"
        type = literal_type(_constant(what, value))
        if common is not None and fit(common, type) is None:
            raise UsageError(f"{what} is a {show(type)}, and the values before it are {show(common)}s", fix=_ALLOWED)
        common = fit(common, type)


def _constant(what: str, value: object) -> Constant:
    """A Python value as a constant. `what` says whose value it is."""
    if _is_numpy_scalar(value):
        value = value.item()  # type: ignore[attr-defined]
    match value:
        case bool():
            return Constant(value)
        case int():
            if not INT64_MIN <= value <= UINT64_MAX:
                raise UsageError(f"{what} does not fit in 64 bits: {_shown(value)}")
            return Constant(int(value))
        case float():
            if value != value:
                raise UsageError(f"{what} is NaN, which equals nothing", fix=_ALLOWED)
            return Constant(without_sign(float(value)))
        case str():
            if not _is_unicode(value):
                raise UsageError(f"{what} is not valid Unicode: {_shown(value)}")
            return Constant(str.__str__(value))
        case datetime() if value == value and not getattr(value, "nanosecond", 0):
            wall = value if value.tzinfo is None else value.astimezone(UTC)
            return Constant(wall.replace(tzinfo=None).isoformat(), "timestamp")
        case date() if value == value and not isinstance(value, datetime):
            return Constant(value.isoformat(), "date")
        case Decimal():
            found = decimal_constant(value)
            if found is None:
                raise UsageError(f"{what} is no decimal number of at most 38 digits: {value}")
            return found
        case _:
            raise UsageError(f"{what} is of type {type(value).__name__}: {_shown(value)}", fix=_ALLOWED)


def _is_numpy_scalar(value: Any) -> bool:
    """True for a number, truth or text of NumPy. (A time of NumPy's may turn into a plain number.)"""
    kind = type(value)
    return kind.__module__ == "numpy" and kind.__name__ != "ndarray" and value.dtype.kind in "biufU"


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # lists inside of lists, or an integer of thousands of digits
        return f"a very large {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


# --- in programs -----------------------------------------------------------------------------------------------------


def substitute(program: Program, params: Params) -> Program:
    """The program with each parameter that is one value replaced by its constant; the others stay."""

    def change(term: Term) -> Term:
        if isinstance(term, Parameter) and not isinstance(params.get(term.name, []), list):
            return replace(_constant(f"the parameter `{term.name}`", params[term.name]), span=term.span)
        return term

    def atom(written: Atom) -> Atom:
        return replace(written, arguments=tuple(map_term(a, change) for a in written.arguments))

    def item(written: Item) -> Item:
        match written:
            case Rule(heads, body) if any(True for _ in _parameters(written)):
                changed = None if body is None else map_formula(body, change)
                return replace(written, heads=tuple(atom(head) for head in heads), body=changed)
            case Goal(goal):
                return replace(written, atom=atom(goal))
            case _:
                return written

    return replace(program, items=tuple(item(written) for written in program.items))


def missing_parameters(program: Program, params: Params) -> Iterator[tuple[int, Diagnostic]]:
    """Each parameter without a value that can stand there, with the number of the item it stands in."""
    for number, item in enumerate(program.items):
        for node in _parameters(item):
            wants_list = isinstance(node, Atom)
            name = node.predicate[1:] if isinstance(node, Atom) else node.name
            if name not in params:
                yield number, _missing(name, node, params)
            elif wants_list != isinstance(params[name], list):
                yield number, _unfit(name, node)


def _missing(name: str, node: Parameter | Atom, params: Mapping[str, object]) -> Diagnostic:
    given = ", ".join(f"${name}" for name in sorted(params)) or "none"
    near = did_you_mean(f"${name}", (f"${name}" for name in params))
    advice = f"give it with params={{{name!r}: ...}} or --param {name}=VALUE"
    help = f"{near} given: {given}" if near else f"{advice}; given: {given}"
    labels = (Label(node.span, "no value is given"),)
    return Diagnostic("E0210", f"the parameter `${name}` has no value", labels, help)


def _unfit(name: str, node: Parameter | Atom) -> Diagnostic:
    if isinstance(node, Atom):
        labels = (Label(node.span, "a relation, with a row for each value of a list"),)
        help = f"give a list (`params={{{name!r}: [...]}}`), or write `X = ${name}`"
        return Diagnostic("E0210", f"the parameter `${name}` is one value, not a list", labels, help)
    labels = (Label(node.span, "one value stands here"),)
    help = f"a list is a relation of one column: write `${name}(X)` as a goal"
    return Diagnostic("E0210", f"the parameter `${name}` is a list, not one value", labels, help)


def _parameters(item: Item) -> Iterator[Parameter | Atom]:
    """The parameters of an item: as terms, and as relations."""
    roots: tuple[Atom | Formula, ...]
    match item:
        case Rule() if is_ground(item):
            return
        case Rule(heads, body):
            roots = (*heads, body) if body is not None else heads
        case Goal(atom):
            roots = (atom,)
        case _:
            roots = ()
    for root in roots:
        for node in walk(root):
            if isinstance(node, Parameter) or (isinstance(node, Atom) and node.predicate.startswith("$")):
                yield node
