"""Rules that accumulate: what a cell adds to the cells before it, and which rules a question needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from emberlog.analysis.terms import walk
from emberlog.syntax.nodes import (
    Atom,
    Declaration,
    Directive,
    Formula,
    Goal,
    Item,
    Parameter,
    Pragma,
    Program,
    Rule,
    Term,
    TypeDeclaration,
)


def ruled(program: Program) -> set[str]:
    """The predicates that have rules or facts in the program."""
    return {head.predicate for item in program.items if isinstance(item, Rule) for head in item.heads}


def changed_by(cell: Program) -> set[str]:
    """The predicates that a cell gives another meaning: rules, declaration or file."""
    declared = {item.name for item in cell.items if isinstance(item, Declaration)}
    return ruled(cell) | declared | _inputs(cell)


def with_cell(program: Program, cell: Program) -> Program:
    """The program of the cells so far and of one more. Rules and facts of a predicate take the place of earlier ones,
    and so do declarations and `.input`s. What a cell asks for (`.output`, `?-`) does not stay."""
    rules = ruled(cell)
    named = {item.name for item in cell.items if isinstance(item, Declaration | TypeDeclaration)}
    inputs = rules | _inputs(cell)

    def kept(item: Item) -> Iterator[Item]:
        match item:
            case Rule(heads):
                left = tuple(head for head in heads if head.predicate not in rules)
                if left:
                    yield replace(item, heads=left)
            case Declaration(name) | TypeDeclaration(name):
                if name not in named:
                    yield item
            case Directive("input", relation):
                if relation not in inputs:
                    yield item
            case Pragma():
                yield item
            case Directive() | Goal():
                pass

    lasting = (item for item in cell.items if not (isinstance(item, Goal) or _is_question(item)))
    items = (*(left for item in program.items for left in kept(item)), *lasting)
    return Program(items, program.bigdatalog or cell.bigdatalog, span=cell.span)


def _inputs(cell: Program) -> set[str]:
    return {item.relation for item in cell.items if isinstance(item, Directive) and item.kind == "input"}


def _is_question(item: Item) -> bool:
    return isinstance(item, Directive) and item.kind != "input"


def questions(cell: Program) -> tuple[Item, ...]:
    """What a cell asks for: its goals and outputs; if there are none, the predicates that its rules derive."""
    asked = tuple(item for item in cell.items if isinstance(item, Goal) or _is_question(item))
    if asked:
        return asked
    derived = dict.fromkeys(
        head.predicate for item in cell.items if isinstance(item, Rule) and item.body is not None for head in item.heads
    )
    return tuple(Directive("output", name) for name in derived)


# --- what is needed --------------------------------------------------------------------------------------------------


def reads(item: Item) -> set[str]:
    """The predicates that a rule or question reads, and its parameters, as `$NAME`."""
    match item:
        case Rule(heads, body):
            return _inside([*(argument for head in heads for argument in head.arguments), body])
        case Goal(atom, rest):
            return {atom.predicate, *_inside([*atom.arguments, rest])}
        case Directive(_, relation):
            return {relation}
        case _:
            return set()


def _inside(roots: Iterable[Term | Formula | None]) -> set[str]:
    """The predicates and parameters that stand in these terms and formulas."""
    nodes = [node for root in roots if root is not None for node in walk(root)]
    parameters = {f"${node.name}" for node in nodes if isinstance(node, Parameter)}
    return parameters | {node.predicate for node in nodes if isinstance(node, Atom)}


def readers_of(program: Program) -> Mapping[str, set[str]]:
    """The predicates, and parameters as `$NAME`, that each predicate's rules read."""
    found: dict[str, set[str]] = {}
    for item in program.items:
        if isinstance(item, Rule):
            for head in item.heads:
                found.setdefault(head.predicate, set()).update(reads(item))
    return found


def closure(names: Iterable[str], edges: Mapping[str, set[str]], stop: Collection[str] = ()) -> set[str]:
    """The predicates that these depend on, themselves included; past those in `stop` it does not go."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += () if name in stop else edges.get(name, ())
    return found


def needed(program: Program, asked: tuple[Item, ...], names: set[str], known: Collection[str]) -> Program:
    """The part of the program that says what these predicates are, without rules of those that are known."""

    def is_needed(item: Item) -> bool:
        match item:
            case Rule(heads):
                return any(head.predicate in names and head.predicate not in known for head in heads)
            case Declaration(name):
                return name in names and name not in known
            case Directive(_, relation):
                return relation in names and relation not in known
            case _:
                return True

    return replace(program, items=(*filter(is_needed, program.items), *asked))


def parameters_of(program: Program) -> set[str]:
    """The names of the parameters in rules and goals, lists included."""
    return {name[1:] for item in program.items for name in reads(item) if name.startswith("$")}
