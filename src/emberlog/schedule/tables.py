"""Tables II and III of the paper in form: every scheduler on traces of all eleven shapes.

Nothing is fitted to the paper's seconds. Tasks are drawn from three distributions, or from a recorded trace, and the
tables say which scheduler is best where, and from which length of tasks on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

from emberlog.schedule.durations import DISTRIBUTIONS, drawn, recorded
from emberlog.schedule.interface import scheduler
from emberlog.schedule.picture import Chart
from emberlog.schedule.shapes import SHAPES, like
from emberlog.schedule.simulate import COST, Outcome, simulate
from emberlog.schedule.trace import Trace

DEPTHS = (5, 10, 15, 20)  # of the look-ahead in Table II
SHOWN = 15  # the one of them that the other tables have
BUDGET = 4_000_000  # numbers that `meta` may keep
BEST = 1.01  # schedulers that are within this factor of the best are best as well
EVERYWHERE = ("logicblox", "level", f"lookahead:{SHOWN}", "signal", "hybrid", f"meta:{BUDGET}")
DEEP = tuple(f"lookahead:{depth}" for depth in DEPTHS if depth != SHOWN)

# What came out, by shape, durations and scheduler.
Outcomes = dict[tuple[int, str, str], Outcome]


@dataclass(frozen=True, slots=True)
class Table:
    """A table to print."""

    title: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def to_markdown(self) -> str:
        lines = (self.headings, tuple("---" for _ in self.headings), *self.rows)
        return f"**{self.title}**\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


@dataclass(frozen=True, slots=True)
class Settings:
    """What all replays of a comparison share."""

    processors: int = 8
    cost: float = COST
    seed: int = 0
    distributions: tuple[str, ...] = tuple(DISTRIBUTIONS)
    given: Trace | None = None  # a recorded trace to take durations from, instead of distributions

    @property
    def durations(self) -> tuple[str, ...]:
        return self.distributions if self.given is None else ("recorded",)


def compare(numbers: Iterable[int], settings: Settings, workers: int) -> Outcomes:
    """Replays the shapes of these numbers under every scheduler and all durations, several shapes at once."""
    chosen = sorted(numbers, key=lambda number: -SHAPES[number].active)  # the longest first
    if workers == 1:
        parts = [compare_one(settings, number) for number in chosen]
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            parts = list(pool.map(partial(compare_one, settings), chosen))
    return {key: outcome for part in parts for key, outcome in part.items()}


def compare_one(settings: Settings, number: int) -> Outcomes:
    """Replays one shape. Look-ahead of all depths is for the deep traces of Table II."""
    plain, found = like(number, settings.seed), Outcomes()
    for name in settings.durations:
        if settings.given is None:
            trace = drawn(plain, name, SHAPES[number].mean, settings.seed)
        else:
            trace = recorded(plain, settings.given, settings.seed)
        for spec in (*EVERYWHERE, *(DEEP if number <= 5 else ())):
            found[number, name, spec] = simulate(trace, scheduler(spec), settings.processors, settings.cost)
    return found


def tables(found: Outcomes) -> list[Table]:
    """Tables II and III for each of the durations, where each scheduler is best, and what was expected."""
    names = list(dict.fromkeys(name for _, name, _ in found))
    numbers = sorted({number for number, _, _ in found})
    shown = [table for name in names for table in (_table2(found, numbers, name), _table3(found, numbers, name))]
    return [table for table in (*shown, _regions(found, numbers, names), _claims(found)) if table.rows]


def outcome_table(title: str, outcomes: dict[str, Outcome]) -> Table:
    """What schedulers made of one trace."""
    headings = (
        "scheduler",
        "makespan",
        "of that, overhead",
        "steps",
        "really took",
        "preparation",
        "memory",
        "nodes run",
    )
    rows = [
        (
            spec,
            seconds(found.total),
            seconds(found.overhead),
            f"{found.operations:,}",
            seconds(found.seconds),
            seconds(found.preparation),
            f"{found.memory:,} numbers",
            f"{found.runs:,}",
        )
        for spec, found in outcomes.items()
    ]
    return Table(title, headings, rows)


def figures_table(title: str, trace: Trace) -> Table:
    """The numbers of Table I for one trace."""
    figures = trace.figures
    return Table(title, tuple(figures), [tuple(f"{value:,}" for value in figures.values())])


def overhead_chart(found: Outcomes) -> Chart:
    """What scheduling costs on each trace, for the first of the durations."""
    name = next(name for _, name, _ in found)
    numbers = sorted({number for number, _, _ in found})
    series = {
        spec: [found[number, name, spec].overhead for number in numbers]
        for spec in ("logicblox", "hybrid", "signal", "level")
    }
    labels = [str(number) for number in numbers]
    return Chart("Overhead of scheduling", f"trace of Table I, {name} durations", "seconds", numbers, series, labels)


def _table2(found: Outcomes, numbers: list[int], name: str) -> Table:
    specs = ("logicblox", "level", *(f"lookahead:{depth}" for depth in DEPTHS))
    deep = [number for number in numbers if number <= 5]
    rows = [(str(number), *(seconds(found[number, name, spec].total) for spec in specs)) for number in deep]
    return Table(f"Table II in form, {name} durations: makespan with scheduling", ("trace", *specs), rows)


def _table3(found: Outcomes, numbers: list[int], name: str) -> Table:
    def cell(outcome: Outcome) -> str:
        return f"{seconds(outcome.total)}, {seconds(outcome.overhead)}"

    rows = [(str(number), *(cell(found[number, name, spec]) for spec in EVERYWHERE)) for number in numbers]
    return Table(
        f"Table III in form, {name} durations: makespan with scheduling, overhead", ("trace", *EVERYWHERE), rows
    )


def _regions(found: Outcomes, numbers: list[int], names: list[str]) -> Table:
    """Which schedulers are best, and the mean length of tasks from which on `logicblox` and `hybrid` beat `level`.

    A makespan is `a * length + b`, with b the overhead, so two schedulers are equal at one length of tasks at most."""
    rows = []
    for number in numbers:
        for name in names:
            by = {spec: found[number, name, spec] for spec in EVERYWHERE}
            least = min(outcome.total for outcome in by.values())
            best = ", ".join(spec for spec, outcome in by.items() if outcome.total <= BEST * least)
            better = (_better_from(by[spec], by["level"], SHAPES[number].mean) for spec in ("logicblox", "hybrid"))
            rows.append((str(number), name, seconds(SHAPES[number].mean), best, *better))
    headings = ("trace", "durations", "mean task", "best (within 1 %)", "logicblox beats level", "hybrid beats level")
    return Table("Where each is best", headings, rows)


def _better_from(one: Outcome, level: Outcome, mean: float) -> str:
    """The mean length of tasks from which on `one` is better than `level`."""
    gained, spent = (level.makespan - one.makespan) * level.unit, one.overhead - level.overhead
    return f"from {seconds(spent / gained * mean)}" if gained > 0 else "never"


def _claims(found: Outcomes) -> Table:
    """What the paper leads one to expect, and whether it is so here."""
    rows = []
    for (number, name), by in _by_trace(found).items():
        for claim, worst, holds in _expected(number, by):
            rows.append((str(number), name, claim, worst, "yes" if holds else "NO"))
    return Table("What should come out", ("trace", "durations", "claim", "here", "holds"), rows)


def _by_trace(found: Outcomes) -> dict[tuple[int, str], dict[str, Outcome]]:
    grouped: dict[tuple[int, str], dict[str, Outcome]] = {}
    for (number, name, spec), outcome in found.items():
        grouped.setdefault((number, name), {})[spec] = outcome
    return dict(sorted(grouped.items()))


def _expected(number: int, by: dict[str, Outcome]) -> Iterable[tuple[str, str, bool]]:
    """Claims about one trace: in words, as a figure, and whether it holds."""

    def ratio(of: str, to: str, value: Callable[[Outcome], float]) -> float:
        return value(by[of]) / value(by[to])

    def total(outcome: Outcome) -> float:
        return outcome.total

    def steps(outcome: Outcome) -> float:
        return outcome.operations

    if number <= 5:
        near = ratio("lookahead:15", "lookahead:20", total)
        yield "lookahead:15 within 5 % of lookahead:20", f"{near:.3f}", abs(near - 1) <= 0.05
    if number in (6, 11):
        more = ratio("logicblox", "level", steps)
        yield "logicblox takes 100 times level's steps", f"{more:,.0f}", more >= 100
    most = 0.6 if number in (6, 11) else 1.0
    overhead = ratio("hybrid", "logicblox", steps)
    holds = overhead <= most if number in (6, 11) else overhead < most
    yield f"hybrid's overhead {'at most 0.6 of' if most < 1 else 'below'} logicblox's", f"{overhead:.3f}", holds
    bound = 1.2 if number == 7 else 1.03
    makespan = ratio("hybrid", "logicblox", total)
    yield f"hybrid's makespan at most {bound} of logicblox's", f"{makespan:.3f}", makespan <= bound


def seconds(time: float) -> str:
    """A time as people read it."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")):
        if time >= unit:
            value = time / unit
            return f"{value:,.{max(0, 3 - len(str(int(value))))}f} {name}"
    return "0 s"
