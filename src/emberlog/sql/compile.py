"""A plan as SQL, built as sqlglot trees.

Every column and table has a name of our own (`v0`, `c0`, `r3`): SQL engines fold case, programs do not. A node becomes
a SELECT over its inputs as sub-queries; selections, assignments and projections share one with what is below them.

A statement nests no deeper, and is no larger, than its engine takes without trouble (`Dialect.deepest`, `largest`):
what would be more is a `Stage`, a table that is computed before. Sub-queries are rendered one by one, each as a part of
the next, since sqlglot renders by recursion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import assert_never

from sqlglot import exp

from emberlog.analysis.functions import aggregate_type
from emberlog.deep import Deep, run_deep
from emberlog.plan.bodies import variables
from emberlog.plan.logical import (
    Antijoin,
    Condition,
    Distinct,
    Expand,
    Extend,
    Fold,
    Group,
    Guard,
    Join,
    Lookup,
    Plan,
    Project,
    Scan,
    Select,
    Top,
    Union,
    Unit,
    Version,
    columns,
    nodes,
)
from emberlog.plan.missing import unsure
from emberlog.sql.build import (
    Sql,
    all_of,
    any_of,
    call,
    cast,
    is_null,
    named,
    negated,
    number,
    select,
    text,
    when,
)
from emberlog.sql.decimals import mean
from emberlog.sql.dialect import Dialect
from emberlog.sql.ranges import NESTED, expanded
from emberlog.sql.statement import MARK_BETWEEN, MARK_END, MARK_START, OUR_FUNCTIONS, Stage, Statement
from emberlog.sql.terms import Terms, unsigned_zero
from emberlog.syntax.nodes import Variable
from emberlog.types import NUMBER, Type

TableName = Callable[[str, Version], str]
NewStage = Callable[[], tuple[str, str]]  # a table for a stage: its name, and how a statement names it

# Columns of our own: there was a match in an outer join; a row has all its values.
MATCHED, WHOLE = "matched", "whole"


def compile_plan(
    plan: Plan, dialect: Dialect, table: TableName, guards: list[Guard], stage: NewStage | None = None
) -> Statement:
    """The rows of a plan, its columns in order as `c0`, `c1`, .. (one dummy column when it has none).

    The guards of the plan are added to `guards`; an error that the statement raises names one by its number there.
    `stage` gives tables for what is computed before; without it, everything is in the one statement.
    """
    compiler = _Compiler(dialect, table, plan, guards, stage)
    block = run_deep(compiler.block(plan))
    items = [named(block.scope[name], f"c{i}") for i, name in enumerate(columns(plan))]
    root = select(items or [named(exp.true(), "c0")], block.source, block.where)
    return replace(compiler.statement(root), stages=tuple(compiler.stages))


@dataclass(frozen=True)
class _Size:
    """How deep sub-queries nest below a place of a statement, and how many inputs they have."""

    depth: int = 0
    inputs: int = 0

    def __add__(self, other: _Size) -> _Size:
        return _Size(max(self.depth, other.depth), self.inputs + other.inputs)


@dataclass(frozen=True)
class _Query:
    """A query of its own, with the size of what it reads."""

    tree: exp.Query
    size: _Size


@dataclass
class _Block:
    """A SELECT in the making: where its rows come from, what each column is, which rows are kept.

    `computed` are the columns that are more than a column of the source. One of these is not built upon: it would
    be written out, and computed, once for each use. `whole` says that every column of the source is a column of this.
    """

    source: Sql | None
    scope: dict[str, Sql]
    whole: bool = False
    where: list[Sql] = field(default_factory=list)
    computed: set[str] = field(default_factory=set)
    size: _Size = _Size()


class _Scope(dict[str, Sql]):
    """What columns are; those that are not listed are the source's own, under their SQL names."""

    def __init__(self, column: Callable[[str], Sql]) -> None:
        super().__init__()
        self._column = column

    def __missing__(self, name: str) -> Sql:
        return self._column(name)


