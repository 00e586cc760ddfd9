"""Fixpoints of many pivots at once: a slot has a bit for each of some hundred pivots.

Where rules do nothing with the pivot but hand it on, all pivots that reach a slot together leave it together: one step
along an edge is one step for all of them. A slot keeps the pivots that have reached it and those that wait to go on.

A round is a sweep over the slots, up and down in turns, which takes along what it finds in front of itself: where most
steps lead to larger ids, as in an order along the edges (`kernels/orders.py`), pivots arrive at a slot before it is
taken up, and one sweep does nearly all. Slots that wait are bits, with a bit for each word of them that has some.

Rules above go through the slots of finished tables, with all pivots that a slot has. A fact that they look up, or that
must not be there, leaves those pivots that have it, or have not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from emberlog.components.layout import TableLayout
from emberlog.components.nests import Walk
from emberlog.kernels.code.loops import COUNTS, Loops
from emberlog.kernels.code.source import KNOWN, QUEUED

WORDS = 8  # of 64 pivots


class Masks(Loops):
    """Writes the loops. `block` pivots from `first` on are evaluated together in one call. `bits` are the names of the
    words that have the pivots at hand."""

    bits = tuple(f"m{word}" for word in range(WORDS))

    def declare(self, layout: TableLayout) -> None:
        t = self.tables[layout.table.name]
        for name in ("mask", "wait"):
            self.use(f"{t}_{name}", "uint64", 2)
        self.use(f"{t}_seen", "uint8")
        for name in ("b", "w"):
            self.use(f"{t}_{name}", "uint64")
        self.use(f"{t}_log", "uint32")

    def load(self) -> None:
        for t in self.tables.values():
            self.out.line(f"{t}_count = 0")
        self.out.line("fail, work, rounds, waiting, down = 0, 0, 0, 0, True")

    def save(self) -> None:
        base = 3 * len(self.tables)
        for i, t in enumerate(self.tables.values()):
            self.out.line(f"counts[{3 * i}] = {t}_count")
        self.out.line(f"counts[{base}], counts[{base + 1}], counts[{base + 2}] = fail, work, rounds")
        self.out.line(f"counts[{base + COUNTS.index('left')}] = waiting")
        self.out.line(f"return ({''.join(f'{name}, ' for name in self.returned())})")

    def each_pivot(self) -> None:
        out = self.out
        first, last = self.use("first", "int64", 0), self.use("last", "int64", 0)
        for layout in self.recursive:
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
        most, budget = self.use("most", "int64", 0), self.use("budget", "int64", 0)
        with out.block(f"while waiting > 0 and rounds <= {most} and work <= {budget} and fail == 0:"):
            out.line("down = not down")
            for layout in self.recursive:
                self.take_round(layout)
            out.line("rounds += 1")
        with out.block(f"if waiting > 0 and work <= {budget} and fail == 0:"):
            out.line("fail = 2")
        with out.block("if waiting == 0 and fail == 0:"):
            self.finish()

    def queue(self, layout: TableLayout, t: str, slot: str, hold: str | None = None) -> None:
        out, bits, word = self.out, self.out.fresh("f"), self.out.fresh("w")
        out.line(f"{bits} = {t}_seen[{slot}]")
        with out.block(f"if {bits} & {QUEUED} == 0:"):
            self.log(layout, t, slot, bits)
            out.line(f"{t}_seen[{slot}] = {bits} | np.uint8({KNOWN | QUEUED})")
            out.line(f"{word} = np.uint64({slot}) >> np.uint64(6)")
            out.line(f"{t}_b[{word}] |= np.uint64(1) << (np.uint64({slot}) & np.uint64(63))")
            out.line(f"{t}_w[{word} >> np.uint64(6)] |= np.uint64(1) << ({word} & np.uint64(63))")
            out.line("waiting += 1")

    def take_round(self, layout: TableLayout) -> None:
        """One sweep over the slots of a table."""
        t, out = self.tables[layout.table.name], self.out
        with out.block(f"for step in range({t}_w.size):"):
            out.line(f"at = {t}_w.size - 1 - step if down else step")
            with self.each_bit(f"{t}_w[at]", "place"):
                self.heed_halt()
                with out.block(f"if work > {self.use('budget', 'int64', 0)}:"):
                    out.line("break")
                out.line("word = np.uint64(64 * at) + place")
                with self.each_bit(f"{t}_b[word]", "spot"):
                    out.line(f"{t}_b[word] ^= np.uint64(1) << spot")
                    self.take_slot(layout, t, "word * np.uint64(64) + spot")
                with out.block(f"if {t}_b[word] == 0:"):
                    out.line(f"{t}_w[at] ^= np.uint64(1) << place")

    @contextmanager
    def each_bit(self, word: str, place: str) -> Iterator[None]:
        """A loop over the bits of a word that are set, in the direction of the sweep; also those that are set in front
        of it meanwhile."""
        out, bits, left = self.out, self.out.fresh("b"), self.out.fresh("l")
        out.line(f"{left} = ~np.uint64(0)")
        with out.block("while True:"):
            out.line(f"{bits} = {word} & {left}")
            with out.block(f"if {bits} == 0:"):
                out.line("break")
            out.line(f"{place} = nearest({bits}, down)")
            out.line(f"{left} = beyond({place}, down)")
            yield

    def take_slot(self, layout: TableLayout, t: str, slot: str) -> None:
        """All pivots that wait at a slot go on."""
        out = self.out
        out.line(f"s = np.uint32({slot})")
        out.line("waiting -= 1")
        out.line(f"{t}_seen[s] = np.uint8({KNOWN})")
        for word, bits in enumerate(self.bits):
            out.line(f"{bits} = {t}_wait[s, {word}]")
        for word in range(WORDS):
            out.line(f"{t}_wait[s, {word}] = np.uint64(0)")
        columns = self.columns(layout, "s")
        for nest in self.nests:
            if nest.table == layout.table.name and not nest.above:
                env = {name: columns[position] for position, name in nest.binds if position in columns}
                self.nest(nest, env)

    def put(self, layout: TableLayout, keys: list[str], value: str | None) -> None:
        t, out, slot = self.tables[layout.table.name], self.out, self.out.fresh("s")
        out.line(f"{slot} = {self.dense_slot(t, keys)}")
        if layout.table.name in self.program.heads_above:
            self.put_finished(t, slot)
            return
        for word, bits in enumerate(self.bits):
            out.line(f"n{word} = {bits} & ~{t}_mask[{slot}, {word}]")
        with out.block(f"if ({' | '.join(f'n{word}' for word in range(WORDS))}) != 0:"):
            for word in range(WORDS):
                out.line(f"{t}_mask[{slot}, {word}] |= n{word}")
            for word in range(WORDS):
                out.line(f"{t}_wait[{slot}, {word}] |= n{word}")
            self.queue(layout, t, slot)

    # --- rules above ---------------------------------------------------------------------------------------------

    def begin_finished(self, t: str) -> None:
        for word, bits in enumerate(self.bits):
            self.out.line(f"{bits} = {t}_mask[s, {word}]")

    def put_finished(self, t: str, slot: str) -> None:
        """The pivots at hand get a fact of a table above, from which nothing goes on."""
        out = self.out
        with out.block(f"if {t}_seen[{slot}] == 0:"):
            out.line(f"{t}_seen[{slot}] = ONE")
            self.note(t, slot)
        for word, bits in enumerate(self.bits):
            out.line(f"{t}_mask[{slot}, {word}] |= {bits}")

    def found(self, walk: Walk, known: dict[int, str], rest, nest, env, done) -> None:  # type: ignore[no-untyped-def]
        """Goes on with the pivots that have a fact whose keys are known, or with those that do not."""
        out, t, layout = self.out, self.tables[walk.relation], self.layouts[walk.relation]
        slot, left = out.fresh("s"), tuple(out.fresh("mask") for _ in range(WORDS))
        out.line(f"{slot} = {self.dense_slot(t, [known[key] for key in layout.keys])}")
        for word, (bits, name) in enumerate(zip(self.bits, left, strict=True)):
            out.line(f"{name} = {bits} & {'~' if walk.absent else ''}{t}_mask[{slot}, {word}]")
        outer, self.bits = self.bits, left
        with out.block(f"if ({' | '.join(left)}) != 0:"):
            self.run(rest, nest, env, done)
        self.bits = outer
