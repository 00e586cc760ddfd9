"""Kills a process that changes a durable view, again and again, and checks what is left each time.

    python killed.py FOLDER POINTS SEED

Each round forks a process that goes on with a fixed sequence of changes, and kills it after a random time: while it
opens the view, commits, or writes a snapshot (which it does often). Then a second process opens the view and compares.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import emberlog
from emberlog.maintain.durable import folder

PROGRAM = """
    tc(X, Y) <- arc(X, Y).
    tc(X, Y) <- tc(X, Z), arc(Z, Y).
    out(X, count(Y)) <- tc(X, Y).
"""
Arcs = frozenset[tuple[int, int]]
folder.MIN_LOG_BYTES = 3000  # a snapshot every few changes


def change(number: int) -> tuple[Arcs, Arcs]:
    """The rows that change `number` deletes and inserts."""
    draw = random.Random(number)
    arcs = [(draw.randrange(12), draw.randrange(12)) for _ in range(5)]
    return frozenset(arcs[:2]), frozenset(arcs[2:])


def arcs_after(number: int) -> Arcs:
    """The rows after changes 0 to `number`."""
    found: Arcs = frozenset()
    for i in range(number + 1):
        delete, insert = change(i)
        found = (found - delete) | insert
    return found


def closure(arcs: Arcs) -> Arcs:
    found = arcs
    while more := {(x, y) for x, z in found for w, y in arcs if z == w} - found:
        found |= more
    return found


def write(path: Path, done: Path) -> None:
    """Applies changes until it is killed, and notes each one that was committed."""
    with emberlog.Engine(executor="local", workers=1) as engine:
        view = engine.maintain(".decl arc(x: number, y: number) " + PROGRAM, path=path)
        number = view.batches.get("changes", -1)
        while True:
            number += 1
            delete, insert = change(number)
            view.apply(delete={"arc": list(delete)}, insert={"arc": list(insert)}, batch=("changes", number))
            note(done, number)


def note(done: Path, number: int) -> None:
    """Adds a line with a number to a file, by one call of the system: it is there or not."""
    file = os.open(done, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{number}\n".encode())
    os.close(file)


def check(path: Path, done: Path) -> None:
    """Compares what is in the folder with what was committed."""
    last = int(done.read_text().split()[-1]) if done.exists() else -1
    with emberlog.Engine(executor="local", workers=1) as engine:
        view = engine.maintain(".decl arc(x: number, y: number) " + PROGRAM, path=path)
        found = view.batches.get("changes", -1)
        # One more may be there: committed, and killed before it was noted.
        assert found in (last, last + 1), f"{last} changes were committed, {found} are there"
        arcs = arcs_after(found)
        assert set(view["arc"].rows()) == arcs
        paths = closure(arcs)
        assert set(view["tc"].rows()) == paths
        ends = {x: sum(1 for a, _ in paths if a == x) for x, _ in paths}
        assert set(view["out"].rows()) == set(ends.items())
    note(done, found)


def forked(work: Callable[[], None]) -> int:
    """The number of a process that does some work."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        work()
        code = 0
    finally:
        sys.stderr.flush()
        os._exit(code)


def main(path: Path, points: int, seed: int) -> None:
    draw = random.Random(seed)
    done = path.with_name("done")
    for _ in range(points):
        process = forked(lambda: write(path, done))
        time.sleep(draw.uniform(0, 0.6))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        _, status = os.waitpid(forked(lambda: check(path, done)), 0)
        if status:
            sys.exit(1)
    print(f"{points} points, {done.read_text().split()[-1]} changes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
