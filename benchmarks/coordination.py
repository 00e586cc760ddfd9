"""`emberlog bench coordination`: the modes of coordination against each other, with and without stragglers.

The tables have the form of SSP's Tables 1 and 2: average compute and average wait of a worker, and the run time. With
`--simulate` the same workers and modes run under a simulated clock, for any number of workers; their answers are
computed for real, and compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

import emberlog
from benchmarks.report import machine
from emberlog.generate.graphs import gnp, rmat
from emberlog.workers.stats import Coordinated

Say = Callable[[str], None]

MODES = ("bsp", "ssp:3", "ssp:3:3", "ssp:6:3", "async", "dws", "aap", "adaptive", "auto")
COSTS = "derivation=5e-7,taken=2e-7,merged=1e-7,latency=2e-4,message=1e-5,bandwidth=1e8"
STRAGGLE = "50,0.01,0.75"  # fifty a second, 10 ms each: a worker is disturbed for a third of its time
PICTURED = ("bsp", "ssp:3:3", "async")  # modes whose timelines are drawn


@dataclass(frozen=True)
class Task:
    """A program and the graph that it reads as `arc`."""

    name: str
    text: str
    graph: Callable[[], pa.Table]
    quick: Callable[[], pa.Table]


TASKS = (
    Task(
        "cc",
        "cc(X, min<X>) <- arc(X, _). cc(X, min<X>) <- arc(_, X). cc(Y, min<Z>) <- cc(X, Z), arc(X, Y).",
        lambda: rmat(1000)["arc"],
        lambda: rmat(300)["arc"],
    ),
    Task(
        "sssp",
        "d(X, min<C>) <- X = 0, C = 0. d(Y, min<C>) <- d(X, A), arc(X, Y, W), W >= 0, C = A + W.",
        lambda: rmat(1000)["warc"],
        lambda: rmat(300)["warc"],
    ),
    Task(
        "tc",
        "tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), arc(Z, Y).",
        lambda: gnp(200, 0.01)["arc"],
        lambda: gnp(60, 0.03)["arc"],
    ),
    Task(
        "apsp",
        "p(X, Y, min<D>) <- arc(X, Y, D). p(X, Y, min<D>) <- p(X, Z, A), p(Z, Y, B), D = A + B.",
        lambda: rmat(64)["warc"],
        lambda: rmat(32)["warc"],
    ),
)


@dataclass(frozen=True)
class Figure:
    """One run."""

    program: str
    workers: int
    straggle: str
    mode: str
    compute: float
    wait: float
    seconds: float
    messages: int
    bytes: int
    derivations: int
    why: str


def run(
    target: Path,
    workers: Sequence[int],
    modes: Sequence[str],
    programs: Sequence[str],
    straggle: str,
    simulate: str | None,
    quick: bool,
    say: Say,
) -> list[Path]:
    """Runs every program in every mode, with and without stragglers, and writes the tables."""
    figures: list[Figure] = []
    pictures: list[Path] = []
    for task in (task for task in TASKS if task.name in programs):
        arcs = task.quick() if quick else task.graph()
        right: int | None = None
        for size in workers:
            for disturbed in (None, straggle):
                for mode in modes:
                    ran, count, derivations = _run(task, arcs, size, mode, disturbed, simulate)
                    assert right in (None, count), f"{task.name} under {mode}: {count} facts, not {right}"
                    right = count
                    figures.append(_figure(task, ran, disturbed or "", derivations))
                    say(f"{task.name} on {size}, {mode}{', stragglers' if disturbed else ''}: {ran.seconds:.4f} s")
                    if disturbed and size == min(workers) and mode in PICTURED:
                        pictures.append(target / f"coordination-{task.name}-{mode.replace(':', '-')}.svg")
                        pictures[-1].write_text(ran.to_svg(), encoding="utf-8")
    table, data = target / "coordination.md", target / "coordination.json"
    table.write_text(_markdown(figures, simulate, straggle), encoding="utf-8")
    data.write_text(json.dumps([asdict(figure) for figure in figures], indent=1), encoding="utf-8")
    return [table, data, *pictures]


def _run(
    task: Task, arcs: pa.Table, size: int, mode: str, straggle: str | None, simulate: str | None
) -> tuple[Coordinated, int, int]:
    """What the workers did, how many facts there are, and from how many derivations."""
    with emberlog.Engine(executor="local", workers=size) as engine:
        engine.register("arc", arcs)
        result = engine.run(task.text, coordination=mode, straggle=straggle, simulate=simulate)
        (stratum,) = (stratum for stratum in result.stats.strata if stratum.coordination is not None)
        assert stratum.coordination is not None and stratum.facts is not None
        return stratum.coordination, stratum.facts, stratum.derivations or 0


def _figure(task: Task, ran: Coordinated, straggle: str, derivations: int) -> Figure:
    messages, volume = sum(lane.messages for lane in ran.lanes), sum(lane.bytes for lane in ran.lanes)
    size = len(ran.lanes)
    return Figure(
        task.name, size, straggle, ran.mode, ran.compute, ran.wait, ran.seconds, messages, volume, derivations, ran.why
    )


def _markdown(figures: Sequence[Figure], simulate: str | None, straggle: str) -> str:
    how = f"Simulated ({simulate or 'usual costs'})" if simulate is not None else f"On threads of {machine()}"
    told = "Compute and wait are averages of a worker, in seconds."
    lines = [f"{how}; stragglers {straggle} (rate, duration, share). {told}", ""]
    lines += ["| program | workers | stragglers | mode | compute | wait | run | of bsp | messages | derivations |"]
    lines += ["|---|---|---|---|---|---|---|---|---|---|"]
    for one in figures:
        rounds = next((f for f in figures if f.mode == "bsp" and _setting(f) == _setting(one)), one)
        lines.append(
            f"| {one.program} | {one.workers} | {'yes' if one.straggle else 'no'} | {one.mode} | {one.compute:.4f} "
            f"| {one.wait:.4f} | {one.seconds:.4f} | {one.seconds / rounds.seconds:.2f} | {one.messages:,} "
            f"| {one.derivations:,} |"
        )
    reasons = dict.fromkeys(f"- {f.program} on {f.workers}: {f.why}" for f in figures if f.mode == "auto")
    return "\n".join([*lines, "", "What `auto` saw:", "", *reasons, ""])


def _setting(figure: Figure) -> tuple[str, int, str]:
    return figure.program, figure.workers, figure.straggle
