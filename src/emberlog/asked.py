"""What a program asks for: inputs it names, relations it wants, goals."""

from __future__ import annotations

from collections.abc import Iterator

from emberlog.analysis.booleans import word_of
from emberlog.analysis.program import CheckedProgram
from emberlog.syntax.nodes import (
    And,
    Anonymous,
    Atom,
    Comparison,
    Declaration,
    Directive,
    Formula,
    Goal,
    Item,
    Program,
    Rule,
    Term,
    Variable,
)


def directives(program: Program, kind: str) -> Iterator[Directive]:
    """The directives of one kind: input, output, printsize or limitsize."""
    return (item for item in program.items if isinstance(item, Directive) and item.kind == kind)


def input_directives(program: Program, *, files: bool) -> list[Directive]:
    """The program's `.input`s. A `database({...})` has none: with `files`, its relations are files too."""
    inputs = list(directives(program, "input"))
    if files:
        named = {directive.relation for directive in inputs}
        bases = (item for item in program.items if isinstance(item, Declaration) and item.base)
        inputs += [Directive("input", item.name, span=item.span) for item in bases if item.name not in named]
    return inputs


def declared(program: Program) -> set[str]:
    return {item.name for item in program.items if isinstance(item, Declaration)}


def wanted_relations(program: Program, checked: CheckedProgram) -> set[str]:
    """What a run evaluates: what `.output`, `.printsize` and goals name, or else every derived predicate."""
    asked = {directive.relation for kind in ("output", "printsize") for directive in directives(program, kind)}
    asked |= {item.atom.predicate for item in program.items if isinstance(item, Goal)}
    if asked:
        return asked
    derived = {name for part in checked.components if part.rules for name in part.predicates}
    return derived | {name for name, facts in checked.facts.items() if facts}


def sized_relations(program: Program) -> set[str]:
    """Of the wanted relations those whose rows are likely not read: `.printsize` and goals name them, no `.output`."""
    named = {directive.relation for directive in directives(program, "printsize")}
    named |= {item.atom.predicate for item in program.items if isinstance(item, Goal)}
    return named - {directive.relation for directive in directives(program, "output")}


def with_goal(program: Program, goal: Goal) -> Program:
    """The program asking for just this goal."""
    kept = tuple(item for item in program.items if not _asks(item))
    return Program((*kept, goal), program.bigdatalog, span=program.span)


def _asks(item: Item) -> bool:
    return isinstance(item, Goal) or (isinstance(item, Directive) and item.kind in ("output", "printsize"))


def goals_as_rules(program: Program) -> tuple[Program, list[tuple[str, str]]]:
    """Each goal as a rule for a predicate of its own: (that predicate, the goal's predicate), in order.

    `?- p(0, Y).` becomes `goal/0(A, B) <- p(A, B), A = 0.`: constants are typed and rows selected as in any rule.
    """
    items: list[Item] = []
    goals: list[tuple[str, str]] = []
    for item in program.items:
        if isinstance(item, Goal):
            name = f"goal/{len(goals)}"
            goals.append((name, item.atom.predicate))
            items.append(_goal_rule(name, item))
        else:
            items.append(item)
    return Program(tuple(items), program.bigdatalog, span=program.span), goals


def _goal_column(position: int, term: Term) -> Term:
    """The column of a goal's rule for this argument. `True` and the like stand for themselves: types tell what they
    are."""
    return Variable(f"goal/{position}", span=term.span) if word_of(term) is None else term


def _goal_rule(name: str, goal: Goal) -> Rule:
    atom = goal.atom
    columns = tuple(_goal_column(i, term) for i, term in enumerate(atom.arguments))
    conditions: list[Formula] = []
    seen: dict[str, Term] = {}
    for column, term in zip(columns, atom.arguments, strict=True):
        match term:
            case Anonymous():
                continue
            case _ if column is term:
                continue
            case Variable(variable):
                first = seen.setdefault(variable, column)
                if first is not column:
                    conditions.append(Comparison("=", first, column, span=term.span))
            case _:
                conditions.append(Comparison("=", column, term, span=term.span))
    rows = Atom(atom.predicate, columns, span=atom.span)
    return Rule((Atom(name, columns, span=atom.span),), And((rows, *conditions), span=goal.span), span=goal.span)
