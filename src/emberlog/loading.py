"""Ctrl-C while modules are loaded. Imports next to nothing itself, because it is loaded first."""

from __future__ import annotations

import os
import signal

INTERRUPTED = 130


class Loading:
    """Inside, Ctrl-C ends the process at once: nothing has begun that must be cleaned up, and an exception that is
    raised in the middle of an import may be lost there or turned into another one."""

    def __enter__(self) -> None:
        # A shell starts what runs in the background with SIGINT ignored, and so it stays.
        self._heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._heeded:
            signal.signal(signal.SIGINT, _end)

    def __exit__(self, *_: object) -> None:
        if self._heeded:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
