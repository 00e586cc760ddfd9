"""A plan as one SQL statement, built as a sqlglot tree.

Every column and table has a name of our own (`v0`, `c0`, `r3`): SQL engines fold case, programs do not. A node becomes
a SELECT over its inputs as sub-queries; the engines flatten these again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import assert_never

from sqlglot import exp

from emberlog.plan.bodies import condition_fallible
from emberlog.plan.logical import (
    Antijoin,
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
    walk,
)
from emberlog.sql.dialect import FLOAT_TEXT, Dialect, Sql, any_of, call, cast, is_null, number, text, when
from emberlog.sql.terms import Parameter, Terms
from emberlog.types import NUMBER, Type

TableName = Callable[[str, Version], str]

# An error that a statement raises carries its guard and values between these marks.
MARK_START, MARK_END, MARK_BETWEEN = "<<emberlog ", ">>", "|~|"


@dataclass(frozen=True)
class Statement:
    """SQL text with named parameters."""

    sql: str
    parameters: Mapping[str, Parameter]
    needs_float_text: bool = False


def compile_plan(plan: Plan, dialect: Dialect, table: TableName, guards: list[Guard]) -> Statement:
    """The rows of a plan, its columns in order as `c0`, `c1`, .. (one dummy column when it has none).

    The guards of the plan are added to `guards`; an error that the statement raises names one by its number there.
    """
    compiler = _Compiler(dialect, table, plan, guards)
    query = compiler.query(plan)
    names = [exp.alias_(compiler.column(name), f"c{i}") for i, name in enumerate(columns(plan))]
    root = exp.select(*(names or [exp.alias_(exp.true(), "c0")])).from_(exp.Subquery(this=query, alias="t"))
    sql = root.sql(dialect=dialect.name)
    return Statement(sql, compiler.terms.parameters, needs_float_text=FLOAT_TEXT.upper() in sql.upper())


class _Compiler:
    def __init__(self, dialect: Dialect, table: TableName, plan: Plan, guards: list[Guard]) -> None:
        self.guards = guards
        self.dialect = dialect
        self.table = table
        self.terms = Terms(dialect)
        names = dict.fromkeys(name for node in walk(plan) for name in columns(node))
        self.names = {name: f"v{i}" for i, name in enumerate(names)}

    def column(self, name: str, table: str | None = None) -> Sql:
        return exp.column(self.names[name], table=table)

    def scope(self, plan: Plan) -> dict[str, Sql]:
        return {name: self.column(name) for name in columns(plan)}

    def _select(self, items: list[Sql]) -> exp.Select:
        """A SELECT of these items; SQL has no rows without columns, so nothing is a dummy."""
        return exp.select(*(items or [exp.alias_(exp.true(), "u")]))

    def _all(self, plan: Plan, table: str | None = None) -> list[Sql]:
        return [self.column(name, table) for name in columns(plan)]

    def _from(self, plan: Plan, alias: str) -> exp.Subquery:
        return exp.Subquery(this=self.query(plan), alias=exp.TableAlias(this=exp.to_identifier(alias)))

    def query(self, plan: Plan) -> exp.Query:
        match plan:
            case Unit():
                return exp.select(exp.alias_(exp.true(), "u"))
            case Scan():
                return self._scan(plan)
            case Select(child, conditions):
                scope, types = self.scope(child), columns(child)
                kept = []
                for condition in conditions:
                    sql = self.terms.condition(condition, scope, types)
                    if condition_fallible(condition, types):
                        # What has no value stays, for the guard above to see.
                        sql = exp.not_(exp.Is(this=exp.paren(sql), expression=exp.false()))
                    kept.append(sql)
                return self._select(self._all(child)).from_(self._from(child, "t")).where(*kept, copy=False)
            case Extend(child, column, term):
                value = self.terms.term(term, self.scope(child), columns(child))
                items = [*self._all(child), exp.alias_(value, self.names[column])]
                return exp.select(*items).from_(self._from(child, "t"))
            case Expand():
                return self._expand(plan)
            case Join(left, right):
                return self._join(left, right)
            case Antijoin():
                return self._antijoin(plan)
            case Lookup(left, right, column, default):
                value = exp.Coalesce(this=self.column(column, "r"), expressions=[self.terms.constant(default)])
                items = [*self._all(left, "l"), exp.alias_(value, self.names[column])]
                on = self._matches(left, right) or exp.true()
                return (
                    exp.select(*items)
                    .from_(self._from(left, "l"))
                    .join(self._from(right, "r"), on=on, join_type="left")
                )
            case Project(child, items_):
                scope, types = self.scope(child), columns(child)
                made = [exp.alias_(self.terms.term(term, scope, types), self.names[name]) for name, term in items_]
                return self._select(made).from_(self._from(child, "t"))
            case Distinct(child):
                return self._select(self._all(child)).from_(self._from(child, "t")).distinct()
            case Group():
                return self._group(plan)
            case Union(inputs):
                return self._union(inputs)
            case Top(child, order, ties, limit):
                keys = [exp.Ordered(this=self.column(name), desc=descends) for name, descends in order]
                rest = [exp.Ordered(this=self.column(name), desc=False) for name in ties]
                query = self._select(self._all(child)).from_(self._from(child, "t")).order_by(*keys, *rest)
                return query if limit is None else query.limit(limit)
            case Guard():
                return self._guard(plan)
            case _:
                assert_never(plan)

    def _scan(self, scan: Scan) -> exp.Query:
        items = []
        for i, name in enumerate(scan.columns):
            if name is not None:
                items.append(exp.alias_(exp.column(f"c{i}"), self.names[name]))
        return self._select(items).from_(exp.to_table(self.table(scan.relation, scan.version)))

    def _matches(self, left: Plan, right: Plan) -> Sql | None:
        """The condition that the columns of both sides agree, None when they share none."""
        types = columns(left)
        shared = [name for name in columns(right) if name in types]
        if not shared:
            return None
        return exp.and_(*(self.terms.compare("=", self.column(n, "l"), self.column(n, "r"), types[n]) for n in shared))

    def _join(self, left: Plan, right: Plan) -> exp.Query:
        extra = [self.column(name, "r") for name in columns(right) if name not in columns(left)]
        query = self._select([*self._all(left, "l"), *extra]).from_(self._from(left, "l"))
        on = self._matches(left, right)
        if on is None:
            return query.join(self._from(right, "r"), join_type="cross")
        return query.join(self._from(right, "r"), on=on, join_type="inner")

    def _antijoin(self, plan: Antijoin) -> exp.Query:
        left, right = plan.left, plan.right
        scope = {name: self.column(name, "r") for name in columns(right)}
        scope |= {name: self.column(name, "l") for name in columns(left)}
        types = {**columns(right), **columns(left)}
        shared = self._matches(left, right)
        conditions = [] if shared is None else [shared]
        conditions += [self.terms.condition(condition, scope, types) for condition in plan.where]
        found = exp.select("1").from_(self._from(right, "r"))
        if conditions:
            found = found.where(*conditions)
        missing = exp.not_(exp.Exists(this=found))
        return self._select(self._all(left)).from_(self._from(left, "l")).where(missing)

    def _union(self, inputs: tuple[Plan, ...]) -> exp.Query:
        names = list(columns(inputs[0]))
        queries: list[exp.Query] = []
        for child in inputs:
            own = list(columns(child))
            items = [exp.alias_(self.column(o), self.names[n]) for o, n in zip(own, names, strict=True)]
            queries.append(self._select(items).from_(self._from(child, "t")))
        query = queries[0]
        for other in queries[1:]:
            query = exp.Union(this=query, expression=other, distinct=False)
        return query

    def _group(self, group: Group) -> exp.Query:
        types = columns(group.input)
        keys = [self.column(key) for key in group.keys]
        folds = [self._fold(fold, types) for fold in group.folds]
        items = [*keys, *(exp.alias_(value, self.names[f.column]) for f, value in zip(group.folds, folds, strict=True))]
        query = self._select(items).from_(self._from(group.input, "t"))
        if keys:
            query = query.group_by(*(key.copy() for key in keys))
        # Nothing has no aggregate: SQL would make a row of NULLs, and NaN must not win an extremum.
        having: list[Sql] = [] if keys else [exp.GT(this=exp.Count(this=exp.Star()), expression=number(0))]
        for fold, value in zip(group.folds, folds, strict=True):
            if fold.function in ("min", "max") and fold.argument and types[fold.argument].kind == "float":
                having.append(exp.not_(is_null(value.copy())))
        return query.having(*having) if having else query

    def _fold(self, fold: Fold, types: Mapping[str, Type]) -> Sql:
        if fold.argument is None:
            return self.dialect.convert(exp.Count(this=exp.Star()), NUMBER)
        value, type = self.column(fold.argument), types[fold.argument]
        match fold.function:
            case "min" | "max":
                if type.kind == "float":
                    value = when(exp.not_(call("isnan", value)), value.copy())
                return exp.Min(this=value) if fold.function == "min" else exp.Max(this=value)
            case "countd":
                return exp.Count(this=exp.Distinct(expressions=[value]))
            case "avg":
                return exp.Avg(this=cast(value, self.dialect.float64))
            case "sum" if type.is_integer:
                return self.dialect.total(value, type.wide)
            case "sum" if type.kind == "decimal":
                return cast(exp.Sum(this=value), f"DECIMAL(38,{type.scale})")
            case "sum":
                return exp.Sum(this=value)
            case _:
                raise AssertionError(f"no SQL for the aggregate {fold.function}")

    def _expand(self, expand: Expand) -> exp.Query:
        """`start + i * step` for i from 0 to the number of steps."""
        child = expand.input
        scope, types = self.scope(child), columns(child)
        type = columns(expand)[expand.column]
        start, stop, step = (self.terms.term(term, scope, types) for term in (expand.start, expand.stop, expand.step))
        as_float = self.dialect.float64
        width = exp.Sub(this=cast(stop, as_float), expression=cast(start.copy(), as_float))
        steps = call("ceil", exp.Div(this=exp.paren(width), expression=cast(step.copy(), as_float)))
        too_many = any_of(
            [
                exp.EQ(this=step, expression=number(0)),
                exp.GT(this=exp.paren(steps.copy()), expression=number(100_000_000)),
            ]
        )
        wrong = self.dialect.complain(text(f"{MARK_START}range{MARK_END}"))
        count = when(too_many, when(wrong, number(0)), cast(call("greatest", steps, number(0)), "BIGINT"))
        index = exp.select(*self._all(child), exp.alias_(self.dialect.spread(count), "i")).from_(self._from(child, "t"))
        again = {name: self.column(name) for name in types}
        first, stride = (self.terms.term(term, again, types) for term in (expand.start, expand.step))
        position = self.dialect.convert(exp.column("i"), type)
        value = exp.Add(this=first, expression=exp.Mul(this=position, expression=exp.paren(stride)))
        made = exp.alias_(self.dialect.convert(exp.paren(value), type), self.names[expand.column])
        return exp.select(*self._all(child), made).from_(exp.Subquery(this=index, alias="s"))

    def _guard(self, guard: Guard) -> exp.Query:
        child = guard.input
        scope, types = self.scope(child), columns(child)
        unsure = [is_null(self.column(name)) for name in guard.terms]
        unsure += [is_null(self.terms.condition(condition, scope, types)) for condition in guard.conditions]
        message: Sql = text(f"{MARK_START}{len(self.guards)}")
        self.guards.append(guard)
        for name in guard.shown:
            shown = exp.Coalesce(this=cast(self.column(name), self.dialect.symbol), expressions=[text("?")])
            message = exp.DPipe(this=exp.DPipe(this=message, expression=text(MARK_BETWEEN)), expression=shown)
        message = exp.DPipe(this=message, expression=text(MARK_END))
        passes = when(any_of(unsure), self.dialect.complain(exp.paren(message)), exp.true())
        return self._select(self._all(child)).from_(self._from(child, "t")).where(passes)
