"""Opens views: where the rows of a maintained program come from, how it is compiled again, and where it is kept."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emberlog.analysis.check import check
from emberlog.analysis.given import with_functions
from emberlog.diagnostics import UsageError, warning
from emberlog.maintain.durable.folder import Folder
from emberlog.maintain.ordinary import Ordinary
from emberlog.maintain.placement import InDriver, Placement
from emberlog.maintain.program import ViewProgram, view_of
from emberlog.maintain.versions import Setting
from emberlog.maintain.view import View
from emberlog.notices import Notices, tell_of_data, tell_of_program
from emberlog.schedule.interface import scheduler as scheduler_of
from emberlog.syntax.nodes import Program
from emberlog.types import Column

if TYPE_CHECKING:
    from emberlog.data.sources import Source
    from emberlog.engine import Engine
    from emberlog.executors.base import Options

EMPTY_BASE = "W0202"  # a base relation has no rows: that of a view gets them later
TASKS_AT_ONCE = 4  # of a view on Spark: more of them wait for the same cores


def open_view(
    engine: Engine,
    program: Program,
    scheduler: str,
    sources: Mapping[str, Source],
    params: dict[str, Any],
    path: Path | None,
    change_rules: bool,
    options: Callable[[], Options],
    tell: Notices,
) -> View:
    """A view of a program over the sources of an engine; `options` are asked for anew for each change."""
    order = scheduler_of(scheduler)
    if engine.executor == "spark":
        from emberlog.maintain.spark.placement import opened_sources

        sources = opened_sources(sources, engine.spark)
    opening = _Opening(engine, sources, params, options, tell, path is not None)
    setting = Setting(opening.compile, opening.ordinary("local"), params, opening.working, opening.place, opening.warn)
    return View(program, sources, setting, order, None if path is None else Folder(path), change_rules)


@dataclass(frozen=True)
class _Opening:
    """What a view asks of its engine while it is open."""

    engine: Engine
    sources: Mapping[str, Source]
    params: dict[str, Any]
    options: Callable[[], Options]
    tell: Notices
    durable: bool

    def compile(self, program: Program, known: Mapping[str, tuple[Column, ...]], added: Collection[str]) -> ViewProgram:
        """A checked program as tasks; `known` are the columns of inputs that have rows already."""
        program = with_functions(program, self.engine._functions)
        unknown = {name: source for name, source in self.sources.items() if name not in known}
        catalog = {**self.engine._whole_catalog(program, unknown, self.params, self.options()), **known}
        checked = check(program, catalog, self.params, require_sources=False)
        about = (*checked.warnings, *self.engine._shadowed(checked))
        tell_of_program([found for found in about if found.code != EMPTY_BASE], self.tell)
        return view_of(program, checked, added)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Work of the engine, within the limits of one change."""
        self.engine._check_open()
        how = self.options()
        with self.engine._working(how), how.deadline.enforced("maintaining a view"):
            yield

    def warn(self, message: str) -> None:
        tell_of_data([warning("W0800", message)], self.tell)

    def ordinary(self, executor: Any) -> Ordinary:
        """What evaluates a component anew on an executor."""
        setting = replace(self.engine._setting(self.options()), executor=executor)
        return Ordinary(self.options, setting, self.engine._scratch_root)

    def place(self, compiled: ViewProgram) -> Placement:
        """Where the view is kept, and its tasks run."""
        how = self.options()
        why = "placement=spark" if how.placement == "spark" else ""
        if self.engine.executor == "spark" and how.placement == "auto":
            from emberlog.maintain.spark.placement import too_large
            from emberlog.memory import Budget

            widths = {name: len(compiled.signatures[name].columns) for name in compiled.inputs}
            why = too_large(self.sources, widths, Budget.of(how.memory))
        if not why:
            return InDriver(self.ordinary("local"), how.limits, self.engine._spark)
        if self.durable:
            raise UsageError(f"a view with a path is kept in the driver ({why})", fix='placement="local", or no path')
        from emberlog.maintain.spark.placement import OnSpark

        folder = Path(tempfile.mkdtemp(prefix="emberlog-view-", dir=self.engine._scratch_root()))
        return OnSpark.of(self.ordinary(self.engine.executor), self.engine.spark, folder, why, TASKS_AT_ONCE)
