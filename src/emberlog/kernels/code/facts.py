"""A fact that is taken up, in the text: into the chains of its table, then into every nest that starts from it."""

from __future__ import annotations

from collections.abc import Mapping

from emberlog.components.layout import TableLayout
from emberlog.components.nests import Nest, Step
from emberlog.components.program import Check, Let
from emberlog.kernels.code.arithmetic import Arithmetic
from emberlog.kernels.code.bodies import Bodies
from emberlog.kernels.code.changes import change_of, moving_of
from emberlog.kernels.code.source import (
    KNOWN,
    TAKEN,
)
from emberlog.syntax.nodes import Variable


class Facts(Bodies):
    """Writes what happens to facts when their turn comes."""

    def take(self, layout: TableLayout, slot: str) -> None:
        """One fact: into the indexes of its table, then into every nest that starts there."""
        t, out, fold = self.tables[layout.table.name], self.out, layout.table.fold
        value = ""
        if fold == "sum":
            self.take_change(layout, t, slot)
            value = f"{t}_now"
        elif fold != "set":
            out.line(f"{t}_now = {f'np.int64({t}_val[{slot}])' if layout.narrow else f'{t}_val[{slot}]'}")
            value = f"{t}_now"
        columns = self.columns(layout, slot)
        if fold != "set":
            out.line(f"{t}_first = {t}_seen[{slot}] & {TAKEN} == 0")
            out.line(f"{t}_seen[{slot}] = np.uint8({KNOWN | TAKEN})")
        elif layout.storage == "dense" and (layout.counted or not self.pivoted):
            out.line(f"{t}_seen[{slot}] = np.uint8({KNOWN | TAKEN})")
        self.link(layout, slot, columns)
        for nest in self.nests:
            if nest.table == layout.table.name and not nest.above:
                self.start(nest, layout, columns, value)

    def take_change(self, layout: TableLayout, t: str, slot: str) -> None:
        """What has come for a sum is added to it, and waits no longer."""
        out = self.out
        out.line(f"{t}_d = {t}_del[{slot}]")
        out.line(f"{t}_del[{slot}] = 0")
        out.line(f"{t}_old = {t}_val[{slot}]")
        total = f"{t}_old + {t}_d" if layout.value_kind == "float" else Arithmetic(out).sum(f"{t}_old", f"{t}_d")
        out.line(f"{t}_now = {total}")
        if layout.value_kind == "float":
            with out.block(f"if {t}_now != {t}_now:"):
                out.line("fail = 1")
        out.line(f"{t}_val[{slot}] = {t}_now")

    def link(self, layout: TableLayout, slot: str, columns: Mapping[int, str]) -> None:
        t, out = self.tables[layout.table.name], self.out
        if not layout.chains:
            return
        if layout.table.fold != "set":
            with out.block(f"if {t}_first:"):
                self.links(layout, t, slot, columns)
        else:
            self.links(layout, t, slot, columns)

    def links(self, layout: TableLayout, t: str, slot: str, columns: Mapping[int, str]) -> None:
        for chain in layout.chains:
            self.out.line(f"{t}_y{chain}[{slot}] = {t}_x{chain}[{columns[chain]}]")
            self.out.line(f"{t}_x{chain}[{columns[chain]}] = np.uint32({slot} + U1)")

    def start(self, nest: Nest, layout: TableLayout, columns: Mapping[int, str], value: str) -> None:
        t, table = self.tables[layout.table.name], layout.table
        change = change_of(nest, self.program)
        env = dict(self.pivot_variables(nest))
        for position, name in nest.binds:
            now = f"{t}_d" if change == "multiple" else value
            env[name] = now if position == table.value else columns[position]
        match change:
            case "whole":
                self.nest(nest, env)
            case "multiple":
                # A group that is new hands on a zero too: it opens the groups that it contributes to.
                with self.out.block(f"if {t}_d != 0 or {t}_first:"):
                    self.nest(nest, env)
            case "first":
                with self.out.block(f"if {t}_first:"):
                    self.nest(nest, env)
            case "difference":
                self.difference(nest, env, {**env, **self.old_values(nest, table.value, t)}, f"{t}_first")

    def old_values(self, nest: Nest, value: int | None, t: str) -> dict[str, str]:
        return {name: f"{t}_old" for position, name in nest.binds if position == value}

    def difference(self, nest: Nest, env: dict[str, str], old: dict[str, str], first: str) -> None:
        """The contribution as it is now, less what it was."""
        moving = moving_of(nest, self.program)
        rule, out = nest.rule, self.out
        layout = self.layouts[rule.head]
        fixed: list[Step] = []
        changing: list[Check | Let] = []
        for step in (*nest.checks, *nest.steps):
            match step:
                case Let(variable) if variable in moving:
                    changing.append(step)
                case Check() if not moving.isdisjoint({*_names(step)}):
                    changing.append(step)
                case _:
                    fixed.append(step)

        def finish(inner: dict[str, str]) -> None:
            value = layout.table.value
            assert value is not None
            kind = layout.table.kinds[value]
            keys = [self.term(rule.arguments[key], inner, nest.kinds, layout.table.kinds[key]) for key in layout.keys]
            now, then = out.fresh("g"), out.fresh("g")
            total = out.fresh("g")
            zero = "0.0" if kind == "float" else "np.int64(0)"
            out.line(f"{now}, {total} = False, {zero}")
            self.evaluated(changing, nest, {**inner, **env}, now, total, value, "")
            out.line(f"{then} = False")
            with out.block(f"if not {first}:"):
                self.evaluated(changing, nest, {**inner, **old}, then, total, value, "-")
            # What stays as it was is no change: handed on, it would go round a cycle for ever.
            with out.block(f"if {now} != {then} or {total} != 0:"):
                out.line("work += 1")
                self.put(layout, keys, total)

        self.run(fixed, nest, env, finish)

    def evaluated(
        self, steps: list[Check | Let], nest: Nest, env: dict[str, str], flag: str, total: str, value: int, sign: str
    ) -> None:
        """Sets `flag` and adds to `total` if the steps that depend on the changing value let it through."""
        out, rule = self.out, nest.rule
        depth = out.depth
        for step in steps:
            if isinstance(step, Check):
                out.line(f"if {self.condition(step, env, nest.kinds)}:")
                out.depth += 1
            else:
                name = out.fresh("v")
                out.line(f"{name} = {self.term(step.term, env, nest.kinds)}")
                env = {**env, step.variable: name}
        kind = self.layouts[rule.head].table.kinds[value]
        term = self.term(rule.arguments[value], env, nest.kinds, kind)
        out.line(f"{flag} = True")
        if kind == "float":
            out.line(f"{total} = {total} {'-' if sign else '+'} {term}")
        else:
            number = Arithmetic(out)
            out.line(f"{total} = {number.difference(total, term) if sign else number.sum(total, term)}")
        out.depth = depth

    def pivot_variables(self, nest: Nest) -> dict[str, str]:
        """The variables in the pivot positions of a rule, which all its recursive atoms share."""
        found = {}
        for spot, position in enumerate(self.pivots.get(nest.rule.head, ())):
            carried = nest.rule.arguments[position]
            assert isinstance(carried, Variable)
            found[carried.name] = f"p{spot}"
        return found


def _names(check: Check) -> set[str]:
    from emberlog.components.domains import goal_variables

    return set(goal_variables(check))
