"""The command line: what each command prints and writes, where errors go, and the exit codes. All in this process."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import emberlog
from emberlog import cli

TC = """\
.decl arc(x: number, y: number)
.input arc
.decl tc(x: number, y: number)
tc(X, Y) :- arc(X, Y).
tc(X, Y) :- tc(X, Z), arc(Z, Y).
"""

needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """Runs `emberlog` with these arguments in a folder that has the facts of TC."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "arc.facts").write_text("1\t2\n2\t3\n")

    def run(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["emberlog", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return Done(code or 0, out, err)

    yield run
    logging.disable(logging.NOTSET)  # the command line turns it off for good


def program(text: str) -> str:
    """A program file with this text."""
    Path("program.dl").write_text(text, encoding="utf-8")
    return "program.dl"


def local(text: str, *options: str) -> tuple[str, ...]:
    """The arguments that run a program on the facts folder."""
    return ("run", program(text), "-F", "facts", "--executor", "local", *options)


def test_version_and_help(command: Command) -> None:
    assert command("--version") == Done(0, f"emberlog {emberlog.__version__}\n", "")
    shown = command("--help").out
    assert all(name in shown for name in ("run", "check", "explain", "generate"))


# --- run ---------------------------------------------------------------------------------------------------------


def test_run_writes_outputs_and_says_nothing(command: Command) -> None:
    done = command(*local(f"{TC}.output tc\n", "-D", "results"))
    assert done == Done(0, "", "")
    (written,) = Path("results").iterdir()
    assert sorted(written.read_text().splitlines()) == ["1\t2", "1\t3", "2\t3"]


def test_run_prints_sizes(command: Command) -> None:
    assert command(*local(f"{TC}.printsize tc\n.printsize arc\n")) == Done(0, "tc\t3\narc\t2\n", "")


def test_run_shows_what_nothing_takes(command: Command) -> None:
    done = command(*local(TC))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("tc: 3 rows")
    assert command(*local(f"{TC}?- tc(1, 3).\n")).out.startswith("tc: 1 row\n")
    assert command(*local(f"{TC}p() :- tc(1, 3).\n?- p().\n")).out == "p: true\n"


def test_run_takes_parameters(command: Command) -> None:
    text = "p(A, B, C, D) :- A = $N, B = $F, C = $S, D = $Q.\n.output p\n"
    options = ("--param", "N=-3", "--param", "F=0.5", "--param", "S=a=b", "--param", 'Q="7"')
    assert command(*local(text, *options)).code == 0
    assert Path("p.csv").read_text() == "-3\t0.5\ta=b\t7\n"


def test_parameters_have_types(command: Command) -> None:
    text = "p(X) :- X = $A. q(X) :- $L(X).\n.output p\n.output q\n"
    for given, written in (
        ("True", "true"),
        ("false", "false"),
        ("nan", "nan"),
        ("1_000", "1_000"),
        ('"[x"', "[x"),
        ("1e3", "1000.0"),
    ):
        assert command(*local(text, "--param", f"A={given}", "--param", "L=[3]")).code == 0
        assert Path("p.csv").read_text() == f"{written}\n"
    for given, rows in (("[1, 2]", ["1", "2"]), ('["a"]', ["a"]), ("[true]", ["true"]), ("[]", [])):
        assert command(*local(text, "--param", "A=1", "--param", f"L={given}")).code == 0
        assert sorted(Path("q.csv").read_text().split()) == rows


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("L=[1, null]", "value 2 of the list `L` is of type NoneType"),
        ("L=[1, 2", "[1, 2 is not a list as JSON writes it"),
        ("L=99999999999999999999", "the parameter `L` does not fit in 64 bits"),
        (f"L={'9' * 5000}", "--param L: a number of 5,000 digits does not fit in 64 bits"),
        (f"L=[1, {'9' * 5000}]", "--param L: a number of 5,000 digits does not fit in 64 bits"),
        ("L=" + "[" * 10_000, "[[[... has lists inside of lists"),
        (f"L={'[' * 10_000}{']' * 10_000}", "[[[... has lists inside of lists"),
        ("L=[" + "1, " * 10_000, "... is not a list as JSON writes it"),
    ],
)
def test_parameters_that_have_no_value_are_2(given: str, message: str, command: Command) -> None:
    text = "p(X) :- X = $L.\n"
    for arguments in (local(text), ("check", program(text)), ("explain", program(text))):
        done = command(*arguments, "--param", given)
        assert (done.code, message in done.err) == (2, True)


