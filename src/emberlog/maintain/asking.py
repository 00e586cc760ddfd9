"""Questions about the rows of a view: why one holds, and why another one does not, as for a finished run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from emberlog.choose.strata import choose
from emberlog.compiled import Compiled
from emberlog.data.arrow import empty_table
from emberlog.data.load import dummy_table, fact_table
from emberlog.executors.local import LocalExecutor
from emberlog.maintain.ordinary import Ordinary, table
from emberlog.maintain.program import ViewProgram
from emberlog.maintain.state import State
from emberlog.plan.compiler import plan_program
from emberlog.plan.names import given_part
from emberlog.result import LiveRun
from emberlog.syntax.nodes import Program

if TYPE_CHECKING:
    from emberlog.why.ask import Asking


def asking(ordinary: Ordinary, state: State) -> Asking:
    """What answers questions about the relations of a view as they are now. Nothing is evaluated: an executor gets the
    rows as if it had computed them."""
    from emberlog.why.ask import Asking

    program = state.program
    plan = plan_program(program.checked, program.wanted)
    choices = choose(plan, ordinary.setting)
    compiled = Compiled(Program(()), program.checked, plan, choices, (), program.wanted)
    scratch = Path(tempfile.mkdtemp(prefix="emberlog-", dir=ordinary.scratch()))
    executor = LocalExecutor(compiled, ordinary.options(), scratch)
    live = LiveRun(executor, scratch)
    for name in program.checked.signatures:
        executor.store.put(name, _rows(state, name))
        if given_part(name) in program.signatures or program.checked.facts.get(name):
            executor.store.put(given_part(name), _given_rows(state, program, name))
    return Asking(live)


def _rows(state: State, name: str) -> pa.Table:
    columns, rows = state.program.signatures[name].columns, state.relations[name].rows
    return table(columns, rows) if columns else dummy_table(bool(rows))


def _given_rows(state: State, program: ViewProgram, name: str) -> pa.Table:
    """The rows that a predicate has from outside, and its facts."""
    columns, facts = program.signatures[name].columns, program.checked.facts.get(name, ())
    given = program.inputs.get(name)
    if not columns:
        return dummy_table(bool(facts) or (given is not None and bool(state.relations[given].rows)))
    rows = empty_table(columns) if given is None else table(columns, state.relations[given].rows)
    return pa.concat_tables([rows, fact_table(columns, facts)]) if facts else rows