class _Compiler:
    def __init__(
        self,
        dialect: Dialect,
        table: TableName,
        plan: Plan,
        guards: list[Guard],
        stage: NewStage | None,
    ) -> None:
        self.guards = guards
        self.dialect = dialect
        self.table = table
        self.terms = Terms(dialect)
        self.stages: list[Stage] = []
        self._new_stage = stage
        names = dict.fromkeys(name for node in nodes(plan) for name in columns(node))
        self.names = {name: f"v{i}" for i, name in enumerate(names)}

    def column(self, name: str, table: str | None = None) -> Sql:
        return exp.column(self.names[name], table=table)

    def _all(self, plan: Plan, table: str | None = None) -> list[Sql]:
        """The columns of a plan that is read from: it has no others (but a dummy where it has none)."""
        return [exp.Column(this=exp.Star(), table=table and exp.to_identifier(table))] if columns(plan) else []

    def statement(self, root: exp.Query) -> Statement:
        """A query with the parameters that it uses: what was computed and not read has left its constants behind."""
        sql = root.sql(dialect=self.dialect.name)
        used = {name: self.terms.parameters[name] for name in re.findall(r"[:$](p[0-9]+)\b", sql)}
        upper = sql.upper()
        needs = frozenset(name for name in OUR_FUNCTIONS if name.upper() in upper)
        calls = {name: given for name, given in self.terms.calls.items() if f"{name.upper()}(" in upper}
        return Statement(sql, used, needs, calls=calls)

    def query(self, plan: Plan) -> Deep[_Query]:
        """The rows of a plan as a query of its own, its columns under their SQL names."""
        if isinstance(plan, Unit | Scan | Select | Extend | Project):
            return self._selected((yield self.block(plan)))
        query: _Query = yield self._closed(plan)
        return query

    def _selected(self, block: _Block) -> _Query:
        items = [named(sql, self.names[name]) for name, sql in block.scope.items()]
        return _Query(select([*([exp.Star()] if block.whole else []), *items], block.source, block.where), block.size)

    def _read(self, query: _Query, plan: Plan) -> _Block:
        """A block over the rows of a query, which are those of a plan."""
        source, size = self._source(query, "t")
        return _Block(source, _Scope(self.column), bool(columns(plan)), size=size)

    def _from(self, plan: Plan, alias: str = "t") -> Deep[tuple[Sql, _Size]]:
        query: _Query = yield self.query(plan)
        return self._source(query, alias)

    def _source(self, query: _Query, alias: str) -> tuple[Sql, _Size]:
        """A query to read from: a sub-query, or a stage where that would become too large."""
        size = _Size(query.size.depth + 1, query.size.inputs + 1)
        if self._new_stage is not None and (size.depth > self.dialect.deepest or size.inputs > self.dialect.largest):
            return self._stage(query, alias)
        rendered = exp.Var(this=query.tree.sql(dialect=self.dialect.name))
        return exp.Subquery(this=rendered, alias=exp.TableAlias(this=exp.to_identifier(alias))), size

    def _stage(self, query: _Query, alias: str) -> tuple[Sql, _Size]:
        assert self._new_stage is not None
        name, spelled = self._new_stage()
        self.stages.append(Stage(name, self.statement(query.tree)))
        return exp.to_table(spelled, alias=alias), _Size(0, 1)

    def block(self, plan: Plan) -> Deep[_Block]:
        """The plan as a SELECT that selections, assignments and projections above it can still join."""
        match plan:
            case Unit():
                return _Block(None, {})
            case Scan(_, names):
                scope: dict[str, Sql] = {name: exp.column(f"c{i}") for i, name in enumerate(names) if name is not None}
                return _Block(exp.to_table(self.table(plan.relation, plan.version)), scope, size=_Size(0, 1))
            case Select(child, conditions):
                read = {name for condition in conditions for name in variables(condition)}
                block: _Block = yield self._open(child, read)
                block.where += [self._kept(condition, block.scope, child) for condition in conditions]
                return block
            case Extend(child, column, term):
                block = yield self._open(child, set(variables(term)))
                block.scope[column] = self.terms.term(term, block.scope, columns(child), unsure(child))
                block.computed.add(column)
                return block
            case Project(child, items):
                used = {name for _, term in items if not isinstance(term, Variable) for name in variables(term)}
                block = yield self._open(child, used)
                types, lacking = columns(child), unsure(child)
                made = {name: self.terms.term(term, block.scope, types, lacking) for name, term in items}
                plain = {name for name, term in items if isinstance(term, Variable) and term.name not in block.computed}
                return _Block(block.source, made, False, block.where, set(made) - plain, block.size)
            case _:
                return self._read((yield self._closed(plan)), plan)

    def _open(self, plan: Plan, used: set[str]) -> Deep[_Block]:
        """The block of a plan, closed first when one of the columns `used` is computed in it."""
        block: _Block = yield self.block(plan)
        if used.isdisjoint(block.computed):
            return block
        return self._read(self._selected(block), plan)

    def _kept(self, condition: Condition, scope: Mapping[str, Sql], plan: Plan) -> Sql:
        """The condition as SQL; a row in which a value that it mentions is missing stays, for the guard to see."""
        sql = self.terms.condition(condition, scope, columns(plan), unsure(plan))
        missing = [is_null(scope[name].copy()) for name in sorted(unsure(plan).intersection(variables(condition)))]
        return exp.paren(any_of([*missing, sql]), copy=False) if missing else sql

    def _closed(self, plan: Plan) -> Deep[_Query]:
        match plan:
            case Expand():
                query: _Query = yield self._expand(plan)
            case Join():
                query = yield self._join(plan)
            case Antijoin():
                query = yield self._antijoin(plan)
            case Lookup():
                query = yield self._lookup(plan)
            case Distinct(child):
                source, size = yield self._from(child)
                query = _Query(select(self._all(child), source, distinct=True), size)
            case Group(child):
                source, size = yield self._from(child)
                query = _Query(self._group(plan, source), size)
            case Union():
                query = yield self._union(plan)
            case Top(child):
                source, size = yield self._from(child)
                query = _Query(self._top(plan, source), size)
            case Guard(child):
                source, size = yield self._from(child)
                query = self._guard(plan, source, size)
            case Unit() | Scan() | Select() | Extend() | Project():
                raise AssertionError(f"{type(plan).__name__} is a block")
            case _:
                assert_never(plan)
        return query

    def _matches(self, left: Plan, right: Plan) -> Sql | None:
        """The condition that the columns of both sides agree, None when they share none."""
        own, types = columns(left), columns(right)
        conditions = []
        for name in (name for name in types if name in own):
            sides = [self.column(name, "l"), self.column(name, "r")]
            first, second = self.terms.in_common_type(sides, [own[name], types[name]])
            conditions.append(self.terms.compare("=", first, second, own[name]))
        return all_of(conditions) if conditions else None

    def _join(self, join: Join) -> Deep[_Query]:
        left, right = join.left, join.right
        own, types = columns(left), columns(join)
        items = self._all(left, "l")
        if any(own[name] != types[name] for name in own):
            items = [named(self._fit(self.column(n, "l"), own[n], types[n]), self.names[n]) for n in own]
        items += [self.column(name, "r") for name in columns(right) if name not in own]
        on = self._matches(left, right)
        first, size = yield self._from(left, "l")
        if not join.spares:
            second, other = yield self._from(right, "r")
            return _Query(select(items, first, joined=(second, "cross" if on is None else "inner", on)), size + other)
        second, other = yield self._marked(right)
        passes = any_of([*(is_null(self.column(name, "l")) for name in join.spares), exp.column(MATCHED, table="r")])
        return _Query(select(items, first, [passes], joined=(second, "left", on)), size + other)

    def _lookup(self, plan: Lookup) -> Deep[_Query]:
        left, right, column = plan.left, plan.right, plan.column
        value, default = self.column(column, "r"), self.terms.constant(plan.default)
        first, size = yield self._from(left, "l")
        if column not in unsure(plan):
            found: Sql = exp.Coalesce(this=value, expressions=[default])
            second, other = yield self._from(right, "r")
        else:
            missing = [is_null(self.column(name, "l")) for name in plan.spares]
            default = when(any_of(missing), exp.null(), default) if missing else default
            found = when(exp.column(MATCHED, table="r"), value, default)
            second, other = yield self._marked(right)
        items = [*self._all(left, "l"), named(found, self.names[column])]
        on = self._matches(left, right) or exp.true()
        return _Query(select(items, first, joined=(second, "left", on)), size + other)

    def _marked(self, plan: Plan) -> Deep[tuple[Sql, _Size]]:
        """The right side of an outer join, with a column that is true."""
        source, size = yield self._from(plan)
        marked = select([*self._all(plan), named(exp.true(), MATCHED)], source)
        return self._source(_Query(marked, size), "r")

    def _antijoin(self, plan: Antijoin) -> Deep[_Query]:
        left, right = plan.left, plan.right
        scope = {name: self.column(name, "r") for name in columns(right)}
        scope |= {name: self.column(name, "l") for name in columns(left)}
        types = {**columns(right), **columns(left)}
        shared = self._matches(left, right)
        conditions = [] if shared is None else [shared]
        conditions += [self.terms.condition(condition, scope, types) for condition in plan.where]
        second, other = yield self._from(right, "r")
        first, size = yield self._from(left, "l")
        found = select([named(number(1), "u")], second, conditions)
        return _Query(select(self._all(left, "l"), first, [negated(exp.Exists(this=found))]), size + other)

    def _top(self, plan: Top, source: Sql) -> exp.Query:
        types = columns(plan.input)
        keys = [key for name, descends in plan.order for key in self._order(name, descends, types[name])]
        rest = [exp.Ordered(this=self.column(name), desc=False) for name in plan.ties]
        if plan.groups and plan.limit is not None:
            return self._first_of_groups(plan, source, exp.Order(expressions=[*keys, *rest]), plan.limit)
        query = select(self._all(plan.input), source).order_by(*keys, *rest, copy=False)
        return query if plan.limit is None else query.limit(plan.limit, copy=False)

    def _first_of_groups(self, plan: Top, source: Sql, order: exp.Order, limit: int) -> exp.Query:
        groups = [self.column(name) for name in plan.groups]
        place = exp.Window(this=call("row_number"), partition_by=groups, order=order)
        ranked = select([*self._all(plan.input), named(place, "n")], source)
        first = exp.LTE(this=exp.column("n"), expression=number(limit))
        return select(self._all(plan.input), ranked.subquery("t", copy=False), [first])

    def _order(self, name: str, descends: bool, type: Type) -> list[Sql]:
        """Sort keys of a column; NaN, the engines' largest number, comes last in both directions."""
        key = exp.Ordered(this=self.column(name), desc=descends)
        if type.kind != "float":
            return [key]
        return [exp.Ordered(this=call("isnan", self.column(name)), desc=False), key]

    def _union(self, union: Union) -> Deep[_Query]:
        types = columns(union)
        queries: list[_Query] = []
        for child in union.inputs:
            own = columns(child)
            block: _Block = yield self.block(child)
            items = []
            for column, (name, type) in zip(own, types.items(), strict=True):
                value = block.scope[column]
                items.append(named(self._fit(value, own[column], type), self.names[name]))
            queries.append(_Query(select(items, block.source, block.where), block.size))
        return self._together(queries, list(types))

    def _fit(self, value: Sql, own: Type, type: Type) -> Sql:
        """A value as one of the type that the inputs of a union or join share; left to themselves, engines may round
        it."""
        return self.dialect.fit_decimal(value, own, type) if type.kind == "decimal" else value

    def _together(self, queries: list[_Query], names: list[str]) -> _Query:
        """All rows of these queries. More than one statement should hold are put together in groups, as stages."""
        groups: list[list[_Query]] = [[]]
        for query in queries:
            if groups[-1] and sum(one.size.inputs + 1 for one in groups[-1]) >= self.dialect.largest // 2:
                groups.append([])
            groups[-1].append(query)
        unions = [_union_of(group) for group in groups]
        if len(unions) == 1 or self._new_stage is None:
            return _union_of(unions)
        stages = [self._stage(union, "t") for union in unions]
        read = [_Query(select([self.column(name) for name in names], source), size) for source, size in stages]
        return self._together(read, names)

    def _group(self, group: Group, source: Sql) -> exp.Query:
        types = columns(group.input)
        keys = [self.column(key) for key in group.keys]
        folds = [self._fold(fold, types) for fold in group.folds]
        items = [*keys, *(named(value, self.names[f.column]) for f, value in zip(group.folds, folds, strict=True))]
        query = select(items, source)
        if keys:
            query = query.group_by(*(key.copy() for key in keys), copy=False)
        # Nothing has no aggregate: SQL would make a row of NULLs, and NaN must not win an extremum.
        having: list[Sql] = [] if keys else [exp.GT(this=exp.Count(this=exp.Star()), expression=number(0))]
        for fold in group.folds:
            if fold.function in ("min", "max") and fold.argument and types[fold.argument].kind == "float":
                having.append(self._has_extremum(fold.argument))
        return query.having(all_of(having), copy=False) if having else query

    def _has_extremum(self, argument: str) -> Sql:
        """True for a group in which not all values are NaN, or one is missing. Not a test of the extremum itself: where
        all values are known to be missing, DuckDB knows that it is null, and would not look for rows to complain of."""
        without = exp.Count(this=when(call("isnan", self.column(argument)), number(1)))
        return exp.GT(this=exp.Count(this=exp.Star()), expression=without)

    def _fold(self, fold: Fold, types: Mapping[str, Type]) -> Sql:
        if fold.argument is None:
            return self.dialect.convert(exp.Count(this=exp.Star()), NUMBER)
        value, type = self.column(fold.argument), types[fold.argument]
        match fold.function:
            case "min" | "max":
                if type.kind == "float":
                    value = when(negated(call("isnan", value)), value.copy())
                return exp.Min(this=value) if fold.function == "min" else exp.Max(this=value)
            case "countd":
                return exp.Count(this=exp.Distinct(expressions=[value]))
            case "avg" if type.kind == "decimal":
                own, size = aggregate_type("sum", type), exp.Count(this=value)
                total = self.dialect.decimal_total(value.copy(), type)
                return mean(total, own, size, aggregate_type("avg", type), self.dialect)
            case "avg":
                return unsigned_zero(exp.Avg(this=cast(value, self.dialect.float64)), self.dialect)
            case "sum" if type.is_integer:
                return self.dialect.total(value, type.wide)
            case "sum" if type.kind == "decimal":
                return self.dialect.decimal_total(value, type)
            case "sum":
                return exp.Sum(this=value)
            case _:
                raise AssertionError(f"no SQL for the aggregate {fold.function}")

    def _expand(self, expand: Expand) -> Deep[_Query]:
        """One row for each value of a range, and one row with null for what is no range, for a guard to see."""
        child = expand.input
        scope, types = _Scope(self.column), columns(child)

        def bounds() -> tuple[Sql, Sql, Sql]:
            ends = (expand.start, expand.stop, expand.step)
            start, stop, step = (self.terms.term(term, scope, types) for term in ends)
            return start, stop, step

        type, name = columns(expand)[expand.column].wide, self.names[expand.column]
        rows, size = yield self._from(child)
        tree = expanded(self.dialect, type, bounds, [self.column(column) for column in types], rows, name)
        return _Query(tree, replace(size, depth=size.depth + NESTED))

    def _guard(self, guard: Guard, source: Sql, size: _Size) -> _Query:
        child = guard.input
        missing = [is_null(self.column(name)) for name in guard.terms]
        whole = when(any_of(missing), self.dialect.complain(self._message(guard)), exp.true())
        # A column, because DuckDB would move a plain condition below joins, to rows that the joins drop.
        checked = select([*self._all(child), named(whole, WHOLE)], source)
        rows, size = self._source(_Query(checked, size), "t")
        return _Query(select([self.column(name) for name in columns(child)], rows, [exp.column(WHOLE)]), size)

    def _message(self, guard: Guard) -> Sql:
        """What the error of a guard says: its number, and the values of the columns that it shows."""
        pieces: list[Sql] = [text(f"{MARK_START}{len(self.guards)}")]
        self.guards.append(guard)
        types = columns(guard.input)
        for name in guard.shown:
            shown = self.dialect.as_text(self.column(name), types[name])
            pieces += [text(MARK_BETWEEN), exp.Coalesce(this=shown, expressions=[text("?")])]
        return call("concat", *pieces, text(MARK_END))


def _union_of(queries: list[_Query]) -> _Query:
    together = queries[0].tree
    for other in queries[1:]:
        together = exp.Union(this=together, expression=other.tree, distinct=False)
    return _Query(together, reduce(_Size.__add__, (query.size for query in queries)))
