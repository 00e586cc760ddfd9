"""Writes the loops of a component as Python source that Numba compiles.

The text depends on the shape of the rules alone: relations, variables and constants have generated names, sizes and
constants are arguments. So two programs of one shape share one compiled function, and nothing that a user wrote gets
into the source.

One function makes rounds: it takes up the facts that wait in each table, runs the nests that start there, and puts
what they find into the tables. With pivots it makes one fixpoint after the other, from the exit rows of each pivot
to rows of the output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from emberlog.components.program import Kind

# Bits of `seen`.
KNOWN, QUEUED, TAKEN = 1, 2, 4
HALTED = 3  # what `fail` says if the run is to end; 1 is an operation without a value, 2 too many rounds
EACH = 0x0101010101010101  # times a bit: that bit of each of eight flags

HEADER = """import numpy as np
from emberlog.kernels.runtime import bound_above, bound_below, find, find_key, grown, grown_rows, rehashed, truncated
from emberlog.kernels.runtime import beyond, jump, nearest, remainder, trailing
from emberlog.kernels.halting import is_set
from emberlog.kernels.prefetch import prefetch
from emberlog.kernels.waiting import drained, skip, total, turn_of

U1 = np.uint32(1)
ONE = np.uint8(1)
"""


@dataclass(frozen=True, slots=True)
class Array:
    """An argument of the function: its name, element type and number of dimensions (0: a number)."""

    name: str
    dtype: str
    dimensions: int = 1


@dataclass(frozen=True, slots=True)
class Source:
    """`text` defines `run(arguments)`, which returns the `returned` arrays."""

    text: str
    arguments: tuple[Array, ...]
    returned: tuple[str, ...]
    constants: tuple[tuple[Kind, object], ...]  # values of c0, c1, ..


@dataclass
class Writer:
    """Lines with an indent."""

    lines: list[str] = field(default_factory=list)
    depth: int = 1
    count: int = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, text: str) -> Iterator[None]:
        self.line(text)
        self.depth += 1
        mark = len(self.lines)
        yield
        if len(self.lines) == mark:
            self.line("pass")
        self.depth -= 1

    def fresh(self, prefix: str = "x") -> str:
        self.count += 1
        return f"{prefix}{self.count}"


def assigned(lines: list[str]) -> set[str]:
    """The names that some lines of the function give another value."""
    targets = (match[1] for line in lines if (match := re.match(r" *([\w, ]+) = ", line)))
    return {name for target in targets for name in target.split(", ")}


def with_constants(text: str) -> str:
    """Typed numbers as names of the module: in the function each of them would cost the compiler time."""
    found: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        return found.setdefault(match[0], f"{match[1].upper()}_{match[2].upper()}")

    text = re.sub(r"np\.(u?int\d+)\((0x[0-9a-fA-F]+|\d+)\)", named, text)
    return "".join(f"{name} = {number}\n" for number, name in found.items()) + text
