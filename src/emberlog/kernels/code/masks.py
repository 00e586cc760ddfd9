"""Fixpoints of many pivots at once: a slot has a bit for each of some hundred pivots.

Where rules do nothing with the pivot but hand it on, all pivots that reach a slot together leave it together: one step
along an edge is one step for all of them. A slot keeps the pivots that have reached it and those that wait to go on.
"""

from __future__ import annotations

from emberlog.components.layout import TableLayout
from emberlog.kernels.code.loops import Loops
from emberlog.kernels.code.source import KNOWN, QUEUED

WORDS = 8  # of 64 pivots


class Masks(Loops):
    """Writes the loops. `block` pivots from `first` on are evaluated together in one call."""

    def declare(self, layout: TableLayout) -> None:
        t = self.tables[layout.table.name]
        for name in ("mask", "wait"):
            self.use(f"{t}_{name}", "uint64", 2)
        self.use(f"{t}_seen", "uint8")
        for name in ("log", "q", "r"):
            self.use(f"{t}_{name}", "uint32")

    def load(self) -> None:
        for t in self.tables.values():
            self.out.line(f"{t}_count, {t}_next = 0, 0")
        self.out.line("fail, work, rounds = 0, 0, 0")

    def save(self) -> None:
        base = 3 * len(self.tables)
        for i, t in enumerate(self.tables.values()):
            self.out.line(f"counts[{3 * i}] = {t}_count")
        self.out.line(f"counts[{base}], counts[{base + 1}], counts[{base + 2}] = fail, work, rounds")
        self.out.line(f"return ({''.join(f'{name}, ' for name in self.returned())})")

    def each_pivot(self) -> None:
        out = self.out
        first, last = self.use("first", "int64", 0), self.use("last", "int64", 0)
        for layout in self.layouts.values():
            t, rows = self.tables[layout.table.name], self.use(f"{self.tables[layout.table.name]}_eo", "int64")
            with out.block(f"for pivot in range({first}, {last}):"):
                out.line(f"word, bit = (pivot - {first}) >> 6, np.uint64(1) << np.uint64((pivot - {first}) & 63)")
                with out.block(f"for r in range({rows}[pivot], {rows}[pivot + 1]):"):
                    keys = [f"{self.use(f'{t}_e{key}', 'uint32')}[r]" for key in layout.keys]
                    out.line(f"s = {self.dense_slot(t, keys)}")
                    with out.block(f"if {t}_mask[s, word] & bit == 0:"):
                        out.line(f"{t}_mask[s, word] |= bit")
                        out.line(f"{t}_wait[s, word] |= bit")
                        self.queue(layout, t, "s")
        out.line(f"waiting = {' + '.join(f'{t}_next' for t in self.tables.values())}")
        most, budget = self.use("most", "int64", 0), self.use("budget", "int64", 0)
        with out.block(f"while waiting > 0 and rounds <= {most} and work <= {budget} and fail == 0:"):
            for layout in self.layouts.values():
                self.take_round(layout)
            out.line("rounds += 1")
            out.line(f"waiting = {' + '.join(f'{t}_next' for t in self.tables.values())}")
        with out.block(f"if waiting > 0 and work <= {budget} and fail == 0:"):
            out.line("fail = 2")

    def take_round(self, layout: TableLayout) -> None:
        t, out = self.tables[layout.table.name], self.out
        out.line(f"high, {t}_next = {t}_next, 0")
        out.line(f"{t}_q, {t}_r = {t}_r, {t}_q")
        with out.block("for q in range(high):"):
            self.heed_halt()
            out.line(f"s = {t}_q[np.uint64(q)]")
            with out.block(f"if {t}_seen[s] & {QUEUED} == 0:"):
                out.line("continue")
            out.line(f"{t}_seen[s] = np.uint8({KNOWN})")
            for word in range(WORDS):
                out.line(f"m{word} = {t}_wait[s, {word}]")
            for word in range(WORDS):
                out.line(f"{t}_wait[s, {word}] = np.uint64(0)")
            columns = self.columns(layout, "s")
            for nest in self.nests:
                if nest.table == layout.table.name:
                    env = {name: columns[position] for position, name in nest.binds if position in columns}
                    self.nest(nest, env)

    def put(self, layout: TableLayout, keys: list[str], value: str | None) -> None:
        t, out, slot = self.tables[layout.table.name], self.out, self.out.fresh("s")
        out.line(f"{slot} = {self.dense_slot(t, keys)}")
        for word in range(WORDS):
            out.line(f"n{word} = m{word} & ~{t}_mask[{slot}, {word}]")
        with out.block(f"if ({' | '.join(f'n{word}' for word in range(WORDS))}) != 0:"):
            for word in range(WORDS):
                out.line(f"{t}_mask[{slot}, {word}] |= n{word}")
            for word in range(WORDS):
                out.line(f"{t}_wait[{slot}, {word}] |= n{word}")
            self.queue(layout, t, slot)
