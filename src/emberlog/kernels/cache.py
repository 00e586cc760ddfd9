"""Compiled loops, kept on disk.

Numba cannot cache code that was made by `exec`, so a source becomes a module in a private folder, named by the hash of
everything that its machine code depends on. A file lock lets one process compile while others wait: Numba's own cache
is not safe when several processes write to it.

For tests, EMBERLOG_JIT in the environment says who evaluates: with `always` compiled loops, also what is so small that
the interpreter would (`columns`); with `off` the same loops as plain Python, slowly, and nothing is compiled.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from pathlib import Path
from threading import RLock, local
from typing import Any

from emberlog.kernels.code.source import Array, Source

_LOCK = RLock()
_HELD = local()  # does this thread hold the lock of the folder?
_PARTS: list[Any] = []  # what `jit` made
COMPILES = os.environ.get("EMBERLOG_JIT") != "off"
INTERPRETS = os.environ.get("EMBERLOG_JIT") not in ("off", "always")


def jit(function: Callable[..., Any]) -> Any:
    """A loop compiled when it is first called; it lets other threads run meanwhile."""
    if not COMPILES:
        return interpreted(function)
    import numba

    made = serialised(numba.njit(nogil=True, cache=True, error_model="numpy")(function))
    _PARTS.append(made)
    return made


def serialised(made: Any) -> Any:
    """A function of Numba that compiles, whenever it does, while no other process of ours does."""
    compile = getattr(made, "compile", None)
    if compile is None:  # Numba was told to compile nothing
        return made

    def alone(signature: Any) -> Any:
        with locked():
            return compile(signature)

    made.compile = alone
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
def folder() -> Path:
    """Where compiled loops of this version of everything lie; only this user may read or write there."""
    import numba

    base = Path(
        os.environ.get("EMBERLOG_CACHE")
        or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "emberlog"
    )
    own = Path(__file__).parent
    runtime = b"".join((own / name).read_bytes() for name in ("runtime.py", "waiting.py", "prefetch.py", "cache.py"))
    described = f"{numba.__version__} {platform.python_version()} {platform.machine()} {platform.processor()}"
    key = hashlib.sha256(described.encode() + runtime).hexdigest()[:16]
    path = base / "kernels" / key
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.chmod(0o700)
    return path


@contextmanager
def locked() -> Iterator[None]:
    """Only one process, and one thread of it, compiles at a time. What it compiles may need other parts compiled."""
    with _LOCK:
        if getattr(_HELD, "deep", False):
            yield
            return
        with (folder() / "lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            _HELD.deep = True
            try:
                yield
            finally:
                _HELD.deep = False


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

    signature = ",".join(f"{array.dtype}{array.dimensions}" for array in arguments)
    name = "k" + hashlib.sha256(f"{text}\n{signature}".encode()).hexdigest()[:24]
    types = tuple(_type(array) for array in arguments)

    def load() -> Any:
        module = _module(name, text)
        return numba.njit(types, nogil=True, cache=True, error_model="numpy")(module.run)

    with locked():
        return _recovered(load, name)


def _module(name: str, text: str) -> Any:
    """The source as a module of the folder."""
    path = folder() / f"{name}.py"
    if not path.exists() or path.read_bytes() != text.encode():
        scratch = path.with_suffix(f".{os.getpid()}.tmp")
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)
    spec = importlib.util.spec_from_file_location(f"emberlog_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where what was cached looks for its globals
    spec.loader.exec_module(module)
    return module


def _recovered(load: Callable[[], Any], name: str = "") -> Any:
    """What `load` gives. A file that cannot be read is as good as none: if it fails, it compiles everything anew."""
    try:
        return load()
    except Exception:
        for path in folder().rglob(f"{name}.*") if name else ():
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
    """Calls a compiled loop from Python; it is compiled for these types under the lock if it was not yet."""
    if not COMPILES:
        return function(*arguments)
    import numba

    types = tuple(numba.typeof(argument) for argument in arguments)  # type: ignore[no-untyped-call]
    if (function, types) not in _READY:
        with locked():
            _recovered(lambda: function.compile(types))
        _READY.add((function, types))
    return function(*arguments)
