"""Traces as files: lines of text, compressed where the name ends in `.gz`. `docs/scheduling.md` describes the
format."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Literal

from emberlog.diagnostics import DataError, UsageError, cannot_write
from emberlog.schedule.graph import Graph
from emberlog.schedule.trace import Trace

HEADER = "emberlog-trace 1"
FIX = "docs/scheduling.md describes the format"


def write(trace: Trace, path: Path) -> None:
    """Writes a trace, line by line."""
    try:
        with _opened(path, "w") as file:
            file.writelines(f"{line}\n" for line in _lines(trace))
    except OSError as error:
        raise cannot_write(path, error) from error


def read(path: Path) -> Trace:
    """The trace in a file. Raises `DataError` with the line where something is wrong."""
    try:
        with _opened(path, "r") as file:
            return _Reader(path, file).trace()
    except FileNotFoundError as error:
        raise UsageError(f"there is no trace {path}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is no trace: it is not text", fix=FIX) from error


def _opened(path: Path, mode: Literal["r", "w"]) -> IO[str]:
    if path.suffix == ".gz":
        return TextIOWrapper(gzip.GzipFile(path, f"{mode}b", compresslevel=6), encoding="ascii")
    return path.open(mode, encoding="ascii")


def _lines(trace: Trace) -> Iterator[str]:
    graph = trace.graph
    yield HEADER
    yield f"unit {trace.unit!r}"
    yield f"nodes {graph.size}"
    for is_task, work, span in zip(trace.tasks.tolist(), trace.work.tolist(), trace.span.tolist(), strict=True):
        yield f"t {work} {span}" if is_task else "c"
    yield f"edges {graph.successors.targets.size}"
    for node in range(graph.size):
        changed = set(trace.changes[node].tolist())
        for child in graph.successors[node].tolist():
            yield f"{node} {child} *" if child in changed else f"{node} {child}"
    yield f"initial {trace.initial.size}"
    yield from map(str, trace.initial.tolist())


class _Reader:
    """Reads the sections of a trace in their order, and knows the line for errors."""

    def __init__(self, path: Path, file: IO[str]) -> None:
        self._path = path
        self._lines = iter(file)
        self._line = 0

    def trace(self) -> Trace:
        if self._next() != HEADER.split():
            raise self._error(f"a trace begins with the line `{HEADER}`")
        unit = self._unit()
        nodes = [self._node() for _ in range(self._count("nodes"))]
        edges = [self._edge(len(nodes)) for _ in range(self._count("edges"))]
        initial = [self._number(self._fields(1)[0], len(nodes)) for _ in range(self._count("initial"))]
        if self._next():
            raise self._error("the trace goes on after its last line")
        pairs = [(tail, head) for tail, head, _ in edges]
        if len(set(pairs)) < len(pairs):
            raise DataError(f"{self._path}: an edge is there twice")
        try:
            return Trace.of(
                Graph.of(len(nodes), pairs),
                [is_task for is_task, _, _ in nodes],
                [work for _, work, _ in nodes],
                [span for _, _, span in nodes],
                initial,
                [(tail, head) for tail, head, changed in edges if changed],
                unit,
            )
        except DataError as error:
            raise DataError(f"{self._path}: {error.message}", fix=error.fix) from error

    def _unit(self) -> float:
        match self._next():
            case ["unit", text]:
                try:
                    return float(text)
                except ValueError:
                    raise self._error(f"the unit is a number of seconds, not {text[:40]!r}") from None
            case _:
                raise self._error("the second line of a trace is `unit SECONDS`")

    def _count(self, section: str) -> int:
        match self._next():
            case [name, text] if name == section:
                return self._number(text)
            case _:
                raise self._error(f"here stands `{section} COUNT`")

    def _node(self) -> tuple[bool, int, int]:
        match self._next():
            case ["t", work, span]:
                return True, self._number(work), self._number(span)
            case ["c"]:
                return False, 0, 0
            case _:
                raise self._error("a node is a line `t WORK SPAN` or `c`")

    def _edge(self, nodes: int) -> tuple[int, int, bool]:
        match self._next():
            case [tail, head]:
                return self._number(tail, nodes), self._number(head, nodes), False
            case [tail, head, "*"]:
                return self._number(tail, nodes), self._number(head, nodes), True
            case _:
                raise self._error("an edge is a line `FROM TO` or `FROM TO *`")

    def _fields(self, count: int) -> list[str]:
        fields = self._next()
        if len(fields) != count:
            raise self._error(f"here stands {count} number")
        return fields

    def _number(self, text: str, below: int | None = None) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 16):
            raise self._error(f"{text[:40]!r} is no whole number of at most 16 digits")
        if below is not None and int(text) >= below:
            raise self._error(f"there is no node {int(text)}: the {below:,} nodes count from 0")
        return int(text)

    def _next(self) -> list[str]:
        self._line += 1
        return next(self._lines, "").split()

    def _error(self, message: str) -> DataError:
        return DataError(f"{self._path}, line {self._line}: {message}", fix=FIX)