def test_run_shows_stats_and_warnings_on_the_error_stream(command: Command) -> None:
    Path("facts/arc.facts").write_text("1\t2\n1\t2\n")
    done = command(
        *local(".decl arc(x: number, y: number)\n.input arc\nn(sum(Y)) :- arc(_, Y).\n.printsize n\n", "--stats")
    )
    assert (done.code, done.out) == (0, "n\t1\n")
    assert "warning[W0800]: 1 duplicate row of `arc` collapsed" in done.err
    assert "what the run took" in done.err


def test_tables_that_go_to_no_terminal_are_as_wide_as_they_need_to_be(command: Command) -> None:
    long = "x" * 150
    done = command(*local(f'p("{long}", 1). q(X, Y) :- p(X, Y).', "--stats"))
    assert done.code == 0 and long in done.out
    rows = [line for line in done.err.splitlines() if "│ q " in line]
    assert len(rows) == 1 and "the local executor" in rows[0] and "computed once" in rows[0]
    assert "[check]" in done.err and "total" in done.err


ONCE = "e(1, 2).\np(X) :- e(X, Ann).\n"
CARET = "2 | p(X) :- e(X, Ann).\n  |              ^^^"


def test_warnings_about_a_program_are_on_the_error_stream_with_a_caret(command: Command) -> None:
    for arguments in (local(f"{ONCE}.printsize p\n"), ("check", program(ONCE)), ("explain", program(ONCE))):
        done = command(*arguments)
        assert done.code == 0
        assert done.err.startswith(
            "warning[W0201]: the variable `Ann` stands once in this rule\n --> program.dl:2:14\n"
        )
        assert (done.err.count("warning"), done.err.count(CARET)) == (1, 1)
        assert command(*arguments, "--warnings", "ignore").err == ""
        strict = command(*arguments, "--warnings", "error")
        assert (strict.code, "error[W0201]" in strict.err, CARET in strict.err) == (1, True, True)
        assert command(*arguments, "--warnings", "loud").code == 2


def test_check_has_warnings_as_json(command: Command) -> None:
    (found,) = json.loads(command("check", "--json", program(ONCE)).out)
    (warning,) = found["warnings"]
    assert (warning["code"], warning["line"], warning["column"]) == ("W0201", 2, 14)


# --- errors and exit codes -----------------------------------------------------------------------------------------


def test_a_wrong_program_is_1_with_every_mistake_and_carets(command: Command) -> None:
    done = command(*local("p(X, Y) :- q(X).\nq(1).\nr(X) :- qq(X).\n"))
    assert (done.code, done.out) == (1, "")
    assert done.err.count("error[") == 2
    assert " --> program.dl:1:6\n  |\n1 | p(X, Y) :- q(X).\n  |      ^" in done.err
    assert "did you mean `q`?" in done.err


