"""`Plan`: how a program will be evaluated, as text, as a page and as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from textwrap import wrap
from types import MappingProxyType

from emberlog.choose.strata import Choice
from emberlog.compiled import Compiled
from emberlog.components.nests import nests
from emberlog.components.show import show_nest
from emberlog.explain.graph import and_or_tree, recursion
from emberlog.explain.page import fragment, page
from emberlog.explain.picture import draw
from emberlog.explain.strata import StratumReport, notes, report_strata
from emberlog.plan.physical import show_physical
from emberlog.plan.show import show_stratum
from emberlog.rules.text import rule_text
from emberlog.syntax import nodes
from emberlog.syntax.printer import show

WIDTH = 118
NO_ROWS: Mapping[str, int] = MappingProxyType({})


class Plan:
    """A program, explained: `str()` is text, `to_html()` a page, `to_svg()` a picture."""

    def __init__(self, compiled: Compiled, rows: Mapping[str, int] = NO_ROWS, placement: str = "auto") -> None:
        self.compiled = compiled
        self.program = compiled.program
        self.checked = compiled.checked
        self.plan = compiled.plan
        self.rows = rows  # of sources, where that is known
        self.placement = placement
        goals = (item for item in self.program.items if isinstance(item, nodes.Goal))
        self.goals = {f"goal/{number}": show(goal) for number, goal in enumerate(goals)}

    @property
    def executor(self) -> str:
        return next((choice.setting.executor for choice in self.compiled.choices.values()), "spark")

    @cached_property
    def strata(self) -> list[StratumReport]:
        return report_strata(self.compiled, self.goals, self.rows, self.placement)

    @cached_property
    def sections(self) -> list[tuple[str, list[str]]]:
        """Title and lines of each section of the text."""
        asked = [("What is asked for", list(_demand(self.compiled)))]
        return [
            *(asked if asked[0][1] else []),
            ("Predicates (AND/OR graph)", and_or_tree(self.checked, self.plan, self.goals)),
            ("Recursion", recursion(self.checked, self.plan) or ["none"]),
            (f"Strata, in the order of evaluation ({self.executor} executor)", list(self._strata())),
            ("Logical plan", list(self._logical())),
            ("Physical plan", list(self._physical())),
        ]

    def __str__(self) -> str:
        if not self.plan.strata:
            return "nothing to evaluate"
        return "\n\n".join(f"{title}\n{'-' * len(title)}\n" + "\n".join(lines) for title, lines in self.sections)

    def __repr__(self) -> str:
        return f"<Plan of {len(self.plan.strata)} strata; print() shows it>"

    def _repr_html_(self) -> str:
        return fragment(self)

    def to_html(self) -> str:
        """A page of its own: picture, strata, plans."""
        return page(self)

    def to_svg(self) -> str:
        """The strata from sources (bottom) to results (top), with the logical plan in each."""
        return draw(self.plan, self.strata, self.executor)

    def _strata(self) -> Iterator[str]:
        for stratum in self.strata:
            yield f"{stratum.number}. {stratum.title}"
            for name, text in stratum.rows():
                first, *rest = wrap(text, WIDTH - 15) or [""]
                yield f"   {name:<11} {first}"
                yield from (f"{'':15}{line}" for line in rest)
        for note in notes(self.executor):
            yield ""
            yield from wrap(note, WIDTH)

    def _logical(self) -> Iterator[str]:
        for report in self.strata:
            head, *rest = show_stratum(report.stratum).split("\n")
            yield from self._heading(report, head)
            yield from (f"   {line}" for line in rest)

    def _physical(self) -> Iterator[str]:
        for report in self.strata:
            yield from self._heading(report, report.title)
            if report.physical is None:
                yield from (f"     {line}" for line in _loops(report.choice))
                continue
            for step in report.physical.steps:
                indent = "     "
                if step.title:
                    yield f"{indent}{step.title}" + (", each round" if step.repeated else "")
                    indent += "  "
                yield from (indent + line for line in show_physical(step.plan).split("\n"))

    @staticmethod
    def _heading(report: StratumReport, title: str) -> Iterator[str]:
        if report.number > 1:
            yield ""
        yield f"{report.number}. {title}"


def _demand(compiled: Compiled) -> Iterator[str]:
    """The rules that were written because only some rows are asked for, and what is evaluated whole nevertheless."""
    if compiled.demanded is None:
        return
    for name in sorted(compiled.demanded.names):
        for row in compiled.checked.facts.get(name, ()):
            yield show(nodes.Rule((nodes.Atom(name, tuple(map(nodes.Constant, row))),), None))
    yield from map(rule_text, compiled.demanded.rules)
    for note in compiled.demanded.notes:
        yield from wrap(note, WIDTH)


def _loops(choice: Choice) -> Iterator[str]:
    """What the kernels do, in words and as loops."""
    way, program = choice.way, choice.program
    assert way is not None and program is not None
    if choice.worker_plan is not None:
        yield from choice.worker_plan.lines()
        return
    yield str(way)
    for nest in () if way.unfit else way.nests or nests(program, way.pivots):
        yield from (f"  {line}" for line in show_nest(nest, program))
