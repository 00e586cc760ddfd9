"""From a program to how each of its strata is evaluated: check, push, restrict, plan, choose.

`explain` and runs share this.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace

from emberlog.analysis.check import check
from emberlog.analysis.columns import project, unread_columns
from emberlog.analysis.program import CheckedProgram
from emberlog.analysis.pushdown import push_aggregates
from emberlog.asked import goals_as_rules, sized_relations, wanted_relations
from emberlog.choose.strata import Choice, Setting, choose
from emberlog.demand.advice import advice_of
from emberlog.demand.transform import Demanded, restrict
from emberlog.plan.compiler import plan_program
from emberlog.plan.strata import ProgramPlan
from emberlog.syntax.nodes import Program
from emberlog.types import Column, Params

Catalog = Mapping[str, tuple[Column, ...] | None]  # the columns of the sources; None where the program has to tell them


@dataclass(frozen=True)
class Compiled:
    """A program that can be run. `wanted` are the relations that somebody will read, the `goals` among them; of the
    `sized` ones the number of rows is likely all."""

    program: Program
    checked: CheckedProgram
    plan: ProgramPlan
    choices: Mapping[tuple[str, ...], Choice]
    goals: tuple[tuple[str, str], ...] = ()  # the predicate of a goal's rule, the predicate that it asks for
    wanted: frozenset[str] = frozenset()
    sized: frozenset[str] = frozenset()
    demanded: Demanded | None = None  # what was rewritten by what is asked for, and what was not


def compile_program(
    program: Program,
    catalog: Catalog,
    setting: Setting,
    params: Params | None = None,
    *,
    naive: bool = False,
    require_sources: bool = True,
    keep_rows: bool = False,
    checked_as: Callable[[CheckedProgram], None] = lambda checked: None,
    stage: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext(),
    rows: Mapping[str, int] | None = None,
) -> Compiled:
    """What to evaluate of a program, and how. `keep_rows` says that all wanted relations will be read row by row;
    `rows` are the numbers of rows of sources, as far as they are known.
    `checked_as` is told the checked program before it is planned; each `stage` is done inside of what it gives."""
    with _without_collector():
        return _compile(
            program, catalog, setting, params or {}, naive, require_sources, keep_rows, checked_as, stage, rows
        )


def _compile(
    program: Program,
    catalog: Catalog,
    setting: Setting,
    params: Params,
    naive: bool,
    require_sources: bool,
    keep_rows: bool,
    checked_as: Callable[[CheckedProgram], None],
    stage: Callable[[str], AbstractContextManager[None]],
    rows: Mapping[str, int] | None,
) -> Compiled:
    spelled, goals = goals_as_rules(program)
    with stage("check"):
        checked = check(spelled, catalog, params, naive=naive, require_sources=require_sources)
    checked_as(checked)
    setting.wishes.check(checked)
    with stage("plan"):
        wanted = frozenset(wanted_relations(program, checked) | {name for name, _ in goals})
        sized = frozenset() if keep_rows else frozenset(sized_relations(program))
        checked = project(push_aggregates(checked, set(wanted)), unread_columns(spelled))
        demanded = restrict(checked, wanted, [name for name, _ in goals], advice_of(program), rows)
        checked = demanded.program
        plan = plan_program(checked, wanted)
        choices = choose(plan, replace(setting, asked=wanted, rows=wanted - sized))
    return Compiled(program, checked, plan, choices, tuple(goals), wanted, sized, demanded)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Compiling makes very many small values that live on; to look for garbage among them takes a seventh of the
    time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
