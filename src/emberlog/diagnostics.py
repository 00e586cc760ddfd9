"""What is told to the user when something is wrong: diagnostics, their rendering, and the errors that carry them.

A mistake in a program is a `Diagnostic`: a code, a message, labelled places in the source, and help. Checks yield
diagnostics; whoever drives the checks raises one `ProgramError` with all of them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from pathlib import Path

from emberlog.source import Span


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Label:
    """A place in the source and what is to be said of it."""

    span: Span
    text: str = ""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake. The first label is where it happened; the others are places that explain it."""

    code: str
    message: str
    labels: tuple[Label, ...] = ()
    help: str | None = None
    severity: Severity = Severity.ERROR

    @property
    def span(self) -> Span | None:
        return self.labels[0].span if self.labels else None

    @property
    def summary(self) -> str:
        """The message on one line, with its place where there is one."""
        return self.message if self.span is None else f"{self.span}: {self.message}"


def warning(code: str, message: str, labels: Iterable[Label] = (), help: str | None = None) -> Diagnostic:
    """A diagnostic that does not keep a program from running."""
    return Diagnostic(code, message, tuple(labels), help, Severity.WARNING)


def render(diagnostic: Diagnostic) -> str:
    """The diagnostic as text: message, each labelled line with a caret below it, help."""
    lines = [f"{diagnostic.severity.value}[{diagnostic.code}]: {diagnostic.message}"]
    width = max((len(str(label.span.line)) for label in diagnostic.labels), default=1)
    gutter = " " * width
    if diagnostic.span is not None:
        lines.append(f"{gutter}--> {diagnostic.span}")
    for rank, label in enumerate(diagnostic.labels):
        lines.extend(_excerpt(label, gutter, "^" if rank == 0 else "-"))
    if diagnostic.help:
        lines.append(f"{gutter} = help: {diagnostic.help}")
    return "\n".join(lines)


def _excerpt(label: Label, gutter: str, mark: str) -> list[str]:
    source, span = label.span.source, label.span
    line, column = source.position(span.start)
    text = source.line(line)
    # A tab is shown as one blank, so that the mark below stands under what it marks.
    shown = "".join(char if char.isprintable() else " " for char in text)
    length = max(1, min(span.end - span.start, len(text) - column + 1))
    return [
        f"{gutter} |",
        f"{line:>{len(gutter)}} | {shown}",
        f"{gutter} | {' ' * (column - 1)}{mark * length} {label.text}".rstrip(),
    ]


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """`did you mean ...?` for the known name that is nearest to `name`, if one is near."""
    near = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else None


def counted(number: int, noun: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def sized(count: int) -> str:
    """A number of bytes as people read it: `1.5 GB`."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return counted(count, "byte")


class EmberlogError(Exception):
    """What every error of Emberlog is. `span` is where in the program, `fix` what to do, where these are known."""

    exit_code = 1

    def __init__(self, message: str, *, span: Span | None = None, fix: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.fix = fix

    code = "E0000"

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        labels = (Label(self.span),) if self.span is not None else ()
        return (Diagnostic(self.code, self.message, labels, self.fix),)

    def __str__(self) -> str:
        return "\n\n".join(render(diagnostic) for diagnostic in self.diagnostics())


class EmberlogWarning(UserWarning):
    """What every warning of Emberlog is: about a program or its data. `str()` shows it with the line and a caret."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(render(diagnostic))
        self.diagnostic = diagnostic


class ProgramError(EmberlogError):
    """The program is wrong. Carries every mistake that was found."""

    def __init__(self, found: Iterable[Diagnostic]) -> None:
        self._found = tuple(found)
        first = self._found[0]
        super().__init__(first.message, span=first.span, fix=first.help)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return self._found


class DataError(EmberlogError):
    """The facts do not fit the program, or a rule has no value for some of them."""

    code = "E0800"


class UsageError(EmberlogError):
    """Emberlog was called with arguments that make no sense."""

    exit_code = 2
    code = "E0900"


class LimitError(EmberlogError):
    """A limit on rounds, rows or time was reached; there is no answer."""

    exit_code = 3
    code = "E0700"


class CancelledError(EmberlogError):
    """`engine.cancel()` ended the run; there is no answer."""

    exit_code = 130
    code = "E0701"


class ExecutionError(EmberlogError):
    """A worker, the cluster or the machine failed."""

    exit_code = 4
    code = "E0600"


class InternalError(EmberlogError):
    """Emberlog is wrong. Please report it with the program and the output of `emberlog explain`."""

    exit_code = 70
    code = "E0999"


# --- files -----------------------------------------------------------------------------------------------------------

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})  # the machine's fault, not the caller's
_NO_FOLDER = "a part of this path is a file, not a folder: name another place"
_NOT_ALLOWED = "name a place that you may write to"
_ADVICE: Mapping[int, str] = {
    errno.ENOENT: "make the folder first, or name another place",
    errno.ENOTDIR: _NO_FOLDER,
    errno.EEXIST: _NO_FOLDER,
    errno.EISDIR: "a folder has this name already: name another one",
    errno.EACCES: _NOT_ALLOWED,
    errno.EPERM: _NOT_ALLOWED,
    errno.EROFS: _NOT_ALLOWED,
    errno.ENAMETOOLONG: "name a shorter one",
    errno.ENOSPC: "make room there, or name another place",
    errno.EDQUOT: "make room there, or name another place",
    errno.EFBIG: "raise the limit on the size of files, or name another place",
}


def cannot_write(what: str | Path, error: OSError) -> EmberlogError:
    """The error for a file, folder or stream that the system did not let us write, with what to do about it."""
    number = error.errno or 0
    # Not `error.strerror`: Arrow's has the path in it once more.
    text = f"cannot write {what}: {os.strerror(number) if number else error}"
    kind = ExecutionError if number in _FULL else UsageError
    return kind(text, fix=_ADVICE.get(number))
