"""Plans of programs, without sources and without an engine."""

from __future__ import annotations

from typing import Any, cast

from emberlog.analysis.check import check
from emberlog.analysis.program import CheckedProgram
from emberlog.asked import goals_as_rules, wanted_relations
from emberlog.choose.strata import Setting
from emberlog.choose.wishes import Wishes
from emberlog.compiled import Compiled, compile_program
from emberlog.plan.compiler import plan_program
from emberlog.plan.strata import ProgramPlan
from emberlog.source import Source
from emberlog.syntax.nodes import Program
from emberlog.syntax.parser import parse


def compiled(text: str, executor: str = "local", **options: Any) -> Compiled:
    """The program, compiled as a run would without sources."""
    setting = Setting(cast(Any, executor), options.pop("evaluator", "auto"), Wishes.of(options))
    return compile_program(parse(Source("program.dl", text)), {}, setting, require_sources=False)


def planned(text: str) -> tuple[Program, CheckedProgram, ProgramPlan]:
    """The program as written, checked, and planned as a run would."""
    program = parse(Source("program.dl", text))
    spelled, goals = goals_as_rules(program)
    checked = check(spelled, {}, {}, require_sources=False)
    wanted = wanted_relations(program, checked) | {name for name, _ in goals}
    return program, checked, plan_program(checked, wanted)
