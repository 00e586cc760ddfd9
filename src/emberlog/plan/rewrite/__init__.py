"""Rewrites of the logical plan: pure functions, one a file, in the order of `RULES`.

Each takes a whole program and returns one with the same meaning. Selections go down first, so that joins are made of
bare leaves when they are ordered; projections come after the order is known; sharing compares finished plans.
"""

from emberlog.plan.rewrite.drop_distinct import drop_distinct
from emberlog.plan.rewrite.drop_groups import drop_groups
from emberlog.plan.rewrite.project_early import project_early
from emberlog.plan.rewrite.prune_columns import prune_columns
from emberlog.plan.rewrite.push_selections import push_selections
from emberlog.plan.rewrite.recursive_first import recursive_first
from emberlog.plan.rewrite.share_subplans import share_subplans

RULES = (push_selections, recursive_first, project_early, drop_groups, prune_columns, drop_distinct, share_subplans)

__all__ = ["RULES"]
