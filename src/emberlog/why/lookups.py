"""Where questions are answered: statements over the relations of a finished run, wherever these are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from emberlog.data.arrow import array_of, arrow_schema
from emberlog.plan.logical import Plan, columns
from emberlog.sql.evaluate import SqlEvaluator
from emberlog.sql.statement import Statement
from emberlog.types import NUMBER, Column
from emberlog.why.questions import ASKED, ID, Question, Values

if TYPE_CHECKING:
    import pyarrow as pa


class Lookups:
    """Answers questions by the statements of one evaluator. A question's statement is written once."""

    def __init__(self, evaluator: SqlEvaluator) -> None:
        self._evaluator = evaluator
        self._statements: dict[Plan, Statement] = {}

    def answers(self, question: Question, rows: Iterable[Values], most: int | None = None) -> list[Values]:
        """The answers for these rows, in order: the number of the row, counted from 0, then the question's columns. At
        most so many, if that is said. What has a value that is missing is no answer."""
        return sorted(self.read(question, question.plan, rows, most))

    def read(self, question: Question, plan: Plan, rows: Iterable[Values], most: int | None = None) -> list[Values]:
        """The same for a plan that is made of the question's own."""
        engine = self._evaluator.engine
        engine.load(self._evaluator.table(ASKED), _numbered(question.asked, rows))
        if plan not in self._statements:
            self._statements[plan] = self._evaluator.statement(plan)
        statement = self._statements[plan]
        if most is not None:
            statement = replace(statement, sql=f"SELECT * FROM ({statement.sql}) LIMIT {most}")
        found = _typed(engine.read(statement), tuple(Column(*column) for column in columns(plan).items()))
        return [row for row in zip(*(column.to_pylist() for column in found.columns), strict=True) if None not in row]

    def count(self, question: Question, row: Values) -> int:
        """The number of answers for one row."""
        numbers = self.read(question, question.number, [row])
        return int(numbers[0][0]) if numbers else 0


def _numbered(asked: Sequence[Column], rows: Iterable[Values]) -> pa.Table:
    """A table of rows, each with its number before it."""
    import pyarrow as pa

    schema = arrow_schema((Column(ID, NUMBER), *asked))
    listed = list(rows)
    values: list[list[Any]] = [list(range(len(listed))), *([row[i] for row in listed] for i in range(len(asked)))]
    return pa.table([array_of(column, field.type) for column, field in zip(values, schema, strict=True)], schema=schema)


def _typed(table: pa.Table, expected: tuple[Column, ...]) -> pa.Table:
    """What an engine gave with the types of the language: Spark has no unsigned numbers."""
    return table.cast(arrow_schema(expected))
