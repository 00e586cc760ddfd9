"""Fig. 2 at growing sizes: how the makespan grows under each scheduler."""

from __future__ import annotations

from math import log2

from emberlog.schedule.examples import fig2
from emberlog.schedule.interface import scheduler
from emberlog.schedule.picture import Chart
from emberlog.schedule.simulate import simulate
from emberlog.schedule.tables import Table

SIZES = (8, 16, 32, 64, 128)
SHORT = 8  # levels that a look-ahead sees which does not grow with the graph


def makespans() -> dict[str, list[int]]:
    """The makespans of Fig. 2 with L levels, for all sizes, by scheduler.

    There are L - 1 processors, twice as many for `meta`, which halves them. A look-ahead is as deep as the graph, or
    short."""
    found: dict[str, list[int]] = {}
    for levels in SIZES:
        trace = fig2(levels)
        for name, spec, halves in (
            ("level", "level", 1),
            (f"lookahead:{SHORT}", f"lookahead:{SHORT}", 1),
            ("lookahead:L", f"lookahead:{levels}", 1),
            ("logicblox", "logicblox", 1),
            ("signal", "signal", 1),
            ("hybrid", "hybrid", 1),
            ("meta", "meta:1000000", 2),
        ):
            found.setdefault(name, []).append(simulate(trace, scheduler(spec), halves * (levels - 1)).makespan)
    return found


def slope(values: list[int]) -> float:
    """By which power of L the last two makespans grow."""
    return log2(values[-1] / values[-2]) / log2(SIZES[-1] / SIZES[-2])


def table(found: dict[str, list[int]]) -> Table:
    """The makespans, and their slopes: 2 is Theta(ML), 1 is Theta(M + L)."""
    rows = [(name, *(f"{value:,}" for value in values), f"{slope(values):.2f}") for name, values in found.items()]
    return Table("Fig. 2 with L levels: makespan", ("scheduler", *(f"L = {size}" for size in SIZES), "slope"), rows)


def chart(found: dict[str, list[int]]) -> Chart:
    """The same as a picture; of those that have the same makespans, `hybrid` is shown."""
    shown = {name: found[name] for name in ("level", f"lookahead:{SHORT}", "hybrid")}
    names = {"hybrid": "all others"}
    return Chart(
        "Fig. 2: makespan by the number of levels",
        "levels L, on L - 1 processors",
        "units of time",
        SIZES,
        {names.get(name, name): values for name, values in shown.items()},
    )
