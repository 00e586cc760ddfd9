"""A component of binary relations over dense ids, evaluated row by row.

Sets, and minima and maxima over large domains, are evaluated on rows (`rounds`), others on matrices (`matrices`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from emberlog.components.compositions import RowRelation, RowsProgram, Storage
from emberlog.kernels.crew import Crew
from emberlog.kernels.rows.layout import Ids
from emberlog.kernels.rows.matrices import MatrixRun
from emberlog.kernels.rows.relations import StaticRows, StaticValues
from emberlog.kernels.rows.rounds import RowRun

Columns: TypeAlias = tuple[np.ndarray, ...]

CELLS = 1 << 22
"""Cells of matrices that are always made: 64 megabytes."""


class RowsRun:
    """A component under evaluation. Ids of a domain are 0 .. domains[name] - 1; columns are arrays of ids.

    `derivations` counts what was enumerated: an id of a list or table is one, a bit row that is or-ed is as many as it
    has words, a row of a matrix as many as it has values. `bytes` is what storages hold. Over `budget` bytes a step
    (or the start) raises `OverBudget`; whole numbers that leave the range of the kernels raise `OutOfRange`. `look` is
    asked many times in a long step: what it raises ends the step.
    """

    def __init__(
        self, program: RowsProgram, domains: Mapping[str, int], statics: Mapping[str, tuple[np.ndarray, ...]],
        exits: Mapping[str, tuple[np.ndarray, ...]], *, workers: int = 1, budget: int | None = None,
        storage: Storage = "auto", look: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        program.check()
        self._crew = Crew(workers, look)
        self._run = _run_of(program, domains, statics, exits, self._crew, budget, storage)

    def close(self) -> None:
        """Let the workers go. The facts stay."""
        self._crew.close()

    @property
    def derivations(self) -> int:
        return self._run.derivations

    @property
    def bytes(self) -> int:
        return self._run.bytes

    def facts(self, name: str) -> int:
        return self._run.facts(name)

    def step(self) -> int:
        """One round; the number of facts that are new or changed. 0: the fixpoint is reached."""
        return self._run.step()

    def chunks(self, name: str, rows: int = 1 << 20) -> Iterator[tuple[np.ndarray, ...]]:
        """The facts as columns, in pieces of about `rows` facts (never less than one row of the relation)."""
        return self._run.chunks(name, rows)


def _run_of(
    program: RowsProgram, domains: Mapping[str, int], statics: Mapping[str, Columns], exits: Mapping[str, Columns],
    crew: Crew, budget: int | None, storage: Storage,
) -> RowRun | MatrixRun:  # fmt: skip
    """Rows for sets, matrices for small minima and maxima, and rows for the others."""
    given = {name: columns for name, columns in exits.items() if len(columns[0])}
    valued = [relation for relation in program.recursive if relation.kind != "set"]
    if not valued:
        plain, start = (_plain(program, domains, columns) for columns in (statics, given))
        return RowRun(program, domains, plain, start, crew, budget, storage)
    fixed, first = (_valued(program, domains, columns, valued[0]) for columns in (statics, given))
    if len(valued) == len(program.recursive) and storage in ("auto", "bits"):
        cells = sum(domains[relation.first] * domains[relation.second] for relation in program.recursive)
        # Small, or no larger than the exit facts in tables: a cell is 8 bytes, and has a copy to compare with.
        if cells <= max(CELLS, 16 * sum(rows.facts for rows in first.values())) and 16 * cells <= (budget or 1 << 62):
            return MatrixRun(program, domains, fixed, first, crew)
    return RowRun(program, domains, fixed, first, crew, budget, storage)


def _plain(program: RowsProgram, domains: Mapping[str, int], given: Mapping[str, Columns]) -> dict[str, StaticRows]:
    """The columns as rows of a static relation."""
    names = program.names()
    return {
        name: StaticRows(_pairs(columns), (domains[names[name].first], domains[names[name].second]))
        for name, columns in given.items()
    }


def _valued(
    program: RowsProgram, domains: Mapping[str, int], given: Mapping[str, Columns], like: RowRelation
) -> dict[str, StaticValues]:
    """The columns as rows of a static relation with values of the kind of `like`."""
    names = program.names()
    return {
        name: StaticValues(
            _pairs(columns), (domains[names[name].first], domains[names[name].second]),
            columns[2] if len(columns) > 2 else None, like.kind, like.value,
        )
        for name, columns in given.items()
    }  # fmt: skip


def _pairs(columns: Columns) -> tuple[Ids, Ids]:
    first, second = (np.ascontiguousarray(column, np.int32) for column in columns[:2])
    return first, second
