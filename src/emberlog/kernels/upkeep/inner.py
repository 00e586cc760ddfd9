"""The functions of a generated text: compiled as parts of its `run`, and kept with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emberlog.kernels.cache import COMPILES


def inner(function: Callable[..., Any]) -> Any:
    """A function that compiled loops of the same text call."""
    if not COMPILES:
        return function
    import numba

    return numba.njit(nogil=True, error_model="numpy")(function)
