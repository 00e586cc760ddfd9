"""Who is told how a run goes on: a terminal, by one line; or what a caller passes as `progress=`.

That is a function, which is called with a `ProgressEvent` each time, or an object with the methods of `Progress`. What
it raises ends the run and reaches the caller as it is: so a function may stop a run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from typing import Literal, TextIO, TypeAlias

from emberlog.diagnostics import EmberlogError, UsageError, counted
from emberlog.stats import Progress, Silent


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """Something that a run tells of itself; `str()` is a line for people, so that `progress=print` works.

    `kind` is "stratum" when the evaluation of a stratum begins, "round" after each round of a recursive one, and "done"
    once at the end, also of a run that fails. A stratum has `predicates` and is number `stratum` of `strata`. After a
    round, `round` is how many there were, `delta` how many facts the last one changed, `facts` how many there are and
    `rate` how many that is a second. Rounds in the tasks of a Spark job are not told.
    """

    kind: Literal["stratum", "round", "done"]
    predicates: tuple[str, ...] = ()
    stratum: int = 0
    strata: int = 0
    round: int = 0
    delta: int = 0
    facts: int = 0
    rate: float = 0.0

    def __str__(self) -> str:
        if self.kind == "done":
            return "done"
        where = f"stratum {self.stratum} of {self.strata}: {', '.join(self.predicates)}"
        if self.kind == "stratum":
            return where
        return f"{where}, round {self.round}: {self.delta:,} changed, {counted(self.facts, 'fact')}"


ProgressFunction: TypeAlias = Callable[[ProgressEvent], object]


def default_progress() -> Progress:
    """A line on the terminal; silence when standard error is none."""
    return TerminalProgress(sys.stderr) if sys.stderr is not None and sys.stderr.isatty() else Silent()


def progress_of(given: Progress | ProgressFunction | None) -> Progress:
    """What a caller passes as `progress=`, as somebody who can be told."""
    if given is None:
        return default_progress()
    if all(callable(getattr(given, name, None)) for name in ("stratum", "round", "done")):
        return CallersProgress(given)  # type: ignore[arg-type]
    if callable(given):
        return CallersProgress(EventsFor(given))
    raise UsageError(
        f"progress is a function, or an object with the methods stratum, round and done, not {given!r}",
        fix="progress=print prints a line for each event",
    )


class ProgressFailed(EmberlogError):
    """What a caller's function raised, on its way through the evaluation; the caller gets `error` itself."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"the progress function raised {type(error).__name__}: {error}")
        self.error = error


class CallersProgress:
    """Tells somebody of the caller's. Once that raised it is told no more."""

    def __init__(self, other: Progress) -> None:
        self._other: Progress = other

    def stratum(self, predicates: tuple[str, ...], number: int, total: int, placement: str) -> None:
        self._tell(lambda: self._other.stratum(predicates, number, total, placement))

    def round(self, number: int, delta: int, facts: int, rate: float) -> None:
        self._tell(lambda: self._other.round(number, delta, facts, rate))

    def done(self) -> None:
        self._tell(lambda: self._other.done())

    def _tell(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except Exception as error:  # whatever it is, it is the caller's
            self._other = Silent()
            raise ProgressFailed(error) from error


class EventsFor:
    """Calls a function for each thing that is told."""

    def __init__(self, function: ProgressFunction) -> None:
        self._function = function
        self._stratum = ProgressEvent("stratum")

    def stratum(self, predicates: tuple[str, ...], number: int, total: int, placement: str) -> None:
        self._stratum = ProgressEvent("stratum", predicates, number, total)
        self._function(self._stratum)

    def round(self, number: int, delta: int, facts: int, rate: float) -> None:
        at = self._stratum
        self._function(ProgressEvent("round", at.predicates, at.stratum, at.strata, number, delta, facts, rate))

    def done(self) -> None:
        self._function(ProgressEvent("done"))


@contextmanager
def announce_end(progress: Progress) -> Iterator[None]:
    """Tells at the end that a run is done. What a caller's function raised leaves here as it is; that it also fails
    when a run has failed is not told."""
    raised: Exception | None = None
    try:
        try:
            yield
        except BaseException:
            with suppress(ProgressFailed):
                progress.done()
            raise
        progress.done()
    except ProgressFailed as failed:
        raised = failed.error
    if raised is not None:
        raise raised


class TerminalProgress:
    """Writes one line over itself, at most ten times a second, and only for work that takes a while."""

    def __init__(self, out: TextIO, patience: float = 0.5) -> None:
        self._out = out
        self._patience = patience
        self._started = monotonic()
        self._last = 0.0
        self._where = ""
        self._shown = False

    def stratum(self, predicates: tuple[str, ...], number: int, total: int, placement: str) -> None:
        names = ", ".join(predicates)
        self._where = f"stratum {number}/{total} {names[:40]}"
        self._show("")

    def round(self, number: int, delta: int, facts: int, rate: float) -> None:
        self._show(f"  round {number}  delta {delta:,}  facts {facts:,}  {rate:,.0f} facts/s")

    def _show(self, text: str) -> None:
        now = monotonic()
        if now - self._started < self._patience or now - self._last < 0.1:
            return
        self._last, self._shown = now, True
        self._out.write(f"\r\x1b[2K{self._where}{text}")
        self._out.flush()

    def done(self) -> None:
        if self._shown:
            self._out.write("\r\x1b[2K")
            self._out.flush()
            self._shown = False
