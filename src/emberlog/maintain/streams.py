"""Batches of a Structured Streaming query as changes of a view, each applied exactly once.

Spark numbers the batches of a query, and after a failure gives the last one again. The view remembers, as part of each
change, the number of the last batch of each query, and passes over one that it has applied. A query is known by its id,
which stands in its checkpoint: a new checkpoint is another query, whose batches begin at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from emberlog.diagnostics import UsageError
from emberlog.maintain.changes import CHANGE_TYPE, SIGN
from emberlog.maintain.durable.folder import STREAMS
from emberlog.sessions import is_connect, streaming_query

if TYPE_CHECKING:
    from emberlog.maintain.view import View

Batch: TypeAlias = Callable[[Any, int], None]


def batch_function(view: View, relation: str, name: str | None) -> Batch:
    """A function for `foreachBatch` that applies the rows of a batch to an input of the view."""

    def apply(frame: Any, number: int) -> None:
        stream = name or streaming_query(frame.sparkSession)
        if stream is None:
            raise UsageError("this is no batch of a streaming query", fix='view.batch("arc", name="arcs") names one')
        rows = {relation: frame}
        signed = not {CHANGE_TYPE, SIGN}.isdisjoint(frame.columns)
        view.apply(None if signed else rows, changes=rows if signed else None, batch=(stream, number))

    return apply


def start_stream(view: View, frame: Any, relation: str, checkpoint: str | Path | None, trigger: dict[str, Any]) -> Any:
    """Starts a query that applies each batch of a streaming frame to an input of the view."""
    if not getattr(frame, "isStreaming", False):
        raise UsageError("`stream` takes a streaming frame", fix="spark.readStream...; or apply(insert=...) for others")
    if is_connect(frame.sparkSession):
        raise UsageError("a view lives in this process, where Spark Connect runs no batches", fix="a classic session")
    if checkpoint is None and view.path is not None:
        checkpoint = view.path / STREAMS / relation
    writer = frame.writeStream.foreachBatch(batch_function(view, relation, None)).outputMode("append")
    if checkpoint is not None:
        writer = writer.option("checkpointLocation", str(Path(checkpoint).absolute()))
    return (writer.trigger(**trigger) if trigger else writer).start()
