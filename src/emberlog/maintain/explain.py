"""How a view is maintained, as text, as a page and as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from emberlog.diagnostics import counted
from emberlog.explain.canvas import SIZE, Canvas, Point, safe, text_width
from emberlog.maintain.report import ChangeStats, TaskStats
from emberlog.maintain.state import State

LINE, PAD, EDGE, GAP, RISE = 17.0, 8.0, 18.0, 22.0, 46.0
SMALL = 10.5  # size of what is said of a task
MAINTAINED, RECOMPUTED, UNTOUCHED = "#e3f5ea", "#fbf3dc", "#ffffff"
LINES, SAID = "#9aa5b1", "#616e7c"


@dataclass(frozen=True)
class TaskReport:
    """What is said of a task: its level and names, what it reads, how it is maintained, why in no better way, and the
    last change."""

    level: int
    names: str
    reads: str
    how: str
    note: str
    recomputes: bool
    last: TaskStats | None

    @property
    def change(self) -> str:
        """What the last change did to the task."""
        if self.last is None:
            return ""
        return f"+{self.last.inserted} -{self.last.deleted}, {counted(self.last.touched, 'fact')} looked at"


class Explanation(str):
    """The tasks of a view by level, as text; `to_html()` is a page, `to_svg()` a picture."""

    __slots__ = ("_edges", "_tasks")

    _tasks: dict[int, TaskReport]
    _edges: list[tuple[int, int]]

    @staticmethod
    def of(state: State, stats: ChangeStats) -> Explanation:
        """What each task of a state reads, how it is maintained, and what the last change did to it."""
        tasks = _reports(state, stats)
        found = Explanation("\n".join(_lines(state, tasks)))
        found._tasks = tasks
        found._edges = [(int(tail), int(head)) for tail, head in state.graph.edges()]
        return found

    def to_svg(self) -> str:
        """The tasks from the inputs (bottom) up, joined to those that read them. What the last change ran is filled."""
        canvas = Canvas()
        boxes, size = _layout(self._tasks)
        for tail, head in self._edges:
            _join(canvas, boxes[tail], boxes[head])
        for number, task in self._tasks.items():
            _draw(canvas, task, boxes[number])
        return canvas.svg(size, "How the view is maintained")

    def _repr_html_(self) -> str:
        return (
            f'<div style="overflow:auto;max-height:700px">{self.to_svg()}</div>'
            f'<details><summary>as text</summary><pre style="overflow-x:auto">{safe(self)}</pre></details>'
        )

    def to_html(self) -> str:
        """A page of its own."""
        title = "How the view is maintained"
        return (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
            f"<body><h1>{title}</h1>\n{self.to_svg()}<pre>{safe(self)}</pre></body></html>\n"
        )


def _reports(state: State, stats: ChangeStats) -> dict[int, TaskReport]:
    """What is said of each task, by level."""
    graph = state.graph
    last = {task.names: task for task in stats.tasks}
    found = {}
    for number in sorted(range(graph.size), key=lambda number: (graph.levels[number], number)):
        task = state.tasks[number]
        names = task.definition.names
        reads = ", ".join(sorted(task.definition.reads)) or "nothing"
        how = f"recomputed: {task.why}" if task.recomputes else f"maintained, keeps {task.method.kept}"
        level = int(graph.levels[number])
        note = f"over tuples, also where there are many: {task.why_tuples}" if task.why_tuples else ""
        found[number] = TaskReport(level, ", ".join(names), reads, how, note, task.recomputes, last.get(names))
    return found


def _lines(state: State, tasks: dict[int, TaskReport]) -> Iterator[str]:
    graph = state.graph
    yield f"{counted(graph.size, 'task')} in {counted(graph.depth, 'level')}"
    for task in tasks.values():
        yield f"level {task.level}: {task.names} <- {task.reads}"
        yield f"    {task.how}"
        if task.note:
            yield f"    {task.note}"
        if task.last is not None:
            yield f"    last change: {task.change}"


# --- the picture -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Box:
    """Where a task is drawn."""

    at: Point
    size: Point

    @property
    def top(self) -> Point:
        return self.at[0] + self.size[0] / 2, self.at[1]

    @property
    def bottom(self) -> Point:
        return self.at[0] + self.size[0] / 2, self.at[1] + self.size[1]


def _layout(tasks: dict[int, TaskReport]) -> tuple[dict[int, Box], Point]:
    """The box of each task, a row for each level with the first one at the bottom, and the size of the picture."""
    height = 3 * LINE + PAD
    levels = 1 + max((task.level for task in tasks.values()), default=0)
    ends = [EDGE] * levels
    boxes = {}
    for number, task in tasks.items():
        width = 2 * PAD + max(text_width(task.names), text_width(task.how, SMALL), text_width(task.change, SMALL))
        row = levels - 1 - task.level
        boxes[number] = Box((ends[task.level], EDGE + row * (height + RISE)), (width, height))
        ends[task.level] += width + GAP
    return boxes, (max(ends) - GAP + EDGE, 2 * EDGE + levels * (height + RISE) - RISE)


def _join(canvas: Canvas, tail: Box, head: Box) -> None:
    (x, y), (end, low) = tail.top, head.bottom
    canvas.line([(x, y), (x, y - RISE / 3), (end, low + RISE / 3), (end, low)], stroke=LINES, width=1)
    canvas.arrow_up((end, low), fill=LINES)


def _draw(canvas: Canvas, task: TaskReport, box: Box) -> None:
    fill = UNTOUCHED if task.last is None else RECOMPUTED if task.recomputes else MAINTAINED
    canvas.rect(box.at, box.size, fill=fill, stroke=LINES, dashed=task.recomputes)
    x, y = box.at[0] + PAD, box.at[1] + SIZE + 3
    canvas.text((x, y), task.names, bold=True)
    canvas.text((x, y + LINE), task.how, fill=SAID, size=SMALL)
    canvas.text((x, y + 2 * LINE), task.change, fill=SAID, size=SMALL)
