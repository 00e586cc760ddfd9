"""Minima over computed values, the smallest first: groups wait in buckets of values that lie close together.

A bucket is a bit for each slot, and a bit for each word of these, so that it is emptied in the order of the slots and
an empty one costs next to nothing. The buckets are a ring; what lies beyond its end waits in the last one and is sorted
in when its turn comes. Any order gives the same minima, so a value that falls behind goes into the bucket at hand.
"""

from __future__ import annotations

from emberlog.components.layout import TableLayout
from emberlog.kernels.code.loops import Loops
from emberlog.kernels.code.source import KNOWN, QUEUED

RING = 32
LOWEST = 2**31
LAST = 1 << 61  # no bucket has a higher number, and no value is further ahead
IDLE = 4  # after so many passes that took nothing up, turns are skipped


class Bucketed(Loops):
    """Writes how groups of such a table get into buckets."""

    @property
    def layout(self) -> TableLayout:
        return next(iter(self.layouts.values()))

    def declare_buckets(self, layout: TableLayout) -> None:
        t = self.tables[layout.table.name]
        self.use(f"{t}_b", "uint64", 2)  # a bit for each slot
        self.use(f"{t}_w", "uint64", 2)  # a bit for each word of these
        self.use("origin", "float64" if layout.value_kind == "float" else "int64", 0)
        # Buckets are found by a shift, or for floats by a product: a division would cost more than the rest of a step.
        self.use("narrowing", "float64" if layout.value_kind == "float" else "int64", 0)

    def number(self, value: str) -> str:
        if self.layout.value_kind == "float":
            return f"np.int64(max(min(({value} - origin) * narrowing, {float(LAST)}), -{float(LAST)}))"
        return f"min(({value} - origin) >> narrowing, {LAST})"

    def put(self, layout: TableLayout, keys: list[str], value: str | None) -> None:
        t, out, slot, old = self.tables[layout.table.name], self.out, self.out.fresh("s"), self.out.fresh("o")
        assert value is not None
        out.line(f"{slot} = {self.dense_slot(t, keys)}")
        out.line(f"{old} = {t}_val[{slot}]")
        with out.block(f"if {value} < {old}:"):
            if layout.narrow:
                with out.block(f"if {value} < -{LOWEST}:"):
                    out.line("fail = 1")
                with out.block("else:"):
                    self.lower(t, slot, value, old)
            else:
                self.lower(t, slot, value, old)
        # The first value of each slot is the worst number: a value that is as bad, or not a number, is no value.
        with out.block(f"elif not ({value} < {t}_worst):"):
            out.line("fail = 1")

    def lower(self, t: str, slot: str, value: str, old: str) -> None:
        out = self.out
        out.line(f"{t}_val[{slot}] = {value}")
        with out.block(f"if {old} == {t}_worst:"):
            self.note(t, slot)
        self.queued(t, slot)
        self.sort_in(t, slot, value)

    def queued(self, t: str, slot: str) -> None:
        """What a group that waits has beside its place in a bucket."""

    def sort_in(self, t: str, slot: str, value: str) -> None:
        out, at, word, bit = self.out, self.out.fresh("b"), self.out.fresh("w"), self.out.fresh("m")
        out.line(f"{at} = {self.number(value)}")
        out.line(f"{at} = min(max({at}, turn), turn + {RING - 1}) & {RING - 1}")
        out.line(
            f"{word}, {bit} = np.uint64({slot}) >> np.uint64(6), np.uint64(1) << (np.uint64({slot}) & np.uint64(63))"
        )
        self.set_bit(t, at, word, bit)

    def set_bit(self, t: str, at: str, word: str, bit: str) -> None:
        self.out.line(f"{t}_b[{at}, {word}] |= {bit}")
        self.out.line(f"{t}_w[{at}, {word} >> np.uint64(6)] |= np.uint64(1) << ({word} & np.uint64(63))")


