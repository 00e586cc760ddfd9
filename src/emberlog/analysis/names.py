"""Predicates: who they are, how many columns they have and of which types, and where their rows come from.

`resolve` reads the declarations, the registered sources and every mention of a predicate, and returns the `Scope`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from emberlog.analysis.columns import unread_columns
from emberlog.analysis.program import Bound
from emberlog.analysis.terms import is_ground, walk
from emberlog.analysis.typenames import TypeNames
from emberlog.diagnostics import Diagnostic, Label, did_you_mean, warning
from emberlog.source import NOWHERE, Span
from emberlog.syntax.nodes import (
    Atom,
    Call,
    Constant,
    Declaration,
    Directive,
    Goal,
    Program,
    Rule,
    Term,
    Variable,
)
from emberlog.types import Column, Type

Catalog: TypeAlias = Mapping[str, tuple[Column, ...] | None]
"""The columns of each registered source; None for a source whose columns the program has to declare."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate as written. `names` and `types` are the declared or registered columns, () where there are none.

    `span` is where its number of arguments was fixed. A type is None where its declaration is wrong.
    """

    name: str
    arity: int
    span: Span
    names: tuple[str, ...] = ()
    types: tuple[Type | None, ...] = ()
    places: tuple[Span, ...] = ()  # where each type is declared
    domains: Mapping[int, tuple[Bound, ...]] = field(default_factory=dict)
    declared: bool = False
    external: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """The predicates of a program. `broken` has the numbers of the items with a mistake in a name."""

    predicates: Mapping[str, Predicate]
    broken: frozenset[int]
    warnings: tuple[Diagnostic, ...] = ()


@dataclass
class _Mentions:
    """Where each predicate stands: in heads and in bodies."""

    heads: dict[str, list[Atom]] = field(default_factory=dict)
    bodies: dict[str, list[Atom]] = field(default_factory=dict)
    items: dict[int, int] = field(default_factory=dict)  # the number of the item of each atom, by identity

    @property
    def names(self) -> dict[str, None]:
        return dict.fromkeys((*self.heads, *self.bodies))

    def add(self, where: dict[str, list[Atom]], atom: Atom, item: int) -> None:
        where.setdefault(atom.predicate, []).append(atom)
        self.items[id(atom)] = item


def resolve(program: Program, catalog: Catalog, require_sources: bool) -> tuple[Scope, list[Diagnostic]]:
    """The predicates of the program, and every mistake in their names."""
    resolver = _Resolver(program, catalog, require_sources)
    return resolver.scope(), resolver.found


class _Resolver:
    def __init__(self, program: Program, catalog: Catalog, require_sources: bool) -> None:
        self.program = program
        self.catalog = catalog
        self.require_sources = require_sources
        self.found: list[Diagnostic] = []
        self.warnings: list[Diagnostic] = []
        self.broken: set[int] = set()
        self.mentions = _mentions(program)
        self.unread = unread_columns(program)
        self.declarations = self._declarations()
        self.directives = [item for item in program.items if isinstance(item, Directive)]
        self.goals = [item for item in program.items if isinstance(item, Goal)]
        self.inputs = {d.relation: d for d in reversed(self.directives) if d.kind == "input"}
        self.inputs |= {name: _as_input(d) for name, d in self.declarations.items() if "input" in d.qualifiers}

    def scope(self) -> Scope:
        types = TypeNames(self.program)
        self.found.extend(types.found)
        known = dict.fromkeys((*self.declarations, *self.mentions.names, *self._named_by_directives()))
        predicates = {name: self._predicate(name, types) for name in known}
        for name, predicate in predicates.items():
            self._check_arity(predicate)
            self._check_registered(predicate)
            self._check_domains(predicate)
            self._check_source(name)
        self._check_directives(predicates)
        return Scope(predicates, frozenset(self.broken), tuple(self.warnings))

    # --- what there is ---

    def _declarations(self) -> dict[str, Declaration]:
        declarations: dict[str, Declaration] = {}
        for item in self.program.items:
            if not isinstance(item, Declaration):
                continue
            first = declarations.setdefault(item.name, item)
            if first is not item:
                self._twice(f"`{item.name}` is declared twice", item.span, first.span)
            self.found.extend(_unsupported(item))
            columns: dict[str, Span] = {}
            for attribute in item.attributes:
                if columns.setdefault(attribute.name, attribute.span) is not attribute.span:
                    text = f"`{item.name}` has two columns `{attribute.name}`"
                    self._twice(text, attribute.span, columns[attribute.name])
        return declarations

    def _twice(self, message: str, second: Span, first: Span) -> None:
        labels = (Label(second, "declared again"), Label(first, "declared first"))
        self.found.append(Diagnostic("E0203", message, labels, "remove one of the two"))

    def _named_by_directives(self) -> Iterator[str]:
        """Registered relations that only a directive or a goal mentions."""
        yield from (d.relation for d in self.directives if d.relation in self.catalog)
        yield from (goal.atom.predicate for goal in self.goals if goal.atom.predicate in self.catalog)

    def _predicate(self, name: str, types: TypeNames) -> Predicate:
        external = name in self.catalog or name in self.inputs
        declaration = self.declarations.get(name)
        if declaration is not None:
            attributes = declaration.attributes
            resolved = []
            for attribute in attributes:
                type, mistake = types.resolve(attribute.type, attribute.span)
                resolved.append(type)
                self.found.extend([mistake] if mistake else [])
            return Predicate(
                name,
                len(attributes),
                declaration.span,
                tuple(attribute.name for attribute in attributes),
                tuple(resolved),
                tuple(attribute.span for attribute in attributes),
                domains_of(declaration),
                declared=True,
                external=external,
            )
        columns = self.catalog.get(name)
        if columns is not None:
            return Predicate(
                name,
                len(columns),
                NOWHERE,
                tuple(column.name for column in columns),
                tuple(column.type for column in columns),
                external=True,
            )
        atom = self._first_atom(name)
        return Predicate(name, len(atom.arguments), atom.span, external=external)

    def _first_atom(self, name: str) -> Atom:
        goals = [goal.atom for goal in self.goals if goal.atom.predicate == name]
        atoms = self.mentions.heads.get(name) or self.mentions.bodies.get(name) or goals
        return atoms[0] if atoms else Atom(name, ())

    # --- mistakes ---

    def _check_arity(self, predicate: Predicate) -> None:
        name = predicate.name
        for atom in (*self.mentions.heads.get(name, ()), *self.mentions.bodies.get(name, ())):
            if len(atom.arguments) == predicate.arity or self._may_read_result(atom, predicate):
                continue
            self.broken.add(self.mentions.items[id(atom)])
            given = len(atom.arguments)
            labels = [Label(atom.span, f"{given} argument{'' if given == 1 else 's'}")]
            help = None
            if predicate.span is NOWHERE:
                help = f"the registered source has the columns {', '.join(predicate.names)}"
            else:
                how = "declared" if predicate.declared else "first used"
                labels.append(Label(predicate.span, f"{how} with {predicate.arity}"))
            message = f"`{name}` has {predicate.arity} argument{'' if predicate.arity == 1 else 's'}, not {given}"
            self.found.append(Diagnostic("E0202", message, tuple(labels), help))

    def _may_read_result(self, atom: Atom, predicate: Predicate) -> bool:
        """Outside of an iteration its result may be read, which has no index; `iteration` looks at it again."""
        heads = self.mentions.heads.get(predicate.name, ())
        counts = any(step_index(head.arguments) for head in heads)
        return counts and len(atom.arguments) == predicate.arity - 1 and not any(atom is head for head in heads)

    def _check_registered(self, predicate: Predicate) -> None:
        """The declaration of a registered relation must fit the source, but for the types of columns that are not
        read."""
        columns = self.catalog.get(predicate.name)
        if columns is None or not predicate.declared:
            return
        if len(columns) != predicate.arity:
            message = f"`{predicate.name}` is declared with {predicate.arity} columns, its source has {len(columns)}"
            help = f"the source has {', '.join(f'{column.name}: {column.type}' for column in columns)}"
            self.found.append(Diagnostic("E0202", message, (Label(predicate.span),), help))
            return
        unread = self.unread.get(predicate.name, frozenset())
        for i, (column, type, span) in enumerate(zip(columns, predicate.types, predicate.places, strict=True)):
            if (
                i in unread
                or type is None
                or column.type.kind == type.kind
                or (column.type.kind, type.kind) == ("number", "float")
            ):
                continue
            message = f"the source of `{predicate.name}` has another type in this column"
            label = Label(span, f"declared {type}, but the source has {column.type}")
            self.found.append(Diagnostic("E0501", message, (label,), f"declare it as {column.type}"))

    def _check_domains(self, predicate: Predicate) -> None:
        """A condition on a column is about numbers that are loaded."""
        derived = any(not is_ground(self._rule_of(atom)) for atom in self.mentions.heads.get(predicate.name, ()))
        for position in predicate.domains:
            type = predicate.types[position]
            if derived:
                message = f"`{predicate.name}` has rules: nothing checks a condition on what they derive"
                help = "conditions belong to relations that are loaded; in a rule, a comparison selects rows"
            elif type is not None and not type.is_numeric:
                message, help = f"a condition on a column of type {type}", "conditions are for columns of numbers"
            else:
                continue
            self.found.append(Diagnostic("E0221", message, (Label(predicate.places[position]),), help))

    def _rule_of(self, head: Atom) -> Rule:
        item = self.program.items[self.mentions.items[id(head)]]
        assert isinstance(item, Rule)
        return item

    def _check_source(self, name: str) -> None:
        uses = self.mentions.bodies.get(name, [])
        wanted = bool(uses) or any(goal.atom.predicate == name for goal in self.goals)
        if self.catalog.get(name) is not None or name in self.mentions.heads or name.startswith("$"):
            return  # what is wrong with a parameter is told with the others
        declaration = self.declarations.get(name)
        if name in self.inputs or name in self.catalog:
            self._check_input(name)
        elif declaration is not None and not declaration.base:
            if wanted or any(d.relation == name for d in self.directives):
                message = f"`{name}` has no rules, facts or source: it is empty"
                self.warnings.append(warning("W0202", message, [Label(declaration.span)]))
        elif self.require_sources and wanted:
            self._missing(name, [atom.span for atom in uses], declaration)

    def _missing(self, name: str, uses: list[Span], declaration: Declaration | None) -> None:
        registered = f"registered: {', '.join(sorted(self.catalog)) or 'nothing'}"
        near = did_you_mean(name, self._defined() - {name}) if declaration is None else None
        places = uses + ([declaration.span] if declaration else [])
        if near:
            labels = (Label(places[0], "no rule, fact, declaration or source"),)
            found = Diagnostic("E0201", f"unknown predicate `{name}`", labels, f"{near} ({registered})")
        else:
            labels = (Label(places[0], "no rule, fact or source gives it rows"),)
            help = f"register a source under this name, or write `.input {name}`; {registered}"
            found = Diagnostic("E0208", f"the relation `{name}` has no source", labels, help)
        self.found.append(found)
        self.broken.update(self.mentions.items[id(atom)] for atom in self.mentions.bodies.get(name, ()))

    def _check_input(self, name: str) -> None:
        if name in self.declarations or not self.require_sources:
            return
        atom = self._first_atom(name)
        span = self.inputs[name].span if name in self.inputs else atom.span
        arity = len(atom.arguments) or 1
        columns = ", ".join(f"c{i}: number" for i in range(arity))
        help = f"declare it: `.decl {name}({columns})`"
        self.found.append(Diagnostic("E0209", f"the columns of the input `{name}` are not known", (Label(span),), help))

    def _check_directives(self, predicates: Mapping[str, Predicate]) -> None:
        places = [(f"`.{d.kind}`", d.relation, d.span) for d in self.directives]
        places += [("the goal", goal.atom.predicate, goal.atom.span) for goal in self.goals]
        for what, name, span in places:
            if name not in predicates:
                help = did_you_mean(name, self._defined())
                message = f"{what} names an unknown relation, `{name}`"
                self.found.append(Diagnostic("E0207", message, (Label(span),), help))

    def _defined(self) -> set[str]:
        return {*self.declarations, *self.catalog, *self.mentions.heads, *self.inputs}


def step_index(arguments: tuple[Term, ...]) -> str | None:
    """The `i` of a head that begins with `i + 1`."""
    match arguments[:1]:
        case (Call("+", (Variable(name), Constant(1))),) | (Call("+", (Constant(1), Variable(name))),):
            return name
        case _:
            return None


def domains_of(declaration: Declaration) -> dict[int, tuple[Bound, ...]]:
    """The declared conditions on columns, by position."""
    return {
        position: tuple(Bound(condition.operator, _number(condition.right)) for condition in attribute.where)
        for position, attribute in enumerate(declaration.attributes)
        if attribute.where
    }


def _number(term: Term) -> float:
    match term:
        case Call("neg", (inner,)):
            return -_number(inner)
        case Constant(value) if not isinstance(value, str):
            return value
        case _:
            raise ValueError(f"not a number: {term}")


def _unsupported(declaration: Declaration) -> Iterator[Diagnostic]:
    """Qualifiers that mean more than how a relation is stored."""
    name = declaration.name
    for qualifier in declaration.qualifiers:
        if qualifier == "eqrel":
            help = f"write its rules: `{name}(X, Y) :- {name}(Y, X).` and `{name}(X, Z) :- {name}(X, Y), {name}(Y, Z).`"
        elif qualifier.startswith("choice"):
            help = "an aggregate, for example `min`, picks one row of a group"
        else:
            continue
        message = f"the qualifier `{qualifier}` of `{name}` is not supported"
        yield Diagnostic("E0219", message, (Label(declaration.span),), help)


def _as_input(declaration: Declaration) -> Directive:
    return Directive("input", declaration.name, span=declaration.span)


def _mentions(program: Program) -> _Mentions:
    mentions = _Mentions()
    for number, item in enumerate(program.items):
        if not isinstance(item, Rule):
            continue
        for head in item.heads:
            mentions.add(mentions.heads, head, number)
        if is_ground(item):
            continue
        roots = [] if item.body is None else [item.body]
        for root in (*roots, *(argument for head in item.heads for argument in head.arguments)):
            for node in walk(root):
                if isinstance(node, Atom):
                    mentions.add(mentions.bodies, node, number)
    return mentions


def mentioned(program: Program) -> set[str]:
    """Every predicate that the program names: in rules, goals, declarations and directives."""
    named = {item.name for item in program.items if isinstance(item, Declaration)}
    named |= {item.relation for item in program.items if isinstance(item, Directive)}
    named |= {item.atom.predicate for item in program.items if isinstance(item, Goal)}
    return named | set(_mentions(program).names)
