"""Workers for the tests: small, by hand, and some that fail."""

from __future__ import annotations

import json
import os
import signal
from time import sleep
from typing import Any

import numpy as np

from emberlog.diagnostics import LimitError
from emberlog.kernels.cluster.exchange import Alone, Array, Exchange
from emberlog.kernels.cluster.links import Links
from emberlog.kernels.cluster.parts import Output
from emberlog.kernels.cluster.sockets import SocketExchange
from emberlog.kernels.owners import owners

Inputs = dict[str, list[Array]]


def over(links: Links | None) -> Exchange:
    return Alone() if links is None else SocketExchange(links)


def reach(rank: int, size: int, inputs: Inputs, links: Links | None, output: Output) -> bytes:
    """`reach(Y, D)`: the nodes reached from `start`, and in how many steps. Arcs are placed by their source."""
    exchange = over(links)
    source, target = inputs["arc"]
    known: dict[int, int] = {}
    fresh: Array = np.unique(inputs["start"][0])
    depth = rounds = 0
    while True:
        rounds += 1
        mine = np.array([node for node in fresh.tolist() if node not in known], np.int64)
        known |= dict.fromkeys(mine.tolist(), depth)
        found = np.unique(target[np.isin(source, mine)])
        outgoing = [[found[owners([found], len(found), size) == peer]] for peer in range(size)]
        received, told = exchange.swap(outgoing, (mine.size,))
        if not sum(new for (new,) in told):
            break
        fresh = np.unique(np.concatenate([array for (array,) in received]))
        depth += 1
    with output.writer("reach") as writer:
        writer.write([np.array(list(known), np.int64), np.array(list(known.values()), np.int64)])
    return json.dumps({"rounds": rounds, "known": len(known)}).encode()


def echo(rank: int, size: int, inputs: Inputs, links: Links | None, output: Output) -> bytes:
    """Gives every input back as it came, and tells how many rows there were."""
    for name, columns in inputs.items():
        if name in output.relations:
            with output.writer(name) as writer:
                writer.write(columns)
    return json.dumps({name: len(columns[0]) for name, columns in inputs.items()}).encode()


def count(rank: int, size: int, inputs: Inputs, links: Links | None, output: Output) -> bytes:
    """Nothing but one round."""
    exchange = over(links)
    _, told = exchange.swap([[] for _ in range(size)], (rank,))
    return json.dumps([value for (value,) in told]).encode()


def breaks(rank: int, size: int, inputs: Inputs, links: Links | None, output: Output) -> bytes:
    """The last worker fails while the others wait for it."""
    exchange = over(links)
    if rank == size - 1:
        raise ValueError("seven is not a node")
    exchange.swap([[] for _ in range(size)])
    return b""


def exceeds(rank: int, size: int, inputs: Inputs, links: Links | None, output: Output) -> bytes:
    """A worker raises an error of ours."""
    exchange = over(links)
    if rank == 0:
        raise LimitError("more than 10 rows", fix="raise the limit")
    exchange.swap([[] for _ in range(size)])
    return b""


def dies(rank: int, size: int, inputs: Inputs, links: Links | None, output: Output) -> bytes:
    """The process of worker 0 is killed in the second round."""
    exchange = over(links)
    exchange.swap([[] for _ in range(size)])
    if rank == 0:
        sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    exchange.swap([[] for _ in range(size)])
    return b""


def fills(rows: int) -> Any:
    """A worker that writes that many pairs."""

    def worker(rank: int, size: int, inputs: Inputs, links: Links | None, output: Output) -> bytes:
        with output.writer("pair") as writer:
            writer.write([np.full(rows, rank), np.arange(rows)])
        return b""

    return worker
