"""Checkpoints in files: a file for each part, and a manifest that makes them one.

Below the folder that the user gave, each component has one of its own, named by what is computed. A part is a head (the
names, types and lengths of its columns) and the bytes of the columns. The manifest has the length and the checksum of
every part, the mode, and for each worker a fingerprint of its inputs; it is written under another name and renamed. So
a checkpoint is there as a whole or not at all, and serves the same program over the same rows only, in this run or a
later one. The last two are kept: if one turns out to be damaged, the other one serves.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

from emberlog.components.program import Id
from emberlog.components.shares import WorkerPlan
from emberlog.kernels.choices import Choices
from emberlog.kernels.cluster.exchange import Exchange
from emberlog.kernels.cluster.wire import DTYPES
from emberlog.kernels.columns.joins import Column
from emberlog.kernels.parts.part import EvaluatedPart
from emberlog.stats import Event
from emberlog.workers.messages import Saved
from emberlog.workers.part import Part

FORMAT = 1
KEPT = 2  # checkpoints that stay when a new one is published
HEAD_BYTES = 8  # the length of a part's head, before it
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def key_of(plan: WorkerPlan) -> str:
    """What is computed, as the name of a folder. Two programs with the same name are the same."""
    placed = plan.placed
    rules = [(r.id, r.head, r.arguments, r.body, r.contributor, r.carriers, sorted(r.moved)) for r in placed.rules]
    told = (placed.tables, placed.statics, placed.domains, rules, *map(dict, (plan.homes, plan.copies, plan.statics)))
    return sha256(repr(told).encode()).hexdigest()[:16]


def fingerprint(part: EvaluatedPart) -> str:
    """What tells the facts and statics that a worker begins with from others, in whatever order they come. Ids stand
    for values; with those of the constants they are all that the work depends on."""
    encoder = part.encoder
    told: list[object] = [
        [encoder.constant(Id(number), value) for value in domain.constants]
        for number, domain in enumerate(part.program.domains)
    ]
    inputs = [*part.statics.items(), *((table.name, part.rows(table.name)) for table in part.program.tables)]
    told += [(name, *_digest(columns)) for name, columns in sorted(inputs)]
    return sha256(repr(told).encode()).hexdigest()[:16]


def _digest(columns: Sequence[Column]) -> tuple[int, int]:
    """The number of rows, and a sum of their hashes."""
    rows = max((len(column) for column in columns), default=0)
    mixed = np.full(rows, 1, np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            if len(column):  # one that no rule reads has no values
                bits = column if column.dtype.kind == "f" else column.astype(np.int64)
                mixed = (mixed ^ (mixed >> np.uint64(29)) ^ bits.view(np.uint64)) * MULTIPLIER
        return rows, int((mixed ^ (mixed >> np.uint64(32))).sum())


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one component in a folder: a path, or an address that Arrow knows (`s3://..`)."""

    folder: str
    seconds: float

    def of(self, part: EvaluatedPart) -> PartKeeper:
        """Those of one worker, whose part has its first facts and no others."""
        return PartKeeper(self, part.rank, part.size, fingerprint(part))

    def remove(self) -> None:
        """Removes them, and the folder above if nothing else is in it."""
        files, path = self.opened()
        from pyarrow.fs import FileSelector

        with suppress(OSError):
            files.delete_dir(path)
            above = path.rpartition("/")[0]
            if above and not files.get_file_info(FileSelector(above)):
                files.delete_dir(above)

    @staticmethod
    def asked(choices: Choices, plan: WorkerPlan) -> Checkpoints | None:
        """Those that a run is to make of a component."""
        if choices.checkpoint is None:
            return None
        return Checkpoints(f"{choices.checkpoint}/{key_of(plan)}", choices.checkpoint_seconds)

    def opened(self) -> tuple[Any, str]:
        from pyarrow.fs import FileSystem

        files, path = FileSystem.from_uri(self.folder)
        return files, path


@dataclass(frozen=True)
class Found:
    """A checkpoint that serves: its number, the mode in which it was made, and the state of one part."""

    number: int
    mode: str
    derivations: int  # of all parts
    state: Mapping[str, Column] = field(repr=False)

    @property
    def event(self) -> Event:
        """What `stats` say of a run that goes on from here."""
        return Event("resumed", f"from checkpoint {self.number}: {self.derivations:,} derivations were not made again")


