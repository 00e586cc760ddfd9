"""Programs over one small graph that compiled loops maintain, random changes to it, and what must come out."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import networkx
import pyarrow as pa

import emberlog

Row: TypeAlias = tuple[Any, ...]
Draw: TypeAlias = Callable[[random.Random], Row]
NODES = 9


def numbers(rnd: random.Random) -> Row:
    """An edge with a weight of 0 to 3: ties, cycles of weight 0 and loops are frequent."""
    return rnd.randrange(NODES), rnd.randrange(NODES), rnd.choice((0, 0, 1, 2, 3))


def forwards(rnd: random.Random) -> Row:
    """An edge to a larger node, with a weight that may be negative."""
    x = rnd.randrange(NODES - 1)
    return x, rnd.randrange(x + 1, NODES), rnd.randrange(-4, 5)


def texts(rnd: random.Random) -> Row:
    return rnd.choice("abcdefg"), rnd.choice("abcdefg"), rnd.randrange(4)


def floats(rnd: random.Random) -> Row:
    return rnd.randrange(NODES), rnd.randrange(NODES), rnd.choice((0.0, 0.1, 0.25, 1.5, 1e300))


def far_apart(rnd: random.Random) -> Row:
    nodes = (0, 1, -(2**62), 2**62, 10**15, -7, 3)
    return rnd.choice(nodes), rnd.choice(nodes), rnd.randrange(3)


@dataclass(frozen=True)
class Graph:
    """A program over `e`, the relation that is asked for, and how edges are drawn."""

    text: str
    asked: str
    draw: Draw = numbers
    type: str = "number"
    weight: str = "number"

    @property
    def program(self) -> str:
        return f".decl e(x: {self.type}, y: {self.type}, w: {self.weight})\n{self.text}"


SSSP = "d(Y, min(D)) <- Y = 0, D = 0. d(Y, min(D)) <- d(X, C), e(X, Y, W), D = C + W."
CC = "c(X, min(X)) <- e(X, _, _). c(Y, min(V)) <- c(X, V), e(X, Y, _)."
REACH = "r(Y) <- Y = 0. r(Y) <- r(X), e(X, Y, _)."
GRAPHS: Mapping[str, Graph] = {
    "sssp": Graph(SSSP, "d"),
    "negative weights": Graph(SSSP, "d", forwards),
    "floats": Graph(SSSP.replace("D = 0.", "D = 0.0."), "d", floats, weight="float"),
    "far apart": Graph(SSSP, "d", far_apart),
    "cc": Graph(CC, "c"),
    "largest": Graph(CC.replace("min", "max"), "c"),
    "reach": Graph(REACH, "r"),
    "texts": Graph('r(Y) <- Y = "a". r(Y) <- r(X), e(X, Y, _), Y != "b".', "r", texts, "symbol"),
    "texts with distances": Graph(
        'd(Y, min(D)) <- Y = "a", D = 0. d(Y, min(D)) <- d(X, C), e(X, Y, W), D = C + W.', "d", texts, "symbol"
    ),
    "closure": Graph("t(X, Y) <- e(X, Y, _). t(X, Y) <- t(X, Z), e(Z, Y, _).", "t"),
    "closure by halves": Graph("t(X, Y) <- e(X, Y, _). t(X, Y) <- t(X, Z), t(Z, Y).", "t"),
    "same generation": Graph(
        "s(X, Y) <- e(P, X, _), e(P, Y, _), X != Y. s(X, Y) <- e(A, X, _), s(A, B), e(B, Y, _).", "s"
    ),
    "both ways": Graph("odd(Y) <- e(0, Y, _). odd(Y) <- even(X), e(X, Y, _). even(Y) <- odd(X), e(X, Y, _).", "even"),
    "negation": Graph("r(Y) <- Y = 0. r(Y) <- r(X), e(X, Y, _), !e(Y, _, 3), !e(Y, X, 2).", "r"),
    "conditions": Graph(
        "t(X, Y) <- e(X, Y, W), W > 0. t(X, Y) <- t(Y, X), X > 2. t(X, Y) <- t(X, Z), e(Z, Y, 1).", "t"
    ),
    "widest": Graph("p(Y, max(W)) <- e(0, Y, W). p(Y, max(D)) <- p(X, C), e(X, Y, W), D = min(C, W).", "p"),
    "all pairs": Graph("a(X, Y, min(W)) <- e(X, Y, W). a(X, Y, min(D)) <- a(X, Z, B), a(Z, Y, C), D = B + C.", "a"),
    "read on": Graph(REACH + "n(count(X)) <- r(X). out(X) <- e(X, _, _), !r(X).", "out"),
    "two recursions": Graph(REACH + "b(X) <- r(X), e(X, X, _). b(Y) <- b(X), e(X, Y, _), r(Y).", "b"),
}


def evaluate(graph: Graph, edges: set[Row]) -> set[Row]:
    """What an ordinary run gives."""
    with emberlog.Engine(executor="local", workers=1, warnings="ignore") as engine:
        engine.register("e", table_of(graph, edges))
        return set(engine.run(graph.program)[graph.asked].rows())


def table_of(graph: Graph, edges: set[Row]) -> pa.Table:
    types = {"number": pa.int64(), "float": pa.float64(), "symbol": pa.string()}
    columns = zip((graph.type, graph.type, graph.weight), range(3), strict=True)
    return pa.table(
        [pa.array([edge[i] for edge in sorted(edges)], types[kind]) for kind, i in columns], names=list("xyw")
    )


def by_networkx(name: str, edges: set[Row]) -> set[Row] | None:
    """What networkx gives for the programs that it knows."""
    graph: Any = networkx.MultiDiGraph()
    graph.add_nodes_from(range(NODES))
    graph.add_weighted_edges_from(edges)
    match name:
        case "sssp" | "floats":
            return set(networkx.single_source_dijkstra_path_length(graph, 0).items())
        case "negative weights":
            return set(networkx.single_source_bellman_ford_path_length(graph, 0).items())
        case "reach":
            return {(node,) for node in {0, *networkx.descendants(graph, 0)}}
        case "cc":
            starts = {x for x, _, _ in edges}
            above = {y: ({y} | networkx.ancestors(graph, y)) & starts for y in graph}
            return {(y, min(found)) for y, found in above.items() if found}
        case "closure" | "closure by halves":
            return {(x, y) for x in graph for y in _after(graph, x)}
        case _:
            return None


def _after(graph: Any, node: int) -> set[int]:
    """The nodes that a path of at least one edge leads to."""
    found: set[int] = set()
    for follower in graph.successors(node):
        found |= {follower} | networkx.descendants(graph, follower)
    return found
