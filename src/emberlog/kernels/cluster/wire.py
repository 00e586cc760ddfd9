"""The messages between two workers: a head as JSON, then the bytes of arrays in frames of limited size.

Whoever sends was admitted to the run, but a head is checked before memory is taken for what it announces.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from emberlog.kernels.cluster.exchange import Array, Summary

FRAME_BYTES = 1 << 20  # an array travels in frames of this size: larger ones took twice as long
FRAME_LIMIT = FRAME_BYTES + 4096  # and nothing larger is taken in: with room for what encryption adds
MOST_BYTES = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")  # of a message: no machine takes in more
DTYPES = frozenset(np.dtype(name).str for name in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"))

HELLO, STEP, FAILED = b"h", b"s", b"f"  # the first byte of a head


class WireError(ValueError):
    """A message that no worker of ours sends."""


@dataclass(frozen=True, slots=True)
class Head:
    """What one worker sends another in one step, before the bytes themselves."""

    step: int
    summary: Summary
    arrays: tuple[tuple[str, int], ...]  # type and length of each

    def encode(self) -> bytes:
        return STEP + json.dumps([self.step, self.summary, self.arrays]).encode()


def head_of(step: int, summary: Summary, arrays: Sequence[Array]) -> Head:
    for array in arrays:
        if array.ndim != 1 or array.dtype.str not in DTYPES:
            raise ValueError(f"an array of {array.ndim} dimensions and type {array.dtype} cannot be sent")
    return Head(step, summary, tuple((array.dtype.str, array.size) for array in arrays))


def decode_head(message: bytes) -> Head:
    """The head of a step, checked."""
    if message[:1] != STEP:
        raise WireError("it is not the head of a step")
    try:
        number, summary, arrays = json.loads(message[1:])
        head = Head(int(number), tuple(summary), tuple((str(dtype), int(length)) for dtype, length in arrays))
    except (ValueError, TypeError) as error:
        raise WireError(f"its head cannot be read: {error}") from error
    if any(dtype not in DTYPES or length < 0 for dtype, length in head.arrays):
        raise WireError("it announces arrays of a kind that is not sent")
    if sum(np.dtype(dtype).itemsize * length for dtype, length in head.arrays) > MOST_BYTES:
        raise WireError(f"it announces more than {MOST_BYTES:,} bytes")
    if not all(isinstance(value, int | float) for value in head.summary):
        raise WireError("its summary has something else than numbers")
    return head


def frames(array: Array) -> Iterator[memoryview]:
    """The bytes of an array in pieces, as they travel. Works for sending from and, when contiguous, receiving into."""
    whole = np.ascontiguousarray(array).data.cast("B") if array.size else memoryview(b"")
    for start in range(0, whole.nbytes, FRAME_BYTES):
        yield whole[start : start + FRAME_BYTES]


class Announces(Protocol):
    """The head of a message: the type and length of each array that follows."""

    @property
    def arrays(self) -> Sequence[tuple[str, int]]: ...


class Incoming:
    """The arrays of one message, as they come in."""

    def __init__(self, announced: Sequence[tuple[str, int]]) -> None:
        self.arrays: list[Array] = [np.empty(length, dtype) for dtype, length in announced]
        self._rest = [piece for array in self.arrays for piece in frames(array)][::-1]

    @property
    def complete(self) -> bool:
        return not self._rest

    @property
    def place(self) -> memoryview:
        """Where the next frame goes."""
        return self._rest[-1]

    def took(self, size: int) -> None:
        if size != self._rest.pop().nbytes:
            raise WireError("a frame has another length than its head says")
