"""Writes the loops of a component as Python source that Numba compiles.

The text depends on the shape of the rules alone: relations, variables and constants have generated names, sizes and
constants are arguments. So two programs of one shape share one compiled function, and nothing that a user wrote gets
into the source.

One function makes rounds: it takes up the facts that wait in each table, runs the nests that start there, and puts
what they find into the tables. With pivots it makes one fixpoint after the other, from the exit rows of each pivot
to rows of the output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from emberlog.kernels.arithmetic import Arithmetic
from emberlog.kernels.layout import TableLayout, walk_key
from emberlog.kernels.nests import Meet, Nest, Probe, Step, Walk
from emberlog.kernels.pivots import Pivots
from emberlog.kernels.program import Check, Id, KernelProgram, Kind, Let
from emberlog.syntax.nodes import Call, Constant, Term, Variable

# Bits of `seen`.
KNOWN, QUEUED, TAKEN = 1, 2, 4
EACH = 0x0101010101010101  # times a bit: that bit of each of eight flags

HEADER = """import numpy as np
from emberlog.kernels.runtime import bound_above, bound_below, find, find_key, grown, grown_rows, rehashed, truncated
from emberlog.kernels.runtime import jump, remainder, trailing

U1 = np.uint32(1)
ONE = np.uint8(1)
"""


@dataclass(frozen=True, slots=True)
class Array:
    """An argument of the function: its name, element type and number of dimensions (0: a number)."""

    name: str
    dtype: str
    dimensions: int = 1


@dataclass(frozen=True, slots=True)
class Source:
    """`text` defines `run(arguments)`, which returns the `returned` arrays."""

    text: str
    arguments: tuple[Array, ...]
    returned: tuple[str, ...]
    constants: tuple[tuple[Kind, object], ...]  # values of c0, c1, ..


@dataclass
class Writer:
    """Lines with an indent."""

    lines: list[str] = field(default_factory=list)
    depth: int = 1
    count: int = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, text: str) -> Iterator[None]:
        self.line(text)
        self.depth += 1
        mark = len(self.lines)
        yield
        if len(self.lines) == mark:
            self.line("pass")
        self.depth -= 1

    def fresh(self, prefix: str = "x") -> str:
        self.count += 1
        return f"{prefix}{self.count}"


def column_dtype(kind: Kind, narrow: bool) -> str:
    match kind:
        case Id():
            return "uint32"
        case "float":
            return "float64"
        case _:
            return "int32" if narrow else "int64"


Key = tuple[str, tuple[int, ...]]  # a static index: relation, bound columns


class Emitter:
    """Writes the nests of one program. `narrow` are the static columns whose numbers fit in 32 bits; `sparse` the
    indexes whose first column is looked up among its sorted values, not used as a position; `packed` those that hold
    two columns of 32 bits in one array of 64, so that both come with one access."""

    def __init__(
        self,
        program: KernelProgram,
        pivots: Pivots,
        nests: tuple[Nest, ...],
        layouts: Mapping[str, TableLayout],
        narrow: frozenset[tuple[str, int]],
        sparse: frozenset[Key],
        packed: Mapping[Key, tuple[int, int]],
    ) -> None:
        self.program = program
        self.pivots = pivots
        self.nests = nests
        self.layouts = layouts
        self.narrow = narrow
        self.sparse = sparse
        self.packed = packed
        self.out = Writer()
        self.arguments: dict[str, Array] = {}
        self.tables = {table.name: f"t{i}" for i, table in enumerate(program.tables)}
        self.indexes: dict[Key, str] = {}
        self.constants: dict[tuple[Kind, object], str] = {}
        self.pivoted = any(pivots.values())
        self.replaced: set[str] = set()

    # --- arguments -----------------------------------------------------------------------------------------------

    def use(self, name: str, dtype: str, dimensions: int = 1) -> str:
        self.arguments.setdefault(name, Array(name, dtype, dimensions))
        return name

    def constant(self, value: object, kind: Kind) -> str:
        name = self.constants.setdefault((kind, value), f"c{len(self.constants)}")
        return self.use(name, "float64" if kind == "float" else "uint32" if isinstance(kind, Id) else "int64", 0)

    def index(self, probe: Probe) -> str:
        return self.indexes.setdefault((probe.relation, probe.bound), f"s{len(self.indexes)}")

    def static_column(self, probe: Probe, position: int) -> str:
        kind = self.program.static(probe.relation).kinds[position]
        narrow = (probe.relation, position) in self.narrow
        return self.use(f"{self.index(probe)}_c{position}", column_dtype(kind, narrow))

    # --- terms ---------------------------------------------------------------------------------------------------

    def term(self, term: Term, env: Mapping[str, str], kinds: Mapping[str, Kind], wanted: Kind | None = None) -> str:
        match term:
            case Variable(name):
                return env[name]
            case Constant(value):
                return self.constant(value, wanted or ("float" if isinstance(value, float) else "int"))
            case Call():
                return Arithmetic(self.out).call(
                    term, lambda inner: self.term(inner, env, kinds), lambda inner: self.is_float(inner, kinds)
                )
            case _:
                raise AssertionError(f"{term} cannot stand in a loop")

    def is_float(self, term: Term, kinds: Mapping[str, Kind]) -> bool:
        match term:
            case Variable(name):
                return kinds[name] == "float"
            case Constant(value):
                return isinstance(value, float)
            case Call(function, arguments):
                return function in ("to_float", "exp", "log", "sqrt", "tanh") or self.is_float(arguments[0], kinds)
            case _:
                raise AssertionError(f"{term} cannot stand in a loop")

    def condition(self, check: Check, env: Mapping[str, str], kinds: Mapping[str, Kind]) -> str:
        left, right = check.condition.left, check.condition.right
        kind = self.kind_of(left, kinds) or self.kind_of(right, kinds)
        one, other = self.term(left, env, kinds, kind), self.term(right, env, kinds, kind)
        operator = check.condition.operator
        if operator.startswith("!") and operator != "!=":
            return f"not ({one} {operator[1:]} {other})"
        return f"{one} {'==' if operator == '=' else operator} {other}"

    def kind_of(self, term: Term, kinds: Mapping[str, Kind]) -> Kind | None:
        match term:
            case Variable(name):
                return kinds[name]
            case Call():
                return "float" if self.is_float(term, kinds) else "int"
            case _:
                return None

    # --- nests ---------------------------------------------------------------------------------------------------

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
                with self.out.block(f"if {self.condition(step, env, nest.rule.kinds)}:"):
                    self.run(rest, nest, env, done)
            case Let(variable, term):
                value = self.term(term, env, nest.rule.kinds, nest.rule.kinds[variable])
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
        with self.out.block(f"for {row} in range({low}, {high}):"):
            inner = dict(env)
            for variable, text in self.read(probe, row):
                name = self.out.fresh("v")
                self.out.line(f"{name} = {text}")
                inner[variable] = name
            self.run(rest, nest, inner, done)

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
        with out.block(f"while {low} < {high} and {low2} < {high2}:"):
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
            self.term(t, env, nest.rule.kinds, static.kinds[p]) for p, t in zip(probe.bound, probe.terms, strict=False)
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
            self.out.line(f"{low}, {high} = {offsets}[{values[0]}], {offsets}[{values[0]} + U1]")
        # Of a meeting the last column is not known yet.
        for position, value in zip(probe.bound[1 : len(values)], values[1:], strict=True):
            column = self.static_column(probe, position)
            self.out.line(f"{low} = bound_below({column}, {low}, {high}, {value})")
            self.out.line(f"{high} = bound_above({column}, {low}, {high}, {value})")
        return low, high

    def walk(
        self, walk: Walk, rest: list[Step], nest: Nest, env: dict[str, str], done: Callable[[dict[str, str]], None]
    ) -> None:
        layout = self.layouts[walk.relation]
        t, table = self.tables[walk.relation], layout.table
        known = {
            p: self.term(x, env, nest.rule.kinds, table.kinds[p]) for p, x in zip(walk.bound, walk.terms, strict=True)
        }
        for spot, position in enumerate(self.pivots.get(walk.relation, ())):
            known.setdefault(position, f"p{spot}")
        if all(key in known for key in layout.keys):
            self.found(walk, known, rest, nest, env, done)
            return
        slot = self.out.fresh("s")
        chain = walk_key(walk, layout.keys, table)
        if chain is None:
            counter = self.out.fresh("q")
            # Facts that were taken up are the first of a list only where it is followed one by one.
            in_order = table.fold == "set" and (layout.storage == "hash" or self.pivoted)
            with self.out.block(f"for {counter} in range({t}_{'taken' if in_order else 'count'}):"):
                self.out.line(f"{slot} = {self.logged(layout, t, counter)}")
                with self.out.block("if True:" if in_order else f"if {t}_seen[{slot}] & {TAKEN} != 0:"):
                    self.visited(walk, slot, known, rest, nest, env, done)
            return
        heads = self.use(f"{t}_x{chain}", "uint32")
        following = self.use(f"{t}_y{chain}", "uint32")
        link = self.out.fresh("l")
        self.out.line(f"{link} = {heads}[{known[chain]}]")
        with self.out.block(f"while {link} != 0:"):
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
            source = f"{t}_val[{slot}]" if position == table.value else columns[position]
            self.out.line(f"{name} = {source}")
            inner[variable] = name
        self.run(rest, nest, inner, done)

    def found(self, walk: Walk, known: dict[int, str], rest, nest, env, done) -> None:  # type: ignore[no-untyped-def]
        """The one fact of a table whose keys are all known, if it is there."""
        layout = self.layouts[walk.relation]
        t = self.tables[walk.relation]
        slot = self.out.fresh("s")
        keys = [known[key] for key in layout.keys]
        head = self.program.table(nest.rule.head)
        # A sum has its value when it is taken up.
        counts = (head is not None and head.fold == "sum") or layout.table.fold == "sum"
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
        with self.out.block(f"if {there}:"):
            self.bound_fact(walk, slot, dict(zip(layout.keys, keys, strict=True)), rest, nest, env, done)

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

    # --- heads ---------------------------------------------------------------------------------------------------

    def head(self, nest: Nest, env: Mapping[str, str]) -> None:
        layout = self.layouts[nest.rule.head]
        table, rule = layout.table, nest.rule
        keys = [self.term(rule.arguments[key], env, rule.kinds, table.kinds[key]) for key in layout.keys]
        value = None
        if table.value is not None:
            value = self.term(rule.arguments[table.value], env, rule.kinds, table.kinds[table.value])
        self.out.line("work += 1")
        self.put(layout, keys, value)

    def put(self, layout: TableLayout, keys: list[str], value: str | None) -> None:
        """A fact goes into its table, and waits there if it is new or better."""
        t, out, fold = self.tables[layout.table.name], self.out, layout.table.fold
        slot = out.fresh("s")
        if layout.storage == "dense":
            out.line(f"{slot} = {self.dense_slot(t, keys)}")
        else:
            spot = out.fresh("i")
            out.line(f"{spot} = find({t}_h, {t}_k, {key_tuple(keys)})")
            out.line(f"{slot} = np.int64({t}_h[{spot}]) - 1")
            with out.block(f"if {slot} < 0:"):
                self.new_slot(layout, t, slot, spot, keys)
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
            out.line(f"{t}_log[np.uint64({t}_count)] = {slot}")
            out.line(f"{t}_count += 1")

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
                self.out.line(f"{t}_log[np.uint64({t}_count)] = {slot}")
                self.out.line(f"{t}_count += 1")

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
