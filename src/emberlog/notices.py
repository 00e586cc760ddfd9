"""How warnings reach the user: through Python's `warnings`, as errors, or not at all."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from emberlog.diagnostics import DataError, Diagnostic, EmberlogWarning, ProgramError, Severity, UsageError

Notices: TypeAlias = Literal["show", "error", "ignore"]
"""What becomes of warnings: shown, errors, or only kept in the result."""

_PACKAGE = str(Path(__file__).parent)


def chosen(how: str) -> Notices:
    """The way that this word names."""
    for known in get_args(Notices):
        if how == known:
            return known  # type: ignore[no-any-return]
    raise UsageError(f"warnings {how!r} is not known", fix=f"warnings is one of {', '.join(get_args(Notices))}")


def tell_of_program(found: Iterable[Diagnostic], how: Notices) -> None:
    """Tells what is odd about a program: raises ProgramError with all of it where warnings are errors."""
    found = tuple(found)
    if how == "error" and found:
        raise ProgramError(replace(diagnostic, severity=Severity.ERROR) for diagnostic in found)
    if how == "show":
        _show(found)


def tell_of_data(found: Iterable[Diagnostic], how: Notices) -> None:
    """Tells what is odd about the data of a run: raises DataError where warnings are errors."""
    found = tuple(found)
    if how == "error" and found:
        raise DataError("; ".join(diagnostic.message for diagnostic in found))
    if how == "show":
        _show(found)


def _show(found: Iterable[Diagnostic]) -> None:
    for diagnostic in found:
        warnings.warn(EmberlogWarning(diagnostic), stacklevel=_callers_level() - 1)


def _callers_level() -> int:
    """The first frame outside of this package, counted as `stacklevel` does: 1 is this function."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
