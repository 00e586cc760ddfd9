"""What methods keep beside the rows of their relations, as tables: so it goes into files and comes back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from emberlog.analysis.program import Signature
from emberlog.maintain.ordinary import canonical_list, table
from emberlog.maintain.store import Row
from emberlog.types import Column, Type

Tables: TypeAlias = Mapping[str, pa.Table]


@runtime_checkable
class Saves(Protocol):
    """A method whose memory can be saved. One that is no such begins anew where others are loaded."""

    def save(self) -> Tables:
        """What is kept beside the rows of relations."""

    def load(self, tables: Tables) -> None:
        """Takes what `save` gave, when the relations have their rows."""


def kept_table(types: Sequence[Type], found: Iterable[Row]) -> pa.Table:
    """Rows of values of these types as a table."""
    return table([Column(f"c{i}", kind) for i, kind in enumerate(types)], found)


def kept_rows(found: pa.Table) -> list[Row]:
    """The rows of a table that `kept_table` made."""
    return canonical_list(found)


def group_types(signature: Signature) -> tuple[Type, ...]:
    """The types of the columns that are not aggregated."""
    return tuple(signature.columns[i].type for i in signature.groups)
