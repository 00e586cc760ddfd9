"""What the session's cluster can do for workers: slots, a common file system, our package in the tasks.

A small job asks the tasks themselves, once for each session and directory. Spark's own checks come too late: a barrier
job that lacks slots is tried again for minutes before it fails.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import secrets
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from emberlog.causes import cause_of
from emberlog.diagnostics import ExecutionError

PACKAGE = Path(__file__).parents[2]
NEEDED = ("numpy", "pyarrow", "zmq", "numba")


class Unavailable(ExecutionError):
    """Workers cannot run inside this session, so somebody else has to evaluate. Says why."""


@dataclass(frozen=True)
class Cluster:
    """What the tasks of a session told."""

    slots: int
    shared: bool  # do all tasks see the directories of this process?


_seen: WeakKeyDictionary[Any, dict[Path, Cluster]] = WeakKeyDictionary()


def look_at(session: Any, run_dir: Path) -> Cluster:
    """What the cluster can do for a run in a directory. Raises `Unavailable` when its tasks cannot do our work.

    Directories of runs stand in one for each engine, and those in one place: tasks see all that is there, or nothing.
    """
    known, place = _seen.setdefault(session, {}), run_dir.parent.parent
    if place not in known:
        known[place] = _ask(session, run_dir)
    return known[place]


def forget(session: Any) -> None:
    """After a failure: ask again the next time."""
    _seen.pop(session, None)


def check_slots(session: Any, cluster: Cluster, size: int) -> None:
    """Raises `Unavailable` when Spark would not start `size` workers at once."""
    if size > cluster.slots:
        raise Unavailable(f"{size} workers need {size} slots at once, and the session has {cluster.slots}")
    dynamic = str(session.conf.get("spark.dynamicAllocation.enabled", "false")).lower() == "true"
    if dynamic and not _master(session).startswith("local"):
        raise Unavailable("the session allocates executors dynamically, so Spark runs no barrier tasks")


def _master(session: Any) -> str:
    return str(session.conf.get("spark.master", ""))


def _ask(session: Any, run_dir: Path) -> Cluster:
    answers = _answers(session, run_dir)
    if any(answer["missing"] == ["emberlog"] for answer in answers):
        ship(session)
        answers = _answers(session, run_dir)
    for answer in answers:
        if answer["missing"]:
            raise Unavailable(
                f"Spark's Python on {answer['host']} has no {', '.join(answer['missing'])}",
                fix="install emberlog there, or point PYSPARK_PYTHON to a Python that has it",
            )
    return Cluster(_slots(session, answers), all(answer["shared"] for answer in answers))


def _answers(session: Any, run_dir: Path) -> list[dict[str, Any]]:
    """What each task of a small job says. It has as many tasks as Spark thinks right for this cluster."""
    token = secrets.token_hex(16)
    path = run_dir / f".token-{token}"
    path.write_text(token)
    try:
        found = session.range(4096).mapInArrow(_question(str(path), token), "answer string").toArrow()
    except Exception as error:
        raise Unavailable(f"Spark cannot run Python tasks: {cause_of(error)}") from error
    finally:
        with suppress(OSError):
            path.unlink()
    return [json.loads(answer) for answer in found.column(0).to_pylist()]


def _question(path: str, token: str) -> Any:
    """The function for the tasks. It travels as it is, since the package may not be there."""
    package, needed = str(PACKAGE), NEEDED

    def answer(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib.util
        import json
        import os
        import socket
        import sys

        import pyarrow as pa

        for _ in batches:
            pass
        place = os.path.dirname(package)
        if os.path.isdir(package) and place not in sys.path:
            sys.path.insert(len(sys.path) if place.endswith("-packages") else 0, place)
        try:
            with open(path) as file:
                shared = file.read() == token
        except OSError:
            shared = False
        said = {
            "host": socket.gethostname(),
            "shared": shared,
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
            "missing": [name for name in ("emberlog", *needed) if importlib.util.find_spec(name) is None],
        }
        yield pa.RecordBatch.from_pydict({"answer": [json.dumps(said)]})

    return answer


def _slots(session: Any, answers: list[dict[str, Any]]) -> int:
    """How many tasks run at once. Spark tells by how many it makes of a range, unless the user set that number."""

    def setting(name: str, otherwise: str = "") -> str:
        return str(session.conf.get(name, otherwise) or otherwise)

    cpus = int(setting("spark.task.cpus", "1"))
    master = _master(session)
    if local := re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master):
        cores = {"*": answers[0]["cores"], None: 1}.get(local[1]) or int(local[1])
    elif machines := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", master):
        cores = int(machines[1]) * int(machines[2])
    elif setting("spark.executor.instances") and setting("spark.executor.cores"):
        cores = int(setting("spark.executor.instances")) * int(setting("spark.executor.cores"))
    else:
        cores = len(answers)
    return int(cores // cpus)


def ship(session: Any, package: Path = PACKAGE) -> None:
    """Sends a package to the tasks of the session, as a zip."""
    # Kept as long as this process lives: a classic session copies the file when a task asks for it.
    folder = tempfile.mkdtemp(prefix="emberlog-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        session.addArtifacts(str(package_zip(Path(folder), package)), pyfile=True)
    except Exception as error:
        raise Unavailable(
            f"{package.name} could not be sent to Spark's tasks: {cause_of(error)}",
            fix="install emberlog on the cluster, or point PYSPARK_PYTHON to a Python that has it",
        ) from error


def package_zip(folder: Path, package: Path = PACKAGE) -> Path:
    """The package's source as a zip file that Python can import from."""
    path = folder / f"{package.name}-{secrets.token_hex(4)}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for source in sorted(package.rglob("*.py")):
            file.write(source, os.path.join(package.name, source.relative_to(package)))
    return path
