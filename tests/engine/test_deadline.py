"""The time limit counts from the call of `run`, and holds while nothing is computed yet: reading, checking, planning,
loading, compiling, waiting for others that compile. Ctrl-C ends the same stages."""

from __future__ import annotations

import _thread
import fcntl
import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Thread, Timer, current_thread
from time import monotonic, sleep

import pytest

import emberlog
from emberlog.deadline import COMPILER, Deadline
from emberlog.kernels import cache
from engine.places import Place

LATE = 2.0  # seconds after the limit


@contextmanager
def in_time(seconds: float) -> Iterator[None]:
    """A limit of so many seconds is told soon after it is reached."""
    begin = monotonic()
    with pytest.raises(emberlog.LimitError, match=f"stopped at the limit of {seconds:g} second") as raised:
        yield
    assert raised.value.exit_code == 3
    assert seconds <= monotonic() - begin < seconds + LATE


def rules(number: int) -> str:
    return "".join(f"p{i}(X,Y) :- e(X,Z), e(Z,Y), X > {i}.\n" for i in range(number))


@pytest.mark.parametrize("seconds", [0.05, 0.5, 1.5])
def test_many_rules(seconds: float, local: Place) -> None:
    engine = local.engine({"e": [(1, 2)]})
    engine.run(rules(1))
    text = rules(20_000)
    with in_time(seconds):
        engine.run(text, limits={"seconds": seconds})
    engine.run(rules(1))  # nothing is left that would end another run


def test_one_long_statement(local: Place) -> None:
    engine = local.engine({"e": [(1, 2)]})
    text = "".join(f"p(X,Y) :- e(X,Z), e(Z,Y), X > {i}.\n" for i in range(2000))
    with in_time(4):
        engine.run(text * 2 + "".join(f"p(X,Y) :- e(Y,X), X > {i}.\n" for i in range(10_000)), limits={"seconds": 4})


@pytest.mark.parametrize("declared", [False, True], ids=["types from the file", "declared"])
def test_a_file_that_takes_long_to_read(declared: bool, local: Place, tmp_path: Path) -> None:
    """A pipe that nobody writes to is as long as it gets."""
    path = tmp_path / "e.facts"
    os.mkfifo(path)
    engine = local.engine({"e": path})
    text = ".decl e(x: number)\n" * declared + "p(X) :- e(X)."
    with in_time(0.5):
        engine.run(text, limits={"seconds": 0.5})
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))  # lets the reader end


def test_the_engine_goes_on_after_a_file_that_took_too_long(local: Place, tmp_path: Path) -> None:
    path = tmp_path / "e.facts"
    os.mkfifo(path)
    engine = local.engine({"e": path})
    with in_time(0.3):
        engine.run("p(X) :- e(X).", limits={"seconds": 0.3})
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    engine.register("e", [(7,)])
    assert set(engine.run("p(X) :- e(X).", limits={"seconds": 60})["p"].rows()) == {(7,)}


# --- the compiler ----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)
    return tmp_path


@contextmanager
def held_elsewhere(folder: Path, name: str) -> Iterator[None]:
    """Another process holds a lock: to flock, another open file is as good."""
    with (folder / f"lock.{name}").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        yield


def test_a_lock_is_of_one_function(folder: Path) -> None:
    with held_elsewhere(folder, "one"), cache.locked("two"), cache.locked("three"), cache.locked("two"):
        pass


def test_whoever_waits_for_a_lock_is_held_to_the_limit(folder: Path) -> None:
    with held_elsewhere(folder, "one"), in_time(0.4), Deadline(0.4).enforced("compiling"):
        cache.alone("one", lambda: None)
    assert cache.alone("one", lambda: 7) == 7


def test_a_thread_that_waits_for_one_that_compiles_is_held_to_the_limit(folder: Path) -> None:
    other = Thread(target=lambda: cache.alone("one", lambda: sleep(2)))
    other.start()
    sleep(0.1)
    with in_time(0.4), Deadline(0.4).enforced("compiling"):
        cache.alone("two", lambda: None)
    other.join()
    assert cache.alone("two", lambda: 7) == 7


def test_ctrl_c_ends_the_waiting_for_a_lock(folder: Path) -> None:
    with held_elsewhere(folder, "one"), pytest.raises(KeyboardInterrupt):
        begin = monotonic()
        Timer(0.3, _thread.interrupt_main).start()
        cache.alone("one", lambda: None)
    assert monotonic() - begin < LATE


def test_the_compiler_is_not_interrupted(folder: Path) -> None:
    """It goes on to its end, in a state that later runs can use."""
    steps: list[int] = []

    def compile_slowly() -> None:
        for step in range(10):
            sleep(0.1)
            steps.append(step)

    with in_time(0.3), Deadline(0.3).enforced("compiling"):
        cache.alone("one", compile_slowly)
    assert len(steps) < 10
    assert cache.alone("one", lambda: list(steps)) == list(range(10))


