"""The folder for compiled loops, and whether it and the files in it may be trusted.

A file of the cache is code: whoever writes it runs as the one who loads it. So a folder serves only if it and every
folder above it belong to this user or to root, and nobody else may write there. A folder for temporary files, where
everybody writes but each only to their own (the sticky bit), may stand above it.

The first of these that serves is used: `$EMBERLOG_CACHE`, else `$XDG_CACHE_HOME/emberlog`, else `~/.cache/emberlog`;
then `emberlog-<user id>` among the temporary files. If none does, nothing is kept. A warning says why, once.
"""

from __future__ import annotations

import os
import stat
import tempfile
import warnings
from pathlib import Path

from emberlog.diagnostics import EmberlogWarning, warning

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class _Unusable(Exception):
    """A folder cannot serve. Says why."""


def choose_folder(key: str) -> Path | None:
    """The folder `kernels/<key>` of the first place that serves, made if it is not there; None if no place does."""
    first, spare = "", Path(tempfile.gettempdir()) / f"emberlog-{os.geteuid()}"
    try:
        return _prepare(_wanted_base(), key)
    except (OSError, RuntimeError, _Unusable) as problem:
        first = _text(problem)
    try:
        found = _prepare(spare, key)
    except (OSError, RuntimeError, _Unusable) as problem:
        _warn(f"compiled loops are not kept, and are compiled again by every process: {first}; {_text(problem)}")
        return None
    _warn(f"compiled loops are kept in {spare} instead: {first}")
    return found


def distrust(path: Path) -> str | None:
    """Why a file of the cache must not be loaded; None if it may be, or is not there."""
    try:
        found = path.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return f"{path} is not a plain file"
    return _problem(path, found)


def refuse_file(reason: str) -> None:
    """Warns that a file of the cache is not loaded."""
    _warn(f"a file of compiled loops is not used: {reason}")


def refuse_to_write(path: Path | None, error: OSError) -> None:
    """Warns that what was compiled could not be kept."""
    _warn(f"compiled loops are not kept: cannot write {path}: {error.strerror or error}")


def _wanted_base() -> Path:
    """Where the user wants the cache to be."""
    named = os.environ.get("EMBERLOG_CACHE")
    if named:
        return Path(named)
    shared = os.environ.get("XDG_CACHE_HOME")
    if shared:
        return Path(shared) / "emberlog"
    home = Path.home()
    if not home.is_dir():  # root could make it, which is not for us to do
        raise _Unusable(f"the home folder {home} does not exist")
    return home / ".cache" / "emberlog"


def _prepare(base: Path, key: str) -> Path:
    """`base/kernels/<key>`, for this user alone. Raises `_Unusable` or OSError."""
    base = base.resolve()
    for folder in reversed(base.parents):
        _check_parent(folder)
    for folder in (base, base / "kernels", base / "kernels" / key):
        _make_private(folder, tighten=folder != base)
    path = base / "kernels" / key
    try:
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        raise _Unusable(f"cannot write to {path}: {error.strerror or error}") from error
    return path


def _check_parent(folder: Path) -> None:
    try:
        found = folder.lstat()
    except FileNotFoundError:
        folder.mkdir(0o700)
        return
    if not stat.S_ISDIR(found.st_mode):
        raise _Unusable(f"{folder} is not a folder")
    problem = _problem(folder, found)
    if problem is not None:
        raise _Unusable(problem)


def _make_private(folder: Path, *, tighten: bool) -> None:
    """Makes a folder of the cache. With `tighten`, one of ours that others may write to is closed to them: their files
    in it are told from ours by their owners."""
    try:
        folder.mkdir(0o700)
    except FileExistsError:
        found = folder.lstat()
        if tighten and stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
            folder.chmod(0o700)
    _check_parent(folder)


def _problem(path: Path, found: os.stat_result) -> str | None:
    """Why others could have put there what lies at `path`."""
    if found.st_uid not in (0, os.geteuid()):
        return f"{path} belongs to another user (uid {found.st_uid})"
    sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    if found.st_mode & _WRITABLE_BY_OTHERS and not sticky and not _only_own_group(found):
        return f"others may write to {path}"
    return None


def _only_own_group(found: os.stat_result) -> bool:
    """True if only the group may write, and it is this user's own, without other members, as many systems set up."""
    import grp
    import pwd

    if found.st_mode & stat.S_IWOTH:
        return False
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(found.st_gid)
    except KeyError:
        return False
    return group.gr_gid == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


def _text(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.filename:
        return f"{problem.filename}: {problem.strerror}"
    return str(problem)


_warned: set[str] = set()


def _warn(message: str) -> None:
    """Each warning once in a process: what is refused once is refused again and again."""
    kind = message.partition(":")[0]
    if kind not in _warned:
        _warned.add(kind)
        warnings.warn(EmberlogWarning(warning("W0600", message)), stacklevel=2)
