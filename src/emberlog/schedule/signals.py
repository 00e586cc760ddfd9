"""Brute-force signal propagation (Section II-C)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from emberlog.schedule.graph import Graph


class Signals:
    """Finds a node when all its predecessors told it whether they changed: every node tells its children, changed or
    not.

    Nothing is precomputed, and O(V + E) messages are sent whatever the change."""

    operations = 0
    memory = 0

    def start(self, graph: Graph) -> None:
        self._graph = graph
        self._waits: list[int] = graph.predecessors.counts().tolist()
        self._active: set[int] = set()
        self._found: list[int] = []
        self._taken: set[int] = set()
        self._silent: list[int] | None = np.flatnonzero(graph.predecessors.counts() == 0).tolist()
        self.operations = graph.size
        self.memory = graph.size

    def activate(self, nodes: Sequence[int]) -> None:
        self._active.update(nodes)
        self.operations += len(nodes)
        self.memory += len(nodes)

    def look(self) -> list[int]:
        if self._silent is not None:  # the first look: by now it is known which sources are active
            sources, self._silent = self._silent, None
            self._settle(sources)
        found = [node for node in self._found if node not in self._taken]
        self._found.clear()
        return found

    def take(self, nodes: Sequence[int]) -> None:
        self._taken.update(nodes)
        self.operations += len(nodes)

    def finish(self, node: int) -> None:
        self._settle(self._tell(node))

    def _settle(self, nodes: list[int]) -> None:
        """Takes up nodes that heard from all predecessors: active ones are found, others tell their children at
        once."""
        while nodes:
            node = nodes.pop()
            if node in self._active:
                self._found.append(node)
            else:
                nodes.extend(self._tell(node))

    def _tell(self, node: int) -> list[int]:
        """Sends a message to each child; returns those that have heard from all now."""
        children: list[int] = self._graph.successors[node].tolist()
        self.operations += 1 + len(children)
        heard = []
        for child in children:
            self._waits[child] -= 1
            if not self._waits[child]:
                heard.append(child)
        return heard
