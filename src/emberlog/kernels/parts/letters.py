"""The messages of workers as bytes: a head of fixed form, then the columns of facts.

A head has the kind of the message, the sender's epoch and clock, and the numbers of its body. Facts announce rows by
the number of their table; types and numbers of columns follow from the program, which both sides have. Nothing that
comes in is executed, looked up by a name or believed: a head of another form, a table that there is not, a text that
is no mode, more than `MOST_BYTES` of facts are a `WireError`, before memory is taken for what was announced.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from emberlog.components.program import Table
from emberlog.diagnostics import UsageError
from emberlog.kernels.cluster.exchange import Array
from emberlog.kernels.cluster.wire import WireError
from emberlog.kernels.columns.joins import Column
from emberlog.kernels.parts.parcels import Rows
from emberlog.workers.messages import (
    Answer,
    Body,
    End,
    Facts,
    Halt,
    Halted,
    Message,
    Poll,
    Release,
    Report,
    Save,
    Saved,
    Tick,
)
from emberlog.workers.modes import mode_of

LETTER = b"m"  # the first byte of a message
HEAD = struct.Struct("<cBqq")  # that byte, the kind of the body, epoch, clock
ANNOUNCED = struct.Struct("<HQ")  # facts: a table, how many rows
MOST_BYTES = 1 << 26  # of the facts of one message; what is more travels in several

# The bodies other than facts, in the order of their kinds, and their fields. A text ends at its first zero.
CONTROLS: tuple[tuple[type[Any], struct.Struct], ...] = (
    (Tick, struct.Struct("<?")),
    (Report, struct.Struct("<qqqddd")),
    (Poll, struct.Struct("<q")),
    (Answer, struct.Struct("<qqq?")),
    (Release, struct.Struct("<q120s")),
    (End, struct.Struct("<")),
    (Halt, struct.Struct("<q")),
    (Halted, struct.Struct("<qqq?")),
    (Save, struct.Struct("<q")),
    (Saved, struct.Struct("<qqqq200s")),
)
KINDS = {body: kind for kind, (body, _) in enumerate(CONTROLS)}
FACTS = len(CONTROLS)


@dataclass(frozen=True, slots=True)
class Letter:
    """The head of a message that has come. Facts are complete with their columns."""

    sender: int
    epoch: int
    clock: int
    body: Body | None  # None for facts
    tables: tuple[tuple[Table, int], ...] = ()  # of facts: how many rows

    @property
    def arrays(self) -> list[tuple[str, int]]:
        return [(dtype, rows) for table, rows in self.tables for dtype in dtypes(table)]

    def message(self, arrays: Sequence[Array]) -> Message:
        if self.body is not None:
            return Message(self.sender, self.epoch, self.clock, self.body)
        columns = iter(arrays)
        rows = {table.name: [next(columns) for _ in table.kinds] for table, _ in self.tables}
        return Message(self.sender, self.epoch, self.clock, Facts(Rows(rows)))


@dataclass(frozen=True)
class Letters:
    """Writes and reads the messages of workers that have these tables."""

    tables: Sequence[Table]

    def encode(self, message: Message) -> Iterator[tuple[bytes, list[Array]]]:
        """Heads with their columns: one, or several for many facts."""
        body = message.body
        if not isinstance(body, Facts):
            kind = KINDS[type(body)]
            fields = [_plain(value) for value in astuple(body)]
            yield self._head(message, kind) + CONTROLS[kind][1].pack(*fields), []
            return
        assert isinstance(body.parcel, Rows)
        for rows in _pieces(body.parcel):
            announced, arrays = [], []
            for number, table in enumerate(self.tables):
                if table.name in rows:
                    columns = rows[table.name]
                    announced.append(ANNOUNCED.pack(number, len(columns[0])))
                    arrays += [
                        np.ascontiguousarray(column, dtype)
                        for column, dtype in zip(columns, dtypes(table), strict=True)
                    ]
            yield self._head(message, FACTS) + b"".join(announced), arrays

    def _head(self, message: Message, kind: int) -> bytes:
        return HEAD.pack(LETTER, kind, message.epoch, message.clock)

    def decode(self, sender: int, head: bytes) -> Letter:
        """A head that has come, checked."""
        if head[:1] != LETTER or len(head) < HEAD.size:
            raise WireError("it is not the head of a message")
        _, kind, epoch, clock = HEAD.unpack_from(head)
        if epoch < 0 or clock < 0:
            raise WireError("its epoch or clock is negative")
        rest = head[HEAD.size :]
        if kind == FACTS:
            return Letter(sender, epoch, clock, None, self._announced(rest))
        if kind > FACTS or len(rest) != CONTROLS[kind][1].size:
            raise WireError("its body has another form")
        return Letter(sender, epoch, clock, _body(kind, rest))

    def _announced(self, rest: bytes) -> tuple[tuple[Table, int], ...]:
        if len(rest) % ANNOUNCED.size or len(rest) > ANNOUNCED.size * len(self.tables):
            raise WireError("its body has another form")
        found = []
        volume = 0
        for number, rows in ANNOUNCED.iter_unpack(rest):
            if number >= len(self.tables):
                raise WireError(f"it has facts of table {number}, and there are {len(self.tables)}")
            found.append((self.tables[number], rows))
            volume += 8 * rows * len(self.tables[number].kinds)
        if volume > MOST_BYTES + 8 * sum(len(table.kinds) for table in self.tables):
            raise WireError(f"it announces {volume:,} bytes of facts, and at most {MOST_BYTES:,} travel at once")
        if len({table.name for table, _ in found}) != len(found):
            raise WireError("it has the facts of a table twice")
        return tuple(found)


def dtypes(table: Table) -> list[str]:
    """The types of a table's columns as they travel."""
    return ["<f8" if kind == "float" else "<i8" for kind in table.kinds]


def _plain(value: object) -> Any:
    """A field as it is packed: texts as bytes, no mode as an empty one."""
    if value is None:
        return b""
    return value.encode()[:119] if isinstance(value, str) else value


def _body(kind: int, rest: bytes) -> Body:
    body, form = CONTROLS[kind]
    fields: list[Any] = list(form.unpack(rest))
    if any(isinstance(field, int | float) and not field >= 0 for field in fields):
        raise WireError("a number of its body is negative, or none")
    if body is Release:
        fields[1] = _mode(fields[1])
    if body is Saved:
        fields[-1] = fields[-1].rstrip(b"\0").decode(errors="replace")
    made: Body = body(*fields)
    return made


def _mode(text: bytes) -> str | None:
    """The mode in which the next epoch runs; None for the same as before."""
    name = text.rstrip(b"\0").decode("ascii", errors="replace")
    try:
        mode_of(name or "bsp")
    except UsageError as error:
        raise WireError(error.message) from error
    return name or None


def _pieces(parcel: Rows) -> Iterator[dict[str, Sequence[Column]]]:
    """The facts in pieces of at most `MOST_BYTES`; small tables travel together."""
    gathered: dict[str, Sequence[Column]] = {}
    room = MOST_BYTES
    for name, columns in parcel.tables.items():
        start, length, width = 0, len(columns[0]), 8 * len(columns)
        while start < length:
            stop = min(length, start + max(room // width, 1))
            gathered[name] = [column[start:stop] for column in columns]
            room -= width * (stop - start)
            start = stop
            if room < width:
                yield gathered
                gathered, room = {}, MOST_BYTES
    if gathered:
        yield gathered
