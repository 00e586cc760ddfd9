"""Starts workers as the barrier tasks of one Spark job and brings back what they made.

`run_workers` is the whole way: look at the cluster, bring the inputs, run the job once, publish the results. Only the
DataFrame API is used, so classic sessions and Spark Connect both work.
"""

from __future__ import annotations

import pickle
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import Any, Literal

from emberlog.causes import cause_of
from emberlog.diagnostics import EmberlogError, ExecutionError
from emberlog.kernels.cluster.inputs import Input, tagged_frame, write_input
from emberlog.kernels.cluster.links import Patience
from emberlog.kernels.cluster.manifest import Manifest, publish, read_parts
from emberlog.kernels.cluster.parts import Kinds, Part
from emberlog.kernels.cluster.probe import PACKAGE, Cluster, Unavailable, check_slots, forget, look_at
from emberlog.kernels.cluster.returned import REPORT_SCHEMA, returned_schema, rows_of, send_report, send_rows
from emberlog.kernels.cluster.task import GONE, LOST, WORKERS, Assignment, Report, Worker, decode_report, socket_folder
from emberlog.sessions import TaggedJobs

Transfer = Literal["auto", "files", "shuffle", "shares"]
Transport = Literal["auto", "ipc", "tcp"]

# How Spark says that it will not start the tasks of a barrier job together, and that a process of Python died.
REFUSED = re.compile(r"SPARK-24819|SPARK-24820|SPARK-24821|SPARK-24942|Barrier execution mode does not")
DIED = re.compile(r"Python worker exited unexpectedly|ExecutorLostFailure")


NOTICED = re.compile(rf"{GONE}: ([^\n]*)")
ATTEMPTS = 3  # how often a job is submitted that loses workers


class WorkerLost(ExecutionError):
    """The process of a worker died, or answers no more."""


@dataclass(frozen=True)
class Setup:
    """How workers are run, apart from what they do."""

    # How rows come and go: by files where driver and workers share them (auto), else through Spark. As shares they
    # come through Spark, so that each worker receives its own only, and go by files where these are shared.
    transfer: Transfer = "auto"
    transport: Transport = "auto"  # ipc when all workers are on one host, else tcp
    start_within: float = 60.0  # seconds until the workers must have started
    patience: Patience = field(default_factory=Patience)
    what: str = ""  # what the workers compute, for errors


@dataclass(frozen=True)
class Finished:
    """What the workers of a run made. `frame` reads rows where they lie; counts cost nothing."""

    reports: tuple[Report, ...]  # by rank
    relations: Mapping[str, Kinds]
    seconds: Mapping[str, float]  # by phase: probe, inputs, job
    manifest: Manifest | None  # None when rows came back through Spark
    returned: Any = None  # the DataFrame that they came back in
    losses: tuple[str, ...] = ()  # how workers were lost, each time that the job was submitted again

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(part for report in self.reports for part in report.parts)

    def rows(self, relation: str) -> int:
        return sum(part.rows for part in self.parts if part.relation == relation)

    def frame(self, session: Any, relation: str) -> Any:
        """A relation as a DataFrame with the columns `c0`, `c1`, .."""
        if self.manifest is not None:
            return read_parts(session, self.manifest, relation)
        return rows_of(self.returned, relation, self.relations)


def run_workers(
    session: Any,
    inputs: Mapping[str, Input],
    worker: Worker,
    size: int,
    run_dir: Path,
    outputs: Mapping[str, Kinds],
    setup: Setup | None = None,
) -> Finished:
    """Runs `size` workers at once inside Spark, each with its share of the inputs, and waits for all.

    `outputs` are the relations that they write, and `run_dir` an empty directory for them. Raises `Unavailable` when
    the session cannot run them, an error of ours that a worker raised as it is, and `ExecutionError` for all else.
    """
    setup = setup or Setup()
    run_dir = run_dir.absolute()
    run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    clock = _Clock()
    cluster = look_at(session, run_dir)
    check_slots(session, cluster, size)
    clock.lap("probe")
    try:
        with _spark_errors(session, setup):
            frame, job = _assignment(session, cluster, inputs, worker, size, run_dir, outputs, setup)
        clock.lap("inputs")
        returned, reports, losses = _attempts(session, frame, job, setup)
        clock.lap("job")
    except BaseException:
        _clear(run_dir, ())
        raise
    parts = tuple(part for report in reports for part in report.parts)
    manifest = Manifest(run_dir, dict(outputs), parts) if job.run_dir else None
    if manifest is not None:
        publish(manifest)
    _clear(run_dir, parts)
    return Finished(reports, dict(outputs), clock.laps, manifest, returned, losses)


def _assignment(
    session: Any,
    cluster: Cluster,
    inputs: Mapping[str, Input],
    worker: Worker,
    size: int,
    run_dir: Path,
    outputs: Mapping[str, Kinds],
    setup: Setup,
) -> tuple[Any, Assignment]:
    """The DataFrame that starts the tasks, and what they are told."""
    if setup.transfer == "files" and not cluster.shared:
        raise ExecutionError(f"the tasks of this session do not see {run_dir}")
    through_files = cluster.shared and setup.transfer in ("auto", "files")
    shares, tagged = {}, {}
    if through_files:
        # A range has the asked-for partitions without a shuffle, so the tasks start at once.
        frame = session.range(0, size, 1, size)
        for number, (name, given) in enumerate(inputs.items()):
            shares[name] = write_input(given, run_dir / "inputs" / f"r{number}")
    else:
        frame = tagged_frame(session, inputs, size)
        tagged = {name: given.kinds for name, given in inputs.items()}
    place = str(run_dir) if cluster.shared and setup.transfer != "shuffle" else None
    run = secrets.token_hex(8)
    job = Assignment(run, worker, size, place, shares, tagged, outputs, setup.patience, setup.transport)
    return frame, job


