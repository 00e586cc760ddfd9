"""Functions of Python that programs call: a name, the types of arguments and result, and what is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import count
from pathlib import Path
from runpy import run_path
from typing import Any

from emberlog.diagnostics import UsageError
from emberlog.types import BOOL, DATE, FLOAT, NUMBER, SYMBOL, TIMESTAMP, Type

_numbers = count()
_MODULE = "emberlog_functions"

ANNOTATED: Mapping[Any, Type] = {
    bool: BOOL, int: NUMBER, float: FLOAT, str: SYMBOL, date: DATE, datetime: TIMESTAMP,
}  # fmt: skip


@dataclass(frozen=True, eq=False, slots=True)
class PythonFunction:
    """A function that is called with one value for each argument, or, if it is `vectorized`, with an array of Arrow.

    It is deterministic: engines may call it more than once for the same values, or not at all. `parameters` is None
    where it takes values of any type, `most` None where it takes any number of them. `number` tells it from all others.
    """

    name: str
    call: Callable[..., Any]
    result: Type
    parameters: tuple[Type, ...] | None
    least: int
    most: int | None
    vectorized: bool
    number: int = field(default_factory=_numbers.__next__)


def python_function(
    name: str, call: Any, result: Type | None, parameters: tuple[Type, ...], vectorized: bool
) -> PythonFunction:
    """The function under this name. Types that are not given are those of its annotations. Raises UsageError."""
    if not isinstance(name, str) or not name.isidentifier():
        raise UsageError(f"the name of a function is a name of the language, not {name!r}")
    if not callable(call):
        raise UsageError(f"`{name}` is to be a function, not {call!r}")
    try:
        signature = inspect.signature(call, eval_str=True)
    except (TypeError, ValueError, NameError):  # of built-in functions, and of annotations that nobody knows
        signature = None
    result = result or _annotated(None if signature is None else signature.return_annotation)
    if result is None:
        raise UsageError(
            f"nothing tells the type of `{name}`",
            fix=f'engine.function("{name}", fn, "float", "number"): that of the result, then those of the arguments',
        )
    places = [] if signature is None else list(signature.parameters.values())
    known = parameters or _types_of(places)
    if known:
        return PythonFunction(name, call, result, known, len(known), len(known), vectorized)
    plain = [place for place in places if place.kind in (place.POSITIONAL_ONLY, place.POSITIONAL_OR_KEYWORD)]
    least = max(sum(place.default is place.empty for place in plain), 1)
    open_ended = signature is None or any(place.kind is place.VAR_POSITIONAL for place in places)
    return PythonFunction(name, call, result, None, least, None if open_ended else max(len(plain), 1), vectorized)


def _annotated(annotation: Any) -> Type | None:
    try:
        return ANNOTATED.get(annotation)
    except TypeError:  # annotations may be anything
        return None


def _types_of(places: list[inspect.Parameter]) -> tuple[Type, ...]:
    """The types that annotations say, if all of them do."""
    found = [_annotated(place.annotation) for place in places]
    return tuple(type for type in found if type is not None) if None not in found else ()


def functions_of_file(path: Path) -> list[PythonFunction]:
    """The functions that a Python file defines, under their names, with the types of their annotations. Those whose
    names begin with `_` are left out. Raises UsageError."""
    try:
        names = run_path(str(path), run_name=_MODULE)
    except Exception as error:
        raise UsageError(f"{path} cannot be run as Python: {type(error).__name__}: {error}") from error
    # The module has a name that nobody can import, so that Spark sends the functions themselves to its workers.
    found = [
        python_function(name, value, None, (), vectorized=False)
        for name, value in names.items()
        if inspect.isfunction(value) and value.__module__ == _MODULE and not name.startswith("_")
    ]
    if not found:
        raise UsageError(f"{path} defines no function", fix="def score(x: float, name: str) -> float: ...")
    return found
