"""A plan as one SQL statement, built as a sqlglot tree.

Every column and table has a name of our own (`v0`, `c0`, `r3`): SQL engines fold case, programs do not. A node becomes
a SELECT over its inputs as sub-queries; selections, assignments and projections share one with what is below them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from sqlglot import exp

from emberlog.plan.bodies import condition_fallible, variables
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
    walk,
)
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
    subquery,
    text,
    when,
)
from emberlog.sql.dialect import Dialect
from emberlog.sql.statement import FLOAT_TEXT, MARK_BETWEEN, MARK_END, MARK_START, Statement
from emberlog.sql.terms import Terms
from emberlog.syntax.nodes import Variable
from emberlog.types import NUMBER, Type

TableName = Callable[[str, Version], str]


def compile_plan(plan: Plan, dialect: Dialect, table: TableName, guards: list[Guard]) -> Statement:
    """The rows of a plan, its columns in order as `c0`, `c1`, .. (one dummy column when it has none).

    The guards of the plan are added to `guards`; an error that the statement raises names one by its number there.
    """
    compiler = _Compiler(dialect, table, plan, guards)
    block = compiler.block(plan)
    items = [named(block.scope[name], f"c{i}") for i, name in enumerate(columns(plan))]
    root = select(items or [named(exp.true(), "c0")], block.source, block.where)
    # A column that was computed and then not read has left its constants behind.
    used = {placeholder.name for placeholder in root.find_all(exp.Placeholder)}
    parameters = {name: value for name, value in compiler.terms.parameters.items() if name in used}
    sql = root.sql(dialect=dialect.name)
    return Statement(sql, parameters, needs_float_text=FLOAT_TEXT.upper() in sql.upper())


@dataclass
class _Block:
    """A SELECT in the making: where its rows come from, what each column is, which rows are kept.

    `computed` are the columns that are more than a column of the source. One of these is not built upon: it would
    be written out, and computed, once for each use.
    """

    source: Sql | None
    scope: dict[str, Sql]
    where: list[Sql] = field(default_factory=list)
    computed: set[str] = field(default_factory=set)


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

    def _all(self, plan: Plan, table: str | None = None) -> list[Sql]:
        return [self.column(name, table) for name in columns(plan)]

    def query(self, plan: Plan) -> exp.Query:
        """The rows of a plan as a query of its own, its columns under their SQL names."""
        block = self.block(plan)
        return select([named(sql, self.names[name]) for name, sql in block.scope.items()], block.source, block.where)

    def _from(self, plan: Plan, alias: str = "t") -> Sql:
        return subquery(self.query(plan), alias)

    def block(self, plan: Plan) -> _Block:
        """The plan as a SELECT that selections, assignments and projections above it can still join."""
        match plan:
            case Unit():
                return _Block(None, {})
            case Scan(_, names):
                scope: dict[str, Sql] = {name: exp.column(f"c{i}") for i, name in enumerate(names) if name is not None}
                return _Block(exp.to_table(self.table(plan.relation, plan.version)), scope)
            case Select(child, conditions):
                block = self._open(child, {name for condition in conditions for name in variables(condition)})
                block.where += [self._kept(condition, block.scope, columns(child)) for condition in conditions]
                return block
            case Extend(child, column, term):
                block = self._open(child, set(variables(term)))
                block.scope[column] = self.terms.term(term, block.scope, columns(child))
                block.computed.add(column)
                return block
            case Project(child, items):
                used = {name for _, term in items if not isinstance(term, Variable) for name in variables(term)}
                block = self._open(child, used)
                made = {name: self.terms.term(term, block.scope, columns(child)) for name, term in items}
                plain = {name for name, term in items if isinstance(term, Variable) and term.name not in block.computed}
                return _Block(block.source, made, block.where, set(made) - plain)
            case _:
                return _Block(subquery(self._closed(plan), "t"), self.scope(plan))

    def _open(self, plan: Plan, used: set[str]) -> _Block:
        """The block of a plan, closed first when one of the columns `used` is computed in it."""
        block = self.block(plan)
        if used.isdisjoint(block.computed):
            return block
        items = [named(sql, self.names[name]) for name, sql in block.scope.items()]
        return _Block(subquery(select(items, block.source, block.where), "t"), self.scope(plan))

    def _kept(self, condition: Condition, scope: Mapping[str, Sql], types: Mapping[str, Type]) -> Sql:
        sql = self.terms.condition(condition, scope, types)
        if condition_fallible(condition, types):
            # What has no value stays, for the guard above to see.
            return negated(exp.Is(this=exp.paren(sql, copy=False), expression=exp.false()))
        return sql

    def _closed(self, plan: Plan) -> exp.Query:
        match plan:
            case Expand():
                return self._expand(plan)
            case Join(left, right):
                return self._join(left, right)
            case Antijoin():
                return self._antijoin(plan)
            case Lookup(left, right, column, default):
                value = exp.Coalesce(this=self.column(column, "r"), expressions=[self.terms.constant(default)])
                items = [*self._all(left, "l"), named(value, self.names[column])]
                on = self._matches(left, right) or exp.true()
                return select(items, self._from(left, "l"), joined=(self._from(right, "r"), "left", on))
            case Distinct(child):
                return select(self._all(child), self._from(child), distinct=True)
            case Group():
                return self._group(plan)
            case Union(inputs):
                return self._union(inputs)
            case Top(child, order, ties, limit):
                keys = [key for name, descends in order for key in self._order(name, descends, columns(child)[name])]
                rest = [exp.Ordered(this=self.column(name), desc=False) for name in ties]
                query = select(self._all(child), self._from(child)).order_by(*keys, *rest, copy=False)
                return query if limit is None else query.limit(limit, copy=False)
            case Guard():
                return self._guard(plan)
            case Unit() | Scan() | Select() | Extend() | Project():
                raise AssertionError(f"{type(plan).__name__} is a block")
            case _:
                assert_never(plan)

    def _matches(self, left: Plan, right: Plan) -> Sql | None:
        """The condition that the columns of both sides agree, None when they share none."""
        types = columns(left)
        shared = [name for name in columns(right) if name in types]
        if not shared:
            return None
        return all_of([self.terms.compare("=", self.column(n, "l"), self.column(n, "r"), types[n]) for n in shared])

    def _join(self, left: Plan, right: Plan) -> exp.Query:
        extra = [self.column(name, "r") for name in columns(right) if name not in columns(left)]
        on = self._matches(left, right)
        joined = (self._from(right, "r"), "cross" if on is None else "inner", on)
        return select([*self._all(left, "l"), *extra], self._from(left, "l"), joined=joined)

    def _antijoin(self, plan: Antijoin) -> exp.Query:
        left, right = plan.left, plan.right
        scope = {name: self.column(name, "r") for name in columns(right)}
        scope |= {name: self.column(name, "l") for name in columns(left)}
        types = {**columns(right), **columns(left)}
        shared = self._matches(left, right)
        conditions = [] if shared is None else [shared]
        conditions += [self.terms.condition(condition, scope, types) for condition in plan.where]
        found = select([named(number(1), "u")], self._from(right, "r"), conditions)
        return select(self._all(left, "l"), self._from(left, "l"), [negated(exp.Exists(this=found))])

    def _order(self, name: str, descends: bool, type: Type) -> list[Sql]:
        """Sort keys of a column; NaN, the engines' largest number, comes last in both directions."""
        key = exp.Ordered(this=self.column(name), desc=descends)
        if type.kind != "float":
            return [key]
        return [exp.Ordered(this=call("isnan", self.column(name)), desc=False), key]

    def _union(self, inputs: tuple[Plan, ...]) -> exp.Query:
        names = list(columns(inputs[0]))
        queries: list[exp.Query] = []
        for child in inputs:
            own = list(columns(child))
            block = self.block(child)
            items = [named(block.scope[o], self.names[n]) for o, n in zip(own, names, strict=True)]
            queries.append(select(items, block.source, block.where))
        query = queries[0]
        for other in queries[1:]:
            query = exp.Union(this=query, expression=other, distinct=False)
        return query

    def _group(self, group: Group) -> exp.Query:
        types = columns(group.input)
        keys = [self.column(key) for key in group.keys]
        folds = [self._fold(fold, types) for fold in group.folds]
        items = [*keys, *(named(value, self.names[f.column]) for f, value in zip(group.folds, folds, strict=True))]
        query = select(items, self._from(group.input))
        if keys:
            query = query.group_by(*(key.copy() for key in keys), copy=False)
        # Nothing has no aggregate: SQL would make a row of NULLs, and NaN must not win an extremum.
        having: list[Sql] = [] if keys else [exp.GT(this=exp.Count(this=exp.Star()), expression=number(0))]
        for fold, value in zip(group.folds, folds, strict=True):
            if fold.function in ("min", "max") and fold.argument and types[fold.argument].kind == "float":
                having.append(negated(is_null(value.copy())))
        return query.having(all_of(having), copy=False) if having else query

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
        shown = tuple(dict.fromkeys(n for term in (expand.start, expand.stop, expand.step) for n in variables(term)))
        complaint = "has a range with step 0 or more than 100,000,000 values"
        wrong = self.dialect.complain(self._message(Guard(child, (), (), shown, expand.rule, complaint)))
        count = when(too_many, when(wrong, number(0)), cast(call("greatest", steps, number(0)), "BIGINT"))
        index = select([*self._all(child), named(self.dialect.spread(count), "i")], self._from(child))
        again = {name: self.column(name) for name in types}
        first, stride = (self.terms.term(term, again, types) for term in (expand.start, expand.step))
        position = self.dialect.convert(exp.column("i"), type)
        value = exp.Add(this=first, expression=exp.Mul(this=position, expression=exp.paren(stride)))
        made = named(self.dialect.convert(exp.paren(value, copy=False), type), self.names[expand.column])
        return select([*self._all(child), made], subquery(index, "s"))

    def _guard(self, guard: Guard) -> exp.Query:
        child = guard.input
        scope, types = self.scope(child), columns(child)
        unsure = [is_null(self.column(name)) for name in guard.terms]
        unsure += [is_null(self.terms.condition(condition, scope, types)) for condition in guard.conditions]
        passes = when(any_of(unsure), self.dialect.complain(self._message(guard)), exp.true())
        return select(self._all(child), self._from(child), [passes])

    def _message(self, guard: Guard) -> Sql:
        """What the error of a guard says: its number, and the values of the columns that it shows."""
        message: Sql = text(f"{MARK_START}{len(self.guards)}")
        self.guards.append(guard)
        for name in guard.shown:
            shown = exp.Coalesce(this=cast(self.column(name), self.dialect.symbol), expressions=[text("?")])
            message = exp.DPipe(this=exp.DPipe(this=message, expression=text(MARK_BETWEEN)), expression=shown)
        return exp.paren(exp.DPipe(this=message, expression=text(MARK_END)), copy=False)
