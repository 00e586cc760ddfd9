"""What every part of the text needs: arguments of the function, terms, conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from emberlog.components.domains import is_float, kind_of
from emberlog.components.layout import TableLayout
from emberlog.components.nests import Key, Nest, Probe
from emberlog.components.pivots import Pivots
from emberlog.components.program import Check, Id, KernelProgram, Kind
from emberlog.kernels.code.arithmetic import Arithmetic
from emberlog.kernels.code.source import (
    HALTED,
    Array,
    Writer,
)
from emberlog.syntax.nodes import Call, Constant, Term, Variable

SOME = 128  # places between two looks at the flag


class Terms:
    """Writes the terms of one program. `narrow` are the static columns whose numbers fit in 32 bits; `sparse` the
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

    # --- the end of the run --------------------------------------------------------------------------------------

    def heed_halt(self, condition: str = "") -> None:
        """Leaves the loop around this line if the run is to end: nobody reads the tables then. With a condition, the
        flag is read only where that holds."""
        first = f"{condition} and " if condition else ""
        with self.out.block(f"if {first}is_set({self.use('halt', 'uint8')}):"):
            self.out.line(f"fail = {HALTED}")
            self.out.line("break")

    @contextmanager
    def each(self, place: str, low: str, high: str, dtype: str) -> Iterator[None]:
        """A loop over the places from `low` on before `high` that heeds the flag after some of them: one look for each
        would be felt."""
        out, start, some = self.out, self.out.fresh("n"), f"np.{dtype}({SOME})"
        with out.block(f"for {start} in range({low}, {high}, {some}):"):
            self.heed_halt()
            with out.block(f"for {place} in range({start}, min({start} + {some}, {high})):"):
                yield

    # --- terms ---------------------------------------------------------------------------------------------------

    def term(self, term: Term, env: Mapping[str, str], kinds: Mapping[str, Kind], wanted: Kind | None = None) -> str:
        match term:
            case Variable(name):
                return env[name]
            case Constant(value):
                return self.constant(value, wanted or ("float" if isinstance(value, float) else "int"))
            case Call():
                return Arithmetic(self.out).call(
                    term, lambda inner: self.term(inner, env, kinds), lambda inner: is_float(inner, kinds)
                )
            case _:
                raise AssertionError(f"{term} cannot stand in a loop")

    def condition(self, check: Check, env: Mapping[str, str], kinds: Mapping[str, Kind]) -> str:
        left, right = check.condition.left, check.condition.right
        kind = kind_of(left, kinds) or kind_of(right, kinds)
        one, other = self.term(left, env, kinds, kind), self.term(right, env, kinds, kind)
        operator = check.condition.operator
        if operator.startswith("!") and operator != "!=":
            return f"not ({one} {operator[1:]} {other})"
        return f"{one} {'==' if operator == '=' else operator} {other}"


def column_dtype(kind: Kind, narrow: bool) -> str:
    match kind:
        case Id():
            return "uint32"
        case "float":
            return "float64"
        case _:
            return "int32" if narrow else "int64"
