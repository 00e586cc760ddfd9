"""Rule bodies in the text: nests of loops over indexes and tables, down to the head."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from emberlog.components.layout import TableLayout, walk_key
from emberlog.components.nests import Meet, Nest, Probe, Step, Walk
from emberlog.components.program import Check, Let
from emberlog.kernels.code.source import (
    KNOWN,
    TAKEN,
)
from emberlog.kernels.code.tables import Tables, key_tuple

LONG = 256  # rows of a loop that are worth a look at the flag


class Bodies(Tables):
    """Writes the nests.

    `work` counts derivations, `visited` rows that may come to nothing. Together they tell when it is time to give back
    control. Where that has to wait for the end of a round, the flag of `heed_halt` is what ends long loops.
    """

    looping = 0  # the loops of the nest in which the next line stands

    def nest(self, nest: Nest, env: dict[str, str]) -> None:
        """The loops of a rule; the columns of the fact it starts from are in `env` already."""
        self.run(list(nest.checks) + list(nest.steps), nest, env, lambda inner: self.head(nest, inner))

    def run(self, steps: list[Step], nest: Nest, env: dict[str, str], done: Callable[[dict[str, str]], None]) -> None:
        if not steps:
            done(env)
            return
        step, rest = steps[0], steps[1:]
        match step:
            case Check():
                with self.out.block(f"if {self.condition(step, env, nest.kinds)}:"):
                    self.run(rest, nest, env, done)
            case Let(variable, term):
                value = self.term(term, env, nest.kinds, nest.kinds[variable])
                name = self.out.fresh("v")
                self.out.line(f"{name} = {value}")
                self.run(rest, nest, {**env, variable: name}, done)
            case Probe():
                self.probe(step, rest, nest, env, done)
            case Walk():
                self.walk(step, rest, nest, env, done)
            case Meet():
                self.meet(step, rest, nest, env, done)

    def probe(
        self, probe: Probe, rest: list[Step], nest: Nest, env: dict[str, str], done: Callable[[dict[str, str]], None]
    ) -> None:
        low, high = self.rows(probe, nest, env)
        if probe.absent or probe.exists:
            with self.out.block(f"if {low} {'>=' if probe.absent else '<'} {high}:"):
                self.run(rest, nest, env, done)
            return
        row = self.out.fresh("r")
        if rest and self.resumes:
            self.out.line(f"visited += np.int64({high} - {low})")
        is_long = f"{high} - {low} > np.uint64({LONG})" if probe.bound else ""
        with self.loop(f"for {row} in range({low}, {high}):", rest, is_long, is_scan=not probe.bound):
            inner = dict(env)
            for variable, text in self.read(probe, row):
                name = self.out.fresh("v")
                self.out.line(f"{name} = {text}")
                inner[variable] = name
            self.run(rest, nest, inner, done)

    @property
    def resumes(self) -> bool:
        """True if some round can be left off in its middle."""
        return not self.pivoted and any(layout.resumable for layout in self.layouts.values())

    @contextmanager
    def loop(self, text: str, rest: list[Step], is_long: str = "", is_scan: bool = False) -> Iterator[None]:
        """A loop of a nest. The flag is heeded before a scan, before a loop inside another one if it `is_long`, and in
        each turn of a loop with two or more inside."""
        if is_scan or self.looping:
            self.heed_halt(is_long)
        with self.out.block(text):
            if loops_in(rest) > 1:
                self.heed_halt()
            self.looping += 1
            yield
            self.looping -= 1

    def read(self, probe: Probe, row: str) -> Iterator[tuple[str, str]]:
        """The variables that a row of an index gives, and the expressions of their values."""
        pair = self.packed.get((probe.relation, probe.bound))
        if pair is None:
            for position, variable in probe.binds:
                text = f"{self.static_column(probe, position)}[{row}]"
                yield variable, self.wide(probe.relation, position, text)
            return
        word = self.out.fresh("w")
        self.out.line(f"{word} = {self.use(f'{self.index(probe)}_p', 'uint64')}[{row}]")
        for position, variable in probe.binds:
            half = f"{word} & np.uint64(0xFFFFFFFF)" if position == pair[0] else f"{word} >> np.uint64(32)"
            narrow = (probe.relation, position) in self.narrow
            yield variable, f"np.int64(np.int32({half}))" if narrow else f"np.uint32({half})"

    def meet(
        self, meet: Meet, rest: list[Step], nest: Nest, env: dict[str, str], done: Callable[[dict[str, str]], None]
    ) -> None:
        out, ends, columns = self.out, [], []
        for probe in (meet.one, meet.other):
            ends.append(self.rows(probe, nest, env))
            columns.append(self.static_column(probe, probe.bound[-1]))
        (low, high), (low2, high2) = ends
        one, other = out.fresh("v"), out.fresh("v")
        if self.resumes:
            out.line(f"visited += np.int64(min({high} - {low}, {high2} - {low2}))")
        with self.loop(f"while {low} < {high} and {low2} < {high2}:", rest):
            for name, column, spot, probe in ((one, columns[0], low, meet.one), (other, columns[1], low2, meet.other)):
                out.line(f"{name} = {self.wide(probe.relation, probe.bound[-1], f'{column}[{spot}]')}")
            with out.block(f"if {one} < {other}:"):
                out.line(f"{low} = jump({columns[0]}, {low}, {high}, {other})")
            with out.block(f"elif {other} < {one}:"):
                out.line(f"{low2} = jump({columns[1]}, {low2}, {high2}, {one})")
            with out.block("else:"):
                self.run(rest, nest, {**env, meet.variable: one}, done)
                out.line(f"{low}, {low2} = {low} + np.uint64(1), {low2} + np.uint64(1)")

    def wide(self, relation: str, position: int, text: str) -> str:
        """Numbers are computed with in 64 bits, however narrow they are stored."""
        return f"np.int64({text})" if (relation, position) in self.narrow else text

    def rows(self, probe: Probe, nest: Nest, env: dict[str, str]) -> tuple[str, str]:
        """The range of rows of an index that match."""
        name, static = self.index(probe), self.program.static(probe.relation)
        low, high = self.out.fresh("a"), self.out.fresh("b")
        values = [
            self.term(t, env, nest.kinds, static.kinds[p]) for p, t in zip(probe.bound, probe.terms, strict=False)
        ]
        if not values:
            self.out.line(f"{low}, {high} = np.uint64(0), {self.use(f'{name}_m', 'uint64', 0)}")
            return low, high
        offsets = self.use(f"{name}_o", "uint64")
        if (probe.relation, probe.bound) in self.sparse:
            keys = self.use(f"{name}_k", "int64")
            spot = self.out.fresh("x")
            self.out.line(f"{spot} = find_key({keys}, np.int64({values[0]}))")
            self.out.line(f"{low}, {high} = {offsets}[{spot}], {offsets}[{spot} + U1]")
        else:
            place = self.place(probe, values[0])
            self.out.line(f"{low}, {high} = {offsets}[{place}], {offsets}[{place} + U1]")
        # Of a meeting the last column is not known yet.
        for position, value in zip(probe.bound[1 : len(values)], values[1:], strict=True):
            column = self.static_column(probe, position)
            self.out.line(f"{low} = bound_below({column}, {low}, {high}, {value})")
            self.out.line(f"{high} = bound_above({column}, {low}, {high}, {value})")
        return low, high

    def place(self, probe: Probe, key: str) -> str:
        """Where it stands at which row the rows of a key begin."""
        return key

    def walk(
        self, walk: Walk, rest: list[Step], nest: Nest, env: dict[str, str], done: Callable[[dict[str, str]], None]
    ) -> None:
        layout = self.layouts[walk.relation]
        t, table = self.tables[walk.relation], layout.table
        terms = zip(walk.bound, walk.terms, strict=True)
        known = {p: self.term(x, env, nest.kinds, table.kinds[p]) for p, x in terms if p in layout.keys}
        if all(key in known for key in layout.keys):
            self.found(walk, known, rest, nest, env, done)
            return
        slot = self.out.fresh("s")
        chain = walk_key(walk, layout.keys, table)
        if chain is None:
            counter = self.out.fresh("q")
            # Facts that were taken up are the first of a list only where it is followed one by one.
            in_order = nest.above or (table.fold == "set" and (layout.storage == "hash" or self.pivoted))
            last = f"{t}_{'taken' if in_order and not nest.above else 'count'}"
            self.out.line(f"visited += {last}")
            with self.loop(f"for {counter} in range({last}):", rest, is_scan=True):
                self.out.line(f"{slot} = {self.logged(layout, t, counter)}")
                with self.out.block("if True:" if in_order else f"if {t}_seen[{slot}] & {TAKEN} != 0:"):
                    self.visited(walk, slot, known, rest, nest, env, done)
            return
        heads = self.use(f"{t}_x{chain}", "uint32")
        following = self.use(f"{t}_y{chain}", "uint32")
        link = self.out.fresh("l")
        self.out.line(f"{link} = {heads}[{known[chain]}]")
        with self.loop(f"while {link} != 0:", rest):
            self.out.line("visited += 1")
            self.out.line(f"{slot} = {link} - U1")
            self.out.line(f"{link} = {following}[{slot}]")
            self.visited(walk, slot, {k: v for k, v in known.items() if k != chain}, rest, nest, env, done)

    def logged(self, layout: TableLayout, t: str, position: str) -> str:
        return f"{t}_log[{position}]" if layout.storage == "dense" else position

    def visited(self, walk: Walk, slot: str, known: dict[int, str], rest, nest, env, done) -> None:  # type: ignore[no-untyped-def]
        """One fact of a table, if its known columns match."""
        layout = self.layouts[walk.relation]
        columns = self.columns(layout, slot)
        tests = [f"{columns[key]} == {value}" for key, value in known.items() if key in layout.keys]
        if tests:
            with self.out.block(f"if {' and '.join(tests)}:"):
                self.bound_fact(walk, slot, columns, rest, nest, env, done)
        else:
            self.bound_fact(walk, slot, columns, rest, nest, env, done)

    def bound_fact(self, walk: Walk, slot: str, columns: dict[int, str], rest, nest, env, done) -> None:  # type: ignore[no-untyped-def]
        t, table = self.tables[walk.relation], self.layouts[walk.relation].table
        inner = dict(env)
        for position, variable in walk.binds:
            name = self.out.fresh("v")
            source = columns[position] if position != table.value else f"{t}_val[{slot}]"
            if position == table.value and nest.above:
                source = self.finished_value(self.layouts[walk.relation], t, slot)
            self.out.line(f"{name} = {source}")
            inner[variable] = name
        self.run(rest, nest, inner, done)

    def found(self, walk: Walk, known: dict[int, str], rest, nest, env, done) -> None:  # type: ignore[no-untyped-def]
        """The one fact of a table whose keys are all known, if it is there, or if it is not."""
        layout = self.layouts[walk.relation]
        t = self.tables[walk.relation]
        slot = self.out.fresh("s")
        keys = [known[key] for key in layout.keys]
        head = self.program.table(nest.rule.head)
        # A sum has its value when it is taken up.
        counts = not nest.above and ((head is not None and head.fold == "sum") or layout.table.fold == "sum")
        if layout.storage == "dense":
            self.out.line(f"{slot} = {self.dense_slot(t, keys)}")
            there = f"{t}_seen[{slot}] & {TAKEN if counts else KNOWN} != 0"
        else:
            spot = self.out.fresh("i")
            self.out.line(f"{spot} = find({t}_h, {t}_k, {key_tuple(keys)})")
            self.out.line(f"{slot} = np.int64({t}_h[{spot}]) - 1")
            there = f"{slot} >= 0"
            if counts:
                there += (
                    f" and {slot} < {t}_taken"
                    if layout.table.fold == "set"
                    else f" and {t}_seen[{slot}] & {TAKEN} != 0"
                )
        with self.out.block(f"if {f'not ({there})' if walk.absent else there}:"):
            self.bound_fact(walk, slot, dict(zip(layout.keys, keys, strict=True)), rest, nest, env, done)

    def finished_value(self, layout: TableLayout, t: str, slot: str) -> str:
        """The value of a fact that no longer changes."""
        if layout.table.fold == "sum":
            return f"({t}_val[{slot}] + {t}_del[{slot}])"
        return f"np.int64({t}_val[{slot}])" if layout.narrow else f"{t}_val[{slot}]"

    def head(self, nest: Nest, env: Mapping[str, str]) -> None:
        layout = self.layouts[nest.rule.head]
        table, rule = layout.table, nest.rule
        keys = [self.term(rule.arguments[key], env, rule.kinds, table.kinds[key]) for key in layout.keys]
        value = None
        if table.value is not None:
            value = self.term(rule.arguments[table.value], env, rule.kinds, table.kinds[table.value])
        self.out.line("work += 1")
        self.put(layout, keys, value)


def loops_in(steps: list[Step]) -> int:
    """How many of the steps are loops."""
    return sum(
        isinstance(step, Walk | Meet) or (isinstance(step, Probe) and not step.exists and not step.absent)
        for step in steps
    )
