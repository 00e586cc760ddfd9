"""Compiled loops, kept on disk.

Machine code goes to a private folder (`folders`, which says what is trusted), under the hash of everything that it
depends on. A file lock for each function lets one process compile it while others wait: Numba's own cache, of which
`disk` makes ours, is not safe when several processes write what they have compiled of one function.

For tests, EMBERLOG_JIT in the environment says who evaluates: with `always` compiled loops, also what is so small that
the interpreter would (`columns`); with `off` the same loops as plain Python, slowly, and nothing is compiled.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache, wraps
from pathlib import Path
from threading import RLock, local
from time import sleep
from types import ModuleType
from typing import Any, BinaryIO

from emberlog.clock import Stopwatch
from emberlog.deadline import COMPILER, Call, shielded
from emberlog.kernels.code.source import Array, Source
from emberlog.kernels.folders import choose_folder, refuse_to_write

_LOCK = RLock()
_HELD = local()  # the names of the locks that a thread holds
_POLL = 0.05  # seconds between two tries to take a lock
_PARTS: list[Any] = []  # what `jit` made
COMPILING = Stopwatch()  # the time of this process for compiling loops, or loading what was compiled
# What generated loops have inside them.
RUNTIME = (
    *("runtime.py", "waiting.py", "prefetch.py", "halting.py", "cache.py"),
    *("shards/keys.py", "shards/elements.py", "rows/layout.py", "rows/expand.py"),
    *(f"upkeep/{name}.py" for name in ("layout", "indexes", "tables", "facts", "inner")),
)
COMPILES = os.environ.get("EMBERLOG_JIT") != "off"
INTERPRETS = os.environ.get("EMBERLOG_JIT") not in ("off", "always")


def jit(function: Callable[..., Any]) -> Any:
    """A loop compiled when it is first called; it lets other threads run meanwhile."""
    if not COMPILES:
        return interpreted(function)
    import numba

    from emberlog.kernels.disk import keep_on_disk, package_stamp

    made = numba.njit(nogil=True, error_model="numpy")(function)
    made = serialised(keep_on_disk(made, folder(), package_stamp()))
    _PARTS.append(made)
    return made


def serialised(made: Any) -> Any:
    """A function of Numba that compiles, whenever it does, while no other process of ours compiles the same."""
    compile = getattr(made, "compile", None)
    if compile is None:  # Numba was told to compile nothing
        return made
    name = f"{made.py_func.__module__}.{made.py_func.__qualname__}"

    made.compile = lambda signature: alone(name, lambda: compile(signature))
    return made


def interpreted(function: Callable[..., Any]) -> Any:
    """A loop as it stands, with the arithmetic of machine numbers: what leaves 64 bits wraps round without a word."""
    import numpy as np

    @wraps(function)
    def plain(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return plain


@lru_cache(maxsize=1)
def folder() -> Path | None:
    """Where compiled loops of this version of everything lie; only this user may read or write there. None where no
    folder serves: then nothing is kept."""
    from importlib import resources

    import numba

    own = resources.files("emberlog.kernels")
    runtime = b"".join((own / name).read_bytes() for name in RUNTIME)
    described = f"{numba.__version__} {platform.python_version()} {platform.machine()} {platform.processor()}"
    return choose_folder(hashlib.sha256(described.encode() + runtime).hexdigest()[:16])


def alone(name: str, work: Callable[[], Any]) -> Any:
    """What `work` returns, which compiles the function of this name, and others that it needs.

    It is done in a thread that nothing interrupts: a compiler that stops half way is of no use to later runs. Whoever
    waits for it can be interrupted; it goes on to its end then, for the next time.
    """
    with COMPILING:
        if _held():  # this is the compiler's thread
            with locked(name):
                return work()
        call = Call(lambda: _locked_call(name, work), COMPILER, daemon=False)
        while not call.done.wait(_POLL):
            pass
        return call.answer()


def _locked_call(name: str, work: Callable[[], Any]) -> Any:
    with locked(name):
        return work()


@contextmanager
def locked(name: str) -> Iterator[None]:
    """One process, and one thread of it, compiles the function of this name at a time."""
    held = _held()
    if name in held:
        yield
        return
    with _lock_file(name) or nullcontext() as handle:
        while not _take(handle):
            sleep(_POLL)
        held.add(name)
        try:
            yield
        finally:
            held.discard(name)
            _LOCK.release()


def _held() -> set[str]:
    """The names of the functions that this thread compiles."""
    names: set[str] = _HELD.__dict__.setdefault("names", set())
    return names


def _take(handle: BinaryIO | None) -> bool:
    """Takes the lock of a file, and that of this process, if both are free."""
    if not _LOCK.acquire(timeout=_POLL):
        return False
    try:
        if handle is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException as error:
        _LOCK.release()
        if isinstance(error, BlockingIOError):
            return False
        raise
    return True


def _lock_file(name: str) -> BinaryIO | None:
    """The file that processes lock. Without a folder that can be written they have nothing in common."""
    place = folder()
    try:
        return None if place is None else _open_lock(place / f"lock.{name}")
    except OSError as error:
        refuse_to_write(place, error)
        return None


def _open_lock(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+b")


def compiled(source: Source) -> Any:
    """The function `run` of a source, ready to be called."""
    return _compiled(source.text, source.arguments)


@lru_cache(maxsize=256)
def _compiled(text: str, arguments: tuple[Array, ...]) -> Any:
    if not COMPILES:
        found: dict[str, Any] = {}
        exec(text, found)  # the text is ours: nothing that a user wrote gets into it
        return interpreted(found["run"])
    import numba

    from emberlog.kernels.disk import keep_on_disk

    signature = ",".join(f"{array.dtype}{array.dimensions}" for array in arguments)
    name = "k" + hashlib.sha256(f"{text}\n{signature}".encode()).hexdigest()[:24]
    types = tuple(_type(array) for array in arguments)

    def load() -> Any:
        made = keep_on_disk(numba.njit(nogil=True, error_model="numpy")(_module(name, text).run), folder(), name)
        if hasattr(made, "compile"):  # else Numba was told to compile nothing
            made.compile(types)
            made.disable_compile()
        return made

    return alone(name, lambda: _recovered(load, name))


def _module(name: str, text: str) -> ModuleType:
    """The source as a module. It is no file: nothing but the text that we made is run."""
    module = ModuleType(f"emberlog_{name}")
    sys.modules[module.__name__] = module  # where what was cached looks for its globals
    exec(compile(text, f"<{name}>", "exec"), module.__dict__)
    return module


def _recovered(load: Callable[[], Any], name: str = "") -> Any:
    """What `load` gives. A file that cannot be read is as good as none: if it fails, it compiles everything anew."""
    try:
        return load()
    except Exception:
        place = folder()
        for path in place.glob(f"{name}.*") if name and place is not None else ():
            path.unlink(missing_ok=True)
        for part in _PARTS:
            part._cache.flush()
        return load()


def _type(array: Array) -> Any:
    import numba

    scalar = getattr(numba.types, array.dtype)
    return numba.types.Array(scalar, array.dimensions, "C") if array.dimensions else scalar


_READY: set[tuple[Any, tuple[Any, ...]]] = set()


def call(function: Any, *arguments: Any) -> Any:
    """Calls a compiled loop from Python; it is compiled for these types, under its lock, if it was not yet."""
    if not COMPILES:
        return function(*arguments)
    import numba

    types = tuple(numba.typeof(argument) for argument in arguments)  # type: ignore[no-untyped-call]
    if (function, types) not in _READY:
        _recovered(lambda: function.compile(types))
        _READY.add((function, types))
    with shielded():
        return function(*arguments)
