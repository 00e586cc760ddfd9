"""Tables in the text: where a fact has its slot, how it gets in, how it waits there."""

from __future__ import annotations

from emberlog.components.layout import TableLayout
from emberlog.components.program import Id
from emberlog.kernels.code.arithmetic import Arithmetic
from emberlog.kernels.code.source import (
    KNOWN,
    QUEUED,
)
from emberlog.kernels.code.terms import Terms


class Tables(Terms):
    """Writes what goes into tables."""

    # --- slots ---------------------------------------------------------------------------------------------------

    def dense_slot(self, t: str, keys: list[str]) -> str:
        if not keys:
            return "np.uint32(0)"
        if len(keys) == 1:
            return keys[0]
        text = f"np.uint64({keys[0]})"
        for i, key in enumerate(keys[1:], 1):
            text = f"({text} * {self.use(f'{t}_n{i}', 'uint64', 0)} + np.uint64({key}))"
        return text

    def slot(self, layout: TableLayout, t: str, keys: list[str]) -> str:
        """The slot of a fact, which a hashed table makes if it has none."""
        out, slot = self.out, self.out.fresh("s")
        if layout.storage == "dense":
            out.line(f"{slot} = {self.dense_slot(t, keys)}")
            return slot
        spot = out.fresh("i")
        out.line(f"{spot} = find({t}_h, {t}_k, {key_tuple(keys)})")
        out.line(f"{slot} = np.int64({t}_h[{spot}]) - 1")
        with out.block(f"if {slot} < 0:"):
            self.new_slot(layout, t, slot, spot, keys)
        return slot

    def columns(self, layout: TableLayout, slot: str) -> dict[int, str]:
        """The stored key columns of a fact, by position; written out as lines where they are computed."""
        t, keys = self.tables[layout.table.name], layout.keys
        if layout.storage == "hash":
            found = {}
            for i, key in enumerate(keys):
                name = self.out.fresh("k")
                text = f"{t}_k[{slot}, {i}]"
                self.out.line(f"{name} = {f'np.uint32({text})' if layout.domains[i] is not None else text}")
                found[key] = name
            return found
        if len(keys) == 1:
            return {keys[0]: slot}
        found, rest = {}, f"np.uint64({slot})"
        for i in range(len(keys) - 1, 0, -1):
            size, name, above = self.use(f"{t}_n{i}", "uint64", 0), self.out.fresh("k"), self.out.fresh("k")
            self.out.line(f"{above} = {rest} // {size}")
            self.out.line(f"{name} = np.uint32({rest} - {above} * {size})")
            found[keys[i]] = name
            rest = above
        if keys:
            name = self.out.fresh("k")
            self.out.line(f"{name} = np.uint32({rest})")
            found[keys[0]] = name
        return found

    # --- facts ---------------------------------------------------------------------------------------------------

    def put(self, layout: TableLayout, keys: list[str], value: str | None) -> None:
        """A fact goes into its table, and waits there if it is new or better."""
        t, out, fold = self.tables[layout.table.name], self.out, layout.table.fold
        slot = self.slot(layout, t, keys)
        if fold == "set":
            if layout.storage == "dense":
                self.put_dense(layout, t, slot)
            return
        assert value is not None
        if fold == "sum":
            self.add(layout, t, slot, value)
            return
        sign = "<" if fold == "min" else ">"
        if not isinstance(layout.value_kind, Id):
            # The first value of each slot is the worst number: a value that is as bad, or not a number, is no value.
            with out.block(f"if not ({value} {sign} {t}_worst):"):
                out.line("fail = 1")
            self.use(f"{t}_worst", layout.dtype, 0)
        with out.block(f"if {value} {sign} {t}_val[{slot}]:"):
            out.line(f"{t}_val[{slot}] = {value}")
            self.queue(layout, t, slot)

    def put_dense(self, layout: TableLayout, t: str, slot: str) -> None:
        out = self.out
        if layout.small and self.pivoted and not layout.counted:
            # The flags lie in the nearest cache: writing always is cheaper than a branch that is hard to foresee.
            out.line(f"{t}_log[np.uint64({t}_count)] = {slot}")
            out.line(f"{t}_count += np.int64({t}_seen[{slot}] ^ ONE)")
            out.line(f"{t}_seen[{slot}] = ONE")
            return
        with out.block(f"if {t}_seen[{slot}] == 0:"):
            out.line(f"{t}_seen[{slot}] = {'ONE' if self.pivoted else f'np.uint8({KNOWN | QUEUED})'}")
            self.note(t, slot)

    def note(self, t: str, slot: str) -> None:
        """A slot that is new goes to the list of those that have facts."""
        self.out.line(f"{t}_log[np.uint64({t}_count)] = {slot}")
        self.out.line(f"{t}_count += 1")

    def new_slot(self, layout: TableLayout, t: str, slot: str, spot: str, keys: list[str]) -> None:
        out = self.out
        out.line(f"{slot} = {t}_count")
        out.line(f"{t}_h[{spot}] = np.int32({slot} + 1)")
        for i, key in enumerate(keys):
            out.line(f"{t}_k[{slot}, {i}] = {key}")
        out.line(f"{t}_count += 1")
        with out.block(f"if {t}_count == {t}_k.shape[0]:"):
            out.line(f"{t}_k = grown_rows({t}_k)")
            out.line(f"{t}_h = rehashed({t}_k, {t}_count)")
            for name in self.grown(layout, t):
                fill = f"{t}_worst" if name.endswith("_val") and f"{t}_worst" in self.arguments else "0"
                out.line(f"{name} = grown({name}, {fill})")

    def grown(self, layout: TableLayout, t: str) -> list[str]:
        """The arrays that have an entry for each slot of a hashed table."""
        names = [f"{t}_y{chain}" for chain in layout.chains]
        if layout.table.fold != "set":
            names += [f"{t}_val", f"{t}_seen", f"{t}_q", f"{t}_r"]
        if layout.table.fold == "sum":
            names.append(f"{t}_del")
        return names

    def queue(self, layout: TableLayout, t: str, slot: str, hold: str | None = None) -> None:
        """The group of a slot waits for the next round, unless it does so already.

        With `hold` only a group that is new, or for which this holds, waits."""
        out, bits = self.out, self.out.fresh("f")
        out.line(f"{bits} = {t}_seen[{slot}]")
        with out.block(f"if {bits} & {QUEUED} == 0{f' and ({bits} == 0 or {hold})' if hold else ''}:"):
            self.log(layout, t, slot, bits)
            out.line(f"{t}_seen[{slot}] = {bits} | np.uint8({KNOWN | QUEUED})")
            out.line(f"{t}_r[{t}_next] = {slot}")
            out.line(f"{t}_next += 1")

    def log(self, layout: TableLayout, t: str, slot: str, bits: str) -> None:
        """A dense slot that is new is noted."""
        if layout.storage == "dense":
            with self.out.block(f"if {bits} == 0:"):
                self.note(t, slot)

    def add(self, layout: TableLayout, t: str, slot: str, value: str) -> None:
        out, sum_, hold = self.out, self.out.fresh("d"), None
        if layout.value_kind == "float":
            out.line(f"{sum_} = {t}_del[{slot}] + {value}")
            hold = f"abs({sum_}) > {self.use('tolerance', 'float64', 0)} * abs({t}_val[{slot}])"
        else:
            sum_ = Arithmetic(out).sum(f"{t}_del[{slot}]", value)
        out.line(f"{t}_del[{slot}] = {sum_}")
        self.queue(layout, t, slot, hold)


def key_tuple(keys: list[str]) -> str:
    return "(" + "".join(f"np.int64({key}), " for key in keys) + ")"