class Buckets(Bucketed):
    """Writes the loops of such a table."""

    def declare(self, layout: TableLayout) -> None:
        super().declare(layout)
        self.declare_buckets(layout)
        self.use(f"{self.tables[layout.table.name]}_in", "int64")  # how many bits of each bucket are set

    def queued(self, t: str, slot: str) -> None:
        self.out.line(f"{t}_seen[{slot}] = {t}_seen[{slot}] | np.uint8({KNOWN | QUEUED})")

    def set_bit(self, t: str, at: str, word: str, bit: str) -> None:
        with self.out.block(f"if {t}_b[{at}, {word}] & {bit} == 0:"):
            super().set_bit(t, at, word, bit)
            self.out.line(f"{t}_in[{at}] += 1")
            self.out.line("waiting += 1")

    def empty_bucket(self) -> None:
        """One pass over the bucket whose turn it is; what is put into it behind the pass waits for the next one."""
        t, out, layout = self.tables[self.layout.table.name], self.out, self.layout
        out.line("idle += 1")
        with out.block(f"while {t}_in[turn & {RING - 1}] == 0:"):
            out.line("turn += 1")
        out.line(f"at = turn & {RING - 1}")
        with out.block(f"for high in range({t}_w.shape[1]):"), out.block(f"while {t}_w[at, high] != 0:"):
            self.heed_halt()
            out.line(f"word = np.uint64(64 * high) + trailing({t}_w[at, high])")
            with out.block(f"while {t}_b[at, word] != 0:"):
                out.line(f"bits = {t}_b[at, word]")
                out.line(f"{t}_b[at, word] = bits & (bits - np.uint64(1))")
                out.line(f"{t}_in[at] -= 1")
                out.line("waiting -= 1")
                out.line("s = np.uint32(word * np.uint64(64) + trailing(bits))")
                with out.block(f"if {t}_seen[s] & {QUEUED} == 0:"):  # it got better, and was taken up since
                    out.line("continue")
                out.line(f"number = {self.number(f'{t}_val[s]')}")
                with out.block("if number > turn:"):  # it came from beyond the ring
                    # Where values lie far apart, going from turn to turn would take for ever. Going round the
                    # ring as a whole leaves everything in its bucket; what falls behind is taken up at hand.
                    with out.block(f"if idle > {IDLE}:"):
                        out.line(f"turn += (number - turn) & {-RING}")
                    self.sort_in(t, "s", f"{t}_val[s]")
                    out.line("continue")
                out.line("took += 1")
                out.line("idle = 0")
                self.take(layout, "s")
            out.line(f"{t}_w[at, high] &= ~(np.uint64(1) << (word & np.uint64(63)))")

    def rounds(self) -> None:
        """Up to `most` passes; what was put in from outside stands in the list and is sorted in first."""
        t, out = self.tables[self.layout.table.name], self.out
        most, budget, deltas = self.use("most", "int64", 0), self.use("budget", "int64", 0), self.use("deltas", "int64")
        held = self.use("held", "int64")
        out.line(f"rounds, turn, waiting, idle = 0, {held}[0], {held}[1], 0")
        with out.block(f"for q in range({t}_next):"):
            out.line(f"s = {t}_r[q]")
            self.sort_in(t, "s", f"{t}_val[s]")
        out.line(f"{t}_next = 0")
        with out.block(f"while waiting > 0 and rounds < {most} and fail == 0 and work < {budget}:"):
            out.line("took = 0")
            self.empty_bucket()
            with out.block("if took > 0:"):
                out.line(f"{deltas}[rounds] = took")
                out.line("rounds += 1")
        out.line(f"{held}[0], {held}[1] = turn, waiting")

    def begin_pivot(self) -> None:
        self.out.line("turn, waiting, took, idle = 0, 0, 0, 0")

    def fixpoint(self) -> None:
        out = self.out
        out.line("depth = 0")
        with out.block("while waiting > 0 and fail == 0:"):
            self.empty_bucket()
            out.line("depth += 1")
            with out.block(f"if depth > {self.use('most', 'int64', 0)}:"):
                out.line("fail = 2")
        with out.block("if depth > deepest:"):
            out.line("deepest = depth")
