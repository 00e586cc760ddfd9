"""`emberlog bench`: the benchmarks of a checkout. They are no part of the installed package."""

from __future__ import annotations

import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from emberlog.diagnostics import UsageError, cannot_write

commands = typer.Typer(help="Measure this machine (from a checkout).", no_args_is_help=True)


@commands.callback()
def _options() -> None:
    """Measure this machine (from a checkout)."""


@commands.command()
def kernels(
    program: Annotated[str | None, typer.Option(help="Only this program: tc, sg, reach, cc, sssp, ...")] = None,
    data: Annotated[str | None, typer.Option(help="Only this data: gnp10K, grid150, rmat1M, ...")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small data: does it all run?")] = False,
    runs: Annotated[int, typer.Option(help="Medians of so many runs.", min=1)] = 5,
    out: Annotated[Path | None, typer.Option(help="Folder for tables, figures and plots (else out/bench).")] = None,
    folder: Annotated[
        Path | None, typer.Option("--data-dir", help="Folder for the data [$EMBERLOG_BENCH_DATA or the user's cache].")
    ] = None,
    evaluator: Annotated[str, typer.Option(help="The evaluator to measure: kernel or sql.")] = "kernel",
    rivals: Annotated[bool, typer.Option(help="Also DuckDB, SciPy and NetworKit.")] = True,
    graphx: Annotated[
        bool, typer.Option("--graphx", help="Also GraphX and a loop of DataFrames (needs Java).")
    ] = False,
    slope: Annotated[bool, typer.Option("--slope", help="Time per derivation on growing data instead.")] = False,
    cold: Annotated[bool, typer.Option("--cold", help="First answers with empty caches instead.")] = False,
    variants: Annotated[
        bool, typer.Option("--variants", help="Ways that can be chosen against each other instead.")
    ] = False,
    spark: Annotated[bool, typer.Option("--spark", help="Kernels inside Spark instead (needs Java).")] = False,
) -> None:
    """The kernel evaluator against loops written by hand and against other engines."""
    if slope + cold + variants + spark > 1:
        raise UsageError("--slope, --cold, --variants and --spark are one run each")
    code = from_checkout("kernels")
    target = _target(out)
    _check_folder(folder, "--data-dir")
    if slope:
        written = code.slope(target, runs, folder, evaluator, quick, _say)
    elif cold:
        written = from_checkout("cold").run(target, evaluator, _say)
    elif variants:
        written = from_checkout("variants").run(target, runs, folder, quick, 2, _say)
    elif spark:
        written = from_checkout("on_spark").run(target, folder, evaluator, quick, runs, _say)
    else:
        chosen = code.cases(program, data, quick)
        written = code.table(chosen, target, runs, folder, evaluator, rivals, graphx, _say)
    _tell(written)


@commands.command()
def mra(
    data: Annotated[list[str] | None, typer.Option(help="Only this graph: rmat100K, rmat1M, ...")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small data: does it all run?")] = False,
    runs: Annotated[int, typer.Option(help="Medians of so many runs.", min=1)] = 3,
    workers: Annotated[int, typer.Option(help="Threads.", min=1)] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder for tables and figures (else out/bench).")] = None,
    folder: Annotated[
        Path | None, typer.Option("--data-dir", help="Folder for the data [$EMBERLOG_BENCH_DATA or the user's cache].")
    ] = None,
) -> None:
    """What proofs save: changes of aggregates against naive rounds, by the same kernels."""
    code = from_checkout("mra")
    target = _target(out)
    _check_folder(folder, "--data-dir")
    chosen = data or (code.QUICK if quick else code.DATA)
    _tell(code.run(target, runs, folder, chosen, workers, _say))


@commands.command()
def memory(
    executor: Annotated[list[str] | None, typer.Option(help="Only this executor: local, spark.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small budget: does it all run?")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for the table (else out/bench).")] = None,
    scratch: Annotated[Path | None, typer.Option(help="Folder for the scratch files of runs.")] = None,
) -> None:
    """Results of three to ten times the memory of a run, and what it takes of it."""
    target = _target(out)
    _check_folder(scratch, "--scratch")
    _tell(from_checkout("memory").run(target, executor or ["local", "spark"], quick, scratch, _say))


@commands.command()
def placement(
    program: Annotated[list[str] | None, typer.Option(help="Only this: components, sssp, reach, pagerank.")] = None,
    rows: Annotated[list[int] | None, typer.Option(help="Tables of so many rows (else 100,000 to 10,000,000).")] = None,
    values: Annotated[list[str] | None, typer.Option(help="Only these values: numbers, texts.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small tables: does it all run?")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for the table (else out/bench).")] = None,
) -> None:
    """Recursion over Spark tables: in the driver, in Spark's tasks, and where a run puts it by itself."""
    code, target = from_checkout("placement"), _target(out)
    for name in program or ():
        if name not in code.PROGRAMS:
            raise UsageError(f"there is no program {name!r}", fix=f"one of: {', '.join(code.PROGRAMS)}")
    for kind in values or ():
        if kind not in ("numbers", "texts"):
            raise UsageError(f"values are numbers or texts, not {kind!r}")
    sizes = rows or (code.QUICK if quick else code.SIZES)
    _tell(code.run(target, program or list(code.PROGRAMS), sizes, values or ["numbers", "texts"], _say))


@commands.command()
def analysis(
    program: Annotated[list[str] | None, typer.Option(help="Only this program: points_to, fields, doop, ...")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small data: does it all run?")] = False,
    runs: Annotated[int, typer.Option(help="Medians of so many runs.", min=1)] = 3,
    rivals: Annotated[bool, typer.Option(help="Also DuckDB, with a limit of half a minute.")] = True,
    out: Annotated[Path | None, typer.Option(help="Folder for the table (else out/bench).")] = None,
) -> None:
    """Program analyses: shuffled labels, texts and hubs, with one and two workers; DuckDB beside them."""
    code, target = from_checkout("analysis"), _target(out)
    names = [task.program for task in code.TASKS]
    for name in program or ():
        if name not in names:
            raise UsageError(f"there is no program {name!r}", fix=f"one of: {', '.join(names)}")
    _tell(code.run(target, program or names, quick, runs, rivals, _say))


@commands.command()
def table6(
    program: Annotated[list[str] | None, typer.Option(help="Only this program: tc, sg.")] = None,
    graph: Annotated[list[str] | None, typer.Option(help="Only this graph: Tree11, Grid150, G80K, ...")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small graphs: does it all run?")] = False,
    workers: Annotated[int, typer.Option(help="Threads.", min=1)] = 2,
    out: Annotated[Path | None, typer.Option(help="Folder for the table (else out/bench).")] = None,
) -> None:
    """The closures and same generations of BigDatalog's Table 6, counted at full size."""
    code, target = from_checkout("table6"), _target(out)
    names = [known.name for known in code.GRAPHS]
    for asked, known in ((program, list(code.TEXTS)), (graph, names)):
        for name in asked or ():
            if name not in known:
                raise UsageError(f"the table has no {name!r}", fix=f"one of: {', '.join(known)}")
    _tell(code.run(target, program or list(code.TEXTS), graph or names, quick, workers, _say))


@commands.command()
def goals(
    executor: Annotated[list[str] | None, typer.Option(help="Only this executor: local, spark.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small graph: does it all run?")] = False,
    runs: Annotated[int, typer.Option(help="Medians of so many runs.", min=1)] = 3,
    out: Annotated[Path | None, typer.Option(help="Folder for the table (else out/bench).")] = None,
) -> None:
    """Questions about one node of a large graph: goals against programs that were written for them by hand."""
    target = _target(out)
    _tell(from_checkout("goals").run(target, executor or ["local", "spark"], quick, runs, _say))


@commands.command()
def strata(
    quick: Annotated[bool, typer.Option("--quick", help="Small data: does it all run?")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for the table (else out/bench).")] = None,
) -> None:
    """Joins beside a recursion: by its loops, and by DuckDB from its rows."""
    _tell(from_checkout("strata").run(_target(out), quick, _say))


@commands.command()
def maintain(
    program: Annotated[list[str] | None, typer.Option(help="Only this program: sssp, cc, reach.")] = None,
    nodes: Annotated[list[int] | None, typer.Option(help="RMAT graphs of so many nodes, with ten edges each.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small graph: does it all run?")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for the table (else out/bench).")] = None,
) -> None:
    """One edge comes or goes: views against loops written by hand, and against NetworKit if it is installed."""
    code, target = from_checkout("maintain"), _target(out)
    for name in program or ():
        if name not in code.TEXTS:
            raise UsageError(f"there is no program {name!r}", fix=f"one of: {', '.join(code.TEXTS)}")
    sizes = nodes or (code.QUICK if quick else code.SIZES)
    _tell(code.run(target, program or list(code.TEXTS), sizes, _say))


@commands.command()
def views(
    quick: Annotated[bool, typer.Option("--quick", help="Small data: does it all run?")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for the table (else out/bench).")] = None,
) -> None:
    """Views against runs of their programs: many relations, closures, same generation; one row, and batches."""
    target = _target(out)
    _tell(from_checkout("views").run(target, quick, _say))


@commands.command()
def coordination(
    simulate: Annotated[bool, typer.Option("--simulate", help="Under a simulated clock, for any number.")] = False,
    costs: Annotated[
        str | None, typer.Option(help="Of the simulated clock: derivation=5e-7,latency=2e-4,seed=3,...")
    ] = None,
    workers: Annotated[list[int] | None, typer.Option(help="So many workers (else 2; simulated 4, 16, 64).")] = None,
    mode: Annotated[list[str] | None, typer.Option(help="Only this mode: bsp, ssp:3, dws, ...")] = None,
    program: Annotated[list[str] | None, typer.Option(help="Only this program: cc, sssp, tc, apsp.")] = None,
    straggle: Annotated[str | None, typer.Option(metavar="RATE,DURATION,SHARE", help="Other stragglers.")] = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Workers as Spark's tasks beside one task, and what it costs them to talk.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Small graphs: does it all run?")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for tables and pictures (else out/bench).")] = None,
) -> None:
    """The modes in which workers keep in step, with and without stragglers."""
    code, target = from_checkout("coordination"), _target(out)
    if spark:
        if simulate or workers or program or straggle is not None:
            raise UsageError("--spark has programs, workers and a clock of its own", fix="leave out all but --mode")
        _tell(from_checkout("tasks").run(target, mode or ["bsp", "async"], quick, _say))
        return
    names = [task.name for task in code.TASKS]
    for name in program or ():
        if name not in names:
            raise UsageError(f"there is no program {name!r}", fix=f"one of: {', '.join(names)}")
    if costs is not None and not simulate:
        raise UsageError("costs are those of a simulated clock", fix="add --simulate")
    sizes = workers or ([4, 16, 64] if simulate else [2])
    clock = (code.COSTS if costs is None else costs) if simulate else None
    _tell(code.run(target, sizes, mode or code.MODES, program or names, straggle or code.STRAGGLE, clock, quick, _say))


def _target(out: Path | None) -> Path:
    """The folder for the tables."""
    target: Path = out or from_checkout("kernels").default_out()
    _check_folder(target, "--out")
    return target


def _check_folder(folder: Path | None, option: str) -> None:
    """Makes the folder and tries it, so that a wrong one is an error before the work and not after it."""
    if folder is None:
        return
    from emberlog.data.paths import make_folder

    make_folder(folder, option)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise cannot_write(folder, error) from error


def _tell(written: list[Path]) -> None:
    """Prints the tables that were written, and where everything is."""
    for path in written:
        if path.suffix == ".md":
            print(path.read_text(encoding="utf-8"))
    for path in written:
        print(f"wrote {path}")


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def from_checkout(name: str) -> Any:
    """A module of the folder `benchmarks` of the checkout that this package is run from."""
    checkout = Path(__file__).parents[3]
    if not (checkout / "benchmarks" / "harness.py").is_file():
        raise UsageError(
            "the benchmarks are not here: they are part of the repository, not of the installed package",
            fix="clone the repository, install it with `pip install -e '.[bench]'`, and run `emberlog bench` again",
        )
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    try:
        return import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith(("benchmarks", "emberlog")):
            raise
        raise UsageError(f"{error.name} is not installed", fix="pip install -e '.[bench]'") from error
