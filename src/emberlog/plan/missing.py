"""Values that a rule may not have: a division by zero, an overflow, `to_number("x")`.

In a plan a missing value is null, and no other value is. It goes with its row through the rest of the body: a
condition that mentions it lets the row pass, an atom that mentions it is not asked, and what is computed from it is
missing too. A row that reaches the end of the body with a missing value is an error (`Guard`).
"""

from __future__ import annotations

from typing import assert_never

from emberlog.analysis.functions import may_lack
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
    bottom_up,
    columns,
)


def unsure(plan: Plan) -> frozenset[str]:
    """The columns of a plan that may lack a value in some rows. A node remembers them."""
    if not hasattr(plan, "_unsure"):
        for node in bottom_up(plan, lambda node: hasattr(node, "_unsure")):
            object.__setattr__(node, "_unsure", _unsure_of(node))
    return plan._unsure


def _unsure_of(plan: Plan) -> frozenset[str]:
    match plan:
        case Unit() | Scan():
            return frozenset()
        case Select(child) | Distinct(child) | Top(child) | Antijoin(child):
            return unsure(child)
        case Guard(child, terms):
            return unsure(child) - set(terms)
        case Extend(child, column, term):
            return unsure(child) | ({column} if may_lack(term, columns(child), unsure(child)) else set())
        case Expand(child, column):
            return unsure(child) | {column}  # what is no range has no value
        case Join(left, right, ()):
            return (unsure(left) | unsure(right)) - (columns(left).keys() & columns(right).keys())
        case Join(left, right):
            return unsure(left) | unsure(right) | (columns(right).keys() - columns(left).keys())
        case Lookup(left, right, column, _, spares):
            return unsure(left) | ({column} if spares or column in unsure(right) else set())
        case Project(child, items):
            return frozenset(name for name, term in items if may_lack(term, columns(child), unsure(child)))
        case Group(child, keys, folds):
            return unsure(child) & set(keys) | {fold.column for fold in folds if _fold_may_lack(fold, child)}
        case Union(inputs):
            names = list(columns(inputs[0]))
            return frozenset(
                name
                for child in inputs
                for name, own in zip(names, columns(child), strict=True)
                if own in unsure(child)
            )
        case _:
            assert_never(plan)


def _fold_may_lack(fold: Fold, child: Plan) -> bool:
    if fold.argument is None or fold.function in ("count", "countd"):
        return False
    type = columns(child)[fold.argument]
    overflows = (fold.function == "sum" and type.is_integer) or (
        fold.function in ("sum", "avg") and type.kind == "decimal"
    )
    return overflows or fold.argument in unsure(child)
