"""Sums that gather: every group reads what others give it, in place of being written to by them.

Where each contribution is a multiple of the value it comes from, a group gives the same along all rows that lead on
from it: what it gives is computed once, and a sweep over all groups adds up what comes along their rows. It reads where
handing on changes writes, in any order of memory, and reading is cheaper. What groups give is renewed in the same
sweep, some hundreds of groups at a time, so that those behind them see it at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from emberlog.components.layout import TableLayout
from emberlog.components.nests import Nest, Probe
from emberlog.kernels.code.loops import Loops

TOGETHER = 512
"""Groups after which what they give is renewed: a processor reads ahead as long as nothing is written in between."""


class Gathers(Loops):
    """Writes one sweep. With `begin` it only computes what the groups give. `moved` gets the sum and the largest of
    all changes, and how many groups changed by more than rounding."""

    def declare(self, layout: TableLayout) -> None:
        t = self.tables[layout.table.name]
        self.use(f"{t}_seen", "uint8")
        for name in ("val", "base"):
            self.use(f"{t}_{name}", "float64")
        for number in range(len(self.nests)):
            self.use(f"{t}_g{number}", "float64")

    def rounds(self) -> None:
        out, (layout,) = self.out, self.layouts.values()
        t = self.tables[layout.table.name]
        out.line("total, largest, changed = 0.0, 0.0, 0")
        with out.block(f"for first in range(0, {t}_val.size, {TOGETHER}):"):
            out.line(f"last = min(first + {TOGETHER}, {t}_val.size)")
            with out.block(f"if {self.use('begin', 'int64', 0)} == 0:"), self.groups(t):
                self.gather(t)
            with self.groups(t):
                for number, nest in enumerate(self.nests):
                    self.give(nest, layout, t, number)
        moved = self.use("moved", "float64")
        out.line(f"{moved}[0], {moved}[1], {moved}[2] = total, largest, changed")

    @contextmanager
    def groups(self, t: str) -> Iterator[None]:
        with self.out.block("for slot in range(first, last):"):
            self.out.line("s = np.uint32(slot)")
            with self.out.block(f"if {t}_seen[s] != 0:"):
                yield

    def gather(self, t: str) -> None:
        out = self.out
        out.line(f"new = {t}_base[s]")
        for number, nest in enumerate(self.nests):
            probe = nest.steps[-1]
            assert isinstance(probe, Probe)
            ((source, _),) = probe.binds
            column, offsets = self.static_column(probe, source), self.use(f"{self.index(probe)}_o", "uint64")
            out.line(f"low, high = {offsets}[s], {offsets}[s + U1]")
            out.line("work += np.int64(high - low)")
            with out.block("for r in range(low, high):"):
                out.line(f"new += {t}_g{number}[{column}[r]]")
        with out.block("if not np.isfinite(new):"):
            out.line("fail = 1")
        out.line(f"change = abs(new - {t}_val[s])")
        out.line(f"{t}_val[s] = new")
        out.line("total += change")
        out.line("largest = max(largest, change)")
        with out.block(f"if change > {self.use('tolerance', 'float64', 0)} * abs(new):"):
            out.line("changed += 1")

    def give(self, nest: Nest, layout: TableLayout, t: str, number: int) -> None:
        """What a group gives along each row."""
        out, rule, table = self.out, nest.rule, layout.table
        assert table.value is not None
        given = out.fresh("g")
        out.line(f"{given} = 0.0")
        env = {name: f"{t}_val[s]" if position == table.value else "s" for position, name in nest.binds}

        def add(inner: dict[str, str]) -> None:
            assert table.value is not None
            value = self.term(rule.arguments[table.value], inner, rule.kinds, table.kinds[table.value])
            out.line(f"{given} += {value}")

        self.run([*nest.checks, *nest.steps[:-1]], nest, env, add)
        out.line(f"{t}_g{number}[s] = {given}")
