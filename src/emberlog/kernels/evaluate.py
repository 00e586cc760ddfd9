"""Who evaluates a component: the interpreter while it is small, compiled loops from then on.

Loops have to be compiled, or at least loaded, with the compiler: until that would have been done, much is done over
columns. What turns out to be more begins again with loops. Nothing here imports the compiler before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from emberlog.choose.ways import Inputs, interprets
from emberlog.components.program import End, KernelProgram
from emberlog.components.shares import WorkerPlan, plan_workers, small_statics
from emberlog.kernels import cache
from emberlog.kernels.choices import Choices, Evaluated
from emberlog.kernels.columns.rounds import Budget, interpret
from emberlog.kernels.parts.evaluate import evaluate_by_workers
from emberlog.kernels.watch import Overworked, Unsuited, Watch
from emberlog.stats import Event
from emberlog.thresholds import BINDING_BYTES, MOST_BINDINGS, NO_SECONDS, SMALL_BINDINGS, SMALL_SECONDS

# How long the interpreter has worked on each program so far. What was long enough, in one run or in many, is worth
# compiled loops the next time.
_SPENT: dict[int, float] = {}


def evaluate(
    program: KernelProgram,
    statics: Mapping[str, pa.Table],
    exits: Mapping[str, pa.Table],
    watch: Watch,
    choices: Choices = Choices(),  # noqa: B008 - frozen
    starts: Mapping[str, pa.Table] | None = None,
    end: End | None = None,
    again: Callable[[], None] = lambda: None,
) -> Evaluated:
    """The fixpoint, or the end of the iteration from `starts` whose rounds have the contributions `exits` each.

    Raises `Unsuited` or `Failed` where the relational evaluator has to do it. `again` is called when what the watch was
    told so far is void, because the evaluation begins again. What is small is evaluated without the strata above it.
    """
    alone = program.alone  # only loops go on with strata above
    read = {static.name: statics[static.name] for static in alone.statics}
    if choices.coordination is not None:
        small = small_statics({name: table.num_rows for name, table in read.items()})
        plan = plan_workers(alone, choices.partition, small)
        if isinstance(plan, WorkerPlan):
            try:
                return evaluate_by_workers(plan, read, exits, watch, choices, starts, end)
            except Overworked as error:
                raise Unsuited(str(error)) from None
    if choices.storage == "columns":
        try:
            room = MOST_BINDINGS if choices.budget is None else choices.budget.left() // BINDING_BYTES
            return interpret(alone, read, exits, watch, Budget(min(MOST_BINDINGS, max(room, SMALL_BINDINGS))))
        except Overworked as error:
            raise Unsuited(str(error)) from None
    stopped, key = list[Event](), hash((alone.tables, alone.rules))
    if cache.INTERPRETS and interprets(alone, choices, _inputs(read, exits, choices)) and _is_short(key):
        budget = Budget(SMALL_BINDINGS, SMALL_SECONDS)
        try:
            return interpret(alone, read, exits, watch, budget)
        except Overworked as error:
            _SPENT[key] = SMALL_SECONDS
            again()
            stopped.append(Event("compiled loops", f"the interpreter stopped: {error}"))
        finally:
            spent = budget.spent(NO_SECONDS)
            _SPENT[key] = _SPENT.get(key, 0.0) + (spent if spent > NO_SECONDS else 0.0)
    from emberlog.kernels import native

    found = native.evaluate(program, statics, exits, watch, choices, starts, end)
    found.events[:0] = stopped
    return found


def _inputs(statics: Mapping[str, pa.Table], exits: Mapping[str, pa.Table], choices: Choices) -> Inputs:
    rows = {name: table.num_rows for name, table in (*statics.items(), *exits.items())}
    return Inputs(rows, room=None if choices.budget is None else choices.budget.total)


def _is_short(key: int) -> bool:
    """True if the interpreter has not worked on this program for long so far."""
    return _SPENT.get(key, 0.0) < SMALL_SECONDS
