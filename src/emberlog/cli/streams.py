"""Standard output and standard error of a command, and what happens when they cannot be written."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TextIO, cast

from emberlog.diagnostics import EmberlogError, cannot_write


class OutputClosed(Exception):
    """Whoever read standard output has stopped (`| head`). Not an OSError: other code takes those for its own."""


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Inside, printing raises OutputClosed or an EmberlogError if standard output cannot be written, and never fails
    on standard error, where there is nobody left to tell. What is left in the buffers goes out at the end."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _guarded(sys.stdout, _output_failed), _guarded(sys.stderr, _ignored)
    try:
        yield
    finally:
        with suppress(OutputClosed, EmberlogError):  # the command has ended, and what it has to tell is told
            flush_output()
        sys.stdout, sys.stderr = before


def flush_output() -> None:
    """Writes what is left in the buffer of standard output, while a failure can still be told."""
    if sys.stdout is not None:
        sys.stdout.flush()


class _Guarded:
    """A text stream that tells `failed` when it cannot be written, and then writes nowhere."""

    def __init__(self, stream: TextIO, failed: Callable[[OSError], None]) -> None:
        self._stream, self._failed = stream, failed

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._fail(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        # The buffer still holds the text: Python would try again at its end, fail, and print a trace.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        self._failed(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _guarded(stream: TextIO | None, failed: Callable[[OSError], None]) -> TextIO:
    """The stream, guarded. It is None if it was closed before Python started; then nothing is printed."""
    if stream is None:
        return cast(TextIO, None)
    if getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")  # what a terminal cannot show is no reason to fail
    return cast(TextIO, _Guarded(stream, failed))


def _output_failed(error: OSError) -> NoReturn:
    if isinstance(error, BrokenPipeError):
        raise OutputClosed from error
    raise cannot_write("standard output", error) from error


def _ignored(_error: OSError) -> None:
    pass