def _attempts(
    session: Any, frame: Any, job: Assignment, setup: Setup
) -> tuple[Any, tuple[Report, ...], tuple[str, ...]]:
    """Runs the job; when a worker is lost it is submitted again, as a local session retries nothing. Each time workers
    have a folder of their own: those of the last time may not have ended yet. Also, how workers were lost."""
    losses: tuple[str, ...] = ()
    while True:
        sockets = socket_folder(job.run)
        try:
            with _spark_errors(session, setup):
                returned, rows = _run(session, frame, job, setup)
            return returned, _checked(rows, job.size), losses
        except WorkerLost as error:
            losses += (error.message,)
            if len(losses) == ATTEMPTS:
                raise
            job = replace(job, run=secrets.token_hex(8), folder=f"{WORKERS}-{len(losses) + 1}")
        finally:
            # Of workers on this machine that were killed while they were about to connect.
            shutil.rmtree(sockets, ignore_errors=True)


def _run(session: Any, frame: Any, job: Assignment, setup: Setup) -> tuple[Any, list[dict[str, Any]]]:
    """Runs the job, by one action: every action on the mapped frame would run the workers again."""
    if job.run_dir:
        # Tasks that read Spark's shuffle start when that is done, whenever that may be.
        within = None if job.tagged else setup.start_within
        with _started(session, Path(job.run_dir) / job.folder, job, within):
            return None, frame.mapInArrow(_function(job), REPORT_SCHEMA, barrier=True).toArrow().to_pylist()
    mapped = frame.mapInArrow(_function(job), returned_schema(job.outputs), barrier=True)
    # The shuffle ends the barrier stage: readers of the rows would else be barrier jobs too. The checkpoint keeps the
    # rows and forgets how they were made.
    kept = mapped.repartition(job.size, "part", "rel").localCheckpoint(eager=False)
    return kept, kept.where("rel = -1").select("head", "summary", "raised").toArrow().to_pylist()


def _function(job: Assignment) -> Any:
    """The function for the tasks. It travels as it is and finds our package there, see `probe`."""
    from pyspark.cloudpickle import dumps

    package, pickled = str(PACKAGE), dumps((job, send_report if job.run_dir else send_rows))  # type: ignore[no-untyped-call]

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        import os
        import sys

        place = os.path.dirname(package)
        if os.path.isdir(package) and place not in sys.path:
            sys.path.insert(len(sys.path) if place.endswith("-packages") else 0, place)
        from pyspark import cloudpickle

        from emberlog.kernels.cluster.task import run_task

        assignment, send = cloudpickle.loads(pickled)
        yield from run_task(assignment, batches, send)

    return task


@contextmanager
def _started(session: Any, folder: Path, job: Assignment, within: float | None) -> Iterator[None]:
    """Stops the job when its tasks have not made their folder in time: Spark waits for slots for ever."""
    jobs, over, late = TaggedJobs(session, f"emberlog-workers-{job.run}"), Event(), Event()

    def watch() -> None:
        if within is not None and not over.wait(within) and not folder.exists():
            late.set()
            with suppress(Exception):
                jobs.cancel()

    Thread(target=watch, daemon=True).start()
    try:
        with jobs.tagged():
            yield
    except Exception:
        if late.is_set():  # Spark's error would say only that the job was cancelled, which we did
            raise Unavailable(f"{job.size} slots did not get free at once within {within:g} s") from None
        raise
    finally:
        over.set()


@contextmanager
def _spark_errors(session: Any, setup: Setup) -> Iterator[None]:
    """Tells what Spark raises as an error of ours."""
    whose = f"workers of {setup.what}" if setup.what else "workers"
    try:
        yield
    except EmberlogError:
        raise
    except Exception as error:
        forget(session)
        if REFUSED.search(str(error)):
            raise Unavailable(f"Spark refused to start the workers: {cause_of(error)}") from error
        gone = NOTICED.search(str(error))
        if gone or DIED.search(str(error)):
            reason = gone[1] if gone else LOST
            raise WorkerLost(f"the {whose} failed: {reason}", fix="its memory may have been too small") from error
        raise ExecutionError(f"the {whose}' job failed: {cause_of(error)}") from error


def _checked(rows: list[dict[str, Any]], size: int) -> tuple[Report, ...]:
    """The reports of all workers, by rank; raises what went wrong, the cause rather than what followed from it."""
    reports = sorted((decode_report(**row) for row in rows), key=lambda report: report.rank)
    failed = sorted((report for report in reports if report.error), key=lambda report: report.because_of_peer)
    if failed:
        first = failed[0]
        if first.raised:
            raise pickle.loads(first.raised)
        who = "the workers failed" if first.because_of_peer else f"worker {first.rank} of {size} failed"
        kind = WorkerLost if first.error == LOST else ExecutionError
        raise kind(f"{who}: {first.error} (on {first.host})")
    if [report.rank for report in reports] != list(range(size)):
        raise ExecutionError(f"{len(reports)} of {size} workers answered")
    return tuple(reports)


def _clear(run_dir: Path, parts: tuple[Part, ...]) -> None:
    """Removes all that a run made, but for the parts that count."""
    shutil.rmtree(run_dir / "inputs", ignore_errors=True)
    kept = {(run_dir / part.path).parents[1] for part in parts}
    for folder in run_dir.glob(f"{WORKERS}*"):
        if folder not in kept:
            shutil.rmtree(folder, ignore_errors=True)
    for card in run_dir.glob(f"{WORKERS}*/card-*"):
        card.unlink(missing_ok=True)


class _Clock:
    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = perf_counter()

    def lap(self, phase: str) -> None:
        now = perf_counter()
        self.laps[phase], self._last = now - self._last, now
