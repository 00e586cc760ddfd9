"""Changes as records of the log: the rows of inputs that came and went, the batch that they are, the program after a
change of rules.

A record is the length of its heading (4 bytes), the heading (JSON), and the rows of each relation as a stream of Arrow.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from emberlog.maintain.changes import Edit
from emberlog.maintain.ordinary import canonical_list, table
from emberlog.maintain.store import Row
from emberlog.types import Column

_LENGTH = 4


@dataclass(frozen=True, slots=True)
class Rules:
    """The program after a change of rules, the predicates that rules were added for, and the text that the view is
    opened with."""

    first: str
    program: str
    added: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """A committed change. Its edit is net: a row that comes was not there, one that goes was. `batches` are the numbers
    of the batches that it is, by stream."""

    edit: Edit = field(default_factory=Edit)
    batches: Mapping[str, int] = field(default_factory=dict)
    rules: Rules | None = None

    def __bool__(self) -> bool:
        """True if there is something to remember."""
        return bool(self.edit.delete or self.edit.insert or self.batches or self.rules)

    def encode(self, columns: Mapping[str, tuple[Column, ...]]) -> bytes:
        """The record as bytes; `columns` are those of the relations in its edit."""
        heading: dict[str, Any] = {"rows": []}
        bodies: list[bytes] = []
        for sign, edited in ((-1, self.edit.delete), (1, self.edit.insert)):
            for name, rows in edited.items():
                found = list(rows)
                body = _stream(columns[name], found)
                heading["rows"].append([name, sign, len(found), len(body)])
                bodies.append(body)
        if self.batches:
            heading["batches"] = dict(self.batches)
        if self.rules is not None:
            heading["rules"] = asdict(self.rules)
        text = json.dumps(heading).encode()
        return b"".join((len(text).to_bytes(_LENGTH, "little"), text, *bodies))

    @staticmethod
    def decode(data: bytes) -> Record:
        """The record that `encode` made these bytes of."""
        begin = _LENGTH + int.from_bytes(data[:_LENGTH], "little")
        heading = json.loads(data[_LENGTH:begin])
        delete: dict[str, Collection[Row]] = {}
        insert: dict[str, Collection[Row]] = {}
        for name, sign, count, size in heading["rows"]:
            rows = _rows(data[begin : begin + size], count)
            (insert if sign > 0 else delete)[name] = rows
            begin += size
        rules = heading.get("rules")
        if rules is not None:
            rules = Rules(rules["first"], rules["program"], tuple(rules["added"]))
        return Record(Edit(delete, insert), heading.get("batches", {}), rules)


def _stream(columns: tuple[Column, ...], rows: list[Row]) -> bytes:
    if not columns:
        return b""
    found = table(columns, rows)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, found.schema) as writer:
        writer.write_table(found)
    whole: bytes = sink.getvalue().to_pybytes()
    return whole


def _rows(body: bytes, count: int) -> list[Row]:
    return canonical_list(pa.ipc.open_stream(body).read_all()) if body else [()] * count


def merged(records: Iterable[Record]) -> Iterator[Record]:
    """Records that do the same: changes of rows that follow each other are one."""
    signs: dict[str, dict[Row, int]] = {}
    batches: dict[str, int] = {}
    for record in records:
        if record.rules is not None:
            yield Record(_edit(signs), batches)
            signs, batches = {}, {}
            yield record
            continue
        batches.update(record.batches)
        for sign, edited in ((-1, record.edit.delete), (1, record.edit.insert)):
            for name, rows in edited.items():
                signs.setdefault(name, {}).update(dict.fromkeys(rows, sign))
    if signs or batches:
        yield Record(_edit(signs), batches)


def _edit(signs: Mapping[str, Mapping[Row, int]]) -> Edit:
    """The last sign of each row counts."""
    return Edit(
        {name: [row for row, sign in rows.items() if sign < 0] for name, rows in signs.items()},
        {name: [row for row, sign in rows.items() if sign > 0] for name, rows in signs.items()},
    )
