"""What a caller changes, as rows: lists of tuples, Arrow, pandas, Polars and Spark frames, with or without signs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from emberlog.analysis.program import Signature
from emberlog.data.convert import ignore
from emberlog.data.load import given_table
from emberlog.data.sources import ArrowSource, Source, load_table, schema_of, source_of
from emberlog.diagnostics import DataError, UsageError, did_you_mean
from emberlog.maintain.functions import canonical
from emberlog.maintain.ordinary import canonical_rows
from emberlog.maintain.store import Row
from emberlog.types import Column, Type, integer_range

CHANGE_TYPE, SIGN = "_change_type", "_sign"
SIGNS: Mapping[Any, int] = {
    "insert": 1,
    "update_postimage": 1,
    "delete": -1,
    "update_preimage": -1,
    1: 1,
    -1: -1,
}
BESIDE = frozenset({"_commit_version", "_commit_timestamp"})  # what change data has besides


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of inputs: for each predicate the rows that go, and then those that come."""

    delete: Mapping[str, Iterable[Row]] = field(default_factory=dict)
    insert: Mapping[str, Iterable[Row]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """Reads rows of the predicates that take changes."""

    signatures: Mapping[str, Signature]
    inputs: Mapping[str, str]
    nulls: Literal["error", "drop"]

    def edit(
        self,
        insert: Mapping[str, object] | None,
        delete: Mapping[str, object] | None,
        changes: Mapping[str, object] | None,
    ) -> Edit:
        """The change that a caller's values are. Raises `DataError` and `UsageError` for those that are none."""
        gone = {name: list(self.rows(name, value)) for name, value in _mapping("delete", delete).items()}
        come = {name: list(self.rows(name, value)) for name, value in _mapping("insert", insert).items()}
        for name, value in _mapping("changes", changes).items():
            # Rows come and go in their order: of what is said of one row, the last counts.
            for row, sign in dict(self._with_signs(name, value)).items():
                (come if sign > 0 else gone).setdefault(name, []).append(row)
        return Edit(gone, come)

    def signature(self, name: str) -> Signature:
        """The signature of a predicate that takes changes."""
        if name in self.inputs:
            return self.signatures[name]
        if name in self.signatures:
            raise UsageError(f"`{name}` is derived by rules: it follows the changes of others", fix=self._listed())
        raise UsageError(f"the program has no relation `{name}`", fix=did_you_mean(name, self.inputs) or self._listed())

    def _listed(self) -> str:
        return f"changes go to {', '.join(sorted(self.inputs)) or 'nothing: the program reads no relations'}"

    def rows(self, name: str, value: object) -> Iterable[Row]:
        """The rows that a value stands for."""
        signature = self.signature(name)
        if isinstance(value, list | set | tuple | frozenset) and (plain := plain_rows(value, signature.columns)):
            return plain
        return self.load(name, source_of(name, value))

    def load(self, name: str, source: Source | None, facts: tuple[Any, ...] = ()) -> set[Row]:
        """The rows of a source, and those that stand in the program."""
        columns = self.signatures[name].columns
        if not columns:  # whatever the source has for a relation without columns, there is one row at most
            rows = 0 if source is None else load_table(name, source, columns, self.nulls).num_rows
            return {()} if rows or facts else set()
        return canonical_rows(given_table(name, source, columns, facts, self.nulls, ignore))

    def table(self, name: str, source: Source) -> pa.Table | None:
        """The rows of a source as a table, in which one may stand twice; None for a relation without columns."""
        columns = self.signatures[name].columns
        return given_table(name, source, columns, (), self.nulls, ignore) if columns else None

    def _with_signs(self, name: str, value: object) -> Iterable[tuple[Row, int]]:
        """The rows of a value that says of each whether it comes or goes."""
        signature = self.signature(name)
        if isinstance(value, list | tuple):
            rows = [(*row[:-1],) for row in value]
            return zip(self._in_order(name, rows), (_sign(name, row[-1]) for row in value), strict=True)
        table = _table(name, source_of(name, value))
        marks = [column for column in (CHANGE_TYPE, SIGN) if column in table.column_names]
        if not marks:
            raise DataError(
                f"the changes of `{name}` have no column `{CHANGE_TYPE}` or `{SIGN}`",
                fix=f"`{CHANGE_TYPE}` is insert, delete, update_preimage or update_postimage; `{SIGN}` is 1 or -1",
            )
        signs = [_sign(name, mark) for mark in table[marks[0]].to_pylist()]
        rest = table.drop_columns([column for column in table.column_names if column in {*marks, *BESIDE}])
        if rest.num_columns != len(signature.columns):
            raise DataError(f"`{name}` has {len(signature.columns)} columns; its changes have {rest.num_columns}")
        kept = [(sign, rest.slice(i, 1)) for i, sign in enumerate(signs)] if self.nulls == "drop" else None
        if kept is not None:
            return [(row, sign) for sign, piece in kept for row in self.load(name, ArrowSource(piece))]
        return zip(self._in_order(name, rest), signs, strict=True)

    def _in_order(self, name: str, value: Any) -> list[Row]:
        """The rows of a value, one for each that it has."""
        from emberlog.data.arrow import rows

        if isinstance(value, list) and (plain := plain_rows(value, self.signatures[name].columns)):
            return plain
        found = load_table(name, source_of(name, value), self.signatures[name].columns, self.nulls)
        return [tuple(map(canonical, row)) for row in rows(found)]


def _mapping(what: str, given: Mapping[str, object] | None) -> Mapping[str, object]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise UsageError(f"{what} is a mapping from relations to rows", fix=f"{what}={{'arc': [(1, 2)]}}")
    return given


def _sign(name: str, mark: Any) -> int:
    if isinstance(mark, bool) or mark not in SIGNS:
        raise DataError(f"{mark!r} is no sign of a change of `{name}`", fix="1 or -1, or the words of change data")
    return SIGNS[mark]


def _table(name: str, source: Source) -> pa.Table:
    """A source with the names of its columns."""
    if isinstance(source, ArrowSource) and isinstance(source.data, pa.Table):
        return source.data
    columns = schema_of(name, source)
    found = load_table(name, source, columns)
    return found.rename_columns([column.name for column in columns or ()])


# --- small lists of tuples -------------------------------------------------------------------------------------------


def plain_rows(values: Iterable[Any], columns: tuple[Column, ...]) -> list[Row] | None:
    """Tuples whose values are what the columns hold already; None if there are others, which are then converted."""
    checks = [_check_of(column.type) for column in columns]
    rows: list[Row] = []
    for row in values:
        if type(row) is not tuple or len(row) != len(columns):
            return None
        if not all(check is not None and check(value) for check, value in zip(checks, row, strict=True)):
            return None
        rows.append(tuple(map(canonical, row)))
    return rows


def _check_of(type_: Type) -> Callable[[Any], bool] | None:
    """What tells that a value of Python is one of the type, without a conversion; None if that is not told."""
    match type_.kind:
        case "number" | "unsigned":
            low, high = integer_range(type_)
            return lambda value: type(value) is int and low <= value <= high
        case "float" if type_.bits == 64:
            return lambda value: type(value) is float
        case "symbol":
            return lambda value: type(value) is str and value.isascii()
        case "bool":
            return lambda value: type(value) is bool
        case _:
            return None
