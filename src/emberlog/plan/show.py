"""Logical plans as indented text: what `explain` prints and golden files hold.

`label` is one node in one line, `show` a tree, `show_stratum` and `show_program` the same with what holds trees
together: a recursive stratum is a `Fixpoint` with an exit and a recursive part, an iteration has a start and a round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from emberlog.analysis.program import Signature
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
    children,
    columns,
)
from emberlog.plan.strata import ProgramPlan, RelationPlan, Stratum
from emberlog.syntax.nodes import Term, Variable
from emberlog.syntax.printer import show as show_term

INDENT = "  "
DEEPEST_INDENT = 50


def label(plan: Plan) -> str:
    """One node, without its inputs, in one line."""
    match plan:
        case Unit():
            return "Unit"
        case Scan(relation, names, _, version):
            listed = ", ".join("_" if name is None else name for name in names)
            return f"Scan {relation}({listed})" + ("" if version == "all" else f" {version}")
        case Select(_, conditions):
            return f"Select {_conditions(conditions)}"
        case Extend(_, column, term):
            return f"Extend {_assigned(column, term)}"
        case Expand(_, column, start, stop, step):
            bounds = ", ".join(show_term(term) for term in (start, stop, step))
            return f"Expand {column} = range({bounds})"
        case Join(left, right):
            return f"Join{_on(left, right)}{_spares(plan)}" if shared(left, right) else "Cross join"
        case Antijoin(left, right, where):
            return f"Antijoin{_on(left, right)}" + (f" where {_conditions(where)}" if where else "")
        case Lookup(left, right, column, default):
            return f"Lookup {column}{_on(left, right)}{_spares(plan)}, else {show_term(default)}"
        case Project(_, items):
            return "Project " + (", ".join(_assigned(name, term) for name, term in items) or "nothing")
        case Distinct():
            return "Distinct"
        case Group(_, keys, folds):
            return f"Group {_by(keys)}: {', '.join(_fold(fold) for fold in folds)}"
        case Union():
            return "Union"
        case Top():
            return _top(plan)
        case Guard(_, terms, _, _, complaint):
            return f"Guard {', '.join(terms)}: error if it {complaint}"
        case _:
            assert_never(plan)


def shared(left: Plan, right: Plan) -> tuple[str, ...]:
    """The columns that a join of the two matches."""
    return tuple(name for name in columns(left) if name in columns(right))


def indent(level: int) -> str:
    """What stands before a node at this level of a tree. Deep ones say their level: a line has an end."""
    return INDENT * level if level <= DEEPEST_INDENT else f"{INDENT * DEEPEST_INDENT}{level}: "


def show(plan: Plan) -> str:
    """The plan as an indented tree, a node a line."""
    return "\n".join(_tree(plan))


def _tree(plan: Plan, depth: int = 0) -> Iterator[str]:
    waiting = [(plan, depth)]
    while waiting:
        node, level = waiting.pop()
        yield indent(level) + label(node)
        waiting.extend((child, level + 1) for child in reversed(children(node)))


def show_program(program: ProgramPlan) -> str:
    """All strata in the order of their evaluation, with an empty line between."""
    return "\n\n".join(show_stratum(stratum) for stratum in program.strata)


def show_stratum(stratum: Stratum) -> str:
    """A stratum: a `Relation` computed once, a `Fixpoint` by deltas, an `Iteration` from state to state."""
    return "\n".join(_stratum(stratum))


def _stratum(stratum: Stratum) -> Iterator[str]:
    heads = ", ".join(show_signature(relation.signature) for relation in stratum.relations)
    match stratum.evaluation:
        case "once":
            yield f"Relation {heads}"
        case "delta":
            yield f"Fixpoint {heads}"
        case "naive" | "accumulate":
            until = "" if stratum.until is None else f" until {show_term(stratum.until)[1:-1]}"
            yield f"Iteration {heads}{until}"
    several = len(stratum.relations) > 1
    for relation in stratum.relations:
        if several:
            yield f"{INDENT}{relation.name}"
        for title, trees in parts(relation, stratum):
            depth = 1 + several
            if title:
                yield INDENT * depth + title
                depth += 1
            if not trees:
                yield INDENT * depth + "Nothing"
            for tree in trees:
                yield from _tree(tree, depth)


def parts(relation: RelationPlan, stratum: Stratum) -> list[tuple[str, Sequence[Plan]]]:
    """The plans of a relation and what they are for; that of a relation computed once needs no name."""
    exits = () if relation.exit is None else (relation.exit,)
    match stratum.evaluation:
        case "once":
            return [("", exits)]
        case "naive":
            start = () if relation.start is None else (relation.start,)
            return [("start", start), ("each round", exits)]
        case "accumulate":
            start = () if relation.start is None else (relation.start,)
            constant = () if relation.constant is None else (relation.constant,)
            return [("start", start), ("constant", constant), ("recursive", relation.steps)]
        case "delta":
            named: list[tuple[str, Sequence[Plan]]] = [("exit", exits)]
            if relation.plain is not None:
                named.append(("counts that are given", (relation.plain,)))
            if relation.steps:
                named.append(("recursive", relation.steps))
            for part in relation.contributions:
                named.append((f"recursive, one contribution for each {_listed(part.identity)}", part.steps))
            return named


def show_signature(signature: Signature) -> str:
    """`sssp(X, min D)`: a relation, its columns and their aggregates."""
    named = (
        f"{signature.aggregates[spot]} {column.name}" if spot in signature.aggregates else column.name
        for spot, column in enumerate(signature.columns)
    )
    return f"{signature.name}({', '.join(named)})"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) == 1 else f"({', '.join(names)})"


def _on(left: Plan, right: Plan) -> str:
    names = shared(left, right)
    return f" on {', '.join(names)}" if names else ""


def _spares(join: Join | Lookup) -> str:
    return f" where {', '.join(join.spares)} has a value" if join.spares else ""


def _conditions(conditions: Iterable[Condition]) -> str:
    return ", ".join(show_term(condition) for condition in conditions)


def _assigned(column: str, term: Term) -> str:
    return column if term == Variable(column) else f"{column} = {show_term(term)}"


def _by(keys: tuple[str, ...]) -> str:
    return f"by {', '.join(keys)}" if keys else "all"


def _fold(fold: Fold) -> str:
    value = f"{fold.function}({fold.argument or ''})"
    return value if fold.argument == fold.column else f"{fold.column} = {value}"


def _top(top: Top) -> str:
    keys = [f"{name} descending" if descends else name for name, descends in top.order]
    keys += [name for name in top.ties if name not in dict(top.order)]
    order = f" by {', '.join(keys)}" if keys else ""
    order += f" for each {', '.join(top.groups)}" if top.groups else ""
    return f"Sort{order}" if top.limit is None else f"Top {top.limit}{order}"
