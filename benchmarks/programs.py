"""The programs of the table: what is asked, of which relations, and which loops are their limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module

from benchmarks.limits.common import Inputs, Limit

SOURCE = 0
"""The node that reach and sssp start from: the best connected one of an R-MAT graph."""


@dataclass(frozen=True)
class Program:
    """`result` is the predicate that is compared; its rows are exact, or `tolerance` bounds the sum of differences in
    the last column. `limit` and `faster` name functions of `benchmarks.limits`: the loop that the rules describe, and
    loops that come to the same answer on another way."""

    name: str
    text: str
    result: str
    reads: tuple[str, ...]
    limit: str
    faster: tuple[str, ...] = ()
    params: Mapping[str, object] = field(default_factory=dict)
    tolerance: float | None = None

    def evaluate(self, variant: str) -> Callable[[Inputs], Limit]:
        """A loop by its name, `module` or `module:variant`."""
        module, _, name = variant.partition(":")
        found: Callable[[Inputs], Limit] = getattr(
            import_module(f"benchmarks.limits.{module}"), f"evaluate_{name}" if name else "evaluate"
        )
        return found


TC = """
tc(X, Y) <- arc(X, Y).
tc(X, Y) <- tc(X, Z), arc(Z, Y).
"""
SG = """
sg(X, Y) <- arc(P, X), arc(P, Y), X != Y.
sg(X, Y) <- arc(A, X), sg(A, B), arc(B, Y).
"""
REACH = """
reach(Y) <- Y = $ID.
reach(Y) <- reach(X), arc(X, Y).
"""
CC = """
cc(X, min<X>) <- arc(X, _).
cc(Y, min<V>) <- cc(X, V), arc(X, Y).
"""
CC_UNDIRECTED = """
.output cc
uarc(X, Y) <- arc(X, Y).
uarc(X, Y) <- arc(Y, X).
cc(X, min<X>) <- uarc(X, _).
cc(Y, min<V>) <- cc(X, V), uarc(X, Y).
"""
SSSP = """
sssp(Y, min<D>) <- Y = $ID, D = 0.
sssp(Y, min<D>) <- sssp(X, C), warc(X, Y, W), D = C + W.
"""
PAGERANK = """
.output rank
size(count(X)) <- node(X).
degree(X, count(Y)) <- arc(X, Y).
rank(0, X, r) <- node(X), size(n), r = 1.0 / n.
rank(i+1, Y, sum[r]) <- node(Y), size(n), r = 0.15 / n;
                     <- rank(i, X, q), arc(X, Y), degree(X, d), r = 0.85 * q / d;
                     {sum[delta r] < 0.0001}.
"""
APSP = """
path(X, Y, min<D>) <- warc(X, Y, D).
path(X, Y, min<D>) <- path(X, Z, D1), warc(Z, Y, D2), D = D1 + D2.
"""
APSP_NONLINEAR = """
path(X, Y, min<D>) <- warc(X, Y, D).
path(X, Y, min<D>) <- path(X, Z, D1), path(Z, Y, D2), D = D1 + D2.
"""
DELIVERY = """
delivery(P, max<D>) <- basic(P, D).
delivery(P, max<D>) <- assbl(P, S), delivery(S, D).
"""
ANDERSEN = """
points(V, O) <- address(V, O).
points(V, O) <- assign(V, W), points(W, O).
points(V, O) <- load(V, P), points(P, Q), points(Q, O).
points(Q, O) <- store(P, W), points(P, Q), points(W, O).
"""

PROGRAMS: dict[str, Program] = {
    program.name: program
    for program in (
        Program("tc", TC, "tc", ("arc",), "tc", ("tc:rows",)),
        Program("sg", SG, "sg", ("arc",), "sg", ("sg:turned",)),
        Program("reach", REACH, "reach", ("arc",), "reach", params={"ID": SOURCE}),
        Program("cc", CC, "cc", ("arc",), "cc"),
        Program("cc_undirected", CC_UNDIRECTED, "cc", ("arc",), "cc_undirected", ("cc_undirected:union",)),
        Program("sssp", SSSP, "sssp", ("warc",), "sssp", params={"ID": SOURCE}),
        # Two answers that stopped at a change of eps are each within eps * 0.85 / 0.15 of the fixpoint.
        Program(
            "pagerank",
            PAGERANK,
            "rank",
            ("arc", "node"),
            "pagerank",
            ("pagerank:in_place",),
            tolerance=2e-4 * 0.85 / 0.15,
        ),
        Program("apsp", APSP, "path", ("warc",), "apsp"),
        Program("apsp_nonlinear", APSP_NONLINEAR, "path", ("warc",), "apsp:nonlinear"),
        Program("delivery", DELIVERY, "delivery", ("assbl", "basic"), "delivery"),
        Program("andersen", ANDERSEN, "points", ("address", "assign", "load", "store"), "andersen"),
    )
}


@dataclass(frozen=True)
class Case:
    """A line of the table: a program on data, and how many times the limit may be taken (None: only reported)."""

    program: str
    data: str
    quick: str
    most: float | None


TABLE = (
    Case("tc", "gnp10K", "gnp1K", 1.5),
    Case("tc", "grid150", "grid30", 1.5),
    Case("tc", "tree11", "tree7", 1.5),
    Case("tc", "gnp5K", "gnp2K", None),
    Case("tc", "dag40K", "dag500", None),
    Case("tc", "gnp10K-shuffled", "gnp1K-shuffled", None),
    Case("tc", "grid150-shuffled", "grid30-shuffled", None),
    Case("tc", "tree11-shuffled", "tree7-shuffled", None),
    Case("tc", "dag40K-shuffled", "dag500-shuffled", None),
    Case("sg", "gnp10K", "gnp1K", 1.5),
    Case("sg", "gnp2K", "gnp1K", None),
    Case("sg", "grid150", "grid30", 1.5),
    Case("sg", "grid150-shuffled", "grid30-shuffled", None),
    Case("reach", "rmat1M", "rmat10K", 1.5),
    Case("cc", "rmat1M", "rmat10K", 1.5),
    Case("cc_undirected", "rmat1M", "rmat10K", 1.5),
    Case("sssp", "rmat1M", "rmat10K", 1.5),
    Case("pagerank", "rmat1M", "rmat10K", 1.5),
    Case("apsp", "rmat512", "rmat128", 2.0),
    Case("apsp", "rmat1K", "rmat256", 2.0),
    Case("apsp_nonlinear", "rmat512", "rmat128", 2.0),
    Case("apsp_nonlinear", "rmat1K", "rmat256", 2.0),
    Case("delivery", "bom1M", "bom10K", 2.0),
    Case("andersen", "heap1M", "heap10K", None),
)
