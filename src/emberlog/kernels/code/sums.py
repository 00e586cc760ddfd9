"""Sums that hand on changes: those that bring most for their work first, while others wait and grow (PowerLog, 5.4).

What a group hands on goes into as many changes of other groups as it takes derivations. Where these would be smaller
than the mean, over all derivations that wait, the group is held: what else comes in for it is handed on together, by
the same derivations. A group's changes are multiples of its own one, so it is known from the first time how large they
will be.
"""

from __future__ import annotations

from emberlog.components.layout import TableLayout
from emberlog.kernels.code.loops import Loops
from emberlog.kernels.code.source import KNOWN, QUEUED, TAKEN

PART = 0.9
"""Groups are held that bring less than this part of the mean. Some group brings the mean, so rounds go on."""


TURN = 4
"""What it takes to take up a group at all, in derivations."""


class Sums(Loops):
    """Writes the loops of such tables. Changes below `share` are not worth a derivation.

    Of a group that has handed something on, `cost` is how many derivations that took, and `need` how large its change
    must be for those of others to be 1 in the mean. In a round with `whole` groups hand on their values: the start of
    an iteration, of which nothing has been handed on.
    """

    def declare(self, layout: TableLayout) -> None:
        super().declare(layout)
        t = self.tables[layout.table.name]
        self.use(f"{t}_cost", "uint32")
        self.use(f"{t}_need", "float64")

    def grown(self, layout: TableLayout, t: str) -> list[str]:
        return [*super().grown(layout, t), f"{t}_cost", f"{t}_need"]

    def lists(self, layout: TableLayout) -> bool:
        # Of dense tables all groups are looked at in each round: most of them wait, and what hands on to them need not
        # look whether they do.
        return layout.storage == "hash"

    def waiting(self, layout: TableLayout) -> str:
        return super().waiting(layout) if self.lists(layout) else "1"  # `pending` tells

    def take_round(self, layout: TableLayout) -> None:
        if self.lists(layout):
            super().take_round(layout)
            return
        t, out, whole = self.tables[layout.table.name], self.out, self.use("whole", "int64", 0)
        # What comes to be in a round with `whole` is not of the start, and stands behind it.
        out.line(f"high, down = {t}_count if {whole} != 0 else {t}_del.size, not down")
        with out.block("for q in range(high):"):
            out.line("s = np.uint32(high - 1 - q if down else q)")
            with out.block(f"if {whole} != 0:"):
                out.line(f"s = {t}_log[np.uint64(q)]")
            out.line(f"now, old = abs({t}_del[s]), {t}_seen[s]")
            with out.block("if old == 0:"):
                out.line("continue")
            small = f"now <= {self.use('tolerance', 'float64', 0)} * abs({t}_val[s])"
            with out.block(f"if {whole} == 0 and old & {TAKEN} != 0 and ({small} or {self.is_held(t, 'now')}):"):
                out.line("continue")
            self.heed_halt()
            self.take_counted(layout, t)

    def is_held(self, t: str, change: str) -> str:
        """Would a change bring too little? A group that is new needs nothing: it is never held."""
        return f"{change} < {self.use('share', 'float64', 0)} * {t}_need[s]"

    def take_change(self, layout: TableLayout, t: str, slot: str) -> None:
        with self.out.block(f"if {self.use('whole', 'int64', 0)} != 0:"):
            self.out.line(f"{t}_now = {t}_val[{slot}]")
            self.out.line(f"{t}_old, {t}_d = 0.0, {t}_now")
        with self.out.block("else:"):
            super().take_change(layout, t, slot)

    def take_waiting(self, layout: TableLayout, t: str) -> None:
        out = self.out
        with out.block(f"if {t}_seen[s] & {QUEUED} == 0:"):
            out.line("continue")
        with out.block(f"if {self.is_held(t, f'abs({t}_del[s])')}:"):
            out.line(f"{t}_r[{t}_next] = np.uint32(s)")
            out.line(f"{t}_next += 1")
            out.line("continue")
        self.take_counted(layout, t)

    def take_counted(self, layout: TableLayout, t: str) -> None:
        out = self.out
        out.line("took += 1")
        out.line("begun, handed = work, 0.0")
        self.take(layout, "s")
        with out.block("if handed > 0.0:"):
            out.line(f"{t}_cost[s] = np.uint32(work - begun + {TURN})")
            out.line(f"{t}_need[s] = (work - begun + {TURN}) * abs({t}_d) / handed")

    def add(self, layout: TableLayout, t: str, slot: str, value: str) -> None:
        self.out.line(f"handed += abs({value})")
        if self.lists(layout):
            super().add(layout, t, slot, value)
            return
        out = self.out
        out.line(f"{t}_del[{slot}] += {value}")
        with out.block(f"if {t}_count < {t}_del.size and {t}_seen[{slot}] == 0:"):
            out.line(f"{t}_seen[{slot}] = np.uint8({KNOWN})")
            self.note(t, slot)