@dataclass
class PartKeeper:
    """Where one worker writes its part and finds it again."""

    checkpoints: Checkpoints
    rank: int
    size: int
    inputs: str
    first: int = 0
    errors: list[str] = field(default_factory=list)  # why checkpoints were not made

    @property
    def events(self) -> list[Event]:
        """What `stats` say of checkpoints that could not be made."""
        return [Event("no checkpoint", reason) for reason in dict.fromkeys(self.errors)]

    @property
    def seconds(self) -> float:
        return self.checkpoints.seconds

    def save(self, checkpoint: int, part: Part) -> Saved:
        state = part.snapshot()
        assert isinstance(state, dict)
        try:
            files, folder = self.checkpoints.opened()
            files.create_dir(folder, recursive=True)
            with files.open_output_stream(_part_path(folder, checkpoint, self.rank)) as out:
                size, crc32 = _write(out, {**state, "inputs": np.frombuffer(self.inputs.encode(), np.uint8)})
        except OSError as error:
            return Saved(checkpoint, error=f"worker {self.rank}: {error}")
        _, copied, derivations = state["counts"].tolist()
        return Saved(checkpoint, size, crc32, derivations - copied)

    def publish(self, checkpoint: int, mode: str, saved: Mapping[int, Saved]) -> None:
        failed = [one.error for one in saved.values() if one.error]
        if failed:
            self.errors.append(failed[0])
            return
        parts = [asdict(saved[rank]) for rank in range(self.size)]
        content = json.dumps({"format": FORMAT, "mode": mode, "size": self.size, "parts": parts})
        try:
            files, folder = self.checkpoints.opened()
            draft, path = f"{folder}/.{checkpoint}.json", f"{folder}/{checkpoint}.json"
            with files.open_output_stream(draft) as out:
                out.write(json.dumps({"crc32": zlib.crc32(content.encode()), "content": content}).encode())
            files.move(draft, path)
            for old in [number for number in self._numbers() if number <= checkpoint - KEPT]:
                self._drop(old)
        except OSError as error:
            self.errors.append(str(error))

    def found(self) -> dict[int, Found]:
        """The checkpoints that serve this worker, by number. Those of other rows, other numbers of workers, and those
        whose files are not what was written, do not."""
        try:
            numbers = self._numbers()
        except OSError:
            numbers = []
        self.first = max(numbers, default=-1) + 1
        candidates = ((number, self._read(number)) for number in numbers)
        return {number: found for number, found in candidates if found is not None}

    def _numbers(self) -> list[int]:
        """The numbers of all manifests."""
        from pyarrow.fs import FileSelector

        files, folder = self.checkpoints.opened()
        names = [info.base_name for info in files.get_file_info(FileSelector(folder, allow_not_found=True))]
        return sorted(int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdigit())

    def _read(self, number: int) -> Found | None:
        files, folder = self.checkpoints.opened()
        try:
            outer = json.loads(files.open_input_stream(f"{folder}/{number}.json").read())
            content = json.loads(outer["content"])
            if outer["crc32"] != zlib.crc32(outer["content"].encode()) or content["format"] != FORMAT:
                return None
            if content["size"] != self.size:
                return None
            saved = [Saved(**part) for part in content["parts"]]
            data = files.open_input_stream(_part_path(folder, number, self.rank)).read()
            own = saved[self.rank]
            if len(data) != own.bytes or zlib.crc32(data) != own.crc32:
                return None
            state = _state(data)
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            return None
        if state.pop("inputs").tobytes() != self.inputs.encode():
            return None
        return Found(number, str(content["mode"]), sum(one.derivations for one in saved), state)

    def _drop(self, number: int) -> None:
        """Removes a checkpoint, its manifest first."""
        files, folder = self.checkpoints.opened()
        for path in (f"{folder}/{number}.json", *(_part_path(folder, number, rank) for rank in range(self.size))):
            with suppress(OSError):
                files.delete_file(path)


def latest(found: Sequence[Mapping[int, Found]]) -> list[Found]:
    """Of the checkpoints that serve each worker the last one that serves all; nothing if there is none."""
    common = set.intersection(*(set(one) for one in found))
    return [one[max(common)] for one in found] if common else []


def latest_of_all(found: Mapping[int, Found], exchange: Exchange) -> Found | None:
    """The same where workers are different processes, for one of them."""
    received, _ = exchange.swap([[np.array(sorted(found), np.int64)]] * exchange.size)
    common = set.intersection(*(set(numbers.tolist()) for (numbers,) in received))
    return found[max(common)] if common else None


def _part_path(folder: str, checkpoint: int, rank: int) -> str:
    return f"{folder}/{checkpoint}-{rank}.part"


def _write(out: Any, state: Mapping[str, Column]) -> tuple[int, int]:
    """Writes columns; the bytes that were written, and their checksum."""
    head = json.dumps([(name, column.dtype.str, len(column)) for name, column in state.items()]).encode()
    size, crc32 = 0, 0
    columns = (np.ascontiguousarray(column).data.cast("B") for column in state.values() if len(column))
    for data in (memoryview(len(head).to_bytes(HEAD_BYTES, "little")), memoryview(head), *columns):
        out.write(data)
        size += data.nbytes
        crc32 = zlib.crc32(data, crc32)
    return size, crc32


def _state(data: bytes) -> dict[str, Column]:
    """The columns that `_write` wrote. Raises ValueError for anything else."""
    start = HEAD_BYTES + int.from_bytes(data[:HEAD_BYTES], "little")
    found = {}
    for name, dtype, length in json.loads(data[HEAD_BYTES:start]):
        if dtype not in DTYPES:
            raise ValueError(f"a column of type {dtype}")
        found[str(name)] = np.frombuffer(data, dtype, length, start).copy()
        start += found[name].nbytes
    return found
