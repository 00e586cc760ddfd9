"""A view that lives in its process alone: the interface of a folder, without one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from emberlog.maintain.durable.manifest import Manifest
from emberlog.maintain.durable.records import Record
from emberlog.types import Column


class Unsaved:
    """Counts changes; there is nothing to come back to."""

    manifest: Manifest | None = None
    path = None
    outgrown = False

    def __init__(self) -> None:
        self.position = 0

    def commit(self, record: Record, columns: Mapping[str, tuple[Column, ...]]) -> None:
        self.position += 1

    def touch(self, changed: Collection[str]) -> None:
        return

    def take_back(self) -> None:
        return

    @contextmanager
    def together(self) -> Iterator[None]:
        yield

    def close(self) -> None:
        return
