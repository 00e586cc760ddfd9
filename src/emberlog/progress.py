"""Progress on a terminal: one line that says where a long run is."""

from __future__ import annotations

import sys
from time import monotonic
from typing import TextIO

from emberlog.stats import Progress, Silent


def default_progress() -> Progress:
    """A line on the terminal; silence when standard error is none."""
    return TerminalProgress(sys.stderr) if sys.stderr is not None and sys.stderr.isatty() else Silent()


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
