"""Loops over tables in shards, in the text: nests read tables as they are, and write down what they find.

The function is called for some of what is new in a table. It returns the lists of what was found: for each fact, the
code of its key, the columns of the key and, where the table has rows, an element or the row of a source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from emberlog.components.layout import TableLayout
from emberlog.components.nests import Nest, Step, Walk
from emberlog.components.program import Id
from emberlog.components.shards import Index, Outlet, Start, handed_on, index_of, outlet_of, plan
from emberlog.kernels.code.bodies import Bodies
from emberlog.kernels.code.source import HEADER, Array, Source, assigned, with_constants
from emberlog.kernels.code.tables import key_tuple

IMPORTS = """from emberlog.kernels.shards.keys import code_of, row_at, row_of, sift
from emberlog.kernels.shards.elements import elements_of, is_element
"""

# Places in `counts`; the numbers of what was found follow.
COUNTS = ("start", "at", "end", "fail", "work")

NEAR = 128  # facts that are looked up together

Done = Callable[[dict[str, str]], None]


class Shards(Bodies):
    """Writes the function. Of table `t`, `t_h` and `t_k` are the directory, `t_m`, `t_i`, `t_b` the rows, `t_f` the new
    facts, `t_d` the rows that have some. Of index `x`, `x_h` and `x_k` are the directory, `x_w` and `x_z` where the
    vector of a key is and how long, `x_p` the pool of all vectors."""

    @property
    def resumes(self) -> bool:
        return False

    def source(self) -> Source:
        self.plan = plan(self.nests, self.layouts)
        for number, start in enumerate(self.plan.starts):
            with self.out.block(f"if start == {number}:"):
                self.begin(start)
        body = self.out.lines
        self.replaced = assigned(body)
        lists = [self.list_of(outlet) for outlet in self.plan.outlets]
        before = [f"    {', '.join(COUNTS[:3])} = counts[0], counts[1], counts[2]", "    fail, work = 0, 0"]
        before += [f"    {name}_n = counts[{len(COUNTS) + i}]" for i, name in enumerate(lists)]
        before += [f"    {name} = np.empty({size}, np.int32)" for name, size in self.scratch.items()]
        before += [
            f"    {self.list_of(o)}_f, {self.list_of(o)}_c = np.empty(({NEAR}, {self.width(o)}), np.int64), 0"
            for o in self.sifted
        ]
        after = [f"    {self.sift(outlet)}" for outlet in self.sifted]
        after.append("    counts[1], counts[3], counts[4] = at, fail, work")
        after += [f"    counts[{len(COUNTS) + i}] = {name}_n" for i, name in enumerate(lists)]
        after.append(f"    return ({''.join(f'{name}, ' for name in lists)})")
        names = ["counts", *self.arguments]
        lines = "\n".join([f"\n\ndef run({', '.join(names)}):", *before, *body, *after]) + "\n"
        text = HEADER + IMPORTS + with_constants(lines)
        arguments = (Array("counts", "int64"), *self.arguments.values())
        return Source(text, arguments, tuple(lists), tuple(self.constants))

    @property
    def scratch(self) -> dict[str, str]:
        """Lists for the elements of a row, and how long they are."""
        return self.__dict__.setdefault("_scratch", {})  # type: ignore[no-any-return]

    def list_of(self, outlet: Outlet) -> str:
        return self.use(f"list{self.plan.outlets.index(outlet)}", "int64", 2)

    def width(self, outlet: Outlet) -> int:
        """A code and the columns."""
        return 1 + len(self.layouts[outlet.head].table.kinds)

    @property
    def sifted(self) -> tuple[Outlet, ...]:
        """What is looked up before it is written down: facts that have places of their own."""
        return tuple(o for o in self.plan.outlets if self.layouts[o.head].set_column is None)

    def sift(self, outlet: Outlet) -> str:
        """Those of the facts at hand that are new go to the list."""
        name, layout = self.list_of(outlet), self.layouts[outlet.head]
        return f"{name}, {name}_n = sift({name}_f, {name}_c, {self.directory(layout)}, {name}, {name}_n)"

    # --- starts --------------------------------------------------------------------------------------------------

    def begin(self, start: Start) -> None:
        """Goes through what is new, until all is done or so much was found."""
        out, layout = self.out, self.layouts[start.table]
        t = self.tables[start.table]
        found = " + ".join(f"{self.list_of(outlet)}_n" for outlet in self.plan.outlets)
        with out.block(f"while at < end and fail == 0 and {found} < {self.use('most', 'int64', 0)}:"):
            self.heed_halt()
            out.line("fact = at")
            out.line("at += 1")
            if start.rows:
                out.line(f"row = {self.use(f'{t}_d', 'int64')}[fact]")
            for nest in start.nests:
                columns = self.key_columns(layout, "row") if start.rows else self.fact_columns(layout, "fact")
                env = {name: columns.get(position, "row") for position, name in nest.binds}
                self.nest(nest, env)

    def fact_columns(self, layout: TableLayout, fact: str) -> dict[int, str]:
        facts = self.use(f"{self.tables[layout.table.name]}_f", self.dtype(layout), 2)
        return {spot: self.read_number(layout, facts, fact, spot, spot) for spot in range(len(layout.table.kinds))}

    def key_columns(self, layout: TableLayout, row: str) -> dict[int, str]:
        keys = self.use(f"{self.tables[layout.table.name]}_k", self.dtype(layout), 2)
        return {spot: self.read_number(layout, keys, row, i, spot) for i, spot in enumerate(layout.keys)}

    def read_number(self, layout: TableLayout, array: str, row: str, place: int, column: int) -> str:
        """A number of a matrix, as one of the kind of its column."""
        kind = "uint32" if isinstance(layout.table.kinds[column], Id) else "int64"
        name = self.out.fresh("k")
        self.out.line(f"{name} = np.{kind}({array}[{row}, {place}])")
        return name

    def dtype(self, layout: TableLayout) -> str:
        return "uint32" if all(isinstance(kind, Id) for kind in layout.table.kinds) else "int64"

    # --- look-ups ------------------------------------------------------------------------------------------------

    def walk(self, walk: Walk, rest: list[Step], nest: Nest, env: dict[str, str], done: Done) -> None:
        layout = self.layouts[walk.relation]
        kinds = layout.table.kinds
        known = {p: self.term(x, env, nest.kinds, kinds[p]) for p, x in zip(walk.bound, walk.terms, strict=True)}
        index = index_of(walk, layout)

        def facts(columns: Mapping[int, str]) -> None:
            self.run(rest, nest, {**env, **{name: columns[p] for p, name in walk.binds}}, done)

        def row(row: str, columns: Mapping[int, str]) -> None:
            self.of_row(walk, nest, row, columns, known.get(layout.set_column or 0), facts)

        has_rows = layout.set_column is not None
        if set(layout.keys) <= set(known):
            self.of_key(layout, known, row if has_rows else lambda _, columns: facts(columns))
        elif index is not None:
            self.of_index(index, layout, known, rest, row, facts)
        else:
            self.of_all(layout, rest, row if has_rows else lambda _, columns: facts(columns))

    def of_key(
        self, layout: TableLayout, known: Mapping[int, str], then: Callable[[str, Mapping[int, str]], None]
    ) -> None:
        """The row whose key is known, if there is one."""
        row = self.out.fresh("s")
        self.out.line(f"{row} = row_of({self.directory(layout)}, {key_tuple([known[key] for key in layout.keys])})")
        with self.out.block(f"if {row} >= 0:"):
            then(row, known)

    def of_index(
        self,
        index: Index,
        layout: TableLayout,
        known: Mapping[int, str],
        rest: list[Step],
        row: Callable[[str, Mapping[int, str]], None],
        facts: Callable[[Mapping[int, str]], None],
    ) -> None:
        """What an index has of the columns that are known."""
        out, x = self.out, f"x{self.plan.indexes.index(index)}"
        at, low, high, place = (out.fresh(prefix) for prefix in "iabj")
        keys = key_tuple([known[column] for column in index.columns])
        self.use(f"{x}_h", "int32", 2), self.use(f"{x}_k", self.dtype(layout), 2)
        out.line(f"{at} = row_of({x}_h, {x}_k, {keys})")
        with out.block(f"if {at} >= 0:"):
            out.line(f"{low} = {self.use(f'{x}_w', 'int64')}[{at}]")
            out.line(f"{high} = {low} + {self.use(f'{x}_z', 'int32')}[{at}]")
            pool = self.use(f"{x}_p", self.dtype(layout), 2)
            with self.loop(f"for {place} in range({low}, {high}):", rest):
                if index.rows:
                    found = out.fresh("s")
                    out.line(f"{found} = np.int64({pool}[{place}, 0])")
                    row(found, self.key_columns(layout, found))
                else:
                    others = enumerate(index.others)
                    read = {column: self.read_number(layout, pool, place, i, column) for i, column in others}
                    facts({**known, **read})

    def of_all(self, layout: TableLayout, rest: list[Step], then: Callable[[str, Mapping[int, str]], None]) -> None:
        """Every row, where nothing is known."""
        t, out = self.tables[layout.table.name], self.out
        shard, place, row = (out.fresh(prefix) for prefix in "ojs")
        counts = self.use(f"{t}_c", "int64")
        with out.block(f"for {shard} in range({counts}.size):"):
            self.heed_halt()
            with self.loop(f"for {place} in range({counts}[{shard}]):", rest, is_scan=True):
                out.line(f"{row} = row_at({place}, {shard}, {counts}.size)")
                then(row, self.key_columns(layout, row))

    def of_row(
        self,
        walk: Walk,
        nest: Nest,
        row: str,
        columns: Mapping[int, str],
        element: str | None,
        facts: Callable[[Mapping[int, str]], None],
    ) -> None:
        """The facts of a row: the one with a known element, the row itself where it is handed on, or all."""
        layout, out = self.layouts[walk.relation], self.out
        column = layout.set_column
        assert column is not None
        t = self.tables[walk.relation]
        if column in walk.bound:
            with out.block(f"if is_element({element}, {row}, {self.rows_of(t)}):"):
                facts(columns)
            return
        binds = dict(walk.binds)
        if column not in binds or binds[column] == handed_on(nest, self.layouts):
            facts({**columns, column: row})
            return
        kept, place, value = f"e{len(self.scratch)}", out.fresh("j"), out.fresh("v")
        self.scratch[kept] = self.use(f"{t}_s", "int64", 0)
        words = self.use(f"{t}_v", "int64", 0)
        with self.loop(f"for {place} in range(elements_of({row}, {self.rows_of(t)}, {words}, {kept})):", []):
            out.line(f"{value} = np.uint32({kept}[{place}])")
            facts({**columns, column: value})

    def directory(self, layout: TableLayout) -> str:
        t = self.tables[layout.table.name]
        return f"{self.use(f'{t}_h', 'int32', 2)}, {self.use(f'{t}_k', self.dtype(layout), 2)}"

    def rows_of(self, t: str) -> str:
        arrays = (self.use(f"{t}_m", "int64", 2), self.use(f"{t}_i", "int32"), self.use(f"{t}_b", "int64"))
        return ", ".join(arrays)

    # --- heads ---------------------------------------------------------------------------------------------------

    def head(self, nest: Nest, env: Mapping[str, str]) -> None:
        """What was found goes to its list."""
        layout, rule, out = self.layouts[nest.rule.head], nest.rule, self.out
        kinds, column = layout.table.kinds, layout.set_column
        values = [self.term(rule.arguments[key], env, rule.kinds, kinds[key]) for key in layout.keys]
        outlet, code = outlet_of(nest, self.layouts), out.fresh("h")
        b = self.list_of(outlet)
        out.line(f"{code} = code_of({key_tuple(values)})")
        if column is not None:
            values.append(self.term(rule.arguments[column], env, rule.kinds, kinds[column]))
        out.line("work += 1")
        if outlet in self.sifted:
            self.write(f"{b}_f", f"{b}_c", [code, *values])
            with out.block(f"if {b}_c == {NEAR}:"):
                out.line(self.sift(outlet))
                out.line(f"{b}_c = 0")
        else:
            with out.block(f"if {b}_n == {b}.shape[0]:"):
                out.line(f"{b} = grown_rows({b})")
            self.write(b, f"{b}_n", [code, *values])

    def write(self, array: str, count: str, values: list[str]) -> None:
        """One more row of a list."""
        for spot, value in enumerate(values):
            self.out.line(f"{array}[{count}, {spot}] = np.int64({value})")
        self.out.line(f"{count} += 1")
