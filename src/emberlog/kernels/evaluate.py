"""Who evaluates a component: the interpreter while it is small, compiled loops from then on.

Loops have to be compiled, or at least loaded, with the compiler: until that would have been done, much is done over
columns. What turns out to be more begins again with loops. Nothing here imports the compiler before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic

import pyarrow as pa

from emberlog.kernels import cache
from emberlog.kernels.choices import Choices, Evaluated
from emberlog.kernels.columns.rounds import Budget, interpret
from emberlog.kernels.memory import bytes_of
from emberlog.kernels.program import End, KernelProgram
from emberlog.kernels.watch import Overworked, Watch

SMALL_ROWS = 5_000  # of input
SMALL_BINDINGS = 2_000_000
SHORT = 0.3  # seconds
ROOM = 1 << 28  # bytes: what so many bindings may take


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
        return interpret(program, statics, exits, watch)
    why = ""
    if is_small(program, choices, sum(table.num_rows for table in (*statics.values(), *exits.values()))):
        try:
            return interpret(program, statics, exits, watch, Budget(SMALL_BINDINGS, monotonic() + SHORT))
        except Overworked as error:
            again()
            why = f"; not interpreted: {error}"
    from emberlog.kernels import native

    found = native.evaluate(program, statics, exits, watch, choices, starts, end)
    found.how += why
    return found


def is_small(program: KernelProgram, choices: Choices, rows: int) -> bool:
    """Is this work for the interpreter to begin with? It is not where somebody chose a way of the loops."""
    free = choices.storage == "auto" and choices.decompose and not choices.exchange and choices.partition is None
    if not (cache.INTERPRETS and free and program.mode == "delta" and rows <= SMALL_ROWS):
        return False
    return choices.memory is None or bytes_of(choices.memory) >= ROOM
