"""Scripts of changes, line by line: `+arc(1, 2).`, `-arc(3, 4).`, `commit`, `abort`, `+rule ..`, `-rule ..`, `?- goal.`

Rows wait for `commit`, which applies them as one change, or `abort`, which drops them. Rules change at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date

from emberlog.analysis.constants import as_constant
from emberlog.analysis.terms import is_ground
from emberlog.diagnostics import Diagnostic, UsageError
from emberlog.maintain.functions import constant_value
from emberlog.maintain.report import Change
from emberlog.maintain.store import Row
from emberlog.maintain.view import View
from emberlog.source import Source
from emberlog.syntax.nodes import Constant, Rule
from emberlog.syntax.parser import parse
from emberlog.syntax.printer import show

FORMS = "+arc(1, 2).  -arc(1, 2).  commit  abort  +rule p(X) <- q(X).  -rule p(X) <- q(X).  ?- p(X)."


class Script:
    """Reads lines, changes a view by them, and answers with lines: signed differences, and rows that match a goal."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._delete: dict[str, dict[Row, None]] = {}  # rows in the order in which they came
        self._insert: dict[str, dict[Row, None]] = {}

    @property
    def waits(self) -> bool:
        """True if there are rows that wait for `commit`."""
        return bool(self._delete or self._insert)

    def read(self, line: str) -> Iterator[str]:
        """Does what a line says."""
        text = line.strip()
        if not text or text.startswith(("//", "%", "#")):
            return
        if text.rstrip(".") == "commit":
            yield from self.commit()
        elif text.rstrip(".") == "abort":
            self._delete, self._insert = {}, {}
        elif text.startswith("?-"):
            goal = text.removeprefix("?-").strip().removesuffix(".")
            yield from sorted(_fact(goal.partition("(")[0].strip(), row) for row in self._view.query(goal))
        elif text.startswith("+rule "):
            yield from self._told(self._view.add_rule(text.removeprefix("+rule ")))
        elif text.startswith("-rule "):
            yield from self._told(self._view.remove_rule(text.removeprefix("-rule ")))
        elif text[0] in "+-":
            self._wait(text[0], text[1:].strip())
        else:
            raise UsageError(f"a script has no line such as `{text}`", fix=f"lines are {FORMS}")

    def commit(self) -> Iterator[str]:
        """Applies the rows that wait, as one change."""
        insert, delete = self._insert, self._delete
        self._insert, self._delete = {}, {}
        come, gone = ({name: list(rows) for name, rows in waiting.items()} for waiting in (insert, delete))
        yield from self._told(self._view.apply(insert=come, delete=gone))

    def _wait(self, sign: str, text: str) -> None:
        """Takes in rows; of what is said of one row, the last counts."""
        for name, row in self._rows(text):
            come, go = (self._insert, self._delete) if sign == "+" else (self._delete, self._insert)
            come.setdefault(name, {})[row] = None
            go.get(name, {}).pop(row, None)

    def _rows(self, text: str) -> Iterator[tuple[str, Row]]:
        for item in parse(Source("<script>", text if text.endswith(".") else f"{text}.")).items:
            if not isinstance(item, Rule) or not is_ground(item):
                raise UsageError(f"`{text}` is no fact", fix="+arc(1, 2).")
            for head in item.heads:
                values = [argument for argument in head.arguments if isinstance(argument, Constant)]
                yield head.predicate, self._row(head.predicate, values)

    def _row(self, name: str, values: list[Constant]) -> Row:
        """The values of a fact as the columns of its relation have them."""
        columns = self._view[name].schema
        if len(values) != len(columns):
            raise UsageError(f"`{name}` has {len(columns)} columns, not {len(values)}")
        found = []
        for constant, column in zip(values, columns, strict=True):
            value = as_constant(constant, column.type)
            if value is None or isinstance(value, Diagnostic):
                raise UsageError(f"{show(constant)} is no {column.type}, which `{name}` has in column {column.name}")
            found.append(constant_value(value))
        return tuple(found)

    def _told(self, change: Change) -> Iterator[str]:
        """The differences of derived relations, deletions first."""
        for name in change:
            if name not in self._view.inputs:
                yield from _lines("-", name, change[name].deleted)
                yield from _lines("+", name, change[name].inserted)


def _lines(sign: str, name: str, rows: Iterable[Row]) -> Iterator[str]:
    yield from (f"{sign}{fact}" for fact in sorted(_fact(name, row) for row in rows))


def _fact(name: str, row: Row) -> str:
    """A row as a fact of a program."""
    return f"{name}({', '.join(map(_value, row))})."


def _value(value: object) -> str:
    match value:
        case date():
            return show(Constant(value.isoformat()))
        case bool() | int() | float() | str():
            return show(Constant(value))
        case _:
            return str(value)
