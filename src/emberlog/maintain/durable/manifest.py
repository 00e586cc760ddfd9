"""The manifest: what a folder holds, as one file that is replaced whole."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from emberlog.analysis.typenames import built_in_type
from emberlog.diagnostics import UsageError, cannot_write
from emberlog.maintain.durable.log import damaged
from emberlog.types import Column, Type

NAME = "manifest.json"
FORMAT = 1


@dataclass(frozen=True)
class SavedTask:
    """A task as it was saved: what it was made from, its method, and why it was recomputed if it was."""

    shape: str
    method: str
    why: str


@dataclass(frozen=True)
class SavedTable:
    """A file with a table, and the checksum (CRC-32) of its bytes."""

    file: str
    checksum: int


@dataclass(frozen=True)
class Manifest:
    """A snapshot. `first` is the program that the view was made with, `program` the one that it has now; `inputs` are
    the columns of its inputs, by name and type; `batches` the last batch of each stream; `parts` the tables, by
    part and name."""

    emberlog: str
    first: str
    program: str
    added: tuple[str, ...]
    params: str
    batches: Mapping[str, int]
    inputs: Mapping[str, tuple[tuple[str, str], ...]]
    tasks: Mapping[str, SavedTask]
    generation: int = 0
    parts: Mapping[str, Mapping[str, SavedTable]] = field(default_factory=dict)

    @property
    def log(self) -> str:
        """The name of the file with the changes since the snapshot."""
        return f"log-{self.generation:08}"

    @property
    def files(self) -> frozenset[str]:
        """The files of the folder that are in use."""
        return frozenset({self.log, *(table.file for part in self.parts.values() for table in part.values())})

    def columns(self) -> dict[str, tuple[Column, ...]]:
        """The columns of the inputs."""
        return {
            name: tuple(Column(column, _type(kind)) for column, kind in columns)
            for name, columns in self.inputs.items()
        }


def _type(name: str) -> Type:
    found = built_in_type(name)
    assert found is not None, "types are saved by their built-in names"
    return found


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder; None if it has none."""
    path = folder / NAME
    try:
        whole = json.loads(path.read_bytes())
        if whole["format"] != FORMAT:
            raise UsageError(
                f"{path} has the format {whole['format']}; this version of Emberlog reads the format {FORMAT}"
            )
        body = whole["body"]
        if zlib.crc32(_text(body)) != whole["checksum"]:
            raise damaged(path, "its checksum is wrong")
        return _manifest(body)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise damaged(path, f"it cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(path, "it is no manifest") from error


def _manifest(body: dict[str, Any]) -> Manifest:
    tasks = {name: SavedTask(**task) for name, task in body["tasks"].items()}
    inputs = {name: tuple((column, kind) for column, kind in columns) for name, columns in body["inputs"].items()}
    parts = {
        part: {name: SavedTable(**table) for name, table in tables.items()} for part, tables in body["parts"].items()
    }
    return Manifest(**{**body, "added": tuple(body["added"]), "tasks": tasks, "inputs": inputs, "parts": parts})


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Makes this the manifest of a folder: after a crash there is the old one or this one."""
    body = asdict(manifest)
    text = json.dumps({"format": FORMAT, "checksum": zlib.crc32(_text(body)), "body": body})
    path, scratch = folder / NAME, folder / f"{NAME}.new"
    try:
        with scratch.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(folder)  # the files that it speaks of have their names
        scratch.replace(path)
        sync_folder(folder)
    except OSError as error:
        raise cannot_write(path, error) from error


def sync_folder(folder: Path) -> None:
    """Forces the names of the files in a folder to disk."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _text(body: Any) -> bytes:
    return json.dumps(body, sort_keys=True).encode()
