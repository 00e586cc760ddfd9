"""No grouping where each group is one row already.

`sssp(X, min(D)) <- sssp2(X, D)` over a `sssp2` that keeps one `D` for each `X` is a rename.
"""

from __future__ import annotations

from emberlog.analysis.program import Signature
from emberlog.plan.logical import Group, Guard, Plan, Project, Scan, columns, rebuild
from emberlog.plan.strata import ProgramPlan
from emberlog.syntax.nodes import Variable

SEVERAL = frozenset({"top", "topk"})  # aggregates that keep more rows than one for a group


def drop_groups(program: ProgramPlan) -> ProgramPlan:
    """A min, max or sum over rows that differ in the group's columns is the value of the row."""

    def drop(plan: Plan) -> Plan:
        match plan:
            case Group(Project(Scan() as scan) as rows, keys, folds) if _is_copy(plan):
                if _groups_are_rows(rows, scan, set(keys), program.signatures[scan.relation]):
                    made = dict(rows.columns)
                    return Project(scan, tuple((name, made[name]) for name in (*keys, *(f.column for f in folds))))
                return plan
            case Guard(Project(Scan()) as rows):
                return rows  # a value of a relation needs no check
            case _:
                return plan

    return program.map(lambda plan: rebuild(plan, drop))


def _is_copy(group: Group) -> bool:
    """Does each fold give back the value of a single row?"""
    return all(fold.function in ("min", "max", "sum") and fold.argument == fold.column for fold in group.folds)


def _groups_are_rows(rows: Project, scan: Scan, keys: set[str], signature: Signature) -> bool:
    """Do the keys hold all columns by which the scanned relation, which is aggregated, tells its rows apart?"""
    if not signature.aggregates or scan.version != "all" or len(columns(rows)) != len(rows.columns):
        return False
    if not SEVERAL.isdisjoint(signature.aggregates.values()):
        return False
    kept = {term.name for name, term in rows.columns if name in keys and isinstance(term, Variable)}
    return all(scan.columns[spot] in kept for spot in signature.groups)
