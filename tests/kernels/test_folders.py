"""Where compiled loops are kept: in a folder that only we can have written to, or elsewhere with a warning."""

from __future__ import annotations

import errno
import json
import os
import pickle
import stat
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from emberlog.kernels import folders

SOMEBODY = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")

# Compiles or loads one shape and one function of the package, and tells where from.
CHILD = """
import json, sys
import numpy as np
from emberlog.kernels.cache import call, compiled, folder
from emberlog.kernels.code.source import Array, Source
from emberlog.kernels.distinct import is_known_set
import pyarrow as pa

text = "def run(counts, a):\\n    for i in range(a.size):\\n        counts[0] += a[i]\\n    return (a,)\\n"
function = compiled(Source(text, (Array("counts", "int64"), Array("a", "int64")), (), ()))
counts = np.zeros(1, np.int64)
function(counts, np.arange(5, dtype=np.int64))
is_known_set(pa.table({"c0": [1, 2], "c1": [3, 4]}), 1)
json.dump({"sum": int(counts[0]), "folder": str(folder()), "hits": sum(function.stats.cache_hits.values())}, sys.stdout)
"""


@pytest.fixture(autouse=True)
def unwarned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "_warned", set())


@pytest.fixture
def spare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files is one of the test's own; what is in it for us."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(place))
    return place / f"emberlog-{os.geteuid()}"


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], tuple[Path | None, str]]:
    """The folder for a cache that the user wants, and what was said."""

    def choose(cache: Path) -> tuple[Path | None, str]:
        monkeypatch.setenv("EMBERLOG_CACHE", str(cache))
        return told()

    return choose


def told() -> tuple[Path | None, str]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = folders.choose_folder("key")
    return found, "; ".join(str(entry.message) for entry in said)


Choose = Callable[[Path], tuple[Path | None, str]]


def test_a_folder_of_ours_is_made_for_us_alone(tmp_path: Path, chosen: Choose) -> None:
    found, said = chosen(tmp_path / "a" / "b")
    assert found == tmp_path / "a" / "b" / "kernels" / "key"
    assert said == ""
    for folder in (found, *list(found.parents)[:4]):
        if folder != tmp_path:
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("level", ["cache", "cache/kernels", "cache/kernels/key"])
def test_a_folder_of_somebody_else_is_refused(
    tmp_path: Path, chosen: Choose, spare: Path, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache" / "kernels" / "key").mkdir(parents=True)
    theirs = tmp_path / level
    real = Path.lstat

    def lstat(path: Path) -> os.stat_result:
        found = real(path)
        if path != theirs:
            return found
        return os.stat_result([SOMEBODY if i == 4 else value for i, value in enumerate(found)])

    monkeypatch.setattr(Path, "lstat", lstat)
    found, said = chosen(tmp_path / "cache")
    assert found == spare / "kernels" / "key"
    assert f"{theirs} belongs to another user (uid {SOMEBODY})" in said


@needs_root
@pytest.mark.parametrize("level", ["", "cache", "cache/kernels", "cache/kernels/key"])
def test_root_does_not_use_the_folder_of_a_user(tmp_path: Path, chosen: Choose, level: str) -> None:
    (tmp_path / "home" / "cache" / "kernels" / "key").mkdir(parents=True)
    os.chown(tmp_path / "home" / level, SOMEBODY, SOMEBODY)
    found, said = chosen(tmp_path / "home" / "cache")
    assert found is not None and not found.is_relative_to(tmp_path)
    assert "belongs to another user" in said


@pytest.mark.parametrize("level", ["", "cache"])
def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path, chosen: Choose, spare: Path, level: str) -> None:
    (tmp_path / "shared" / "cache").mkdir(parents=True)
    (tmp_path / "shared" / level).chmod(0o777)
    found, said = chosen(tmp_path / "shared" / "cache")
    assert found == spare / "kernels" / "key"
    assert f"others may write to {tmp_path / 'shared' / level}" in said


def test_a_folder_of_ours_inside_is_closed_to_others(tmp_path: Path, chosen: Choose) -> None:
    (tmp_path / "cache" / "kernels").mkdir(parents=True)
    (tmp_path / "cache" / "kernels").chmod(0o777)
    found, said = chosen(tmp_path / "cache")
    assert (found, said) == (tmp_path / "cache" / "kernels" / "key", "")
    assert stat.S_IMODE((tmp_path / "cache" / "kernels").stat().st_mode) == 0o700


def test_a_link_inside_the_cache_is_refused(tmp_path: Path, chosen: Choose, spare: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "kernels").symlink_to(tmp_path / "elsewhere")
    found, said = chosen(tmp_path / "cache")
    assert found == spare / "kernels" / "key"
    assert "is not a folder" in said


