"""How the workers of a run find one another: each gives a text, and gets those of all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic, sleep

from emberlog.kernels.cluster.exchange import PeerLost

Meeting = Callable[[str], Sequence[str]]


def meet_in(folder: Path, rank: int, size: int, wait: float = 30.0) -> Meeting:
    """A meeting through files in a folder that all workers see. Used once."""

    def meet(text: str) -> list[str]:
        write_at_once(folder / f"card-{rank}", text)
        deadline = monotonic() + wait
        texts: list[str] = []
        while len(texts) < size:
            try:
                texts.append((folder / f"card-{len(texts)}").read_text())
            except FileNotFoundError:
                if monotonic() > deadline:
                    raise PeerLost(f"worker {rank} waited {wait:g} s for worker {len(texts)} to start") from None
                sleep(0.01)
        return texts

    return meet


def write_at_once(path: Path, text: str) -> None:
    """Writes a file so that readers see all of it or none."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text)
    os.replace(draft, path)
