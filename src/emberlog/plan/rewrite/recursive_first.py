"""Join order: the rows of the last round first (DCDatalog 5.1), then inputs that share a column with what is joined."""

from __future__ import annotations

from emberlog.plan.logical import Join, Plan, ProgramPlan, columns, map_children, scans


def recursive_first(program: ProgramPlan) -> ProgramPlan:
    """Every tree of joins becomes left-deep, starting with what is recent, without a cross product where possible."""
    return program.map(_order)


def _order(plan: Plan) -> Plan:
    if not isinstance(plan, Join):
        return map_children(plan, _order)
    waiting = [_order(leaf) for leaf in _leaves(plan)]
    first = next((leaf for leaf in waiting if _is_recent(leaf)), waiting[0])
    waiting.remove(first)
    joined = first
    while waiting:
        bound = set(columns(joined))
        # The input with the most columns bound narrows most; among equals the written order stands.
        best = max(waiting, key=lambda leaf: len(bound & set(columns(leaf))))
        waiting.remove(best)
        joined = Join(joined, best)
    return joined


def _leaves(plan: Plan) -> list[Plan]:
    if isinstance(plan, Join):
        return _leaves(plan.left) + _leaves(plan.right)
    return [plan]


def _is_recent(plan: Plan) -> bool:
    return any(scan.version == "recent" for scan in scans(plan))
