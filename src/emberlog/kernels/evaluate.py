"""Who evaluates a component: the interpreter while it is small, compiled loops from then on.

Loops have to be compiled, or at least loaded, with the compiler: until that would have been done, much is done over
columns. What turns out to be more begins again with loops. Nothing here imports the compiler before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import thread_time

import pyarrow as pa

from emberlog.kernels.choices import Choices, Evaluated, interprets
from emberlog.kernels.columns.rounds import Budget, interpret
from emberlog.kernels.program import End, KernelProgram
from emberlog.kernels.watch import Overworked, Unsuited, Watch

SMALL_ROWS = 50_000  # of input
SMALL_BINDINGS = 2_000_000
MOST_BINDINGS = 100_000_000  # where the interpreter was asked for
BINDING = 100  # bytes that one takes, about
SHORT = 0.25  # seconds: about what it takes to load the compiler
NOTHING = 0.02  # seconds: loops would take as long

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
    told so far is void, because the evaluation begins again.
    """
    if choices.storage == "columns":
        try:
            room = MOST_BINDINGS if choices.budget is None else choices.budget.left() // BINDING
            return interpret(program, statics, exits, watch, Budget(min(MOST_BINDINGS, max(room, SMALL_BINDINGS))))
        except Overworked as error:
            raise Unsuited(str(error)) from None
    why, key = "", hash((program.tables, program.rules))
    rows = sum(table.num_rows for table in (*statics.values(), *exits.values()))
    if interprets(program, choices) and rows <= SMALL_ROWS and _SPENT.get(key, 0.0) < SHORT:
        started = thread_time()  # of the processor: a busy machine makes no program larger
        try:
            return interpret(program, statics, exits, watch, Budget(SMALL_BINDINGS, started + SHORT))
        except Overworked as error:
            _SPENT[key] = SHORT
            again()
            why = f", after the interpreter stopped: {error}"
        finally:
            spent = thread_time() - started
            _SPENT[key] = _SPENT.get(key, 0.0) + (spent if spent > NOTHING else 0.0)
    from emberlog.kernels import native

    found = native.evaluate(program, statics, exits, watch, choices, starts, end)
    found.how += why
    return found
