"""A component of binary relations over dense ids, evaluated row by row.

Sets are kept as rows (`sets`), minima and maxima as matrices (`matrices`) or as tables of values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np

from emberlog.kernels.rows.crew import Crew
from emberlog.kernels.rows.layout import Ids
from emberlog.kernels.rows.matrices import MatrixRun
from emberlog.kernels.rows.program import RowRelation, RowsProgram, Storage
from emberlog.kernels.rows.relations import OverBudget, StaticRows, StaticValues
from emberlog.kernels.rows.rounds import RowRun

Columns: TypeAlias = tuple[np.ndarray, ...]

CELLS = 1 << 22
"""Cells of matrices that are always made: 64 megabytes."""


class RowsRun:
    """A component under evaluation. Ids of a domain are 0 .. domains[name] - 1; columns are arrays of ids.

    `derivations` counts what was enumerated: an id of a list or table is one, a bit row that is or-ed is as many as it
    has words, a row of a matrix as many as it has values. `bytes` is what storages hold. Over `budget` bytes a step
    raises `OverBudget`; whole numbers that leave the range of the kernels raise `OutOfRange`.
    """

    def __init__(
        self, program: RowsProgram, domains: Mapping[str, int], statics: Mapping[str, tuple[np.ndarray, ...]],
        exits: Mapping[str, tuple[np.ndarray, ...]], *, workers: int = 1, budget: int | None = None,
        storage: Storage = "auto",
    ) -> None:  # fmt: skip
        program.check()
        self.program = program
        self._budget = budget
        self._crew = Crew(workers)
        given = {name: columns for name, columns in exits.items() if len(columns[0])}
        self._run: RowRun | MatrixRun
        valued = [relation for relation in program.recursive if relation.kind != "set"]
        if not valued:
            self._run = RowRun(
                program,
                domains,
                _plain(program, domains, statics),
                _plain(program, domains, given),
                self._crew,
                storage,
            )
        else:
            fixed, first = (_valued(program, domains, columns, valued[0]) for columns in (statics, given))
            if (
                len(valued) == len(program.recursive)
                and storage in ("auto", "bits")
                and _small(program, domains, first)
            ):
                self._run = MatrixRun(program, domains, fixed, first, self._crew)
            else:
                self._run = RowRun(program, domains, fixed, first, self._crew, storage)
        self._within_budget()

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
        new = self._run.step()
        self._within_budget()
        return new

    def chunks(self, name: str, rows: int = 1 << 20) -> Iterator[tuple[np.ndarray, ...]]:
        """The facts as columns, in pieces of about `rows` facts (never less than one row of the relation)."""
        return self._run.chunks(name, rows)

    def _within_budget(self) -> None:
        if self._budget is not None and self.bytes > self._budget:
            raise OverBudget(f"{self.bytes} bytes of rows, of {self._budget}")


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


def _small(program: RowsProgram, domains: Mapping[str, int], exits: Mapping[str, StaticValues]) -> bool:
    """Do matrices pay? They are small, or no larger than what the exit facts take in tables."""
    cells = sum(domains[relation.first] * domains[relation.second] for relation in program.recursive)
    return cells <= max(CELLS, 16 * sum(static.facts for static in exits.values()))
