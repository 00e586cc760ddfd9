"""Rounds by several threads over the same tables.

A scan takes up some of the facts whose turn it is, while others take up theirs. All write to the same tables, without
locks: a value may be overwritten by a worse one, which another thread compared a moment before. So a scan notes all
that it wrote, and between rounds one thread puts back what was lost and finds out which groups wait (`shared`). Numbers
are written whole, so nothing else can go wrong.
"""

from __future__ import annotations

from collections.abc import Mapping

from emberlog.kernels.code.buckets import LOWEST
from emberlog.kernels.code.loops import Loops
from emberlog.kernels.code.source import KNOWN
from emberlog.kernels.layout import TableLayout
from emberlog.kernels.linear import is_linear
from emberlog.kernels.program import Id, KernelProgram


def is_scannable(program: KernelProgram, layouts: Mapping[str, TableLayout]) -> bool:
    """Do the rules look up no facts of each other, in dense tables in which a fact may be found twice?"""
    apt = all(layout.storage == "dense" and layout.table.fold != "sum" for layout in layouts.values())
    return apt and program.mode == "delta" and is_linear(program)


class Scans(Loops):
    """Writes a scan: of each table the facts from `low` up to `high` of `front`."""

    def declare(self, layout: TableLayout) -> None:
        t = self.tables[layout.table.name]
        self.use(f"{t}_seen", "uint8")
        self.use(f"{t}_front", "uint32")
        self.use(f"{t}_os", "uint32")  # the slots that were written
        for name in ("low", "high"):
            self.use(f"{t}_{name}", "int64", 0)
        if layout.table.fold != "set":
            self.use(f"{t}_val", layout.dtype)
            self.use(f"{t}_done", layout.dtype)  # the value with which a group was taken up last
            self.use(f"{t}_ov", layout.dtype)  # the values that were written
            self.use(f"{t}_worst", layout.dtype, 0)

    def load(self) -> None:
        for i, t in enumerate(self.tables.values()):
            self.out.line(f"{t}_n = counts[{3 * i + 2}]")
        self.out.line("fail, work = 0, 0")

    def save(self) -> None:
        for i, t in enumerate(self.tables.values()):
            self.out.line(f"counts[{3 * i + 2}] = {t}_n")
        base = 3 * len(self.tables)
        self.out.line(f"counts[{base}], counts[{base + 1}] = fail, work")
        self.out.line(f"return ({''.join(f'{name}, ' for name in self.returned())})")

    def rounds(self) -> None:
        for layout in self.layouts.values():
            t = self.tables[layout.table.name]
            with self.out.block(f"for q in range({t}_low, {t}_high):"):
                self.out.line(f"s = {t}_front[np.uint64(q)]")
                self.take(layout, "s")

    def take(self, layout: TableLayout, slot: str) -> None:
        t, out, value = self.tables[layout.table.name], self.out, ""
        if layout.table.fold != "set":
            value = f"{t}_now"
            out.line(f"{value} = {f'np.int64({t}_val[{slot}])' if layout.narrow else f'{t}_val[{slot}]'}")
            out.line(f"{t}_done[{slot}] = {value}")
            out.line(f"{t}_seen[{slot}] = np.uint8({KNOWN})")
        columns = self.columns(layout, slot)
        for nest in self.nests:
            if nest.table == layout.table.name:
                self.start(nest, layout, columns, value)

    def put(self, layout: TableLayout, keys: list[str], value: str | None) -> None:
        t, out, fold, slot = self.tables[layout.table.name], self.out, layout.table.fold, self.out.fresh("s")
        out.line(f"{slot} = {self.dense_slot(t, keys)}")
        if fold == "set":
            with out.block(f"if {t}_seen[{slot}] == 0:"):
                out.line(f"{t}_seen[{slot}] = np.uint8({KNOWN})")
                self.note(t, slot, None)
            return
        sign = "<" if fold == "min" else ">"
        with out.block(f"if {value} {sign} {t}_val[{slot}]:"):
            out.line(f"{t}_val[{slot}] = {value}")
            if layout.narrow:
                with out.block(f"if {value} < -{LOWEST} or {value} >= {LOWEST}:"):
                    out.line("fail = 1")
            self.note(t, slot, value)
        if not isinstance(layout.value_kind, Id):
            # The first value of each slot is the worst number: a value that is as bad, or not a number, is no value.
            with out.block(f"elif not ({value} {sign} {t}_worst):"):
                out.line("fail = 1")

    def note(self, t: str, slot: str, value: str | None) -> None:
        out = self.out
        with out.block(f"if {t}_n == {t}_os.size:"):
            out.line(f"{t}_os = grown({t}_os, 0)")
            if value is not None:
                out.line(f"{t}_ov = grown({t}_ov, {t}_worst)")
        out.line(f"{t}_os[np.uint64({t}_n)] = {slot}")
        if value is not None:
            out.line(f"{t}_ov[np.uint64({t}_n)] = {value}")
        out.line(f"{t}_n += 1")
