"""Arguments by name: `customers(customer=C, day=D)` becomes an atom with `_` for every column that it does not name.

It is done before all other checks, which know positions only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from emberlog.analysis.names import step_index
from emberlog.analysis.signatures import column_names
from emberlog.analysis.terms import is_ground, map_formula, map_term, walk
from emberlog.diagnostics import Diagnostic, Label, ProgramError, did_you_mean
from emberlog.syntax.nodes import Aggregate, Anonymous, Atom, Declaration, Goal, Item, Program, Rule, Term

Names = Mapping[str, tuple[str, ...]]
"""The columns of relations, in order."""


def with_positions(program: Program, names_of_source: Callable[[str], tuple[str, ...] | None]) -> Program:
    """The program with all arguments by position. The columns of a relation are those of its declaration, of its
    source, or of its first rule. Raises ProgramError for what names none of them."""
    atoms = [atom for item in program.items for atom in _atoms(item) if atom.names]
    if not atoms:
        return program
    names: dict[str, tuple[str, ...]] = {}
    for predicate in dict.fromkeys(atom.predicate for atom in atoms):
        found = _declared(program, predicate) or names_of_source(predicate) or _of_rules(program, predicate)
        if found is not None:
            names[predicate] = found
    mistakes = [mistake for atom in atoms for mistake in _check(atom, names.get(atom.predicate))]
    if mistakes:
        raise ProgramError(mistakes)
    return replace(program, items=tuple(_rewrite(item, names) for item in program.items))


def _atoms(item: Item) -> Iterator[Atom]:
    match item:
        case Rule(heads, body) if not is_ground(item):
            for root in heads if body is None else (*heads, body):
                yield from (node for node in walk(root) if isinstance(node, Atom))
        case Goal(atom, rest):
            yield atom
            if rest is not None:
                yield from (node for node in walk(rest) if isinstance(node, Atom))
        case _:
            return


def _declared(program: Program, name: str) -> tuple[str, ...] | None:
    found = (item for item in program.items if isinstance(item, Declaration) and item.name == name)
    return next((tuple(attribute.name for attribute in item.attributes) for item in found), None)


def _of_rules(program: Program, name: str) -> tuple[str, ...] | None:
    """The names that the first rule gives to the columns. Those of an iteration have none: its index may be absent."""
    rules = (item for item in program.items if isinstance(item, Rule) and not is_ground(item))
    heads = [head for rule in rules for head in rule.heads if head.predicate == name]
    if not heads or any(step_index(head.arguments) for head in heads):
        return None
    columns = tuple(column for argument in heads[0].arguments for column in _columns(argument))
    return column_names(columns, len(columns))


def _columns(argument: Term) -> tuple[Term, ...]:
    """What an argument of a head gives columns to: a value and its witness are two."""
    match argument:
        case Aggregate("min" | "max" | "top", (_, _)):
            return argument.arguments
        case _:
            return (argument,)


def _check(atom: Atom, known: tuple[str, ...] | None) -> Iterator[Diagnostic]:
    if known is None:
        help = f"register a source, declare them (`.decl {atom.predicate}(...)`), or give the arguments by position"
        yield Diagnostic("E0222", f"the columns of `{atom.predicate}` are not known", (Label(atom.span),), help)
        return
    for place, (name, term) in enumerate(zip(atom.names, atom.arguments, strict=True)):
        if name not in known:
            help = did_you_mean(name, known) or f"it has {', '.join(known)}"
            yield Diagnostic("E0222", f"`{atom.predicate}` has no column `{name}`", (Label(term.span),), help)
        elif name in atom.names[:place]:
            first = atom.arguments[atom.names.index(name)]
            labels = (Label(term.span, "named again"), Label(first.span, "named first"))
            help = "name it once, and compare in a goal of its own"
            yield Diagnostic("E0222", f"the column `{name}` is named twice", labels, help)


def _rewrite(item: Item, names: Names) -> Item:
    def change(atom: Atom) -> Atom:
        if not atom.names:
            return atom
        given = dict(zip(atom.names, atom.arguments, strict=True))
        arguments = (given.get(name, Anonymous(span=atom.span)) for name in names[atom.predicate])
        return replace(atom, arguments=tuple(arguments), names=())

    def same(term: Term) -> Term:
        return term

    match item:
        case Rule(heads, body) if not is_ground(item):
            inside = (tuple(map_term(a, same, change) for a in head.arguments) for head in heads)
            changed = tuple(replace(head, arguments=terms) for head, terms in zip(heads, inside, strict=True))
            return replace(item, heads=changed, body=None if body is None else map_formula(body, same, change))
        case Goal(atom, rest):
            return replace(item, atom=change(atom), rest=None if rest is None else map_formula(rest, same, change))
        case _:
            return item
