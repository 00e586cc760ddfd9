"""What a rule of a recursive component computes from the aggregated values that it reads: G, F' and C as terms.

A `Step` is a rule with everything bound by `=` written out, so that its head, its conditions and the rows that it reads
are terms over `symbols`: aggregated values of the component, columns of lower strata, columns of plain predicates of
the component. A value that comes through a plain predicate is followed back into the rules of that predicate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import assert_never

from emberlog.analysis.functions import type_of
from emberlog.analysis.program import Absent, Bind, CoreRule, Filter, Gather, Literal, Match, Signature, Spread
from emberlog.analysis.terms import map_condition, map_term, term_variables
from emberlog.syntax.nodes import Aggregate, Anonymous, Comparison, Term, Test, Variable
from emberlog.syntax.printer import show
from emberlog.types import NUMBER, Type, Value

MOST_ALTERNATIVES = 64


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a symbol gets its value: an aggregated value of the component, a column of a lower stratum, a column of a
    plain predicate of the component, or something else (a range, a body aggregate)."""

    kind: OneOf["value", "lower", "member", "free"]
    relation: str = ""
    position: int = -1


@dataclass(frozen=True, slots=True)
class Row:
    """A row that the rule reads: each cell is a symbol or a term over symbols."""

    relation: str
    cells: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Differs:
    """At least one of these pairs differs: a negated atom does not match the row `rival`."""

    pairs: tuple[tuple[Term, Term], ...]


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that depends on an aggregated value. `text` is how the user wrote it."""

    condition: Comparison | Test | Differs
    how: OneOf["test", "join", "negation"]
    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """One way in which a rule derives rows of its head.

    `value` is what goes into the aggregate of the head, `key` the K of `sum<(K, V)>`, `columns` all terms of the head.
    `context` are the conditions without aggregated values, `rivals` the rows that a negation looks for. `opaque` says
    what of the rule could not be written as terms. `chain` are the plain predicates that were followed, inner first;
    `merges` says that one of them may make one row of several.
    """

    rule: CoreRule
    function: str | None
    columns: tuple[Term, ...]
    value: Term | None
    key: Term | None
    rows: tuple[Row, ...]
    guards: tuple[Guard, ...]
    context: tuple[Comparison, ...]
    rivals: tuple[Row, ...]
    opaque: tuple[str, ...]
    chain: tuple[str, ...]
    merges: bool
    types: Mapping[str, Type] = field(compare=False)
    origins: Mapping[str, Origin] = field(compare=False)

    @property
    def head(self) -> str:
        return self.rule.predicate

    def values(self) -> dict[str, str]:
        """The symbols that are aggregated values, with their predicates."""
        return {name: origin.relation for name, origin in self.origins.items() if origin.kind == "value"}


@dataclass(frozen=True)
class Setting:
    """A recursive component: its rules, the position and function of each aggregate, what is known of relations."""

    members: frozenset[str]
    rules: tuple[CoreRule, ...]
    signatures: Mapping[str, Signature]
    facts: Mapping[str, tuple[tuple[Value, ...], ...]]
    spots: Mapping[str, tuple[int, str]] = field(init=False)
    carried: frozenset[tuple[str, int]] = field(init=False)
    _steps: dict[int, list[Step]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        spots = {r.predicate: (position, a.function) for r in self.rules for position, a in r.aggregates}
        object.__setattr__(self, "spots", spots)
        object.__setattr__(self, "carried", _carried(self.rules, self.members, spots))

    def steps(self, rule: CoreRule) -> list[Step]:
        """The steps of a rule: one, or one for each way through the plain predicates that carry values."""
        if rule.id not in self._steps:
            self._steps[rule.id] = [scope.step(rule, self) for scope in _Walk(self).body(rule, _Scope(), ())]
        return self._steps[rule.id]

    def only_counts(self, predicate: str) -> bool:
        """Is the aggregate a count to which nothing but bindings contributes: no fact, no plain head?"""
        position, function = self.spots[predicate]
        given = self.facts.get(predicate) or self.signatures[predicate].external
        heads = (rule.arguments[position] for rule in self.rules if rule.predicate == predicate)
        return function in ("count", "countd") and not given and all(isinstance(head, Aggregate) for head in heads)

    def tells_all(self, step: Step, terms: Iterable[Term]) -> bool:
        """Do the values of these terms tell the binding of a step, but for aggregated values?"""
        made = {name for name, origin in step.origins.items() if origin.kind != "value"}
        return _told(terms, step.rows, self) >= made

    def is_carried(self, predicate: str) -> bool:
        return any(name == predicate for name, _ in self.carried)


def _carried(
    rules: Iterable[CoreRule], members: frozenset[str], spots: Mapping[str, tuple[int, str]]
) -> frozenset[tuple[str, int]]:
    """The columns of plain predicates that hold aggregated values, or what is computed from them."""
    rules = [rule for rule in rules if rule.predicate not in spots]
    carried: frozenset[tuple[str, int]] = frozenset()
    while True:
        found = set(carried)
        for rule in rules:
            names = _value_variables(rule, members, spots, carried)
            for position, argument in enumerate(rule.arguments):
                if any(variable.name in names for variable in term_variables(argument)):
                    found.add((rule.predicate, position))
        if found == carried:
            return carried
        carried = frozenset(found)


def _value_variables(
    rule: CoreRule, members: frozenset[str], spots: Mapping[str, tuple[int, str]], carried: frozenset[tuple[str, int]]
) -> set[str]:
    """The variables of a rule whose values depend on aggregated values of the component."""
    names: set[str] = set()
    for literal in rule.body:
        match literal:
            case Match(predicate, arguments) if predicate in members:
                spot = spots.get(predicate, (-1, ""))[0]
                for position, argument in enumerate(arguments):
                    if isinstance(argument, Variable) and (position == spot or (predicate, position) in carried):
                        names.add(argument.name)
            case Bind(variable, term) if any(inner.name in names for inner in term_variables(term)):
                names.add(variable)
            case Gather(variable, injected=injected, witnesses=witnesses) if not names.isdisjoint(injected):
                names.update((variable, *witnesses))
            case Spread(variable, start, stop, step) if any(
                inner.name in names for term in (start, stop, step) for inner in term_variables(term)
            ):
                names.add(variable)
            case _:
                pass
    return names


@dataclass
class _Scope:
    """What is known after some literals of a body."""

    environment: dict[str, Term] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    context: list[Comparison] = field(default_factory=list)
    rivals: list[Row] = field(default_factory=list)
    opaque: list[str] = field(default_factory=list)
    chain: list[str] = field(default_factory=list)
    merges: bool = False

    def copy(self) -> _Scope:
        return _Scope(
            dict(self.environment), dict(self.types), dict(self.origins), list(self.rows), list(self.guards),
            list(self.context), list(self.rivals), list(self.opaque), list(self.chain), self.merges,
        )  # fmt: skip

    def symbol(self, stem: str, type: Type, origin: Origin) -> Variable:
        """A new symbol, named like the variable where that is free."""
        name, number = stem, 1
        while name in self.types:
            number += 1
            name = f"{stem}#{number}"
        self.types[name] = type
        self.origins[name] = origin
        return Variable(name)

    def close(self, term: Term) -> Term:
        """The term over symbols."""

        def change(inner: Term) -> Term:
            return self.environment[inner.name] if isinstance(inner, Variable) else inner

        return map_term(term, change)

    def depends(self, *terms: Term) -> bool:
        return any(self.origins[v.name].kind == "value" for term in terms for v in term_variables(term))

    def equal(self, left: Term, right: Term, text: str) -> None:
        """Both are the same: a condition of the rule."""
        if left == right:
            return
        condition = Comparison("=", left, right)
        if self.depends(left, right):
            self.guards.append(Guard(condition, "join", text))
        else:
            self.context.append(condition)

    def step(self, rule: CoreRule, setting: Setting) -> Step:
        spot, function = setting.spots.get(rule.predicate, (-1, None))
        columns = [argument for argument in rule.arguments]
        key = value = None
        if function is not None:
            inside = columns[spot]
            if isinstance(inside, Aggregate):
                key = self.close(inside.arguments[0]) if len(inside.arguments) == 2 else None
                inside = inside.arguments[-1]
            elif function in ("count", "countd"):
                function = "sum"  # a plain head under a count contributes its value
            value = columns[spot] = self.close(inside)
        closed = tuple(value if position == spot and value else self.close(c) for position, c in enumerate(columns))
        return Step(
            rule, function, closed, value, key, tuple(self.rows), tuple(self.guards), tuple(self.context),
            tuple(self.rivals), tuple(self.opaque), tuple(dict.fromkeys(self.chain)), self.merges,
            self.types, self.origins,
        )  # fmt: skip


class _Walk:
    """Goes through bodies, literal by literal; a scope may become several at a plain predicate that carries values."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def body(self, rule: CoreRule, scope: _Scope, inside: tuple[str, ...]) -> list[_Scope]:
        scopes = [scope]
        for literal in rule.body:
            scopes = [following for each in scopes for following in self._literal(literal, rule, each, inside)]
            if len(scopes) > MOST_ALTERNATIVES:
                scopes = scopes[:1]
                scopes[0].opaque.append("there are too many ways through plain predicates")
        return scopes

    def _literal(self, literal: Literal, rule: CoreRule, scope: _Scope, inside: tuple[str, ...]) -> Iterable[_Scope]:
        match literal:
            case Match(predicate) if predicate in self.setting.members and self.setting.is_carried(predicate):
                return list(self._through(literal, rule, scope, inside))
            case Match():
                self._match(literal, rule, scope)
            case Absent():
                self._absent(literal, scope)
            case Filter(condition):
                self._filter(condition, scope)
            case Bind(variable, term):
                scope.environment[variable] = scope.close(term)
            case Spread(variable, start, stop, step):
                ends = [scope.close(term) for term in (start, stop, step)]
                self._free(variable, rule, scope, "a range", ends)
            case Gather(variable, injected=injected, witnesses=witnesses):
                given = [scope.environment[name] for name in injected if name in scope.environment]
                for name in (variable, *witnesses):
                    self._free(name, rule, scope, "an aggregate over a body", given)
            case _:
                assert_never(literal)
        return [scope]

    def _free(self, name: str, rule: CoreRule, scope: _Scope, what: str, terms: list[Term]) -> None:
        if scope.depends(*terms):
            scope.opaque.append(f"values of the recursion decide {what}")
        scope.environment[name] = scope.symbol(name, rule.types.get(name, NUMBER).wide, Origin("free"))

    def _match(self, atom: Match, rule: CoreRule, scope: _Scope) -> None:
        cells: list[Term] = []
        for position, argument in enumerate(atom.arguments):
            origin = self._origin(atom.predicate, position)
            if isinstance(argument, Variable) and argument.name not in scope.environment:
                symbol = scope.symbol(argument.name, rule.types[argument.name].wide, origin)
                scope.environment[argument.name] = symbol
                cells.append(symbol)
                continue
            term = scope.close(argument)
            if origin.kind == "value" or scope.depends(term):
                symbol = scope.symbol(_stem(argument), type_of(term, scope.types).wide, origin)
                scope.equal(symbol, term, written(argument))
                cells.append(symbol)
            else:
                cells.append(term)
        scope.rows.append(Row(atom.predicate, tuple(cells)))

    def _origin(self, predicate: str, position: int) -> Origin:
        if predicate not in self.setting.members:
            return Origin("lower", predicate, position)
        spot = self.setting.spots.get(predicate)
        kind: OneOf["value", "member"] = "value" if spot is not None and spot[0] == position else "member"
        return Origin(kind, predicate, position)

    def _filter(self, condition: Comparison | Test, scope: _Scope) -> None:
        text = written(condition)
        closed = map_condition(condition, scope.close)
        operands = (closed.left, closed.right) if isinstance(closed, Comparison) else closed.call.arguments
        if scope.depends(*operands):
            scope.guards.append(Guard(closed, "test", text))
        elif isinstance(closed, Comparison):
            scope.context.append(closed)

    def _absent(self, atom: Absent, scope: _Scope) -> None:
        closed = [argument if isinstance(argument, Anonymous) else scope.close(argument) for argument in atom.arguments]
        if not any(scope.depends(term) for term in closed):
            return
        cells: list[Term] = []
        pairs: list[tuple[Term, Term]] = []
        columns = self.setting.signatures[atom.predicate].columns
        for position, term in enumerate(closed):
            if isinstance(term, Anonymous) or scope.depends(term):
                origin = Origin("lower", atom.predicate, position)
                symbol = scope.symbol(f"_{atom.predicate}{position}", columns[position].type.wide, origin)
                cells.append(symbol)
                if not isinstance(term, Anonymous):
                    pairs.append((term, symbol))
            else:
                cells.append(term)
        scope.rivals.append(Row(atom.predicate, tuple(cells)))
        scope.guards.append(Guard(Differs(tuple(pairs)), "negation", f"!{atom.predicate}(..)"))

    # --- plain predicates that carry values ---

    def _through(self, atom: Match, rule: CoreRule, scope: _Scope, inside: tuple[str, ...]) -> Iterator[_Scope]:
        setting, predicate = self.setting, atom.predicate
        if predicate in inside:
            scope.opaque.append(f"the value goes round through the plain predicate `{predicate}`")
            for argument in atom.arguments:
                if isinstance(argument, Variable) and argument.name not in scope.environment:
                    symbol = scope.symbol(argument.name, rule.types[argument.name].wide, Origin("free"))
                    scope.environment[argument.name] = symbol
            yield scope
            return
        ways = [other for other in setting.rules if other.predicate == predicate and not other.start]
        given = bool(setting.facts.get(predicate)) or setting.signatures[predicate].external
        if given:
            plain = scope.copy()
            self._match(atom, rule, plain)
            yield plain
        for other in ways:
            outer = scope.copy()
            known = set(outer.types)
            environment, outer.environment = outer.environment, {}
            for inner in self.body(other, outer, (*inside, predicate)):
                head = [inner.close(argument) for argument in other.arguments]
                inner.merges |= given or len(ways) > 1 or not _tells_all(inner, known, head, setting)
                inner.environment = dict(environment)
                inner.chain.append(predicate)
                self._unify(atom.arguments, head, inner)
                yield inner

    def _unify(self, arguments: Iterable[Term], head: Iterable[Term], scope: _Scope) -> None:
        for argument, term in zip(arguments, head, strict=True):
            if isinstance(argument, Variable) and argument.name not in scope.environment:
                scope.environment[argument.name] = term
            else:
                scope.equal(scope.close(argument), term, written(argument))


