"""Lets a worker work and wait for real, whoever its peers are."""

from __future__ import annotations

from time import sleep
from typing import Protocol

from emberlog.workers.peers import Peers, Spend, Wait
from emberlog.workers.straggle import Disturbance
from emberlog.workers.worker import Worker


class WaitingPeers(Peers, Protocol):
    """Peers in real time."""

    def wait(self, until: float | None) -> None:
        """Returns when a message has arrived, or it is that time."""


def drive(worker: Worker, own: WaitingPeers, disturbance: Disturbance | None = None) -> None:
    """Runs a worker to its end. A disturbed one sleeps for what it loses."""
    begun = own.now()
    for pause in worker.run():
        match pause:
            case Spend():
                if disturbance is not None:
                    took = own.now() - begun
                    sleep(max(disturbance.stretched(begun, took) - took, 0.0))
            case Wait(until):
                own.wait(until)
        begun = own.now()
