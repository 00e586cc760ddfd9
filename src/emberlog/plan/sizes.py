"""How many rows relations can have at most, as far as that follows from the rows of others."""

from __future__ import annotations

from collections.abc import Mapping

from emberlog.plan.logical import Distinct, Plan, Project, Scan, Select, Union, scans, walk
from emberlog.plan.strata import ProgramPlan


def most_rows(plan: ProgramPlan, rows: Mapping[str, int]) -> dict[str, int]:
    """Bounds on the rows of relations that only copy, select and unite, beside the `rows` that are known."""
    found = dict(rows)
    for stratum in plan.strata:
        if stratum.evaluation == "once":
            for relation in stratum.relations:
                most = bound(relation.exit, found)
                if most is not None:
                    found[relation.name] = most
    return found


def bound(plan: Plan | None, rows: Mapping[str, int]) -> int | None:
    """The most rows that a plan can give; None where joins and the like leave it open."""
    if plan is None:
        return 0
    if not all(isinstance(node, Scan | Select | Project | Union | Distinct) for node in walk(plan)):
        return None
    below = [rows.get(scan.relation) for scan in scans(plan)]
    return None if None in below else sum(number or 0 for number in below)
