"""The one place where functions of this package are handed to the compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

from emberlog.kernels.cache import folder, serialised
from emberlog.kernels.disk import keep_on_disk, package_stamp

F = TypeVar("F", bound=Callable[..., object])


def jit(function: F) -> F:
    """`function`, compiled at its first call for the types that it is called with, and without the global lock."""
    return cast("F", serialised(keep_on_disk(numba.njit(nogil=True)(function), folder(), package_stamp())))


def inlined(function: F) -> F:
    """`function` as a part of the compiled functions that call it: a call would copy the descriptors of its arrays.

    It is cached with these, and not by itself.
    """
    return cast("F", numba.njit(nogil=True, forceinline=True)(function))
