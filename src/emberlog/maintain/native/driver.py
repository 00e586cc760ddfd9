"""The text of the loop that takes a change from the rows of the inputs to all facts of a component.

It goes through phases, as `recursion.py` explains them: derivations that are lost make facts suspect (`LOSING`);
suspects find another support or fall (`RETRACTING`); what fell is derived again from what is left (`DERIVING`); what
the change makes true is derived (`GAINING`), and all that follows (`SPREADING`). It begins with `STARTING` where there
are no facts yet. A sequence of changes is edited and committed by the loop itself (`EDITING`, `COMMITTING`).

The loop can be left at any item, for lack of room or to look at the time, and be called again: an item is done anew,
which changes nothing if it was done already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from emberlog.kernels.code.source import Array, Source, Writer
from emberlog.kernels.upkeep import layout
from emberlog.kernels.upkeep.layout import NEW, OLD
from emberlog.maintain.native.nests import Arguments, NestText
from emberlog.maintain.native.shapes import Shape

HEADER = """import numpy as np
from emberlog.kernels.runtime import remainder, truncated
from emberlog.kernels.upkeep.facts import TABLES, fall, offer, order_of, pop, push, support, suspect
from emberlog.kernels.upkeep.indexes import block_of, find_row
from emberlog.kernels.upkeep.inner import inner
from emberlog.kernels.upkeep.layout import AT, COUNT, EDIT, FAIL, FALLEN, HEAPED, LIMIT, LOGGED, MODE, NO_ROOM, PHASE
from emberlog.kernels.upkeep.layout import STAGE, STOP, TOP, TOUCHED, USED, WORK
from emberlog.kernels.upkeep.tables import add_row, commit, has_any, remove_row
"""


@dataclass(frozen=True)
class Change:
    """A nest that starts from changed rows of an input. A negated atom turns with the first and last rows of a key:
    `key` is its index where it has fewer columns than the relation."""

    source: Shape
    negated: bool
    key: str | None
    nest: NestText


@dataclass(frozen=True)
class Texts:
    """The functions of a component: of its exits, the changes of inputs, facts that are new or fall, and heads."""

    shapes: Sequence[Shape]
    constants: Sequence[NestText]  # exits that read nothing
    exits: Sequence[Change]
    changes: Sequence[Change]
    follow: Sequence[tuple[Shape, NestText]]
    searches: Sequence[NestText]
    arguments: Arguments

    @property
    def nests(self) -> Iterator[NestText]:
        """All functions, each once."""
        found = (
            *self.constants,
            *(change.nest for change in (*self.exits, *self.changes)),
            *(n for _, n in self.follow),
        )
        yield from {nest.name: nest for nest in (*found, *self.searches)}.values()


def source_of(texts: Texts) -> Source:
    """The text of a component, and the arguments of its function `run`."""
    tables = [
        Array(f"t{shape.number}_{part}", dtype, dimensions)
        for shape in texts.shapes
        for part, dtype, dimensions in (
            ("rows", "int64", 2),
            ("arena", "int32", 1),
            ("log", "int64", 2),
            ("meta", "int64", 1),
        )
    ]
    arguments = (
        Array("control", "int64"),
        Array("buffer", "int64", 2),
        Array("probe", "int64", 2),
        Array("heap", "int64", 2),
        Array("fallen", "int64"),
        Array("edits", "int64", 2),
        Array("marks", "int64", 2),
        *tables,
        *(Array(name, "int64", 0) for name in texts.arguments.indexes.values()),
        *(Array(name, texts.arguments.dtype(type_), 0) for (type_, _), name in texts.arguments.constants.items()),
    )
    writer = _Driver(texts)
    writer.write()
    head = f"def run({', '.join(array.name for array in arguments)}):"
    functions = [nest.text for nest in texts.nests]
    text = "\n\n\n".join([HEADER, *functions, "\n".join([head, *writer.out.lines])])
    return Source(text, arguments, (), ())


class _Driver:
    """Writes the function `run`."""

    def __init__(self, texts: Texts) -> None:
        self._of = texts
        self.out = Writer()

    def write(self) -> None:
        out = self.out
        for shape in self._of.shapes:
            t = f"t{shape.number}"
            out.line(f"{t} = ({t}_rows, {t}_arena, {t}_log, {t}_meta)")
        with out.block("while True:"):
            self._phase(layout.STARTING, self._start, layout.SPREADING)
            with out.block(f"if control[PHASE] == {layout.EDITING}:"):
                self._edit()
            self._phase(layout.LOSING, self._lose, layout.RETRACTING)
            self._phase(layout.RETRACTING, self._retract, layout.DERIVING)
            self._phase(layout.DERIVING, self._derive, layout.GAINING)
            self._phase(layout.GAINING, self._gain, layout.SPREADING)
            self._phase(layout.SPREADING, self._spread, layout.COMMITTING)
            with out.block(f"if control[MODE] == {layout.ONE_CHANGE}:"):
                out.line(f"return {layout.DONE}")
            for shape in self._of.shapes:
                out.line(f"commit(t{shape.number})")
            out.line(f"control[PHASE] = {layout.EDITING}")

    def _phase(self, phase: int, body: object, following: int) -> None:
        assert callable(body)
        with self.out.block(f"if control[PHASE] == {phase}:"):
            body()
            self.out.line(f"control[PHASE] = {following}")
            self.out.line("control[STAGE] = 0")
            self.out.line("control[AT] = 0")

    def _return_failure(self, *before: str) -> None:
        """Ends the run if the last nest failed, after some lines."""
        with self.out.block("if control[FAIL]:"):
            for line in before:
                self.out.line(line)
            self.out.line("return control[FAIL]")

    def _return_code(self, *before: str) -> None:
        with self.out.block("if code:"):
            for line in before:
                self.out.line(line)
            self.out.line("return code")

    def _pause(self) -> None:
        self.out.line("control[WORK] -= 1")
        with self.out.block("if control[WORK] < 0:"):
            self.out.line(f"return {layout.PAUSE}")

    # --- rows of inputs ------------------------------------------------------------------------------------------

    def _edit(self) -> None:
        """Takes the rows of the next change into the tables."""
        out = self.out
        with out.block("if control[EDIT] == control[STOP]:"):
            out.line(f"return {layout.DONE}")
        out.line("step = marks[control[EDIT], 0]")
        with out.block("while control[EDIT] < control[STOP] and marks[control[EDIT], 0] == step:"):
            out.line("at = control[EDIT]")
            out.line("code = 0")
            for shape in self._of.shapes:
                if shape.inside:
                    continue
                t = f"t{shape.number}"
                with out.block(f"if marks[at, 1] == {shape.number}:"):
                    out.line(f"code = add_row({t}, edits, at) if marks[at, 2] > 0 else remove_row({t}, edits, at)")
            with out.block("if code < 0:"):
                out.line("return NO_ROOM + marks[at, 1]")
            out.line("control[EDIT] += 1")
        inside = [f"t{shape.number}_meta[COUNT]" for shape in self._of.shapes if shape.inside]
        out.line(f"control[LIMIT] = control[TOP] + 1 + {' + '.join(inside)}")
        out.line("control[FALLEN] = 0")
        out.line(f"control[PHASE] = {layout.LOSING}")

    def _over_log(self, stage: int, change: Change, gained: bool) -> None:
        """Runs a nest for the rows that the change made true or false."""
        out, t, width = self.out, f"t{change.source.number}", change.source.width
        comes = gained is not change.negated
        wanted, mask = (NEW if comes else OLD), (NEW if gained else OLD)
        with out.block(f"if control[STAGE] == {stage}:"):
            with out.block(f"while control[AT] < {t}_meta[LOGGED]:"):
                out.line(f"slot = {t}_log[control[AT], 0]")
                first = f"({t}_rows[slot, {width}] & {NEW | OLD}) == {wanted}"
                if change.key is not None:
                    first += f" and not has_any({t}, {change.key}, {t}_rows, slot, {OLD if comes else NEW})"
                with out.block(f"if {first}:"):
                    self._run(change, str(mask))
                    self._take(change.nest.head, gained)
                out.line("control[AT] += 1")
                self._pause()
            out.line(f"control[STAGE] = {stage + 1}")
            out.line("control[AT] = 0")

    def _run(self, change: Change, mask: str) -> None:
        """Fills the buffer with what follows from the row at `slot`."""
        row = f"t{change.source.number}_rows[slot, {{}}]"
        self.out.line(f"n = {change.nest.call(row, change.source.kinds, mask)}")
        self._return_failure()

    def _take(self, head: Shape, gained: bool, *before: str) -> None:
        """Hands what the buffer has to the facts of a head; ends the run if they have no room, after some lines."""
        t = f"t{head.number}"
        if gained:
            call = f"offer(control, heap, buffer, n, {t}, {head.number}, {head.fold}, {head.value or 0})"
        else:
            call = f"suspect(control, heap, buffer, n, {t}, {head.number})"
        self.out.line(f"code = {call}")
        self._return_code(*before)

    def _lose(self) -> None:
        for stage, change in enumerate(self._of.changes):
            self._over_log(stage, change, gained=False)

    def _gain(self) -> None:
        for stage, change in enumerate(self._of.changes):
            self._over_log(stage, change, gained=True)

    def _start(self) -> None:
        out = self.out
        for nest in self._of.constants:
            with out.block("if control[STAGE] == 0:"):
                out.line(f"n = {nest.call('', (), str(NEW))}")
                self._return_failure()
                self._take(nest.head, True)
        out.line("control[STAGE] = max(control[STAGE], 1)")
        for stage, change in enumerate(self._of.exits, 1):
            t, width = f"t{change.source.number}", change.source.width
            with out.block(f"if control[STAGE] == {stage}:"):
                with out.block(f"while control[AT] < {t}_meta[USED]:"):
                    out.line("slot = control[AT]")
                    with out.block(f"if {t}_rows[slot, {width}] & {NEW}:"):
                        self._run(change, str(NEW))
                        self._take(change.nest.head, True)
                    out.line("control[AT] += 1")
                    self._pause()
                out.line(f"control[STAGE] = {stage + 1}")
                out.line("control[AT] = 0")

    # --- facts ---------------------------------------------------------------------------------------------------

    def _retract(self) -> None:
        """Suspects find another support, of facts below their rank, or fall."""
        out = self.out
        with out.block("while control[HEAPED] > 0:"):
            out.line("first, second, item = pop(control, heap)")
            out.line("slot, number = item >> TABLES, item & ((1 << TABLES) - 1)")
            back = "push(control, heap, first, second, item)"
            for shape in self._inside():
                with out.block(f"if number == {shape.number} and t{shape.number}_rows[slot, {shape.width}] & {NEW}:"):
                    self._look_at(shape, back)
            self._pause()

    def _look_at(self, shape: Shape, back: str) -> None:
        out, t = self.out, f"t{shape.number}"
        row = f"{t}_rows[slot, {{}}]"
        rank = row.format(shape.width + layout.RANK)
        value = "0" if shape.value is None else row.format(shape.value)
        out.line("n = 0")
        for search in self._searches(shape):
            with out.block("if n == 0:"):
                out.line(f"n = {search.call(row, shape.kinds, str(NEW), rank, value)}")
                self._return_failure(back)
        with out.block("if n:"):
            out.line(f"code = support(buffer, {t}, slot, {shape.number})")
            self._return_code(back)
        with out.block("else:"):
            for nest in self._follow(shape):
                out.line(f"n = {nest.call(row, shape.kinds, str(NEW), rank)}")
                self._return_failure(back)
                self._take(nest.head, False, back)
            out.line(f"code = fall(control, fallen, {t}, slot, {shape.number})")
            self._return_code(back)
        out.line("control[TOUCHED] += 1")

    def _derive(self) -> None:
        """What fell is derived again, if it can be, from what is left."""
        out = self.out
        with out.block("while control[AT] < control[FALLEN]:"):
            out.line("item = fallen[control[AT]]")
            out.line("slot, number = item >> TABLES, item & ((1 << TABLES) - 1)")
            for shape in self._inside():
                row = f"t{shape.number}_rows[slot, {{}}]"
                with out.block(f"if number == {shape.number}:"):
                    for search in self._searches(shape):
                        out.line(f"n = {search.call(row, shape.kinds, str(NEW), '-1', '0')}")
                        self._return_failure()
                        self._take(shape, True)
            out.line("control[AT] += 1")
            self._pause()

    def _spread(self) -> None:
        """Takes up facts that wait until nothing follows any more."""
        out = self.out
        with out.block("while control[HEAPED] > 0:"):
            out.line("first, second, item = pop(control, heap)")
            out.line("slot, number = item >> TABLES, item & ((1 << TABLES) - 1)")
            for shape in self._inside():
                t, width = f"t{shape.number}", shape.width
                row = f"{t}_rows[slot, {{}}]"
                rank = row.format(width + layout.RANK)
                with out.block(f"if number == {shape.number} and {t}_rows[slot, {width}] & {layout.WAITING}:"):
                    # Now, as what follows from the fact may be the fact itself.
                    out.line(f"{t}_rows[slot, {width}] &= ~{layout.WAITING}")
                    back = (f"{t}_rows[slot, {width}] |= {layout.WAITING}", "push(control, heap, first, second, item)")
                    for nest in self._follow(shape):
                        out.line(f"n = {nest.call(row, shape.kinds, str(NEW), rank)}")
                        self._return_failure(*back)
                        self._take(nest.head, True, *back)
                    out.line("control[TOUCHED] += 1")
            self._pause()

    def _inside(self) -> list[Shape]:
        return [shape for shape in self._of.shapes if shape.inside]

    def _searches(self, shape: Shape) -> list[NestText]:
        return [nest for nest in self._of.searches if nest.head is shape]

    def _follow(self, shape: Shape) -> list[NestText]:
        return [nest for source, nest in self._of.follow if source is shape]
