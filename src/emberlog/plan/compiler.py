"""From a checked program to the plan that executors run."""

from __future__ import annotations

from collections.abc import Iterable

from emberlog.analysis.program import CheckedProgram
from emberlog.plan.lower import lower
from emberlog.plan.rewrite import RULES
from emberlog.plan.strata import ProgramPlan


def plan_program(program: CheckedProgram, wanted: Iterable[str] | None = None) -> ProgramPlan:
    """The rewritten plan of everything that the wanted predicates need."""
    plan = lower(program, wanted)
    for rule in RULES:
        plan = rule(plan)
    return plan
