"""What a run measures of itself, what it may use, and how it tells while it works.

`Limits` is what the user allows, `Meter` holds a run to it, `StratumStats` is what stays, `Progress` what is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from time import monotonic
from typing import Protocol

from emberlog.diagnostics import LimitError, UsageError, counted, did_you_mean


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
            return value
        known = {entry.name for entry in fields(Limits)}
        for name, amount in value.items():
            if name not in known:
                hint = did_you_mean(name, known)
                raise UsageError(f"there is no limit on `{name}`", fix=hint or f"limits are {', '.join(sorted(known))}")
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
    coordination: str = ""
    rounds: int = 0
    facts: int | None = None
    derivations: int | None = None
    seconds: float = 0.0
    bytes_exchanged: int | None = None
    stopped: str = ""
    deltas: list[int] = field(default_factory=list)
    residual: float | None = None

    def restart(self) -> None:
        """Forgets what was told of an evaluation that begins again, perhaps by another evaluator."""
        self.rounds, self.facts, self.residual = 0, None, None
        self.deltas.clear()


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


class Meter:
    """Holds a run to its limits and passes on how it goes.

    `room` is how many rows a stratum may have here, and `until` when it must be done: past that it is `Outgrown`.
    """

    def __init__(self, limits: Limits, progress: Progress, room: int | None = None, until: float | None = None) -> None:
        self.limits = limits
        self.progress = progress
        self.room = room
        self.until = until
        self.started = monotonic()
        self.rows = 0  # of the strata that are done

    @property
    def seconds_left(self) -> float | None:
        return None if self.limits.seconds is None else self.limits.seconds - (monotonic() - self.started)

    @property
    def most_rows(self) -> int | None:
        """So many rows of a relation are enough to see that it has too many; None where none are."""
        allowed = None if self.limits.rows is None else max(self.limits.rows - self.rows, 0)
        bounds = [bound for bound in (allowed, self.room) if bound is not None]
        return min(bounds) + 1 if bounds else None

    def round(self, stats: StratumStats, delta: int, facts: int) -> None:
        """One more round is done. Raises when a limit is reached."""
        stats.rounds += 1
        stats.deltas.append(delta)
        elapsed = monotonic() - self.started
        self.progress.round(stats.rounds, delta, facts, facts / elapsed if elapsed else 0.0)
        self.check(stats, facts)

    def check(self, stats: StratumStats, facts: int) -> None:
        """Raises when rows or time are over their limits."""
        name = ", ".join(stats.predicates)
        if self.limits.rows is not None and self.rows + facts > self.limits.rows:
            raise LimitError(
                f"stopped at the limit of {counted(self.limits.rows, 'row')} while computing {name} "
                f"(round {stats.rounds})",
                fix="raise limits={'rows': ...}, or ask for less with a goal or a filter",
            )
        if self.room is not None and facts > self.room:
            raise Outgrown(f"{name} has more than {self.room:,} rows")
        if self.until is not None and monotonic() > self.until:
            raise Outgrown(f"{name} takes longer than it may here")
        left = self.seconds_left
        if left is not None and left <= 0:
            raise self.out_of_time(stats)

    def out_of_time(self, stats: StratumStats) -> LimitError:
        name = ", ".join(stats.predicates)
        unit = "second" if self.limits.seconds == 1 else "seconds"
        return LimitError(
            f"stopped at the limit of {self.limits.seconds:g} {unit} while computing {name} (round {stats.rounds})",
            fix="raise limits={'seconds': ...}",
        )

    def allow_round(self, stats: StratumStats, default: int | None) -> None:
        """Raises when the stratum may not take one more round; `default` is its limit when the user set none."""
        name = ", ".join(stats.predicates)
        if self.limits.rounds is not None and stats.rounds >= self.limits.rounds:
            raise LimitError(
                f"stopped at the limit of {counted(self.limits.rounds, 'round')} while computing {name}: "
                f"facts that the last round changed: {stats.deltas[-1] if stats.deltas else 0:,}",
                fix="raise limits={'rounds': ...}",
            )
        if self.limits.rounds is None and default is not None and stats.rounds >= default:
            raise LimitError(
                f"stopped after {stats.rounds:,} rounds while computing {name}: it computes values, and on this data "
                "they seem to grow for ever (a cycle?)",
                fix="set limits={'rounds': ...} if it does end, or bound the value in the rule",
            )