def test_wrong_data_is_1(command: Command) -> None:
    Path("facts/arc.facts").write_text("1\t2\n2\tx\n")
    done = command(*local(f"{TC}.output tc\n"))
    assert (done.code, done.out) == (1, "")
    assert done.err == "error[E0800]: facts/arc.facts:2: column y: 'x' is not a number\n"
    assert not Path("tc.csv").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--executor", "flink"), "executor 'flink' is not known"),
        (("--param", "K"), "--param 'K' is not of the form K=V"),
        (("--rounds", "0"), "the limit on rounds must be positive"),
        (("--no-such-option",), "No such option"),
        (("--workers", "two"), "is not a valid"),
        (("--partition", "tc=²"), "--partition 'tc=²' is not of the form PREDICATE=ARGUMENT"),
        (("--partition", f"tc={'9' * 5000}"), "--partition tc: a number of 5,000 digits"),
        (("--memory", f"{'9' * 5000}GB"), "memory is a size such as 4GB"),
    ],
)
def test_wrong_arguments_are_2(options: tuple[str, ...], message: str, command: Command) -> None:
    done = command(*local(TC, *options))
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_a_file_that_is_not_there_is_2(command: Command) -> None:
    for name in ("run", "check", "explain"):
        done = command(name, "nowhere.dl")
        assert (done.code, done.out) == (2, "")
        assert "nowhere.dl" in done.err


def test_a_limit_is_3(command: Command) -> None:
    done = command(*local(f"{TC}.output tc\n", "--rounds", "1"))
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error[E0700]: stopped at the limit of 1 round while computing tc")
    assert not Path("tc.csv").exists()


def test_our_own_mistakes_are_70(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(cli, "_params", broken)
    done = command(*local(TC))
    assert (done.code, done.out) == (70, "")
    assert "error[E0999]: KeyError: 'oops'" in done.err


# --- the other commands ----------------------------------------------------------------------------------------------


def test_check(command: Command) -> None:
    assert command("check", program(TC)) == Done(0, "no aggregates in recursion; no mistakes found\n", "")
    shortest = "sp(Y, min<D>) <- Y = $START, D = 0. sp(Y, min<D>) <- sp(X, C), arc(X, Y, W), D = C + W. arc(1, 2, 3)."
    done = command("check", program(shortest), "--param", "START=1")
    assert (done.code, done.err) == (0, "")
    assert "min in sp: proved" in done.out
    done = command("check", program(shortest))
    assert done.code == 1
    assert "error[E0210]" in done.err
    assert command("check", program("p(X) :- ")).code == 1


def test_explain(command: Command) -> None:
    done = command("explain", program(TC), "--executor", "local")
    assert (done.code, done.err) == (0, "")
    assert "tc" in done.out
    done = command("explain", program(TC), "--executor", "local", "--svg", "plan.svg", "--html", "plan.html")
    assert done == Done(0, "wrote plan.svg\nwrote plan.html\n", "")
    assert Path("plan.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "<html" in Path("plan.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", ["--svg", "--html"])
@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("nowhere/plan", 2, "cannot write nowhere/plan: No such file or directory\n  = help: make the folder first"),
        (
            "program.dl/plan",
            2,
            "cannot write program.dl/plan: Not a directory\n  = help: a part of this path is a file",
        ),
        ("facts", 2, "cannot write facts: Is a directory\n  = help: a folder has this name already"),
        ("x" * 300, 2, "x: File name too long\n  = help: name a shorter one"),
        pytest.param("/dev/full", 4, "cannot write /dev/full: No space left on device\n", marks=needs_full),
    ],
)
def test_a_plan_that_cannot_be_written(option: str, path: str, code: int, message: str, command: Command) -> None:
    done = command("explain", program(TC), "--executor", "local", option, path)
    assert (done.code, done.out, message in done.err) == (code, "", True)
    assert "Traceback" not in done.err


def test_outputs_that_cannot_be_written(command: Command) -> None:
    Path("results/tc.csv").mkdir(parents=True)
    for folder, message in (
        ("program.dl", "cannot write program.dl/tc.csv: File exists\n  = help: a part of this path is a file"),
        ("program.dl/below", "cannot write program.dl/below/tc.csv: Not a directory"),
        ("results", "cannot write results/tc.csv: Is a directory"),
    ):
        done = command(*local(f"{TC}.output tc\n", "-D", folder))
        assert (done.code, done.out, message in done.err) == (2, "", True)


