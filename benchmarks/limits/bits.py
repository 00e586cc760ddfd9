"""Matrices of bits, one row of 64-bit words for each key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from benchmarks.limits.common import inlined, kernel

LARGEST = 1 << 17
"""Matrices of bits over larger domains are not made: this one takes 2 GB."""


def _popcount(context, word):  # type: ignore[no-untyped-def]
    """How many bits of a 64-bit word are set: one instruction."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), build


def _lowest(context, word):  # type: ignore[no-untyped-def]
    """The place of the lowest bit of a word that is not 0."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]

        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), build


def _highest(context, word):  # type: ignore[no-untyped-def]
    """The place of the highest bit of a word that is not 0."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]

        leading = builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))
        return builder.sub(ir.Constant(ir.IntType(64), 63), leading)

    return types.uint64(types.uint64), build


popcount: Callable[..., Any] = intrinsic(_popcount)
lowest: Callable[..., Any] = intrinsic(_lowest)
highest: Callable[..., Any] = intrinsic(_highest)


@inlined
def or_row(row, other):  # type: ignore[no-untyped-def]
    """Ors another row into a row; says if it grew."""
    grown = np.uint64(0)
    for w in range(len(row)):
        old = row[w]
        new = old | other[w]
        row[w] = new
        grown |= old ^ new
    return grown != 0


@kernel
def count_bits(rows):  # type: ignore[no-untyped-def]
    total = np.uint64(0)
    for row in rows:
        for word in row:
            total += popcount(word)
    return np.int64(total)


@kernel
def positions(rows, count):  # type: ignore[no-untyped-def]
    """Row and column of every bit, in order."""
    first, second = np.empty(count, np.int64), np.empty(count, np.int64)
    at = 0
    for k in range(len(rows)):
        for w in range(rows.shape[1]):
            word = rows[k, w]
            while word:
                first[at] = k
                second[at] = (w << 6) + np.int64(lowest(word))
                at += 1
                word &= word - np.uint64(1)
    return first, second


@kernel
def transpose_block(block):  # type: ignore[no-untyped-def]
    """64 x 64 bits, in place: halves are swapped, then quarters, down to single bits."""
    width = np.uint64(32)
    mask = np.uint64(0x00000000FFFFFFFF)
    while width:
        step = np.int64(width)
        k = 0
        while k < 64:
            swapped = ((block[k] >> width) ^ block[k + step]) & mask
            block[k] ^= swapped << width
            block[k + step] ^= swapped
            k = int(((k | step) + 1) & ~step)
        width >>= np.uint64(1)
        mask ^= mask << width


@kernel
def transpose(rows, turned):  # type: ignore[no-untyped-def]
    """`turned[j]` has bit i where `rows[i]` has bit j. Both are square, n x n."""
    n, width = rows.shape
    block = np.empty(64, np.uint64)
    for i in range(width):
        deep = min(64, n - (i << 6))
        for j in range(width):
            any_set = np.uint64(0)
            for k in range(deep):
                block[k] = rows[(i << 6) + k, j]
                any_set |= block[k]
            across = min(64, n - (j << 6))
            if not any_set:
                for k in range(across):
                    turned[(j << 6) + k, i] = np.uint64(0)
                continue
            block[deep:] = 0
            transpose_block(block)
            for k in range(across):
                turned[(j << 6) + k, i] = block[k]
