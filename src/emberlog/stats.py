"""What a run measures of itself, what it may use, and how it tells while it works.

`Limits` is what the user allows, `Meter` holds a run to it, `StratumStats` is what stays of a stratum and `Stats` of a
run, `Progress` is what is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from time import monotonic
from typing import Protocol, overload

from emberlog.clock import LEAST, OTHER, Clock, Step
from emberlog.deadline import Deadline
from emberlog.diagnostics import LimitError, UsageError, counted, did_you_mean
from emberlog.stopping import Stop
from emberlog.tables import html_table
from emberlog.workers.stats import Coordinated


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a run may go: rounds of one stratum, rows of all derived relations, seconds of the whole run.

    None is no limit. Reaching one is an error, never a shorter answer. Without a limit on rounds, strata that compute
    new values still have one (`default_rounds`): they might never end.
    """

    rounds: int | None = None
    rows: int | None = None
    seconds: float | None = None

    @staticmethod
    def of(value: Limits | Mapping[str, float] | None) -> Limits:
        """Limits from what a caller passes: `{"rounds": 100}`, a `Limits`, or nothing."""
        if value is None:
            return Limits()
        if isinstance(value, Limits):
            return Limits.of({entry.name: getattr(value, entry.name) for entry in fields(Limits)})
        if not isinstance(value, Mapping):
            raise UsageError(f"limits must be a mapping, not {value!r}", fix="limits={'seconds': 60}")
        known = {entry.name for entry in fields(Limits)}
        for name, amount in value.items():
            if name not in known:
                hint = did_you_mean(name, known)
                raise UsageError(f"there is no limit on `{name}`", fix=hint or f"limits are {', '.join(sorted(known))}")
            if amount is not None and (isinstance(amount, bool) or not isinstance(amount, int | float)):
                raise UsageError(f"the limit on {name} must be a number, not {amount!r}")
            if amount is not None and not amount > 0:
                raise UsageError(f"the limit on {name} must be positive, not {amount}")
        return Limits(**value)  # type: ignore[arg-type]


def default_rounds(facts: int) -> int:
    """How many rounds a stratum that computes values may take when the user set no limit.

    A value that travels takes a round a fact at most; more than that is a value that grows on a cycle.
    """
    return 1000 + 2 * facts


# Sets of computed values (`n(X+1) <- n(X)`) have a new fact for each round, so their facts bound nothing.
MOST_ROUNDS = 20_000


