"""Strongly connected components of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping


def strongly_connected(graph: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """The strongly connected components of a graph (a node, those that it leads to), each after those that it leads
    to."""
    return _Tarjan(graph).components()


class _Tarjan:
    """Tarjan's algorithm with a stack of its own: a chain of thousands of nodes must not overflow Python's."""

    def __init__(self, graph: Mapping[str, Iterable[str]]) -> None:
        self.graph = graph
        self.index: dict[str, int] = {}
        self.low: dict[str, int] = {}
        self.open: dict[str, None] = {}
        self.done: list[tuple[str, ...]] = []

    def components(self) -> list[tuple[str, ...]]:
        for name in self.graph:
            if name not in self.index:
                self._visit(name)
        return self.done

    def _visit(self, root: str) -> None:
        path = [(root, self._enter(root))]
        while path:
            name, successors = path[-1]
            following = next(successors, None)
            if following is None:
                path.pop()
                self._leave(name, path[-1][0] if path else None)
            elif following not in self.index:
                path.append((following, self._enter(following)))
            elif following in self.open:
                self.low[name] = min(self.low[name], self.index[following])

    def _enter(self, name: str) -> Iterator[str]:
        self.index[name] = self.low[name] = len(self.index)
        self.open[name] = None
        return iter(self.graph[name])

    def _leave(self, name: str, parent: str | None) -> None:
        if parent is not None:
            self.low[parent] = min(self.low[parent], self.low[name])
        if self.low[name] == self.index[name]:
            members: list[str] = []
            while not members or members[-1] != name:
                members.append(self.open.popitem()[0])
            self.done.append(tuple(sorted(members, key=self.index.__getitem__)))
