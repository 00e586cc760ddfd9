"""Loops of a worker that owns a part of every table: what it derives for others goes to outboxes.

A fact is owned by a hash of its home columns, as numbers that count from an origin (`kernels.owners` computes the
same). Own facts go into the tables, so that these hold nothing else; of others the keys and the value are appended to
lists, one for each table, which whoever called the loops empties.
"""

from __future__ import annotations

from emberlog.components.layout import TableLayout
from emberlog.kernels.code.loops import Loops
from emberlog.kernels.owners import GOLDEN, HALF, LOW_BITS, QUARTER


class Parted(Loops):
    """Writes rounds over a part."""

    def load(self) -> None:
        super().load()
        posted = self.use("posted", "int64")
        for i, t in enumerate(self.tables.values()):
            self.out.line(f"{t}_on = {posted}[{i}]")

    def save(self) -> None:
        for i, t in enumerate(self.tables.values()):
            self.out.line(f"posted[{i}] = {t}_on")
        super().save()

    def put(self, layout: TableLayout, keys: list[str], value: str | None) -> None:
        owner = self.owner_of(layout, keys)
        own = self.use("own", "uint64", 0)
        with self.out.block(f"if {owner} == {own}:"):
            super().put(layout, keys, value)
        with self.out.block("else:"):
            self.post(layout, keys, value)

    def owner_of(self, layout: TableLayout, keys: list[str]) -> str:
        """The worker that owns a fact; the first one where it has no home columns."""
        out, parts = self.out, self.use("parts", "uint64", 0)
        owner, hashed = out.fresh("o"), "np.uint64(0)"
        for column in layout.home:
            bits, mixed = out.fresh("o"), out.fresh("o")
            origin = self.use(f"{self.tables[layout.table.name]}_origin{column}", "int64", 0)
            out.line(f"{bits} = np.uint64(np.int64({keys[layout.keys.index(column)]}) + {origin})")
            folded = f"({hashed} >> np.uint64({QUARTER})) ^ {bits} ^ ({bits} >> np.uint64({HALF}))"
            out.line(f"{mixed} = (({folded}) & np.uint64({LOW_BITS:#x})) * np.uint64({GOLDEN:#x})")
            hashed = out.fresh("o")
            out.line(f"{hashed} = {mixed} & np.uint64({LOW_BITS:#x})")
        out.line(f"{owner} = ({hashed} * {parts}) >> np.uint64({HALF})")
        return owner

    def post(self, layout: TableLayout, keys: list[str], value: str | None) -> None:
        """Appends a fact to the list of those that others own."""
        t, out = self.tables[layout.table.name], self.out
        posted = self.use(f"{t}_ok", "int64", 2)
        for i, key in enumerate(keys):
            out.line(f"{posted}[{t}_on, {i}] = {key}")
        if value is not None:
            out.line(f"{self.use(f'{t}_ov', layout.dtype)}[{t}_on] = {value}")
        out.line(f"{t}_on += 1")
        with out.block(f"if {t}_on == {posted}.shape[0]:"):
            out.line(f"{posted} = grown_rows({posted})")
            if value is not None:
                out.line(f"{t}_ov = grown({t}_ov, 0)")
