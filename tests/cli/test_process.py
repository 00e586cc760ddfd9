"""The command as a process of its own: streams that cannot be written, and Ctrl-C while it starts."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.apart

CHECKOUT = Path(__file__).parents[2]
EMBERLOG = (sys.executable, "-m", "emberlog")

FACTS = "p(1). p(2).\n"
LONG = "p(1, 2).\n" + "?- p(X, Y).\n" * 400  # prints more than pipes and buffers hold
ONCE = "p(1, 2). q(X) :- p(X, Ann).\n"  # is warned of
WRONG = "p(X) :- q(X).\n"


def environment(*folders: Path, **variables: str) -> dict[str, str]:
    """The variables of a process that finds modules in these folders first."""
    path = os.pathsep.join(map(str, (*folders, CHECKOUT / "src")))
    return {**os.environ, "PYTHONPATH": path, **variables}


def program(folder: Path, text: str) -> str:
    path = folder / "program.dl"
    path.write_text(text, encoding="utf-8")
    return str(path)


CASES = [
    (FACTS, ("run", "--executor", "local")),
    (LONG, ("run", "--executor", "local")),
    (FACTS, ("check", "--json")),
    (LONG, ("explain", "--executor", "local")),
]
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")


# --- standard output and standard error ------------------------------------------------------------------------------


@needs_full
@pytest.mark.parametrize(("text", "arguments"), CASES)
def test_output_to_a_full_disk_is_an_error(text: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    command = [*EMBERLOG, *arguments, program(tmp_path, text)]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment(), timeout=60)
    assert done.returncode == 4
    assert done.stderr == (
        "error[E0600]: cannot write standard output: No space left on device\n"
        "  = help: make room there, or name another place\n"
    )


@pytest.mark.parametrize(("text", "arguments"), CASES)
def test_a_closed_pipe_ends_a_command_quietly(text: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    command = [*EMBERLOG, *arguments, program(tmp_path, text)]
    done = subprocess.run(command, stdout=writes, stderr=subprocess.PIPE, text=True, env=environment(), timeout=60)
    os.close(writes)
    assert (done.returncode, done.stderr) == (141, "")


@needs_full
def test_the_exit_code_does_not_depend_on_where_messages_go(tmp_path: Path) -> None:
    for text, arguments, code in ((ONCE, (), 0), (WRONG, (), 1), (FACTS, ("--no-such-option",), 2)):
        command = [*EMBERLOG, "run", "--executor", "local", program(tmp_path, text), *arguments]
        with open("/dev/full", "wb") as full:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, env=environment(), timeout=60)
        assert done.returncode == code


def test_text_that_the_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    command = [*EMBERLOG, "run", "--executor", "local", program(tmp_path, 'p("\N{GREEK SMALL LETTER ALPHA}").\n')]
    done = subprocess.run(command, capture_output=True, env=environment(PYTHONIOENCODING="ascii"), timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u03b1" in done.stdout


# --- Ctrl-C while modules are loaded ---------------------------------------------------------------------------------

CTRL_C = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(0.1)\n"


def console_script() -> list[str]:
    """What the installed command does."""
    scripts = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    module, _, function = scripts["emberlog"].partition(":")
    return [sys.executable, "-c", f"import sys\nfrom {module} import {function}\nsys.exit({function}())"]


@pytest.mark.parametrize("command", [[*EMBERLOG], console_script()], ids=["module", "script"])
def test_ctrl_c_while_the_command_line_is_loaded(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(CTRL_C)  # in place of the library that the command line loads first
    done = subprocess.run(
        [*command, "--version"], capture_output=True, text=True, env=environment(tmp_path), timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_ctrl_c_while_a_command_is_loaded() -> None:
    code = f"""
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "emberlog.engine":
            exec({CTRL_C!r})
sys.meta_path.insert(0, Finder())
from emberlog.__main__ import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code, "check", "program.dl"],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_ctrl_c_that_is_ignored_stays_ignored() -> None:
    code = f"""
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from emberlog.loading import Loading
with Loading():
    exec({CTRL_C!r})
print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), timeout=60)
    assert (done.returncode, done.stdout) == (0, "True\n")
