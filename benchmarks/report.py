"""Tables and plots of what was measured: JSON for machines, Markdown for people, SVG and PNG for the eye."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import Score
from benchmarks.programs import Case

NAMES = {
    "hashed": "ours with packed hash sets", "duck": "DuckDB", "scipy_graphs": "SciPy", "kit": "NetworKit",
    "graphx": "GraphX", "frames": "DataFrame loop",
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    case: Case
    data: str
    scores: dict[str, Score]
    memory: int | None = None

    @property
    def limit(self) -> Score:
        return next(score for name, score in self.scores.items() if name.startswith("limit "))

    @property
    def best(self) -> Score:
        """The fastest of the hand-written loops."""
        loops = [score for name, score in self.scores.items() if name.startswith("limit ") and score.total is not None]
        return min(loops, key=lambda score: score.total or 0.0)

    def ours(self, workers: int) -> Score | None:
        found = self.scores.get(f"ours {workers}")
        return found if found is not None and found.runs else None

    def ratio(self, other: Score | None, workers: int = 1) -> float | None:
        """How many times as long as another one we took."""
        mine = self.ours(workers)
        if mine is None or other is None or not mine.seconds or not other.total:
            return None
        return mine.seconds / other.total

    @property
    def speedup(self) -> float | None:
        one, two = self.ours(1), self.ours(2)
        return one.seconds / two.seconds if one and two and one.seconds and two.seconds else None


def nanoseconds(score: Score | None, derivations: int | None) -> float | None:
    return score.seconds / derivations * 1e9 if score and score.seconds and derivations else None


def as_json(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """All figures: medians and every run."""
    return [
        {
            "program": line.case.program,
            "data": line.data,
            "facts": line.limit.facts,
            "derivations": line.limit.derivations,
            "ratio": line.ratio(line.limit),
            "ratio_best": line.ratio(line.best),
            "allowed": line.case.most,
            "speedup": line.speedup,
            "peak_bytes": line.memory,
            "contestants": {name: _figures(score) for name, score in line.scores.items()},
        }
        for line in lines
    ]


def _figures(score: Score) -> dict[str, Any]:
    return {
        "build": score.build,
        "seconds": score.seconds,
        "wall": score.wall,
        "derivations": score.derivations,
        "right": score.right,
        "error": score.error,
        "runs": [[run.build, run.seconds, run.wall] for run in score.runs],
    }


HEAD = (
    "program", "data", "facts", "limit s (build + eval)", "ns/derivation", "best loop s", "ours s", "ns/derivation",
    "ratio", "to best", "end to end s", "two workers", "peak MB", "rivals: s (times ours with two workers)",
)  # fmt: skip


def as_markdown(lines: Sequence[Line]) -> str:
    rows = [_cells(line) for line in lines]
    wrong = [
        f"- {line.case.program} on {line.data}, {name}: {score.error or 'another answer than the limit'}"
        for line in lines
        for name, score in line.scores.items()
        if score.error or score.right is False
    ]
    text = "\n".join(
        ["| " + " | ".join(cells) + " |" for cells in (HEAD, tuple("---" for _ in HEAD), *rows)] + ["", machine()]
    )
    return text + ("\n\nFailed:\n" + "\n".join(wrong) if wrong else "") + "\n"


def _cells(line: Line) -> tuple[str, ...]:
    one, limit, best, files = line.ours(1), line.limit, line.best, line.scores.get("from files")
    allowed = "" if line.case.most is None else f" (<= {line.case.most:g})"
    return (
        line.case.program,
        line.data,
        _number(limit.facts),
        f"{_seconds(limit.build)} + {_seconds(limit.seconds)}",
        _short(nanoseconds(limit, limit.derivations)),
        f"{_seconds(best.total)} ({best.name.removeprefix('limit ')})",
        _seconds(one.seconds if one else None),
        _short(nanoseconds(one, limit.derivations)),
        _short(line.ratio(limit)) + allowed,
        _short(line.ratio(best)),
        _seconds(files.wall if files else None),
        _short(line.speedup),
        "" if line.memory is None else f"{line.memory / 2**20:.0f}",
        "; ".join(_rival(line, name) for name in NAMES if name in line.scores and line.scores[name].runs),
    )


def _rival(line: Line, name: str) -> str:
    score, mine = line.scores[name], line.ours(2) or line.ours(1)
    times = ""
    if mine and mine.seconds and score.seconds:
        times = f" ({score.seconds / mine.seconds:.1f}x"
        # A library that needs an index of its own is compared with it as well.
        if name in ("scipy_graphs", "kit") and score.total:
            times += f", with build {score.total / mine.seconds:.1f}x"
        times += ")"
    return f"{NAMES[name]} {_seconds(score.seconds)}{times}"


def machine() -> str:
    return f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}, Python {platform.python_version()}"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def write(lines: Sequence[Line], folder: Path) -> list[Path]:
    """Writes table, figures and plot; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    table, figures = folder / "kernels.md", folder / "kernels.json"
    table.write_text(as_markdown(lines), encoding="utf-8")
    figures.write_text(json.dumps(as_json(lines), indent=2), encoding="utf-8")
    points: dict[str, list[tuple[float | None, float | None]]] = {
        name: [(line.limit.derivations, score.seconds) for line in lines if (score := line.scores.get(name))]
        for name in ("ours 1", "ours 2")
    }
    points["limit"] = [(line.limit.derivations, line.limit.total) for line in lines]
    return [table, figures, *plot(points, folder / "kernels", "derivations", "seconds")]


def plot(
    series: dict[str, list[tuple[float | None, float | None]]], stem: Path, across: str, up: str, joined: bool = False
) -> list[Path]:
    """A log-log plot as PNG and SVG. Points that lack a figure are left out."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5.5))
    for name, points in series.items():
        known = [(x, y) for x, y in points if x and y]
        if known:
            axes.plot(*zip(*known, strict=True), "o-" if joined else "o", label=name, markersize=4)
    axes.set(xscale="log", yscale="log", xlabel=across, ylabel=up)
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(fontsize=8)
    written = [stem.with_suffix(suffix) for suffix in (".png", ".svg")]
    for path in written:
        figure.savefig(path, dpi=120, bbox_inches="tight", metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
    return written
