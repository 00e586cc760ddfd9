"""The functions around the nests: rounds over all tables, and one fixpoint for each pivot."""

from __future__ import annotations

from emberlog.components.layout import TableLayout
from emberlog.kernels.code.above import Above
from emberlog.kernels.code.source import (
    EACH,
    HEADER,
    KNOWN,
    QUEUED,
    Array,
    Source,
    assigned,
    with_constants,
)
from emberlog.kernels.code.tables import key_tuple

# Places in `counts`, after three for each table.
COUNTS = ("fail", "work", "rounds", "pivot", "written", "phase", "left")

SWEEP = 32  # of so many slots one must wait for a sweep over all of them to pay
SPENT = "work + visited // 4"  # a row that is only visited takes so much less time than a derivation


class Loops(Above):
    def source(self) -> Source:
        for layout in self.layouts.values():
            self.declare(layout)
        if self.pivoted:
            self.each_pivot()
        else:
            self.rounds()
        body = self.out.lines
        self.replaced = assigned(body)
        self.out.lines, self.out.depth = [], 1
        self.load()
        before, self.out.lines = self.out.lines, []
        self.save()
        after = self.out.lines
        names = ["counts", *self.arguments]
        lines = "\n".join([f"\n\ndef run({', '.join(names)}):", *before, *body, *after]) + "\n"
        text = HEADER + with_constants(lines)
        arguments = (Array("counts", "int64"), *self.arguments.values())
        return Source(text, arguments, self.returned(), tuple(self.constants))

    def returned(self) -> tuple[str, ...]:
        """The arrays that others may have taken the place of: tables that grew, lists that changed their roles."""
        return tuple(name for name, array in self.arguments.items() if array.dimensions and name in self.replaced)

    def declare(self, layout: TableLayout) -> None:
        t, table = self.tables[layout.table.name], layout.table
        if layout.storage == "dense":
            self.use(f"{t}_seen", "uint8")
            self.use(f"{t}_log", "uint32")
        else:
            self.use(f"{t}_h", "int32")
            self.use(f"{t}_k", "int64", 2)
        if table.fold != "set":
            self.use(f"{t}_seen", "uint8")
            self.use(f"{t}_val", layout.dtype)
            if self.lists(layout):
                self.use(f"{t}_q", "uint32")
                self.use(f"{t}_r", "uint32")
            self.use(f"{t}_worst", layout.dtype, 0)
        if table.fold == "sum":
            self.use(f"{t}_del", layout.dtype)
        for chain in layout.chains:
            self.use(f"{t}_x{chain}", "uint32")
            self.use(f"{t}_y{chain}", "uint32")

    def lists(self, layout: TableLayout) -> bool:
        """Do groups that wait stand in a list?"""
        return True

    def load(self) -> None:
        """Counters become local numbers."""
        for i, t in enumerate(self.tables.values()):
            self.out.line(f"{t}_count, {t}_taken, {t}_next = counts[{3 * i}], counts[{3 * i + 1}], counts[{3 * i + 2}]")
        base = 3 * len(self.tables)
        self.out.line("fail, work, visited, down = 0, 0, 0, True")
        self.out.line(f"rounds = counts[{base + 2}]")

    def save(self) -> None:
        for i, t in enumerate(self.tables.values()):
            self.out.line(f"counts[{3 * i}], counts[{3 * i + 1}], counts[{3 * i + 2}] = {t}_count, {t}_taken, {t}_next")
        base = 3 * len(self.tables)
        self.out.line(f"counts[{base}], counts[{base + 1}], counts[{base + 2}] = fail, work, rounds")
        names = self.returned()
        self.out.line(f"return ({''.join(f'{name}, ' for name in names)})")

    # --- rounds --------------------------------------------------------------------------------------------------

    def rounds(self) -> None:
        """Up to `most` rounds, until nothing waits or so much work was done; `deltas` gets the facts of each.

        A round that is left off in its middle is not counted yet; its facts so far stand in `deltas` behind the others.
        """
        out = self.out
        most, budget, deltas = self.use("most", "int64", 0), self.use("budget", "int64", 0), self.use("deltas", "int64")
        out.line("rounds = 0")
        with out.block(f"while rounds < {most} and fail == 0 and {SPENT} < {budget}:"):
            with out.block(f"if {self.all_waiting()} == 0:"):
                out.line("break")
            out.line("took = 0")
            for layout in self.layouts.values():
                self.take_round(layout)
            with out.block("if took == 0:"):
                out.line("break")
            out.line(f"{deltas}[rounds] = took")
            if unfinished := self.unfinished():
                with out.block(f"if {unfinished}:"):
                    out.line("break")
            out.line("rounds += 1")

    def unfinished(self) -> str:
        """True if a round was left off in its middle; empty where none can be."""
        tables = (self.tables[layout.table.name] for layout in self.layouts.values() if layout.resumable)
        return " or ".join(f"{t}_taken < {t}_next" for t in tables)

    def all_waiting(self) -> str:
        """How many facts wait."""
        return " + ".join(self.waiting(layout) for layout in self.recursive)

    def waiting(self, layout: TableLayout) -> str:
        t = self.tables[layout.table.name]
        return f"({t}_count - {t}_taken)" if layout.table.fold == "set" else f"{t}_next"

    def take_round(self, layout: TableLayout) -> None:
        """Takes up every fact of a table that waits: one by one from the list, or, where many do, in a sweep over all
        slots. A sweep reads memory in order, and takes what it finds in front of itself along."""
        t, out, fold = self.tables[layout.table.name], self.out, layout.table.fold
        if not self.pivoted:
            self.use("rank", "uint64", 0), self.use("size", "uint64", 0)
        if layout.resumable:
            self.take_rows(layout, t)
            return
        if fold == "set":
            out.line(f"low, high = {t}_taken, {t}_count")
            out.line(f"{t}_taken = {t}_count")
            source = f"{t}_log"
        else:
            out.line(f"low, high, {t}_next = 0, {t}_next, 0")
            out.line(f"{t}_q, {t}_r = {t}_r, {t}_q")
            source = f"{t}_q"
        sweeps = layout.storage == "dense"
        if sweeps:
            # Flags are looked at eight at a time: where few slots wait, a sweep passes over the others quickly.
            words = self.use(f"{t}_words", "uint64")
            out.line(f"sweep = {self.sweeps(t)}")
            with out.block("if sweep:"):
                # Facts may travel to larger ids or to smaller ones: up and down in turns suits both.
                out.line(f"low, high, down = 0, {words}.size, not down")
        with self.each("q", "low", "high", "int64"):
            if sweeps:
                out.line("word = np.uint64(high - 1 - q if down else q)")
                out.line("begin = word << np.uint64(3)")
                out.line("end = begin + np.uint64(8)")
                with out.block("if not sweep:"):
                    out.line(f"begin = np.uint64({source}[np.uint64(q)])")
                    out.line("end = begin + np.uint64(1)")
                with out.block(f"elif {words}[word] & np.uint64({QUEUED * EACH:#x}) == 0:"):
                    out.line("continue")
                with out.block("for slot in range(begin, end):"):
                    out.line("s = np.uint32(slot)")
                    self.take_waiting(layout, t)
            else:
                out.line(f"s = {source}[np.uint64(q)]")
                self.take_waiting(layout, t)

    def sweeps(self, t: str) -> str:
        return f"(high - low) * {SWEEP} > {t}_seen.size"

    def take_waiting(self, layout: TableLayout, t: str) -> None:
        """Takes up a slot if it waits and is ours."""
        out = self.out
        with out.block(f"if {t}_seen[s] & {QUEUED} == 0:"):
            out.line("continue")
        if not self.pivoted:
            with out.block(f"if size > 1 and {self.owner(layout, t)} != rank:"):
                if layout.table.fold == "set":
                    out.line(f"{t}_seen[s] = np.uint8({KNOWN})")
                else:
                    # It is still to be sent; one that a sweep finds may stand in the list already.
                    out.line(f"{t}_r[{t}_next] = s")
                    out.line(f"{t}_next += 1")
                out.line("continue")
            out.line("took += 1")
        self.take(layout, "s")

    def take_rows(self, layout: TableLayout, t: str) -> None:
        """Hashed sets: rows in the order in which they came, so that a round may be left off in its middle. `next` is
        where it ends."""
        out = self.out
        with out.block(f"if {t}_taken == {t}_next:"):
            out.line(f"{t}_next = {t}_count")
        with out.block(f"while {t}_taken < {t}_next and fail == 0 and {SPENT} < {self.use('budget', 'int64', 0)}:"):
            self.heed_halt()
            out.line(f"s = {t}_taken")
            out.line(f"{t}_taken += 1")
            out.line("took += 1")
            with out.block(f"if size == 1 or {self.owner(layout, t)} == rank:"):
                self.take(layout, "s")

    def owner(self, layout: TableLayout, t: str) -> str:
        if not layout.keys:
            return "np.uint64(0)"
        if layout.storage == "hash":
            return f"np.uint64({t}_k[s, {layout.divided_by or 0}]) % size"
        if layout.divided_by is None:
            return "np.uint64(s) % size"
        return f"np.uint64({self.columns(layout, 's')[layout.keys[layout.divided_by]]}) % size"

    # --- pivots --------------------------------------------------------------------------------------------------

    def each_pivot(self) -> None:
        """Fixpoints from `counts` pivot up to `last`, every `step` of them, as long as the output has room."""
        out, base = self.out, 3 * len(self.tables)
        pivots = len(next(iter(self.pivots.values())))
        last = self.use("last", "int64", 0)
        out.line(f"pivot, phase = counts[{base + 3}], counts[{base + 5}]")
        for t in self.tables.values():
            out.line(f"{t}_out = np.int64(0)")
        self.use("budget", "int64", 0)
        out.line("deepest = rounds")
        with out.block(f"while pivot < {last} and fail == 0:"):
            for spot in range(pivots):
                out.line(f"p{spot} = {self.use(f'pivot{spot}', 'uint32')}[pivot]")
            with out.block("if phase == 0:"):
                with out.block(f"if {SPENT} > budget:"):
                    out.line("break")
                self.begin_pivot()
                for layout in self.recursive:
                    self.seed(layout)
                self.fixpoint()
                self.finish()
                out.line("phase = 1")
            with out.block(f"if {' or '.join(self.overfull(layout) for layout in self.layouts.values())}:"):
                out.line("break")
            for layout in self.layouts.values():
                self.flush(layout, pivots)
            out.line("phase = 0")
            out.line(f"pivot += {self.use('step', 'int64', 0)}")
        out.line("rounds = deepest")
        out.line(f"counts[{base + 3}], counts[{base + 5}] = pivot, phase")
        written = self.use("written", "int64")
        for i, t in enumerate(self.tables.values()):
            out.line(f"{written}[{i}] = {t}_out")

    def begin_pivot(self) -> None:
        """What stands before the first fact of a pivot."""

    def seed(self, layout: TableLayout) -> None:
        """The exit rows of this pivot."""
        t, out, table = self.tables[layout.table.name], self.out, layout.table
        rows = self.use(f"{t}_eo", "int64")
        with out.block(f"for r in range({rows}[pivot], {rows}[pivot + 1]):"):
            keys = []
            for i, key in enumerate(layout.keys):
                dtype = "uint32" if layout.domains[i] is not None else "int64"
                keys.append(f"{self.use(f'{t}_e{key}', dtype)}[r]")
            value = None
            if table.value is not None:
                value = f"{self.use(f'{t}_ev', layout.dtype)}[r]"
                out.line(f"x0 = {value}")
                value = "x0"
            self.put(layout, keys, value)

    def fixpoint(self) -> None:
        out = self.out
        out.line("depth = 0")
        out.line(f"delta = {self.all_waiting()}")
        with out.block("while delta > 0 and fail == 0:"):
            self.heed_halt()
            for layout in self.recursive:
                if layout.table.fold == "set":
                    self.take_pivoted(layout)
                else:
                    self.take_round(layout)
            out.line("depth += 1")
            with out.block(f"if depth > {self.use('most', 'int64', 0)}:"):
                out.line("fail = 2")
            out.line(f"delta = {self.all_waiting()}")
        with out.block("if depth > deepest:"):
            out.line("deepest = depth")

    def take_pivoted(self, layout: TableLayout) -> None:
        """The facts of a set, in the order in which they came."""
        t, out = self.tables[layout.table.name], self.out
        out.line(f"{t}_stop = {t}_count")
        with out.block(f"for q in range({t}_taken, {t}_stop):"):
            out.line(f"s = {t}_log[np.uint64(q)]" if layout.storage == "dense" else "s = np.int64(q)")
            out.line(f"{t}_taken = q + 1")
            self.take(layout, "s")

    def overfull(self, layout: TableLayout) -> str:
        t = self.tables[layout.table.name]
        room = self.use("room", "int64", 0)
        return f"{t}_out + {t}_count > {room}"

    def flush(self, layout: TableLayout, pivots: int) -> None:
        """The facts of this pivot go to the output, and the table is empty again."""
        t, out, table = self.tables[layout.table.name], self.out, layout.table
        keep = self.use(f"{t}_keep", "int64", 0)
        with out.block(f"for q in range({t}_count):"):
            if layout.storage == "dense":
                out.line(f"s = {t}_log[q]")
            else:
                out.line("s = np.int64(q)")
            with out.block(f"if {keep} != 0:"):
                columns = self.columns(layout, "s")
                for i, key in enumerate(layout.keys):
                    dtype = "uint32" if layout.domains[i] is not None else "int64"
                    out.line(f"{self.use(f'{t}_w{key}', dtype)}[{t}_out + q] = {columns[key]}")
                if table.value is not None:
                    kept = self.use(f"{t}_wv", layout.dtype)
                    source = f"{t}_val[s]" if table.fold != "sum" else f"{t}_val[s] + {t}_del[s]"
                    out.line(f"{kept}[{t}_out + q] = {source}")
            if layout.storage == "dense":
                out.line(f"{t}_seen[s] = 0")
            if table.fold != "set":
                out.line(f"{t}_seen[s] = 0")
                out.line(f"{t}_val[s] = {t}_worst")
            if table.fold == "sum":
                out.line(f"{t}_del[s] = 0")
            if layout.chains:
                columns = self.columns(layout, "s")
                for chain in layout.chains:
                    out.line(f"{t}_x{chain}[{columns[chain]}] = 0")
        if layout.storage == "hash":
            # After a large pivot a small one must not pay for the whole table. Backwards: what came last is in nobody's
            # way.
            stored = key_tuple([f"{t}_k[q, {i}]" for i in range(len(layout.keys))])
            few = f"if 8 * {t}_count < {t}_h.size:"
            with out.block(few), out.block(f"for q in range({t}_count - 1, -1, -1):"):
                out.line(f"{t}_h[find({t}_h, {t}_k, {stored})] = 0")
            with out.block("else:"):
                out.line(f"{t}_h[:] = 0")
        counts = self.use(f"{t}_rows", "int64")
        out.line(f"{counts}[pivot] = {t}_count")
        out.line(f"{t}_out += {t}_count")
        out.line(f"{t}_count, {t}_taken, {t}_next = 0, 0, 0")