@pytest.mark.parametrize("options", [("-o", "made", "-n", "3"), ("--out", "made", "--size", "3", "--seed", "1")])
def test_generate(options: tuple[str, ...], command: Command) -> None:
    done = command("generate", "grid", *options)
    assert (done.code, done.err) == (0, "")
    files = list(Path("made").iterdir())
    assert files
    assert all(file.stem in done.out for file in files)


def test_generate_refuses_what_it_does_not_know(command: Command) -> None:
    for arguments in (("gird", "-o", "made"), ("grid", "-o", "made", "--format", "xml"), ("grid",)):
        assert command("generate", *arguments).code == 2
    assert not Path("made").exists()


@pytest.mark.parametrize("format", ["facts", "csv", "parquet"])
def test_generate_tells_what_it_cannot_write(format: str, command: Command) -> None:
    path = Path("made") / f"arc.{format}"
    path.mkdir(parents=True)
    done = command("generate", "grid", "-n", "3", "-o", "made", "-f", format)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error[E0900]: cannot write {path}: Is a directory\n")


@needs_full
@pytest.mark.parametrize("format", ["facts", "csv", "parquet"])
def test_generate_tells_of_a_full_disk(format: str, command: Command) -> None:
    path = Path("made") / f"arc.{format}"
    path.parent.mkdir()
    path.symlink_to("/dev/full")
    done = command("generate", "grid", "-n", "3", "-o", "made", "-f", format)
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith(f"error[E0600]: cannot write {path}: No space left on device\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("kernels", "--out", "file/below"), "--out 'file/below' cannot be a folder: Not a directory"),
        (("mra", "--data-dir", "file"), "--data-dir 'file' cannot be a folder: File exists"),
        (("memory", "--scratch", "file"), "--scratch 'file' cannot be a folder: File exists"),
        (("memory", "--out", "/proc"), "cannot write /proc: "),
    ],
)
def test_bench_tells_of_folders_before_the_work(arguments: tuple[str, ...], message: str, command: Command) -> None:
    if "/proc" in arguments and not Path("/proc").exists():
        pytest.skip("this system has no /proc")
    Path("file").touch()
    done = command("bench", *arguments, "--quick", *(() if "--out" in arguments else ("--out", "tables")))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error[E0900]: {message}")


# --- why -------------------------------------------------------------------------------------------------------------


def test_why_prints_a_derivation_and_with_not_what_is_missing(command: Command) -> None:
    arguments = ("why", program(TC), "-F", "facts", "--executor", "local")
    done = command(*arguments, "tc(1, 3)")
    assert (done.code, done.err) == (0, "")
    assert [line.partition("    ")[0] for line in done.out.splitlines()] == [
        "tc(1, 3)",
        "├─ tc(1, 2)",
        "│  └─ arc(1, 2)",
        "└─ arc(2, 3)",
    ]
    missing = command(*arguments, "tc(3, 1)", "--not")
    assert "the base relation `arc` has no such row" in missing.out
    wrong = command(*arguments, "tc(3, 1)")
    assert wrong.code == 2
    assert "why --not" in wrong.err
    assert command(*arguments, "tc(X, 1)").code == 2
    assert command(*arguments, "tc(1, 3").code == 1


def test_why_writes_pages_pictures_and_json(command: Command, tmp_path: Path) -> None:
    arguments = ("why", program(TC), "tc(1, 3)", "-F", "facts", "--executor", "local", "--all", "2")
    assert command(*arguments, "--html", "why.html", "--svg", "why.svg").out == "wrote why.svg\nwrote why.html\n"
    assert "<details open>" in (tmp_path / "why.html").read_text()
    assert (tmp_path / "why.svg").read_text().startswith("<svg")
    assert json.loads(command(*arguments, "--json").out)["height"] == 2
