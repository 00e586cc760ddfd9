"""Rounds of workers that own facts: each derives only what falls into its own range of slots.

A round has two halves. First each worker takes what waits in its range and lists it; then each goes through the lists
of all, along those rows of the indexes that lead into its range. So every slot is written by one worker, nothing is
sent, and a worker's part of a table fits in nearer caches. Facts are read as they are at that moment: a value that has
become better since it was listed goes along at once.

A worker that goes through all lists alone does the same for all ranges, in many rounds of one call: where few facts
wait, threads would only wait for each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emberlog.components.forms import owned_indexes
from emberlog.components.layout import TableLayout
from emberlog.components.nests import Nest, Probe, probes
from emberlog.kernels.code.buckets import IDLE, LAST, RING, Bucketed
from emberlog.kernels.code.loops import SWEEP, Loops
from emberlog.kernels.code.source import KNOWN, QUEUED
from emberlog.kernels.sorting import ALIGN
from emberlog.syntax.nodes import Variable

BOTH, TAKE, PUT = 0, 1, 2  # the halves of a round that a call makes
PASS = 1 << 10  # derivations that take about as long as a look at an empty bucket
AHEAD = 8  # facts of a list whose rows are fetched while others are at work


class Owned(Loops):
    """Writes such rounds. Tables are shared; what has an entry for each owner has one dimension more."""

    remembers = True  # from which values facts have led on

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.owned = owned_indexes(self.program, self.layouts, self.nests)

    def declare(self, layout: TableLayout) -> None:
        t = self.tables[layout.table.name]
        self.use(f"{t}_seen", "uint8")
        self.use(f"{t}_r", "uint32")  # what waits, each owner's from the begin of its range on
        self.use(f"{t}_q", "uint32")  # what was taken, likewise
        self.use(f"{t}_own", "int64")  # where ranges begin, and the end of the last
        self.use(f"{t}_tally", "int64", 2)  # facts, facts that wait, facts that were taken
        if layout.table.fold != "set":
            self.use(f"{t}_val", layout.dtype)
            self.use(f"{t}_worst", layout.dtype, 0)
            if self.remembers:
                self.use(f"{t}_last", layout.dtype, 2)  # the values that each owner has gone on from

    def load(self) -> None:
        self.out.line("fail, work = 0, 0")

    def save(self) -> None:
        self.out.line("counts[0], counts[1], counts[2] = fail, work, rounds")
        self.out.line("return ()")

    # --- rounds --------------------------------------------------------------------------------------------------

    def rounds(self) -> None:
        """Both halves of up to `most` rounds for all ranges, as long as at most `few` facts wait; or one half of one
        round for the range `first`."""
        out = self.out
        for name in ("half", "first", "last", "most", "few"):
            self.use(name, "int64", 0)
        self.use("deltas", "int64")
        out.line("rounds, moved = 0, 0")
        with out.block("while True:"):
            self.heed_halt()
            with out.block(f"if half == {BOTH}:"):
                self.look_on()
                spent = f"work + moved > {self.use('budget', 'int64', 0)}"
                with out.block(f"if waits == 0 or waits > few or rounds == most or fail != 0 or {spent}:"):
                    out.line("break")
            with out.block(f"if half != {PUT}:"), out.block("for o in range(first, last):"):
                for layout in self.layouts.values():
                    self.drain(layout)
            with out.block(f"if half == {TAKE}:"):
                out.line("break")
            with out.block("for o in range(first, last):"):
                self.put_all()
            with out.block(f"if half == {PUT}:"):
                out.line("break")
            self.close_round()

    def look_on(self) -> None:
        """How many facts wait for the next round."""
        tallies = [f"total({t}_tally, 1)" for t in self.tables.values()]
        self.out.line(f"waits = {' + '.join(tallies)}")

    def close_round(self) -> None:
        self.out.line(f"deltas[rounds] = {self.taken()}")
        self.out.line("rounds += 1")

    def taken(self) -> str:
        return " + ".join(f"total({t}_tally, 2)" for t in self.tables.values())

    def drain(self, layout: TableLayout) -> None:
        """What waits in a range is taken: where it is much, in the order of slots, so that memory is read in order."""
        t, out = self.tables[layout.table.name], self.out
        words = self.use(f"{t}_words", "uint64")
        lists = f"{t}_seen, {words}, {t}_r, {t}_q, {t}_own[o], {t}_own[o + 1], {t}_tally[o, 1]"
        out.line(f"{t}_tally[o, 2] = drained({lists}, {SWEEP})")
        out.line(f"{t}_tally[o, 1] = 0")

    def put_all(self) -> None:
        """Everything that was taken leads on into one range."""
        out = self.out
        out.line("me = np.uint64(o)")
        for t in self.tables.values():
            out.line(f"{t}_low, {t}_high = {t}_own[o], {t}_own[o + 1]")
            out.line(f"{t}_count, {t}_next = {t}_tally[o, 0], {t}_tally[o, 1]")
        for layout in self.layouts.values():
            self.go_through(layout)
        for t in self.tables.values():
            out.line(f"{t}_tally[o, 0], {t}_tally[o, 1] = {t}_count, {t}_next")

    def go_through(self, layout: TableLayout) -> None:
        t, out = self.tables[layout.table.name], self.out
        with out.block(f"for p in range({t}_tally.shape[0]):"):
            out.line(f"begin = np.uint64({t}_own[p])")
            out.line(f"end = begin + np.uint64({t}_tally[p, 2])")
            plain = out.block("for q in range(begin, end):")
            with plain if self.is_short(layout) else self.each("q", "begin", "end", "uint64"):
                out.line(f"s = {t}_q[q]")
                self.fetch(layout)
                self.take(layout, "s")

    def is_short(self, layout: TableLayout) -> bool:
        """True if each fact leads on along the rows of its key alone: a round then visits no row twice."""
        return all(
            [probe.terms for probe in probes(nest)]
            == [(Variable(name),) for spot, name in nest.binds if spot == layout.keys[0]]
            for nest in self.nests
            if nest.table == layout.table.name
        )

    def fetch(self, layout: TableLayout) -> None:
        """The rows of facts that come soon are on their way from memory before they are asked for."""
        t, out = self.tables[layout.table.name], self.out
        labels = dict.fromkeys(
            (self.index(probe), probe.relation, probe.bound)
            for nest in self.nests
            if nest.table == layout.table.name
            for probe in nest.steps[:1]
            if isinstance(probe, Probe) and (probe.relation, probe.bound) not in self.sparse
            for spot, name in nest.binds
            if spot == layout.keys[0] and probe.terms == (Variable(name),)
        )
        if not labels:
            return
        with out.block(f"if q + np.uint64({2 * AHEAD}) < end:"):
            for label, relation, bound in labels:
                offsets, owned = self.use(f"{label}_o", "uint64"), (relation, bound) in self.owned
                places = [self.placed(f"{t}_q[q + np.uint64({far * AHEAD})]", owned) for far in (2, 1)]
                out.line(f"prefetch({offsets}, {places[0]})")
                out.line(f"soon = {offsets}[{places[1]}]")
                for column, line in self.columns_read(relation, bound):
                    out.line(f"prefetch({column}, soon)")
                    if line:
                        out.line(f"prefetch({column}, soon + np.uint64({line}))")

    def columns_read(self, relation: str, bound: tuple[int, ...]) -> list[tuple[str, int]]:
        """The columns of an index; and after how many rows, if they are wide, the next line of memory is read too."""
        if (relation, bound) in self.packed:
            return [(self.use(f"{self.indexes[relation, bound]}_p", "uint64"), 8)]
        reading = (probe for nest in self.nests for probe in probes(nest))
        spots = {
            spot: probe
            for probe in reading
            if (probe.relation, probe.bound) == (relation, bound)
            for spot, _ in probe.binds
        }
        return [(self.static_column(probe, spot), 0) for spot, probe in spots.items()]

    def take(self, layout: TableLayout, slot: str) -> None:
        t, out, fold = self.tables[layout.table.name], self.out, layout.table.fold
        if fold != "set":
            out.line(f"{t}_now = {t}_val[{slot}]")
            if self.remembers:
                sign = "<" if fold == "min" else ">"
                with out.block(f"if not ({t}_now {sign} {t}_last[o, {slot}]):"):
                    out.line("continue")
                out.line(f"{t}_last[o, {slot}] = {t}_now")
            if layout.narrow:
                out.line(f"{t}_wide = np.int64({t}_now)")
        value = f"{t}_wide" if layout.narrow else f"{t}_now"
        for nest in self.nests:
            if nest.table == layout.table.name:
                self.start(nest, layout, self.columns(layout, slot), value)

    def place(self, probe: Probe, key: str) -> str:
        if (probe.relation, probe.bound) not in self.owned:
            return key
        found = self.out.fresh("x")
        self.out.line(f"{found} = {self.placed(key, owned=True)}")
        return found

    def placed(self, key: str, owned: bool) -> str:
        """Rows that are divided stand in the order of their keys, and those of one key in the order of their owners."""
        return f"np.uint64({key}) * {self.use('owners', 'uint64', 0)} + me" if owned else f"np.uint64({key})"

    # --- into the tables -----------------------------------------------------------------------------------------

    def head(self, nest: Nest, env: Mapping[str, str]) -> None:
        """A rule whose rows are not divided finds what others own too."""
        if any((probe.relation, probe.bound) in self.owned for probe in probes(nest)):
            super().head(nest, env)
            return
        layout = self.layouts[nest.rule.head]
        t, (key,) = self.tables[nest.rule.head], layout.keys
        slot = self.term(nest.rule.arguments[key], env, nest.rule.kinds, layout.table.kinds[key])
        with self.out.block(f"if {t}_low <= {slot} and {slot} < {t}_high:"):
            super().head(nest, env)

    def put_dense(self, layout: TableLayout, t: str, slot: str) -> None:
        with self.out.block(f"if {t}_seen[{slot}] == 0:"):
            self.out.line(f"{t}_seen[{slot}] = np.uint8({KNOWN | QUEUED})")
            self.wait(t, slot)
            self.note(t, slot)

    def note(self, t: str, slot: str) -> None:
        self.out.line(f"{t}_count += 1")

    def wait(self, t: str, slot: str) -> None:
        self.out.line(f"{t}_r[np.uint64({t}_low + {t}_next)] = {slot}")
        self.out.line(f"{t}_next += 1")

    def queue(self, layout: TableLayout, t: str, slot: str, hold: str | None = None) -> None:
        out, bits = self.out, self.out.fresh("f")
        out.line(f"{bits} = {t}_seen[{slot}]")
        with out.block(f"if {bits} & {QUEUED} == 0:"):
            out.line(f"{t}_seen[{slot}] = {bits} | np.uint8({KNOWN | QUEUED})")
            self.wait(t, slot)
            with out.block(f"if {bits} == 0:"):
                self.note(t, slot)


class OwnedBuckets(Bucketed, Owned):
    """The same for minima over computed values: of those that wait, the ones in the bucket whose turn it is are taken.

    `held` has the turn, and how many rounds took nothing."""

    remembers = False

    def declare(self, layout: TableLayout) -> None:
        Owned.declare(self, layout)
        self.declare_buckets(layout)
        t = self.tables[layout.table.name]
        self.use(f"{t}_last", layout.dtype)  # the values that groups were taken with: better ones wait
        self.use(f"{t}_in", "int64", 2)  # how often something was put into each bucket since it was emptied
        self.use(f"{t}_far", "int64")  # how far ahead the nearest is of those that came from beyond the ring
        self.use("held", "int64")

    def set_bit(self, t: str, at: str, word: str, bit: str) -> None:
        super().set_bit(t, at, word, bit)
        self.out.line(f"{t}_in[o, {at}] += 1")

    def look_on(self) -> None:
        t = self.tables[self.layout.table.name]
        self.out.line(f"waits = total({t}_tally, 1) + turn_of(held, {t}_in)")

    def close_round(self) -> None:
        t = self.tables[self.layout.table.name]
        self.out.line(f"took = {self.taken()}")
        self.out.line(f"skip(held, took, {t}_far, {RING}, {IDLE}, {LAST})")
        with self.out.block("if took > 0:"):
            super().close_round()
        # Rounds that take nothing take time.
        with self.out.block("else:"):
            self.out.line(f"moved += {PASS}")

    def drain(self, layout: TableLayout) -> None:
        t, out = self.tables[layout.table.name], self.out
        out.line(f"turn, low, found, far = held[0], {t}_own[o], 0, {LAST}")
        with out.block(f"for i in range(low, low + {t}_tally[o, 1]):"):
            self.sort_in(t, f"{t}_r[i]", f"{t}_val[{t}_r[i]]")
        out.line(f"{t}_tally[o, 1] = 0")
        out.line(f"at = turn & {RING - 1}")
        # Who owns nothing may begin at the end of the table, in the midst of a block that is another one's.
        blocks = f"(low + {ALIGN - 1}) // {ALIGN}, ({t}_own[o + 1] + {ALIGN - 1}) // {ALIGN}"
        with out.block(f"for high in range({blocks}):"), out.block(f"while {t}_w[at, high] != 0:"):
            out.line(f"word = np.uint64(64 * high) + trailing({t}_w[at, high])")
            out.line(f"{t}_w[at, high] &= {t}_w[at, high] - np.uint64(1)")
            out.line(f"bits, {t}_b[at, word] = {t}_b[at, word], 0")
            with out.block("while bits != 0:"):
                out.line("s = np.uint32(word * np.uint64(64) + trailing(bits))")
                out.line("bits &= bits - np.uint64(1)")
                out.line(f"now = {t}_val[s]")
                with out.block(f"if now < {t}_last[s]:"):
                    out.line(f"number = {self.number('now')}")
                    with out.block("if number > turn:"):  # it came from beyond the ring
                        out.line("far = min(far, number - turn)")
                        out.line("moved += 1")
                        self.sort_in(t, "s", "now")
                    with out.block("else:"):
                        out.line(f"{t}_last[s] = now")
                        out.line(f"{t}_q[low + found] = s")
                        out.line("found += 1")
        out.line(f"{t}_tally[o, 2], {t}_in[o, at], {t}_far[o] = found, 0, far")

    def put_all(self) -> None:
        self.out.line("turn = held[0]")
        super().put_all()
