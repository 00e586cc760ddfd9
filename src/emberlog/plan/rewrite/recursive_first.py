"""Join order: the rows of the last round first (DCDatalog 5.1), then inputs that share a column with what is joined."""

from __future__ import annotations

from emberlog.deep import Deep, run_deep
from emberlog.plan.logical import Join, Plan, Scan, children, columns, with_children
from emberlog.plan.strata import ProgramPlan


def recursive_first(program: ProgramPlan) -> ProgramPlan:
    """Every tree of joins becomes left-deep, starting with what is recent, without a cross product where possible."""
    return program.map(lambda plan: run_deep(_order(plan, {}))[0])


def _order(plan: Plan, done: dict[int, tuple[Plan, bool]]) -> Deep[tuple[Plan, bool]]:
    """The plan with its joins in order, and whether it reads rows of the last round. `done` has the answers for parts
    that several others share, by their identity."""
    if id(plan) not in done:
        done[id(plan)] = yield _ordered(plan, done)
    return done[id(plan)]


def _ordered(plan: Plan, done: dict[int, tuple[Plan, bool]]) -> Deep[tuple[Plan, bool]]:
    parts: list[Plan] = []
    recent: list[bool] = [isinstance(plan, Scan) and plan.version == "recent"]
    for part in _leaves(plan) if _is_plain_join(plan) else children(plan):
        ordered, reads_recent = yield _order(part, done)
        parts.append(ordered)
        recent.append(reads_recent)
    if not _is_plain_join(plan):
        return with_children(plan, parts), any(recent)
    first = recent.index(True, 1) - 1 if any(recent) else 0
    if isinstance(plan, Join) and first == 0 and len(parts) == 2:
        return with_children(plan, parts), any(recent)
    return _joined(parts, first), any(recent)


def _joined(leaves: list[Plan], first: int) -> Plan:
    """The join of these inputs that starts with the one at `first`."""
    waiting = dict(enumerate(leaves))
    joined = waiting.pop(first)
    bound = set(columns(joined))
    while waiting:
        # The input with the most columns bound narrows most; among equals the written order stands.
        best = max(waiting, key=lambda number: len(bound & columns(waiting[number]).keys()))
        leaf = waiting.pop(best)
        joined = Join(joined, leaf)
        bound.update(columns(leaf))
    return joined


def _is_plain_join(plan: Plan) -> bool:
    """True for a join in which every row must match; where some pass, it stays after all that must."""
    return isinstance(plan, Join) and not plan.spares


def _leaves(plan: Plan) -> list[Plan]:
    """The inputs of a tree of joins, from left to right."""
    found: list[Plan] = []
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Join) and _is_plain_join(node):
            waiting += [node.right, node.left]
        else:
            found.append(node)
    return found
