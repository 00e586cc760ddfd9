"""What a run left in its directory: the parts of each relation, published at once and checked when they are read.

Workers write into folders of their attempt, and an attempt may fail halfway. What counts is what the manifest lists.
"""

from __future__ import annotations

import json
import secrets
import shutil
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from emberlog.diagnostics import ExecutionError
from emberlog.kernels.cluster.meeting import write_at_once
from emberlog.kernels.cluster.parts import Kinds, Part

MANIFEST = "manifest.json"
FORMAT = 1
SQL_TYPES = {"int64": "bigint", "float64": "double"}


@dataclass(frozen=True)
class Manifest:
    """The relations that a run computed, and the files that hold them."""

    run_dir: Path
    relations: Mapping[str, Kinds]
    parts: tuple[Part, ...]

    def of(self, relation: str) -> list[Part]:
        return [part for part in self.parts if part.relation == relation]

    def rows(self, relation: str) -> int:
        return sum(part.rows for part in self.of(relation))

    def paths(self, relation: str) -> list[Path]:
        return [self.run_dir / part.path for part in self.of(relation)]

    def check(self, relation: str, verify: bool = False) -> None:
        """Raises when a file is missing or not the one that was written; `verify` reads every byte."""
        for part in self.of(relation):
            path = self.run_dir / part.path
            size = path.stat().st_size if path.exists() else None
            if size is None:
                raise ExecutionError(f"a part of `{relation}` is gone: {path}")
            if size != part.bytes or (verify and checksum(path) != part.crc32):
                raise ExecutionError(f"a part of `{relation}` is not what was written: {path}")


def publish(manifest: Manifest) -> Path:
    """Writes the manifest into the run's directory, all or nothing."""
    content = json.dumps(
        {
            "format": FORMAT,
            "relations": manifest.relations,
            "parts": [asdict(part) for part in manifest.parts],
        }
    )
    path = manifest.run_dir / MANIFEST
    write_at_once(path, json.dumps({"crc32": zlib.crc32(content.encode()), "content": content}))
    return path


def load(run_dir: Path) -> Manifest:
    """The manifest of a run."""
    path = run_dir / MANIFEST
    try:
        outer = json.loads(path.read_text())
        content = json.loads(outer["content"])
        if outer["crc32"] != zlib.crc32(outer["content"].encode()) or content["format"] != FORMAT:
            raise ValueError("its checksum or format is another")
        relations = {name: tuple(kinds) for name, kinds in content["relations"].items()}
        return Manifest(run_dir, relations, tuple(Part(**part) for part in content["parts"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExecutionError(f"{path} is not the manifest of a run: {error}") from error


def read_parts(session: Any, manifest: Manifest, relation: str, verify: bool = False) -> Any:
    """A relation as a DataFrame with the columns `c0`, `c1`, .., read when it is used."""
    manifest.check(relation, verify)
    kinds, parts = manifest.relations[relation], manifest.of(relation)
    plain = [f"c{i}" for i in range(len(kinds))]
    if not parts:
        return session.createDataFrame([], sql_schema(plain, kinds))
    paths = [path.as_uri() for path in manifest.paths(relation)]
    return session.read.schema(sql_schema(parts[0].names or plain, kinds)).parquet(*paths).toDF(*plain)


def sql_schema(names: Sequence[str], kinds: Sequence[str]) -> str:
    return ", ".join(f"`{name}` {SQL_TYPES[kind]}" for name, kind in zip(names, kinds, strict=True))


def hand_out(manifest: Manifest, relation: str, names: Sequence[str], target: Path) -> bool:
    """Makes a folder of the files that hold a relation, if their columns have these names; they are not copied where
    the file system can give a file a second name. False where there are no such files."""
    parts = manifest.of(relation)
    if not parts or any(part.names != list(names) for part in parts):
        return False
    manifest.check(relation)
    made = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
    made.mkdir(parents=True)
    try:
        for number, path in enumerate(manifest.paths(relation)):
            _link(path, made / f"part-{number:05}.parquet")
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
        made.rename(target)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return True


def _link(path: Path, target: Path) -> None:
    try:
        target.hardlink_to(path)
    except OSError:  # on another file system, or on one without such names
        shutil.copyfile(path, target)


def checksum(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            value = zlib.crc32(block, value)
    return value