def test_a_temporary_folder_of_somebody_else_is_refused_too(
    tmp_path: Path, chosen: Choose, spare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spare.mkdir()
    spare.chmod(0o777)
    (tmp_path / "file").touch()
    found, said = chosen(tmp_path / "file")
    assert found is None
    assert "compiled again by every process" in said
    assert f"others may write to {spare}" in said


def test_a_home_that_does_not_exist_is_not_made(tmp_path: Path, spare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EMBERLOG_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    found, said = told()
    assert found == spare / "kernels" / "key"
    assert f"the home folder {tmp_path / 'nobody'} does not exist" in said
    assert not (tmp_path / "nobody").exists()


@pytest.mark.parametrize("inside", ["", "below"])
def test_a_cache_that_is_a_file_is_said_once(tmp_path: Path, chosen: Choose, spare: Path, inside: str) -> None:
    (tmp_path / "file").write_text("mine")
    found, said = chosen(tmp_path / "file" / inside)
    assert found == spare / "kernels" / "key"
    assert said.count(f"{tmp_path / 'file'} is not a folder") == 1
    assert (tmp_path / "file").read_text() == "mine"
    assert chosen(tmp_path / "file" / inside) == (found, "")


def test_a_disk_that_cannot_be_written(
    tmp_path: Path, chosen: Choose, spare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tempfile.TemporaryFile

    def full(*arguments: Any, **named: Any) -> Any:
        if str(named["dir"]).startswith(str(tmp_path / "cache")):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(*arguments, **named)

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    found, said = chosen(tmp_path / "cache")
    assert found == spare / "kernels" / "key"
    assert "Read-only file system" in said


# --- with real processes ---------------------------------------------------------------------------------------------


def child(cache: Path, **environment: str) -> tuple[dict[str, Any], str]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        env={**os.environ, "EMBERLOG_CACHE": str(cache), "EMBERLOG_JIT": "on", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["sum"] == 10
    return found, done.stderr


class Planted:
    """What runs when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.mark),)


def plant(cache: Path, mark: Path) -> list[Path]:
    """Every file of the cache becomes one that leaves a mark when it is loaded."""
    files = [path for path in cache.rglob("*") if path.suffix in (".nbi", ".nbc", ".pyc")]
    assert files
    for path in files:
        path.write_bytes(pickle.dumps(Planted(mark)))
    return files


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    cache = tmp_path_factory.mktemp("filled") / "cache"
    assert child(cache)[0]["hits"] == 0
    yield cache


@pytest.mark.apart
@needs_root
def test_planted_files_in_the_folder_of_somebody_else_do_not_run(filled: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    subprocess.run(["cp", "-a", str(filled), str(cache)], check=True)
    plant(cache, tmp_path / "mark")
    subprocess.run(["chown", "-R", f"{SOMEBODY}:{SOMEBODY}", str(cache)], check=True)
    found, said = child(cache, TMPDIR=str(tmp_path))
    assert not (tmp_path / "mark").exists()
    assert not Path(found["folder"]).is_relative_to(cache)
    assert "belongs to another user" in said


@pytest.mark.apart
@needs_root
def test_planted_files_of_somebody_else_in_our_folder_do_not_run(filled: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    subprocess.run(["cp", "-a", str(filled), str(cache)], check=True)
    for path in plant(cache, tmp_path / "mark"):
        os.chown(path, SOMEBODY, SOMEBODY)
    found, said = child(cache)
    assert not (tmp_path / "mark").exists()
    assert Path(found["folder"]).is_relative_to(cache)
    assert "a file of compiled loops is not used" in said
    assert child(cache)[0]["hits"] == 1  # they were replaced


@pytest.mark.apart
def test_planted_files_that_others_may_write_do_not_run(filled: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    subprocess.run(["cp", "-a", str(filled), str(cache)], check=True)
    for path in plant(cache, tmp_path / "mark"):
        path.chmod(0o666)
    _, said = child(cache)
    assert not (tmp_path / "mark").exists()
    assert "others may write to" in said


@pytest.mark.apart
def test_nothing_is_kept_beside_the_package(filled: Path, tmp_path: Path) -> None:
    """Nor loaded from there, and a package that cannot be written to is the same to us."""
    package = Path(folders.__file__).parents[1]
    assert any(path.name.startswith("emberlog.kernels.distinct") for path in filled.rglob("*.nbi"))
    before = {path: path.stat().st_mtime_ns for path in package.rglob("*.nbi")}
    found, said = child(filled, NUMBA_CACHE_DIR=str(tmp_path / "numba"))
    assert found["hits"] == 1
    assert said == ""
    assert {path: path.stat().st_mtime_ns for path in package.rglob("*.nbi")} == before
    assert not (tmp_path / "numba").exists()


@pytest.mark.apart
def test_a_process_without_any_folder_computes_uncached(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found, said = child(tmp_path / "file", TMPDIR=str(tmp_path / "file"), PYTHONWARNINGS="always")
    if found["folder"] == "None":
        assert said.count("compiled again by every process") == 1
    else:  # Python finds another folder for temporary files
        assert said.count("is not a folder") == 1


FULL = """
import errno, os
from emberlog.kernels import disk

real = os.open
def full(path, *rest, **named):
    if str(path).endswith(".tmp"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return real(path, *rest, **named)
os.open = full
"""


@pytest.mark.apart
def test_a_full_disk_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "CHILD", FULL + CHILD)
    found, said = child(tmp_path / "cache")
    assert said.count("No space left on device") == 1
    assert list(Path(found["folder"]).glob("*.tmp")) == []
