"""Evaluates one component by the ordinary engine, over relations that are given: what views do where they cannot do
better."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from emberlog.analysis.program import CheckedProgram, Component, Signature
from emberlog.choose.strata import Setting, choose
from emberlog.compiled import Compiled
from emberlog.data.arrow import array_of, arrow_schema, nullary_table, rows
from emberlog.data.sources import ArrowSource, Source
from emberlog.executors.base import Executor, Options
from emberlog.executors.local import LocalExecutor
from emberlog.maintain.functions import canonical
from emberlog.maintain.store import Row
from emberlog.plan.compiler import plan_program
from emberlog.relation import Relation
from emberlog.result import LiveRun, RunHolder
from emberlog.syntax.nodes import Program
from emberlog.types import Column


@dataclass(frozen=True)
class Ordinary:
    """How the engine of a view evaluates: its options for one run, its setting, and where scratch files go."""

    options: Callable[[], Options]
    setting: Setting
    scratch: Callable[[], Path | None]

    def evaluate(
        self, checked: CheckedProgram, component: Component, given: Mapping[str, Collection[Row] | pa.Table]
    ) -> dict[str, set[Row]]:
        """The rows of a component's predicates. `given` has the rows of all that it reads, and those that its own
        predicates have from outside."""
        columns = {name: checked.signatures[name].columns for name in given}
        sources: dict[str, Source] = {
            name: ArrowSource(found if isinstance(found, pa.Table) else table(columns[name], found))
            for name, found in given.items()
        }
        with self.run(checked, component, sources, self._locally) as live:
            return {name: _rows(live, checked.signatures[name]) for name in component.predicates}

    def _locally(self, compiled: Compiled, scratch: Path) -> Executor:
        return LocalExecutor(compiled, self.options(), scratch)

    @contextmanager
    def run(
        self,
        checked: CheckedProgram,
        component: Component,
        given: Mapping[str, Source],
        executor: Callable[[Compiled, Path], Executor],
    ) -> Iterator[LiveRun]:
        """A run of one component, whose relations can be read inside. `executor` makes what evaluates it."""
        own = frozenset(component.predicates)
        signatures = {
            name: signature if name in own else replace(signature, external=True, aggregates={}, domains={})
            for name, signature in checked.signatures.items()
        }
        facts = {name: found for name, found in checked.facts.items() if name in own}
        part = replace(checked, signatures=signatures, facts=facts, components=(component,), directives=(), goals=())
        plan = plan_program(part, own)
        choices = choose(plan, replace(self.setting, asked=own, rows=own))
        compiled = Compiled(Program(()), part, plan, choices, (), own)
        scratch = Path(tempfile.mkdtemp(prefix="emberlog-", dir=self.scratch()))
        live = LiveRun(executor(compiled, scratch), scratch)
        try:
            live.executor.run(given)
            yield live
        finally:
            live.close()


def _rows(live: LiveRun, signature: Signature) -> set[Row]:
    return canonical_rows(Relation(signature.name, signature.columns, RunHolder(live, signature.name)).to_arrow())


def canonical_rows(found: pa.Table) -> set[Row]:
    """The rows of a table as tuples of Python's values, which are equal where the language says so; NaN equals NaN."""
    return set(canonical_list(found))


def canonical_list(found: pa.Table) -> list[Row]:
    """The rows of a table in their order, as `canonical_rows` has them."""
    if any(pa.types.is_floating(kind) for kind in found.schema.types):
        return [tuple(map(canonical, row)) for row in rows(found)]
    return rows(found)


def table(columns: Collection[Column], found: Iterable[Row]) -> pa.Table:
    """Rows as a table of Arrow with the columns `c0`, `c1`, .."""
    listed = list(found)
    if not columns:
        return nullary_table(bool(listed))
    schema = arrow_schema(tuple(columns))
    arrays = [array_of([row[i] for row in listed], field.type) for i, field in enumerate(schema)]
    return pa.Table.from_arrays(arrays, schema=schema)
