"""When does a value count as changed?"""

from __future__ import annotations

from emberlog.plan.changes import LARGEST, TOLERANCE
from emberlog.plan.logical import Condition, Plan, columns
from emberlog.syntax.nodes import Call, Comparison, Constant, Term, Variable


def unchanged(value: str, before: str, plan: Plan) -> Condition:
    """The condition that the columns `value` (of `plan`) and `before` hold the same value.

    Sums of floats depend on their order in the last digits: values that are near each other, relative to the larger
    one, are the same.
    """
    new, old = Variable(value), Variable(before)
    if columns(plan)[value].kind != "float":
        return Comparison("=", new, old)
    distance: Term = Call("abs", (Call("-", (new, old)),))
    size: Term = Call("min", (Call("max", (Call("abs", (new,)), Call("abs", (old,)))), Constant(LARGEST)))
    return Comparison("<=", distance, Call("*", (Constant(TOLERANCE), size)))
