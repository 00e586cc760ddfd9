"""Functions that are compiled as parts of others, and kept with these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emberlog.kernels.cache import COMPILES


def inner(function: Callable[..., Any]) -> Any:
    """A function that compiled loops of the same text call."""
    return _compiled(function, forceinline=False)


def inlined(function: Callable[..., Any]) -> Any:
    """A function that becomes part of those that call it: a call would count the references to all arrays."""
    return _compiled(function, forceinline=True)


def _compiled(function: Callable[..., Any], forceinline: bool) -> Any:
    if not COMPILES:
        return function
    import numba

    return numba.njit(nogil=True, error_model="numpy", forceinline=forceinline)(function)