@dataclass(frozen=True, slots=True)
class Event:
    """A change of the way while a stratum was evaluated: what was done from then on, and why."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}, because {self.why}"


@dataclass(slots=True)
class StratumStats:
    """One stratum of a run. A figure that was not measured is None."""

    predicates: tuple[str, ...]
    evaluator: str = "sql"
    because: str = ""  # why this evaluator
    how: str = ""  # of the kernels: storages, pivots, workers
    kept: str = ""  # of the kernels: what was done with the rows where they were made, or why they had to be kept
    placement: str = ""
    why: str = ""
    coordination: Coordinated | None = None  # of workers that shared it out: what each of them did
    rounds: int = 0
    facts: int | None = None
    derivations: int | None = None
    seconds: float = 0.0  # without those of steps inside it, which have rows of their own: see `Stats`
    bytes_exchanged: int | None = None
    stopped: str = ""
    deltas: list[int] = field(default_factory=list)
    residual: float | None = None
    events: list[Event] = field(default_factory=list)
    asks: bool = False  # its facts say what is asked for, and answer nothing themselves

    def restart(self) -> None:
        """Forgets what was told of an evaluation that begins again, perhaps by another evaluator."""
        self.rounds, self.facts, self.residual, self.derivations = 0, None, None, None
        self.evaluator, self.how, self.kept, self.stopped, self.coordination = "sql", "", "", "", None
        self.deltas.clear()


class Stats(Sequence[StratumStats]):
    """What a run took: a `StratumStats` for each stratum, in the order of evaluation, and the `steps` that are none.

    Steps are named: check, plan, start Spark, load, fetch, encode, compile, count, write and so on. The seconds of all
    `rows`, which are both, add up to what the clock says (`seconds`). Reading or writing a result later adds to them.
    """

    def __init__(self, clock: Clock, memory: str = "") -> None:
        self._clock = clock
        self.memory = memory  # what the run may keep in memory, and what is not counted in it

    @property
    def rows(self) -> list[StratumStats | Step]:
        """Strata and steps, in the order in which they began."""
        rows = [row for row in list(self._clock.rows) if isinstance(row, StratumStats | Step)]
        rows.sort(key=lambda row: isinstance(row, Step) and row.name == OTHER)  # the rest comes last
        return [row for row in rows if isinstance(row, StratumStats) or row.seconds >= LEAST]

    @property
    def strata(self) -> list[StratumStats]:
        return [row for row in self.rows if isinstance(row, StratumStats)]

    @property
    def demanded(self) -> int:
        """Facts that were derived to say what is asked for, as far as they were counted."""
        return sum(row.facts or 0 for row in self.strata if row.asks)

    @property
    def derived(self) -> int:
        """Facts that were derived beside those, as far as they were counted."""
        return sum(row.facts or 0 for row in self.strata if not row.asks)

    @property
    def steps(self) -> list[Step]:
        return [row for row in self.rows if isinstance(row, Step)]

    @property
    def seconds(self) -> float:
        """What all rows took together."""
        return sum(row.seconds for row in self.rows)

    def table(self) -> list[tuple[str, ...]]:
        """The rows and their total as text, a cell for each of the `HEADINGS`."""
        return [*map(cells_of, self.rows), ("total", "", "", "", "", "", f"{self.seconds:.3f}", "")]

    @overload
    def __getitem__(self, index: int) -> StratumStats: ...

    @overload
    def __getitem__(self, index: slice) -> list[StratumStats]: ...

    def __getitem__(self, index: int | slice) -> StratumStats | list[StratumStats]:
        return self.strata[index]

    def __len__(self) -> int:
        return len(self.strata)

    def __repr__(self) -> str:
        strata = "1 stratum" if len(self) == 1 else f"{len(self)} strata"
        return f"<Stats of {strata}, {self.seconds:.3f} seconds; print() shows them>"

    def _repr_html_(self) -> str:
        return html_table(HEADINGS, self.table(), {HEADINGS.index(name) for name in NUMERIC})

    def __str__(self) -> str:
        """A table, as wide as it needs to be."""
        cells = [HEADINGS, *self.table()]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        aligned = [
            [
                text.rjust(width) if name in NUMERIC else text.ljust(width)
                for name, text, width in zip(HEADINGS, row, widths, strict=True)
            ]
            for row in cells
        ]
        return "\n".join("  ".join(row).rstrip() for row in aligned)


HEADINGS = ("row", "evaluator", "where", "why", "rounds", "facts", "seconds", "stopped")
NUMERIC = ("rounds", "facts", "seconds")


def cells_of(row: StratumStats | Step) -> tuple[str, ...]:
    """A row as text, a cell for each heading: a stratum has the names of its predicates, a step stands in brackets."""
    if isinstance(row, Step):
        return (f"[{row}]", "", "", "", "", "", f"{row.seconds:.3f}", "")
    why = "" if any(event.why == row.because for event in row.events) else row.because
    told = "; ".join(filter(None, (row.how or why, row.kept, *map(str, row.events))))
    return (
        ", ".join(row.predicates),
        f"{row.evaluator}: {told}" if told else row.evaluator,
        row.placement,
        row.why,
        str(row.rounds),
        "" if row.facts is None else f"{row.facts:,}",
        f"{row.seconds:.3f}",
        row.stopped,
    )


class Progress(Protocol):
    """Somebody who is told how a run goes on."""

    def stratum(self, predicates: tuple[str, ...], number: int, total: int, placement: str) -> None: ...

    def round(self, number: int, delta: int, facts: int, rate: float) -> None: ...

    def done(self) -> None: ...


class Silent:
    """Tells nobody."""

    def stratum(self, predicates: tuple[str, ...], number: int, total: int, placement: str) -> None:
        return

    def round(self, number: int, delta: int, facts: int, rate: float) -> None:
        return

    def done(self) -> None:
        return


class Outgrown(LimitError):
    """A relation has more rows, or takes longer, than where it is computed allows; another place may compute it."""


class RoundLimit(LimitError):
    """So many rounds were made, and there is no end. Whoever has the rows may find the cycle that is to blame."""


PERHAPS = " (a cycle?)"  # what is said as long as none was found


class Meter:
    """Holds a run to its limits and passes on how it goes.

    `room` is how many rows a stratum may have here, and `until` when it must be done: past that it is `Outgrown`.
    `clock` has the time of its steps.
    """

    def __init__(
        self,
        limits: Limits,
        progress: Progress,
        room: int | None = None,
        until: float | None = None,
        clock: Clock | None = None,
        stop: Stop | None = None,
    ) -> None:
        self.limits = limits
        self.progress = progress
        self.clock = clock or Clock()
        self.room = room
        self.until = until
        self.stop = stop or Stop()
        self.started = self.clock.started
        self.rows = 0  # of the strata that are done

    def within(self, room: int | None, until: float | None = None) -> Meter:
        """A meter of the same run for a stratum that has less room or time than the run."""
        meter = Meter(self.limits, self.progress, room, until, self.clock, self.stop)
        meter.started, meter.rows = self.started, self.rows
        return meter

    @property
    def deadline(self) -> Deadline:
        return Deadline(self.limits.seconds, self.started, self.stop)

    @property
    def seconds_left(self) -> float | None:
        return self.deadline.left

    @property
    def seconds_here(self) -> float | None:
        """What is left until the run or this stratum must be done; None without a limit."""
        until = None if self.until is None else self.until - monotonic()
        return min((left for left in (self.seconds_left, until) if left is not None), default=None)

    @property
    def most_rows(self) -> int | None:
        """So many rows of a relation are enough to see that it has too many; None where none are."""
        allowed = None if self.limits.rows is None else max(self.limits.rows - self.rows, 0)
        bounds = [bound for bound in (allowed, self.room) if bound is not None]
        return min(bounds) + 1 if bounds else None

    def round(self, stats: StratumStats, delta: int, facts: int) -> None:
        """One more round is done. Raises when a limit is reached."""
        self._count(stats, [delta], facts)
        self.check(stats, facts)

    def rounds(self, stats: StratumStats, deltas: list[int], facts: int, default: int | None) -> None:
        """Some more rounds are done, perhaps thousands of small ones. Raises when a limit is reached, also that on
        rounds, with its `default`; those past it do not count."""
        most = self.limits.rounds if self.limits.rounds is not None else default
        allowed = len(deltas) if most is None else max(most - stats.rounds, 0)
        self._count(stats, deltas[:allowed], facts)
        if allowed < len(deltas):
            self.allow_round(stats, default)
        self.check(stats, facts)

    def _count(self, stats: StratumStats, deltas: list[int], facts: int) -> None:
        elapsed = monotonic() - self.started
        rate = facts / elapsed if elapsed else 0.0
        for number, delta in enumerate(deltas, stats.rounds + 1):
            self.progress.round(number, delta, facts, rate)
        stats.rounds += len(deltas)
        stats.deltas += deltas

    def check(self, stats: StratumStats, facts: int) -> None:
        """Raises when rows or time are over their limits, or somebody asked for the end of the run."""
        self.stop.check()
        name = ", ".join(stats.predicates)
        if self.limits.rows is not None and self.rows + facts > self.limits.rows:
            raise LimitError(
                f"stopped at the limit of {counted(self.limits.rows, 'row')} while computing {name} "
                f"(round {stats.rounds})",
                fix="raise limits={'rows': ...}, or add conditions to the rules",
            )
        if self.room is not None and facts > self.room:
            raise Outgrown(f"{name} has more than {self.room:,} rows")
        if self.until is not None and monotonic() > self.until:
            raise Outgrown(f"{name} takes longer than it may here")
        if self.deadline.is_over:
            raise self.out_of_time(stats)

    def out_of_time(self, stats: StratumStats) -> LimitError:
        name = ", ".join(stats.predicates)
        return self.deadline.error(f"computing {name} (round {stats.rounds})")

    def allow_round(self, stats: StratumStats, default: int | None) -> None:
        """Raises when the stratum may not take one more round; `default` is its limit when the user set none."""
        name = ", ".join(stats.predicates)
        if self.limits.rounds is not None and stats.rounds >= self.limits.rounds:
            raise RoundLimit(
                f"stopped at the limit of {counted(self.limits.rounds, 'round')} while computing {name}: "
                f"facts that the last round changed: {stats.deltas[-1] if stats.deltas else 0:,}",
                fix="raise limits={'rounds': ...}",
            )
        if self.limits.rounds is None and default is not None and stats.rounds >= default:
            raise RoundLimit(
                f"stopped after {stats.rounds:,} rounds while computing {name}: it computes values, and on this data "
                f"they seem to grow for ever{PERHAPS}",
                fix="set limits={'rounds': ...} if it does end, or bound the value in the rule",
            )
