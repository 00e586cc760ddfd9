"""Rules above a recursion, in the text: applied once to finished facts, one relation after the other."""

from __future__ import annotations

from emberlog.components.layout import TableLayout
from emberlog.components.nests import Nest
from emberlog.kernels.code.facts import Facts


class Above(Facts):
    """Writes what follows the fixpoint of a pivot."""

    @property
    def recursive(self) -> list[TableLayout]:
        """The tables of the recursion itself."""
        return [layout for name, layout in self.layouts.items() if name not in self.program.heads_above]

    def finish(self) -> None:
        """Fills the tables above, each from those before it."""
        for name in self.program.heads_above:
            for nest in self.nests:
                if nest.above and nest.rule.head == name:
                    self.each_finished(nest)
            self.link_finished(self.layouts[name])

    def each_finished(self, nest: Nest) -> None:
        """The loops of a rule for every fact of the table that it starts from."""
        layout = self.layouts[nest.table]
        t, table = self.tables[nest.table], layout.table
        with self.each("q", "0", f"{t}_count", "int64"):
            self.out.line(f"s = {self.logged(layout, t, 'np.uint64(q)')}")
            self.begin_finished(t)
            columns = self.columns(layout, "s")
            env = dict(self.pivot_variables(nest))
            for position, name in nest.binds:
                env[name] = self.finished_value(layout, t, "s") if position == table.value else columns[position]
            self.looping = 1
            self.nest(nest, env)
            self.looping = 0

    def begin_finished(self, t: str) -> None:
        """What stands before the loops for a slot of a table."""

    def link_finished(self, layout: TableLayout) -> None:
        """The facts of a table that is full go into its chains."""
        t = self.tables[layout.table.name]
        if layout.chains:
            with self.each("q", "0", f"{t}_count", "int64"):
                self.out.line(f"s = {self.logged(layout, t, 'np.uint64(q)')}")
                self.links(layout, t, "s", self.columns(layout, "s"))
