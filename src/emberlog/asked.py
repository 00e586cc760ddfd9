"""What a program asks for: inputs it names, relations it wants, goals."""

from __future__ import annotations

from collections.abc import Iterator

from emberlog.analysis.booleans import word_of
from emberlog.analysis.program import CheckedProgram
from emberlog.analysis.terms import walk
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
    """What a run evaluates beside its goals: what `.output` and `.printsize` name. If nothing is asked for, every
    derived predicate."""
    asked = {directive.relation for kind in ("output", "printsize") for directive in directives(program, kind)}
    if asked or any(isinstance(item, Goal) for item in program.items):
        return asked
    derived = {name for part in checked.components if part.rules for name in part.predicates}
    derived |= {name for name, facts in checked.facts.items() if facts}
    return {name for name in derived if "/" not in name}  # no predicate that the analysis made


def sized_relations(program: Program) -> set[str]:
    """Of the wanted relations those whose rows are likely not read: `.printsize` names them, no `.output`."""
    named = {directive.relation for directive in directives(program, "printsize")}
    return named - {directive.relation for directive in directives(program, "output")}


def with_goal(program: Program, goal: Goal) -> Program:
    """The program asking for just this goal."""
    kept = tuple(item for item in program.items if not _asks(item))
    return Program((*kept, goal), program.bigdatalog, span=program.span)


def _asks(item: Item) -> bool:
    return isinstance(item, Goal) or (isinstance(item, Directive) and item.kind in ("output", "printsize"))


def goals_as_rules(program: Program) -> tuple[Program, list[tuple[str, str]]]:
    """Each goal as a rule for a predicate of its own: (that predicate, the goal's predicate), in order.

    `?- p(0, Y).` becomes `goal/0(A, B) <- p(A, B), A = 0.`: constants are typed and rows selected as in any rule. What
    stands behind the atom of a goal are further conditions.
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


def conditions_as_rules(program: Program) -> Program:
    """The program with each goal that has conditions as a rule; the others stay."""
    spelled, _ = goals_as_rules(program)
    pairs = zip(program.items, spelled.items, strict=True)
    items = (rule if isinstance(item, Goal) and item.rest is not None else item for item, rule in pairs)
    return Program(tuple(items), program.bigdatalog, span=program.span)


def _goal_column(position: int, term: Term, named: set[str]) -> Term:
    """The column of a goal's rule for this argument. `True` and the like stand for themselves: types tell what they
    are. So does the first of the variables that are `named` elsewhere in the goal."""
    if isinstance(term, Variable) and term.name in named:
        named.remove(term.name)
        return term
    return Variable(f"goal/{position}", span=term.span) if word_of(term) is None else term


def _goal_rule(name: str, goal: Goal) -> Rule:
    atom = goal.atom
    rest = () if goal.rest is None else (goal.rest,)
    named = {node.name for formula in rest for node in walk(formula) if isinstance(node, Variable)}
    columns = tuple(_goal_column(i, term, named) for i, term in enumerate(atom.arguments))
    conditions: list[Formula] = []
    seen: dict[str, Term] = {}
    for column, term in zip(columns, atom.arguments, strict=True):
        match term:
            case Anonymous():
                continue
            case Variable(variable) if column is term and word_of(term) is None:
                seen[variable] = column
            case _ if column is term:
                continue
            case Variable(variable):
                first = seen.setdefault(variable, column)
                if first is not column:
                    conditions.append(Comparison("=", first, column, span=term.span))
            case _:
                conditions.append(Comparison("=", column, term, span=term.span))
    rows = Atom(atom.predicate, columns, span=atom.span)
    return Rule((Atom(name, columns, span=atom.span),), And((rows, *conditions, *rest), span=goal.span), span=goal.span)
