"""How a view is maintained, as text."""

from __future__ import annotations

from emberlog.diagnostics import counted
from emberlog.maintain.report import ChangeStats
from emberlog.maintain.state import State


def explanation(state: State, stats: ChangeStats) -> str:
    """The tasks by level: what each reads, how it is maintained, and what the last change did to it."""
    graph = state.graph
    last = {task.names: task for task in stats.tasks}
    lines = [f"{counted(graph.size, 'task')} in {counted(graph.depth, 'level')}"]
    for number in sorted(range(graph.size), key=lambda number: (graph.levels[number], number)):
        task = state.tasks[number]
        names = task.definition.names
        reads = ", ".join(sorted(task.definition.reads)) or "nothing"
        how = f"recomputed: {task.why}" if task.recomputes else f"maintained, keeps {task.method.kept}"
        lines.append(f"level {graph.levels[number]}: {', '.join(names)} <- {reads}")
        lines.append(f"    {how}")
        if task.why_tuples:
            lines.append(f"    over tuples, also where there are many: {task.why_tuples}")
        if names in last:
            found = last[names]
            lines.append(
                f"    last change: +{found.inserted} -{found.deleted}, {counted(found.touched, 'fact')} looked at"
            )
    return "\n".join(lines)