def written(node: Term | Comparison | Test) -> str:
    """A term or condition as the user wrote it, on one line."""
    return " ".join(node.span.text.split()) or show(node)


def _stem(argument: Term) -> str:
    return argument.name if isinstance(argument, Variable) else "_c"


def _tells_all(scope: _Scope, known: set[str], head: Iterable[Term], setting: Setting) -> bool:
    """Does a row of a plain predicate tell the binding that made it, so that no two bindings make the same row?"""
    made = {name for name, origin in scope.origins.items() if name not in known and origin.kind != "value"}
    return _told(head, scope.rows, setting) >= made


def _told(terms: Iterable[Term], rows: Iterable[Row], setting: Setting) -> set[str]:
    """The symbols whose values follow from those of the terms: a row of an aggregate follows from its group."""
    told = {term.name for term in terms if isinstance(term, Variable)}
    while True:
        size = len(told)
        for row in rows:
            spot = setting.spots.get(row.relation)
            aggregates = setting.signatures[row.relation].aggregates if spot is None else (spot[0],)
            groups = [cell for position, cell in enumerate(row.cells) if position not in aggregates]
            if aggregates and all(v.name in told for cell in groups for v in term_variables(cell)):
                told |= {v.name for cell in row.cells for v in term_variables(cell)}
        if len(told) == size:
            return told
