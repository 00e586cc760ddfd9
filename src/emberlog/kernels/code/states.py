"""Iterations that replace their state, in the text."""

from __future__ import annotations

from emberlog.components.layout import TableLayout
from emberlog.kernels.code.arithmetic import Arithmetic
from emberlog.kernels.code.loops import Loops


class States(Loops):
    """One round of an iteration that replaces its state: every group of the state runs through the nests, and what
    they give makes the next state."""

    def declare(self, layout: TableLayout) -> None:
        t = self.tables[layout.table.name]
        if layout.storage == "hash":
            self.use(f"{t}_h", "int32")
            self.use(f"{t}_k", "int64", 2)
        for name in ("val", "nxt"):
            self.use(f"{t}_{name}", layout.dtype)
        for name in ("seen", "new"):
            self.use(f"{t}_{name}", "uint8")

    def grown(self, layout: TableLayout, t: str) -> list[str]:
        return [f"{t}_{name}" for name in ("val", "nxt", "seen", "new")]

    def rounds(self) -> None:
        for layout in self.layouts.values():
            t = self.tables[layout.table.name]
            self.out.line(f"{t}_stop = {t}_seen.size" if layout.storage == "dense" else f"{t}_stop = {t}_count")
        for layout in self.layouts.values():
            t = self.tables[layout.table.name]
            each = f"for s in range({'np.uint32' if layout.storage == 'dense' else ''}({t}_stop)):"
            with self.out.block(each), self.out.block(f"if {t}_seen[s] != 0:"):
                self.heed_halt()
                columns = self.columns(layout, "s")
                self.out.line(f"{t}_now = {t}_val[s]")
                for nest in self.nests:
                    if nest.table == layout.table.name:
                        env = {
                            name: f"{t}_now" if position == layout.table.value else columns[position]
                            for position, name in nest.binds
                        }
                        self.nest(nest, env)

    def put(self, layout: TableLayout, keys: list[str], value: str | None) -> None:
        t, out = self.tables[layout.table.name], self.out
        assert value is not None
        slot = self.slot(layout, t, keys)
        if layout.value_kind == "float":
            with out.block(f"if {value} != {value}:"):
                out.line("fail = 1")
        with out.block(f"if {t}_new[{slot}] == 0:"):
            out.line(f"{t}_new[{slot}] = ONE")
            out.line(f"{t}_nxt[{slot}] = {value}")
        match layout.table.fold:
            case "sum":
                with out.block("else:"):
                    sum_ = f"{t}_nxt[{slot}] + {value}"
                    if layout.value_kind != "float":
                        sum_ = Arithmetic(out).sum(f"{t}_nxt[{slot}]", value)
                    out.line(f"{t}_nxt[{slot}] = {sum_}")
            case fold:
                with out.block(f"elif {value} {'<' if fold == 'min' else '>'} {t}_nxt[{slot}]:"):
                    out.line(f"{t}_nxt[{slot}] = {value}")
