"""Feeds a view from files until all are taken, and prints what it has then: `python fed.py SOURCE PATH`."""

from __future__ import annotations

import json
import sys
from typing import Any

import emberlog

PROGRAM = """
    .decl sold(id: number, product: symbol, n: number)
    sales(P, sum(N)) <- sold(_, P, N).
"""


def main(source: str, path: str) -> None:
    with emberlog.Engine() as engine:
        view = engine.maintain(PROGRAM, path=path)
        frame = engine.spark.readStream.schema("id long, product string, n long").option("maxFilesPerTrigger", 1)
        rows: Any = frame.json(source)
        view.stream(rows, "sold", availableNow=True).awaitTermination()
        print(json.dumps(view["sales"].rows()))


if __name__ == "__main__":
    main(*sys.argv[1:])
