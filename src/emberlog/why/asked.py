"""The row that a question is about: checked against its relation, as the values that relations hold."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from emberlog.analysis.program import Signature
from emberlog.diagnostics import UsageError, counted, did_you_mean
from emberlog.syntax.nodes import Call, Constant, Goal, Term
from emberlog.syntax.printer import show
from emberlog.types import Column, Type, integer_range
from emberlog.why.questions import Values


def check_relation(name: object, known: Collection[str]) -> str:
    """The name of a relation that can be asked about."""
    if not isinstance(name, str):
        raise UsageError(f"the name of a relation is a text, not {name!r}", fix='result.why("tc", (1, 5))')
    if name not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise UsageError(
            f"this run has no relation `{name}` to ask about",
            fix=did_you_mean(name, known) or f"it evaluated and read: {listed}; `.output {name}` evaluates it, too",
        )
    return name


def check_row(row: object, signature: Signature) -> Values:
    """The values of a row, each as its column holds it. Columns that the run did not read have none."""
    if isinstance(row, str) or not isinstance(row, Sequence):
        raise UsageError(f"a row is a tuple of values, not {row!r}", fix=f'result.why("{signature.name}", (1, 5))')
    reading = signature.reading
    columns = signature.columns if reading is None else reading.whole
    if len(row) != len(columns):
        names = ", ".join(f"{column.name}: {column.type}" for column in columns)
        raise UsageError(
            f"`{signature.name}` has {counted(len(columns), 'column')}, the row {counted(len(row), 'value')}",
            fix=f"its columns are ({names})",
        )
    values = tuple(_value(value, column, signature.name) for value, column in zip(row, columns, strict=True))
    return values if reading is None else tuple(values[position] for position in reading.positions)


def row_of_goal(goal: Goal) -> tuple[str, tuple[Any, ...]]:
    """The relation and the row that `tc(1, 5)` names."""
    return goal.atom.predicate, tuple(_constant(term) for term in goal.atom.arguments)


def _constant(term: Term) -> Any:
    match term:
        case Constant(value):
            return value
        case Call("neg", (Constant(int() | float() as value),)):
            return -value
        case _:
            raise UsageError(
                f"`{show(term)}` is no value: a question is about one row", fix='write values only, as in "tc(1, 5)"'
            )


def _value(value: Any, column: Column, relation: str) -> Any:
    if type(value).__module__ == "numpy":
        value = value.item()
    found = _converted(value, column.type)
    if found is None:
        raise UsageError(
            f"`{relation}`: {value!r} is no {column.type}, which column `{column.name}` holds",
            fix=f"give a value such as {_EXAMPLES[column.type.kind]}",
        )
    return found


def _converted(value: Any, type: Type) -> Any:
    """The value as a column of this type holds it, None if it holds no such values."""
    match type.kind, value:
        case "bool", bool():
            return value
        case _, bool():
            return None
        case "number" | "unsigned", int():
            least, largest = integer_range(type)
            return value if least <= value <= largest else None
        case "float", int() | float():
            return float(value) + 0.0
        case "symbol", str():
            return value
        case "timestamp", datetime():
            return value
        case "date", date() if not isinstance(value, datetime):
            return value
        case (("date" | "timestamp"), str()):
            return _moment(value, type)
        case "decimal", int() | str() | Decimal():
            return _decimal(value, type)
        case _:
            return None


def _moment(text: str, type: Type) -> date | None:
    try:
        return date.fromisoformat(text) if type.kind == "date" else datetime.fromisoformat(text)
    except ValueError:
        return None


def _decimal(value: int | str | Decimal, type: Type) -> Decimal | None:
    try:
        found = Decimal(value).quantize(Decimal(1).scaleb(-type.scale))
    except InvalidOperation:
        return None
    return found if found == Decimal(value) and len(found.as_tuple().digits) <= type.precision else None


_EXAMPLES = {
    "number": "7",
    "unsigned": "7",
    "float": "0.5",
    "symbol": '"a"',
    "bool": "True",
    "date": '"2024-01-31"',
    "timestamp": '"2024-01-31 12:00:00"',
    "decimal": '"1.50"',
}
