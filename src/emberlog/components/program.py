"""A recursive component as the kernels see it: tables, statics, rules over variables of known kinds.

Strata above it may be part of its program: rules that are applied once, to finished facts.

Values are of three kinds. An `Id` is a position in the sorted dictionary of a domain: columns that are only matched,
copied and compared share one. `int` and `float` are plain 64-bit numbers, for what is computed with. An `int` has a
sign, in unsigned columns too: one of 2^63 or more ends the run, as overflow does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from emberlog.analysis.program import Signature
from emberlog.syntax.nodes import Comparison, Term
from emberlog.types import Type

OVER_COLUMNS = "over columns"
COMPILED = "by compiled loops"
INTERPRETED = f"interpreted {OVER_COLUMNS}"  # how small components are evaluated, as `stats` and `explain` tell it
TOLERANCE = 1e-12  # a float sum has changed when it differs by more than this part of it


@dataclass(frozen=True, slots=True)
class Id:
    """A position in the dictionary of domain number `domain`."""

    domain: int


# A column of a static that no rule reads is `unread`: it is not even fetched.
Kind: TypeAlias = Id | Literal["int", "float", "unread"]


@dataclass(frozen=True, slots=True)
class Domain:
    """The values that some columns share. `constants` are those of the rules; they are in the dictionary too.

    `codes` is set when the columns hold numbers in place of the values already: the number of each constant.
    """

    type: Type
    columns: tuple[tuple[str, int], ...]  # of relations, tables and statics
    constants: tuple[object, ...] = ()
    codes: tuple[tuple[object, int], ...] | None = None


Fold: TypeAlias = Literal["set", "min", "max", "sum"]


@dataclass(frozen=True, slots=True)
class Table:
    """A relation that loops compute. `value` is the position of the aggregated column; the others are its keys.

    A count is a sum of ones.
    """

    name: str
    kinds: tuple[Kind, ...]
    fold: Fold = "set"
    value: int | None = None

    @property
    def keys(self) -> tuple[int, ...]:
        return tuple(i for i in range(len(self.kinds)) if i != self.value)


@dataclass(frozen=True, slots=True)
class Static:
    """A relation of a lower stratum. `unique` are positions that determine the others, where that is known."""

    name: str
    kinds: tuple[Kind, ...]
    unique: tuple[int, ...] | None = None


# --- rules -----------------------------------------------------------------------------------------------------------
# Arguments of atoms are variables or constants; what is computed is bound by a `Let` before.


@dataclass(frozen=True, slots=True)
class Atom:
    """A positive atom of a table or a static. An argument None is not read."""

    relation: str
    arguments: tuple[Term | None, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """No row of a static matches."""

    relation: str
    arguments: tuple[Term | None, ...]


@dataclass(frozen=True, slots=True)
class Check:
    condition: Comparison


@dataclass(frozen=True, slots=True)
class Let:
    variable: str
    term: Term


Goal: TypeAlias = Atom | Missing | Check | Let


@dataclass(frozen=True, slots=True)
class KernelRule:
    """`head(arguments) <- body`; for an aggregated column the argument is the value that goes in.

    `contributor` is the key of `sum<(K,V)>`. `kinds` has every variable. `carriers` are the goals that carry a change,
    one for each way to see the rule from one, and `moved` the variables whose value may change while the bindings of
    the others stay (`rules.changes`).
    """

    id: int
    head: str
    arguments: tuple[Term, ...]
    body: tuple[Goal, ...]
    kinds: Mapping[str, Kind] = field(compare=False, repr=False)
    contributor: Term | None = None
    carriers: tuple[int, ...] = ()
    moved: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class KernelProgram:
    """A component that the kernels can evaluate.

    `rules` are the recursive ones; what the others give is computed by the relational evaluator (`exits`). `delta`
    programs take up what is new. Iterations have two ways: `accumulate` hands on what sums change by, which a proof
    allows; `replace` computes a new state from the last one. `unique` are (static, columns) that must determine the
    static's rows for `sum<(K,V)>` to be a plain sum: checked against the data. `above` are rules of strata above, in
    the order of these; their heads are the last of the tables.
    """

    tables: tuple[Table, ...]
    statics: tuple[Static, ...]
    domains: tuple[Domain, ...]
    rules: tuple[KernelRule, ...]
    signatures: Mapping[str, Signature] = field(compare=False, repr=False)
    mode: Literal["delta", "accumulate", "replace"] = "delta"
    unique: tuple[tuple[str, tuple[int, ...]], ...] = ()
    above: tuple[KernelRule, ...] = ()

    @property
    def heads_above(self) -> tuple[str, ...]:
        """The tables that rules above fill, in the order in which they do."""
        return tuple(dict.fromkeys(rule.head for rule in self.above))

    @property
    def alone(self) -> KernelProgram:
        """The component without the strata above it."""
        if not self.above:
            return self
        read = {goal.relation for rule in self.rules for goal in rule.body if isinstance(goal, Atom | Missing)}
        tables = tuple(table for table in self.tables if table.name not in self.heads_above)
        statics = tuple(static for static in self.statics if static.name in read)
        return replace(self, tables=tables, statics=statics, above=())

    def table(self, name: str) -> Table | None:
        return next((table for table in self.tables if table.name == name), None)

    @property
    def float_sums(self) -> tuple[Table, ...]:
        """The tables of a fixpoint whose values may grow to infinity."""
        sums = (t for t in self.tables if t.fold == "sum" and t.value is not None and t.kinds[t.value] == "float")
        return tuple(sums) if self.mode == "delta" else ()

    def static(self, name: str) -> Static:
        return next(static for static in self.statics if static.name == name)

    def kinds(self, relation: str) -> tuple[Kind, ...]:
        table = self.table(relation)
        return table.kinds if table is not None else self.static(relation).kinds

    def read_places(self, relation: str, columns: Sequence[int]) -> tuple[int, ...]:
        """Where some columns of a relation stand among those that are read."""
        read = [spot for spot, kind in enumerate(self.kinds(relation)) if kind != "unread"]
        return tuple(read.index(column) for column in columns)


@dataclass(frozen=True)
class End:
    """`{sum[delta r] < bound}`, with `max` for sum and `<=` for `<`."""

    function: Literal["sum", "max"]
    bound: float
    inclusive: bool = False

    def reached(self, residual: float) -> bool:
        return residual <= self.bound if self.inclusive else residual < self.bound


# Rows that are copies: of which relations, and which of their columns.
Copies: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Ineligible:
    """Why a component is left to the relational evaluator."""

    reason: str
