"""Tables in shards: how rules that look up growing tables are evaluated in batches, as plain data.

Every worker owns the shard of a table in which a fact's key has its place. In a round all of them read the tables as
they are, share out what is new, and write down what rules find; then each takes in what belongs to its shards. A table
is kept in one of two forms:

    facts   every fact has a place of its own
    rows    the facts that differ in one column only are one row: a key, and the set of the values of that column

Where a rule hands that column on untouched, whole rows are united and no value is looked at. Take `q(X, R, Z)` as rows
`(X, R)` of sets of `Z`; then

    q(X, E, O) <- q(X, Y, Z), r(Y, U), q(Z, U, O), r(U, E).

unites the row (X, E) with the row (Z, U), once for each fact of `q` that is new; and with what is new in the row
(Z, U), for each fact that leads there. `plan` says which nests start from what, and by which columns facts are found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from emberlog.components.domains import goal_variables, variables_of
from emberlog.components.layout import TableLayout
from emberlog.components.nests import Nest, Walk, read_by
from emberlog.components.program import Atom, Id, KernelProgram, KernelRule, Table
from emberlog.syntax.nodes import Variable

MOST_WAYS = 4096  # choices of one column for each table that are compared


@dataclass(frozen=True, slots=True)
class Index:
    """The facts of a table by some of its `columns`. Found are the `others` of each fact, or, with `rows`, the rows of
    which these columns are a part of the key."""

    table: str
    columns: tuple[int, ...]
    others: tuple[int, ...]
    rows: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """Nests that start from the new facts of a table or, with `rows`, from its rows that have new facts."""

    table: str
    rows: bool
    nests: tuple[Nest, ...]


@dataclass(frozen=True, slots=True)
class Outlet:
    """What nests find for the table `head`: facts, or, with a `source`, rows of that table with which rows of the head
    are to be united; with `delta`, what is new in them."""

    head: str
    source: str | None = None
    delta: bool = False


@dataclass(frozen=True, slots=True)
class ShardPlan:
    starts: tuple[Start, ...]
    outlets: tuple[Outlet, ...]
    indexes: tuple[Index, ...]


# --- what is kept as rows --------------------------------------------------------------------------------------------


def suits(program: KernelProgram, nests: tuple[Nest, ...]) -> bool:
    """True if shards can hold the tables, and if it pays: some rule looks up facts of a growing table."""
    walks = any(isinstance(step, Walk) for nest in nests for step in nest.steps)
    return walks and program.mode == "delta" and all(map(_is_plain, program.tables))


def _is_plain(table: Table) -> bool:
    return table.fold == "set" and bool(table.kinds) and all(isinstance(k, Id) or k == "int" for k in table.kinds)


def set_columns(program: KernelProgram, most: int, sizes: Mapping[int, int]) -> dict[str, int]:
    """For each table that is kept as rows, the column of the sets: with the choice in which rules unite most rows.

    Sets are of ids of domains that have at most `most`."""
    columns = {table.name: _candidates(table, most, sizes) for table in program.tables}
    ways = 1
    for found in columns.values():
        ways *= len(found)
    if ways > MOST_WAYS:
        return {}
    choices = [dict(zip(columns, way, strict=True)) for way in product(*columns.values())]
    best = max(choices, key=lambda choice: sum(1 for _ in _united(program, choice)))
    used = {name for pair in _united(program, best) for name in pair}
    return {name: column for name, column in best.items() if column is not None and name in used}


def _candidates(table: Table, most: int, sizes: Mapping[int, int]) -> list[int | None]:
    """The columns, the last ones first, that may be that of the sets, and None."""
    spots = range(len(table.kinds) - 1, -1, -1) if len(table.kinds) > 1 else ()
    kinds = ((spot, table.kinds[spot]) for spot in spots)
    return [*(spot for spot, kind in kinds if isinstance(kind, Id) and sizes[kind.domain] <= most), None]


def _united(program: KernelProgram, choice: Mapping[str, int | None]) -> Iterator[tuple[str, str]]:
    """The rules that unite whole rows, by the tables of their heads and of the rows that they read."""
    for rule in program.rules:
        column = choice[rule.head]
        if column is None or not isinstance(handed := rule.arguments[column], Variable):
            continue
        if (source := _source(rule, column, handed.name)) is not None and choice.get(source[0], -1) == source[1]:
            yield rule.head, source[0]


def _source(rule: KernelRule, column: int, name: str) -> tuple[str, int] | None:
    """The relation and its column from which a variable goes to this column of the head, and to nowhere else."""
    heads = [spot for spot, argument in enumerate(rule.arguments) if name in variables_of(argument)]
    reading = [goal for goal in rule.body if name in goal_variables(goal)]
    if heads != [column] or len(reading) != 1 or not isinstance(reading[0], Atom):
        return None
    spots = [spot for spot, argument in enumerate(reading[0].arguments) if argument == Variable(name)]
    return (reading[0].relation, spots[0]) if len(spots) == 1 else None


# --- nests -----------------------------------------------------------------------------------------------------------


def handed_on(nest: Nest, layouts: Mapping[str, TableLayout]) -> str | None:
    """The variable of the sets that a nest hands on as whole rows, if it does."""
    column = layouts[nest.rule.head].set_column
    if column is None or not isinstance(handed := nest.rule.arguments[column], Variable):
        return None
    source = _source(nest.rule, column, handed.name)
    if source is None or source[0] not in layouts or layouts[source[0]].set_column != source[1]:
        return None
    return None if any(handed.name in read_by(step) for step in (*nest.checks, *nest.steps)) else handed.name


def starts_with_rows(nest: Nest, layouts: Mapping[str, TableLayout]) -> bool:
    """True if the nest hands on what is new in the rows that it starts from."""
    handed = handed_on(nest, layouts)
    return handed is not None and any(name == handed for _, name in nest.binds)


def outlet_of(nest: Nest, layouts: Mapping[str, TableLayout]) -> Outlet:
    handed = handed_on(nest, layouts)
    if handed is None:
        return Outlet(nest.rule.head)
    if starts_with_rows(nest, layouts):
        return Outlet(nest.rule.head, nest.table, delta=True)
    walks = (step for step in nest.steps if isinstance(step, Walk))
    return Outlet(nest.rule.head, next(w.relation for w in walks if any(name == handed for _, name in w.binds)))


def index_of(walk: Walk, layout: TableLayout) -> Index | None:
    """The index by which a walk finds facts; None where it looks up one key, or reads all."""
    columns = tuple(sorted(walk.bound))
    arity = range(len(layout.table.kinds))
    others = tuple(spot for spot in arity if spot not in columns)
    if not columns or set(layout.keys) <= set(columns):
        return None
    if layout.set_column is not None and layout.set_column not in columns:
        return Index(layout.table.name, columns, (), rows=True)
    return Index(layout.table.name, columns, others)


def plan(nests: tuple[Nest, ...], layouts: Mapping[str, TableLayout]) -> ShardPlan:
    starts: dict[tuple[str, bool], list[Nest]] = {}
    indexes: dict[Index, None] = {}
    for nest in nests:
        starts.setdefault((nest.table, starts_with_rows(nest, layouts)), []).append(nest)
        for step in nest.steps:
            if isinstance(step, Walk) and (index := index_of(step, layouts[step.relation])) is not None:
                indexes[index] = None
    outlets = dict.fromkeys(outlet_of(nest, layouts) for nest in nests)
    made = (Start(table, rows, tuple(found)) for (table, rows), found in starts.items())
    return ShardPlan(tuple(made), tuple(outlets), tuple(indexes))
