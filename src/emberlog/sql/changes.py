"""When does a value count as changed?"""

from __future__ import annotations

from emberlog.plan.logical import Condition, Plan, columns
from emberlog.syntax.nodes import Call, Comparison, Constant, Term, Variable

# Sums of floats depend on their order in the last digits: two values of a group that are nearer than this, relative to
# the larger one, are the same value.
FLOAT_TOLERANCE = 1e-12


def unchanged(value: str, before: str, plan: Plan) -> Condition:
    """The condition that the columns `value` (of `plan`) and `before` hold the same value."""
    new, old = Variable(value), Variable(before)
    if columns(plan)[value].kind != "float":
        return Comparison("=", new, old)
    distance: Term = Call("abs", (Call("-", (new, old)),))
    size: Term = Call("max", (Call("abs", (new,)), Call("abs", (old,))))
    return Comparison("<=", distance, Call("*", (Constant(FLOAT_TOLERANCE), size)))
