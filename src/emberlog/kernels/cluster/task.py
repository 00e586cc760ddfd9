"""What runs in a barrier task: find the other workers, read the share, work, tell what came of it.

A worker's failure is an answer too, and the task ends well: Spark would else start all tasks again, several times.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from emberlog.diagnostics import EmberlogError, ExecutionError
from emberlog.kernels.cluster.exchange import Array, PeerGone, PeerLost
from emberlog.kernels.cluster.inputs import Share, read_share, take_tagged
from emberlog.kernels.cluster.links import Links, Patience, open_links
from emberlog.kernels.cluster.meeting import Meeting, meet_in
from emberlog.kernels.cluster.parts import Kinds, Output, Part

WORKERS = "workers"  # the folder below the run's directory where workers meet and leave results, the first time
LOST = "the process of a worker died"
GONE = "a worker of Emberlog is gone"  # how the driver finds in Spark's error what a worker noticed
LONGEST_SOCKET = 90  # characters of the path of a folder for sockets: the system takes 107 with the name


class Worker(Protocol):
    """What is run. It is pickled; everything that it needs comes as arguments: `links` to the other workers (None if
    there are none), and where its results go. Returns what the driver shall know."""

    def __call__(
        self, rank: int, size: int, inputs: dict[str, list[Array]], links: Links | None, output: Output, /
    ) -> bytes: ...


@dataclass(frozen=True)
class Assignment:
    """What every task of a run is told."""

    run: str
    worker: Worker
    size: int
    run_dir: str | None  # None when tasks do not see the driver's files
    shares: Mapping[str, Share]  # where to read relations, when they come through files
    tagged: Mapping[str, Kinds]  # the relations of the tagged frame, when they come through Spark
    outputs: Mapping[str, Kinds]
    patience: Patience
    transport: str = "auto"  # or ipc, tcp
    folder: str = WORKERS


@dataclass(frozen=True)
class Report:
    """A worker's answer, as it travels. `error` is set when it failed."""

    rank: int
    host: str
    summary: bytes = b""
    parts: tuple[Part, ...] = ()
    seconds: float = 0.0  # of the worker itself
    reading: float = 0.0  # seconds until its inputs were there
    bytes_sent: int = 0
    error: str | None = None
    because_of_peer: bool = False  # failed only because another did
    raised: bytes = b""  # the error itself, where it is one of ours

    def encode(self) -> tuple[str, bytes, bytes]:
        head = asdict(self)
        return json.dumps(head | {"summary": None, "raised": None}), self.summary, self.raised


def decode_report(head: str, summary: bytes, raised: bytes) -> Report:
    found = json.loads(head)
    parts = tuple(Part(**part) for part in found.pop("parts"))
    return Report(**{**found, "parts": parts, "summary": summary, "raised": raised})


Send = Callable[[Report, Path, Mapping[str, Kinds]], Iterator[Any]]


def run_task(job: Assignment, batches: Iterable[Any], send: Send) -> Iterator[Any]:
    """One barrier task. `send` makes the record batches that go back, see `returned`."""
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    rank, hosts = context.partitionId(), [info.address.rpartition(":")[0] for info in context.getTaskInfos()]
    if len(hosts) != job.size:
        raise RuntimeError(f"{len(hosts)} tasks were started for {job.size} workers")
    scratch = None if job.run_dir else Path(tempfile.mkdtemp(prefix="emberlog-"))
    place = (scratch or Path(job.run_dir or "")) / job.folder
    try:
        report = _work(job, Post(rank, hosts, place), context, batches)
        yield from send(report, place.parent, job.outputs)
    finally:
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)


@dataclass(frozen=True)
class Post:
    """Where a worker stands: its rank, the hosts of all, the folder for what they share and leave."""

    rank: int
    hosts: list[str]
    place: Path