def test_what_a_compiler_needs_compiled_is_compiled_by_its_thread(folder: Path) -> None:
    def thread() -> str:
        return current_thread().name

    found = cache.alone("one", lambda: (thread(), cache.alone("two", lambda: (thread(), cache.alone("one", thread)))))
    assert found == (COMPILER, (COMPILER, COMPILER))
    with pytest.raises(ZeroDivisionError):
        cache.alone("one", lambda: 1 // 0)


def endless() -> None:
    while True:
        sum(range(1000))


def stubborn() -> None:
    """As some libraries do, it takes every error for its own."""
    while True:
        try:
            endless()
        except Exception:
            continue


@pytest.mark.parametrize("work", [endless, stubborn])
def test_what_does_not_ask_is_interrupted(work: Callable[[], None]) -> None:
    with in_time(0.3), Deadline(0.3).enforced("compiling"):
        work()


class SlowToGo:
    def __del__(self) -> None:
        until = monotonic() + 0.6
        while monotonic() < until:
            pass


def test_what_python_drops_in_a_callback_is_raised_again_and_not_told() -> None:
    """Python writes to the terminal what is raised while an object goes (here pytest fails then), and goes on."""
    hook = sys.unraisablehook
    with in_time(0.1), Deadline(0.1).enforced("compiling"):
        SlowToGo()
        endless()
    assert sys.unraisablehook is hook


def test_modules_are_loaded_to_their_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was loaded in part would be broken for all later runs of the process."""
    (tmp_path / "slow_to_load.py").write_text("import time\nfor _ in range(10):\n    time.sleep(0.1)\nDONE = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    with in_time(0.1), Deadline(0.1).enforced("compiling"):
        importlib.import_module("slow_to_load")
        endless()
    assert sys.modules["slow_to_load"].DONE


def test_an_interruption_ends_with_the_work_that_it_is_for() -> None:
    for _ in range(20):
        try:
            with Deadline(0.001).enforced("compiling"):
                sleep(0.3)
        except emberlog.LimitError:
            pass
    sum(range(10_000_000))  # nothing arrives here


@pytest.mark.apart
@pytest.mark.slow
def test_compiling_loops_is_held_to_the_limit(tmp_path: Path) -> None:
    """Also by the command, which does not stay until the compiler is done."""
    names = "ABCDEFGHI"
    rule = ", ".join(f"p({one},{two})" for one, two in pairwise(names))
    program = tmp_path / "p.dl"
    program.write_text(f".output p\ne(1,2).\np(X,Y) :- e(X,Y).\np(A,I) :- {rule}.\n")
    environment = {**os.environ, "EMBERLOG_CACHE": str(tmp_path / "cache"), "EMBERLOG_JIT": "always"}
    command = [sys.executable, "-m", "emberlog", "run", str(program), "--executor", "local", "-D", str(tmp_path)]
    begin = monotonic()
    done = subprocess.run([*command, "--seconds", "6"], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3, done.stderr
    assert "stopped at the limit of 6 seconds while computing p" in done.stderr
    assert monotonic() - begin < 6 + 4  # and the time to load Python


@pytest.mark.apart
@pytest.mark.parametrize("seconds", [None, 60.0])
def test_a_run_under_a_tracer_ends(seconds: float | None) -> None:
    code = """
import sys
import emberlog

sys.settrace(lambda *_: None)
with emberlog.Engine(executor="local") as engine:
    print(set(engine.run("p(1).", limits={"seconds": SECONDS})["p"].rows()))
""".replace("SECONDS", repr(seconds))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "{(1,)}", done.stderr


@pytest.mark.apart
@pytest.mark.parametrize("end", ["a limit", "Ctrl-C"])
def test_compiled_loops_are_not_interrupted_while_they_hand_back_their_arrays(end: str) -> None:
    """A process that dies there is a crash: this rule grows tables, which each call hands back."""
    code = """
import sys, threading, _thread
import emberlog

n = 300
arc = [(i, (i * 7 + k) % n) for i in range(n) for k in range(5)]
with emberlog.Engine(executor="local", limits={"seconds": 2} if sys.argv[1] == "a limit" else None) as engine:
    engine.register("arc", arc)
    if sys.argv[1] == "Ctrl-C":
        threading.Timer(2, _thread.interrupt_main).start()
    try:
        engine.run("tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), tc(Z,Y), X * Y + Z > -1.", storage="hash")
    except (emberlog.LimitError, KeyboardInterrupt) as error:
        print(type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code, end], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == {"a limit": "LimitError", "Ctrl-C": "KeyboardInterrupt"}[end], done.stderr


@pytest.mark.parametrize("limits", [{"seconds": "5"}, 5, {"seconds": True}, {"seconds": -1}])
def test_limits_that_are_none(limits: object) -> None:
    with pytest.raises(emberlog.UsageError, match="limit"):
        emberlog.Engine(executor="local", limits=limits)  # type: ignore[arg-type]


def test_a_limit_without_end(local: Place) -> None:
    assert set(local.engine({}).run("p(1).", limits={"seconds": float("inf")})["p"].rows()) == {(1,)}


def test_the_limit_holds_while_a_query_is_read(local: Place) -> None:
    with in_time(0.5):
        local.engine({"e": [(1, 2)]}).query("p1(X,Y)", rules(20_000), limits={"seconds": 0.5})
