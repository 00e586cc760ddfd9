"""`emberlog maintain`: scripts of changes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from emberlog.schedule.files import read
from emberlog.schedule.interface import scheduler
from emberlog.schedule.simulate import simulate

PROGRAM = """.decl arc(x: number, y: symbol)
.input arc
p(Y, count(X)) <- arc(X, Y).
.output p
"""
SCRIPT = """+arc(2, "a").
-arc(1, "a").
commit
// what was said last of a row counts
+arc(9, "z").
-arc(9, "z").
+arc(3, "b").
abort
?- p("a", N).
+rule q(X) <- p(X, 2).
-arc(2, "a").
"""


def command(folder: Path, script: str | bytes, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "p.dl").write_text(PROGRAM, encoding="utf-8")
    (folder / "arc.facts").write_text("1\ta\n5\ta\n", encoding="utf-8")
    (folder / "s.txt").write_bytes(script if isinstance(script, bytes) else script.encode())
    line = [
        sys.executable,
        "-m",
        "emberlog",
        "maintain",
        str(folder / "p.dl"),
        str(folder / "s.txt"),
        "-F",
        str(folder),
        *options,
    ]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_a_script_prints_signed_differences(tmp_path: Path) -> None:
    done = command(tmp_path, SCRIPT)
    assert done.stdout.splitlines() == ['p("a", 2).', '+q("a").', '-p("a", 2).', '+p("a", 1).', '-q("a").'], done.stderr
    assert done.returncode == 0


def test_a_wrong_line_is_told_with_its_number(tmp_path: Path) -> None:
    done = command(tmp_path, 'commit\n+arc("x", "a").\n')
    assert done.returncode == 2
    assert "line 2" in done.stderr and '"x" is no number' in done.stderr


def test_a_view_with_a_path_goes_on_where_the_last_script_ended(tmp_path: Path) -> None:
    path = ("--path", str(tmp_path / "view"))
    assert command(tmp_path, '+arc(2, "a").\n', *path).stdout == '-p("a", 2).\n+p("a", 3).\n'
    done = command(tmp_path, '-arc(2, "a").\n', *path)
    assert done.stdout == '-p("a", 3).\n+p("a", 2).\n', done.stderr


def test_the_trace_of_a_change_is_replayed_by_the_simulator(tmp_path: Path) -> None:
    trace = tmp_path / "change.trace"
    command(tmp_path, '+rule q(X) <- p(X, 2).\ncommit\n+arc(2, "b").\n', "--trace", str(trace))
    recorded = read(trace)
    assert recorded.figures["active jobs"] == 2 and recorded.figures["initial tasks"] == 1
    outcome = simulate(recorded, scheduler("hybrid"), processors=2)
    assert outcome.runs == 2 and outcome.makespan == recorded.work.sum()


def test_the_last_change_is_told_as_others_are(tmp_path: Path) -> None:
    done = command(tmp_path, '+arc(2, "b").\n', "--stats")
    assert done.stdout == '+p("b", 1).\n'
    assert "1 task run" in done.stderr
    wrong = command(tmp_path, '+p("c", 1).\n')
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("at the end of the script:")


def test_text_of_a_script(tmp_path: Path) -> None:
    done = command(tmp_path, '\ufeff+arc(2, "b\x85c").\n')
    assert done.stdout == '+p("b\x85c", 1).\n', done.stderr


def test_a_script_that_is_no_text(tmp_path: Path) -> None:
    done = command(tmp_path, b'+arc(2, "\xff").\n')
    assert done.returncode == 2
    assert "is not a text file in UTF-8" in done.stderr


def test_the_last_of_what_is_said_of_a_row_counts(tmp_path: Path) -> None:
    done = command(tmp_path, '+arc(2, "b").\n+arc(2, "b").\n-arc(2, "b").\ncommit\n?- p("b", X).\n')
    assert done.returncode == 0 and done.stdout == "", done.stderr