def _work(job: Assignment, post: Post, context: Any, batches: Iterable[Any]) -> Report:
    host, folder = socket.gethostname(), post.place / f"worker-{post.rank}"
    post.place.mkdir(mode=0o700, exist_ok=True)
    try:
        folder.mkdir()
    except FileExistsError:
        # Spark starts all tasks anew when the process of one has died.
        return Report(post.rank, host, error=LOST, because_of_peer=True)
    output = Output(folder, post.place.parent, dict(job.outputs), post.hosts.count(post.hosts[post.rank]))
    meeting = meet_in(post.place, post.rank, job.size, job.patience.connect) if job.run_dir else context.allGather
    try:
        with _links(job, post, meeting) as links, _telling(links):
            return _evaluate(job, post.rank, host, links, batches, output)
    except PeerGone as error:
        # The task fails, so that Spark ends those of processes that answer no more.
        raise RuntimeError(f"{GONE}: {error.message}") from error
    except Exception as error:
        with suppress(Exception):  # let go of its files; nobody reads them
            output.finish()
        return _failure(post.rank, host, error)


def _evaluate(
    job: Assignment, rank: int, host: str, links: Links | None, batches: Iterable[Any], output: Output
) -> Report:
    started = perf_counter()
    inputs = {name: read_share(share, rank, job.size) for name, share in job.shares.items()}
    inputs |= take_tagged(batches, job.tagged)
    ready = perf_counter()
    summary = job.worker(rank, job.size, inputs, links, output)
    parts = output.finish()
    sent = 0 if links is None else links.bytes_sent
    return Report(rank, host, summary, parts, perf_counter() - ready, ready - started, sent)


@contextmanager
def _telling(links: Links | None) -> Iterator[None]:
    """Tells the other workers when this one fails."""
    try:
        yield
    except Exception as error:
        if links is not None:
            with suppress(Exception):
                links.abort(_text(error))
        raise


@contextmanager
def _links(job: Assignment, post: Post, meeting: Meeting) -> Iterator[Links | None]:
    """The connections with the others: over ipc when all are on one host."""
    if job.size == 1:
        yield None
        return
    folder = None
    if job.transport == "ipc" or (job.transport == "auto" and len(set(post.hosts)) == 1):
        folder = _socket_folder(job, post.place)
    links = Links(post.rank, job.size, folder or post.hosts[post.rank], job.run, job.patience)
    try:
        open_links(links, meeting)
        _leave_folder(folder, post)
        yield links
    finally:
        links.close()
        _leave_folder(folder, post)


def _leave_folder(folder: Path | None, post: Post) -> None:
    """Removes a folder that is for sockets only, once the sockets of all workers are gone from it: as soon as they are
    connected, so that nothing is left of workers that are killed."""
    if folder is not None and folder != post.place:
        with suppress(OSError):
            folder.rmdir()


def socket_folder(run: str) -> Path:
    """Where the sockets of a run lie if the run's own folder cannot have them."""
    return Path(tempfile.gettempdir()) / f"emberlog-{run}"


def _socket_folder(job: Assignment, place: Path) -> Path:
    """A folder that only this user may enter, with a path short enough for sockets."""
    folder = place
    if not job.run_dir or len(str(place)) > LONGEST_SOCKET:
        folder = socket_folder(job.run)
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise ExecutionError(f"{folder} is open to other users, so workers cannot talk in it")
    return folder


def _failure(rank: int, host: str, error: Exception) -> Report:
    peer = isinstance(error, PeerLost)
    raised = b""
    if isinstance(error, EmberlogError) and not peer:
        with suppress(Exception):  # an error that cannot travel is told as text
            pickled = pickle.dumps(error)
            pickle.loads(pickled)
            raised = pickled
    return Report(rank, host, error=_text(error), because_of_peer=peer, raised=raised)


def _text(error: Exception) -> str:
    return error.message if isinstance(error, EmberlogError) else f"{type(error).__name__}: {error}"
