"""Runs a program by the kernels in every way there is, and holds the ways against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, cast
from unittest import mock

import pyarrow as pa

import emberlog
from emberlog.components.program import KernelProgram
from emberlog.data.load import fact_table
from emberlog.diagnostics import LimitError
from emberlog.kernels import evaluate as module
from emberlog.kernels.choices import Choices, Evaluated
from emberlog.kernels.watch import Failed, Unsuited, Watch
from emberlog.types import Column, Type, Value
from naive.values import Row
from strategies import Case, difference

WAYS = {
    "loops": Choices(storage="loops"),
    "loops, three workers": Choices(storage="loops", workers=3),
    "rows": Choices(storage="rows"),
    "rows, four workers": Choices(storage="rows", workers=4),
    "whole": Choices(storage="loops", decompose=False),
    "whole, unordered": Choices(storage="loops", decompose=False, ordered=False),
    "whole, hashed": Choices(storage="hash", decompose=False),
    "hashed": Choices(storage="hash"),
    "hashed, eight workers": Choices(storage="hash", workers=8),
    "exchange": Choices(storage="loops", decompose=False, exchange=True, workers=2),
    "exchange, five workers": Choices(storage="loops", decompose=False, exchange=True, workers=5, ordered=False),
    "exchange, hashed": Choices(storage="hash", decompose=False, exchange=True, workers=3),
    "columns": Choices(storage="columns"),
}
FEW = {name: WAYS[name] for name in ("whole", "hashed", "exchange, hashed", "columns")}


class Patient:
    """A watch that stops what goes on for ever."""

    most_rounds = 3000

    def __init__(self) -> None:
        self.made = 0

    def look(self, facts: int) -> None:
        if facts > 100_000:
            raise LimitError("too many facts")

    def rounds(self, deltas: list[int], facts: int) -> None:
        self.made += len(deltas)
        self.look(facts)
        if self.made > self.most_rounds:
            raise LimitError("too many rounds")

    def failed(self, code: int) -> None:
        if code == 2:
            raise LimitError("too many rounds")
        raise Failed

    def halting(self, halt: Callable[[], None]) -> AbstractContextManager[None]:
        return nullcontext()

    def halted(self) -> None:
        return


def rows_of(evaluated: Evaluated, name: str) -> list[Row]:
    columns = evaluated.encoder.program.signatures[name].columns
    batches = list(evaluated.batches(name))
    found = [row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]
    assert len(found) == evaluated.counts[name], f"{name} has {len(found)} rows, not {evaluated.counts[name]}"
    assert all(batch.num_columns == len(columns) for batch in batches)
    return found


@contextmanager
def in_every_way(ways: Mapping[str, Choices] = WAYS) -> Iterator[list[str]]:
    """Each component that is evaluated inside is evaluated in these ways too. Gives how the components were done."""
    done: list[str] = []
    real = module.evaluate

    def evaluate(
        program: KernelProgram,
        statics: Mapping[str, pa.Table],
        exits: Mapping[str, pa.Table],
        watch: Watch,
        choices: Choices,
        *more: Any,
    ) -> Evaluated:
        base = real(program, statics, exits, watch, replace(choices, keep=None), *more)
        done.append(base.how)
        # An iteration ends within a bound of the fixpoint, in each way at another place.
        for way, other in ways.items() if program.mode == "delta" else ():
            try:
                found = real(program, statics, exits, Patient(), other, *more)
            except (Failed, Unsuited):
                continue  # values that are replaced later may be looked at in one order and not in another
            for table in program.tables:
                if table.name not in found.counts:
                    continue  # a stratum above, with which only loops by pivots go on
                told = difference(rows_of(found, table.name), rows_of(base, table.name))
                assert not told, f"{table.name}, {way} ({found.how}) against {base.how}: {told}"
        return base

    with mock.patch.object(module, "evaluate", evaluate):
        yield done


def by_kernels(case: Case, workers: int = 1, **options: Any) -> Mapping[str, Iterable[Row]]:
    """The rows of the derived predicates of a case."""
    with emberlog.Engine(executor="local", workers=workers) as engine:
        for name, rows in case.facts.items():
            columns = tuple(Column(f"c{i}", Type(kind)) for i, kind in enumerate(case.columns[name]))  # type: ignore[arg-type]
            engine.register(name, fact_table(columns, cast("list[tuple[Value, ...]]", rows)))
        result = engine.run(case.program, cast("Mapping[str, Value]", case.params), evaluator="kernel", **options)
        return {name: result[name].rows() for name in case.derived}


Runner = Callable[[Case], Mapping[str, Iterable[Row]]]
