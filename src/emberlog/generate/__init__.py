"""Seeded data for the papers' programs, at any size.

`graphs` has the plain graphs (tree, grid, G(n,p), RMAT, DAG), `records` the data sets that describe something (bill of
materials, marketing network, social network, accounts, organisation, program to analyse), `programs` what program
analyses read, `numeric` those for programs on real numbers (network, hidden Markov model), `draw` what they share and
`files` writes them. Every generator returns one Arrow table a relation; the same arguments and seed give the same
tables. `make` picks a generator by name, for the command line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

from emberlog.diagnostics import UsageError, did_you_mean
from emberlog.generate.draw import Tables
from emberlog.generate.files import FORMATS, check_format, write
from emberlog.generate.graphs import dag, gnp, grid, rmat, tree
from emberlog.generate.numeric import hmm, network
from emberlog.generate.programs import aliases, brackets, edits, flow, loans, modules, objects, ontology
from emberlog.generate.records import accounts, bom, heap, mlm, org, social

__all__ = [
    "FORMATS", "KINDS", "Kind", "Tables", "accounts", "aliases", "bom", "brackets", "check_format", "dag", "edits",
    "flow", "gnp", "grid", "heap", "hmm", "loans", "make", "mlm", "modules", "network", "objects", "ontology", "org",
    "rmat", "social", "tree", "write",
]  # fmt: skip

LARGEST = 1e9


@dataclass(frozen=True, slots=True)
class Kind:
    """A generator by name: called with size, probability and seed. `size` is its default size."""

    make: Callable[[float, float | None, int], Tables]
    size: float
    about: str


def _sized(maker: Callable[..., Tables], size: float, about: str) -> Kind:
    """A generator that has a whole number as its size and no probability."""

    def make(size: float, p: float | None, seed: int) -> Tables:
        if p is not None:
            raise UsageError(f"`{maker.__name__}` has no probability p", fix="p belongs to `gnp`")
        return maker(_whole(size), seed=seed)

    return Kind(make, size, about)


def _gnp(size: float, p: float | None, seed: int) -> Tables:
    return gnp(_whole(size), seed=seed) if p is None else gnp(_whole(size), p, seed=seed)


def _mlm(size: float, p: float | None, seed: int) -> Tables:
    if p is not None:
        raise UsageError("`mlm` has no probability p", fix="p belongs to `gnp`")
    return mlm(size, seed=seed)


def _whole(size: float) -> int:
    if not float(size).is_integer():
        raise UsageError(f"the size must be a whole number, not {size}")
    return int(size)


KINDS: dict[str, Kind] = {
    "tree": _sized(tree, 8, "a tree of this height"),
    "grid": _sized(grid, 50, "a grid of (size+1)^2 nodes"),
    "gnp": Kind(_gnp, 2000, "a random graph: each possible edge is there with probability p (0.001)"),
    "rmat": _sized(rmat, 1000, "a skewed graph with 10*size weighted edges"),
    "dag": _sized(dag, 1000, "a layered graph without cycles"),
    "bom": _sized(bom, 10_000, "a bill of materials with this many parts"),
    "mlm": Kind(_mlm, 0.01, "a marketing network; size is the scale factor"),
    "social": _sized(social, 1000, "people, friends, companies"),
    "accounts": _sized(accounts, 1000, "accounts that share e-mails, phones, cards and devices"),
    "org": _sized(org, 1000, "people, managers, nested groups, permissions"),
    "heap": _sized(heap, 1000, "the assignments of a program with pointers"),
    "objects": _sized(objects, 1000, "a program of objects with this many variables, and its virtual calls"),
    "aliases": _sized(aliases, 1000, "assignments and dereferences of this many expressions"),
    "flow": _sized(flow, 1000, "a control-flow graph of this many points, and where values are null"),
    "brackets": _sized(brackets, 1000, "calls and returns between this many points, as brackets"),
    "ontology": _sized(ontology, 1000, "an ontology of this many concepts, in the shape of Galen's"),
    "edits": _sized(edits, 1000, "the edits of a text of this many characters that many write"),
    "loans": _sized(loans, 1000, "borrows of functions with this many points, as Polonius reads them"),
    "modules": _sized(modules, 1000, "modules that import and rename what others define, as texts"),
    "network": _sized(network, 1000, "a network with weights, beliefs and features on its nodes"),
    "hmm": _sized(hmm, 100, "a hidden Markov model and this many signs that were seen"),
}


def make(kind: str, size: float | None = None, *, p: float | None = None, seed: int = 0) -> Tables:
    """The data set `kind` at `size` (by default the kind's own). Arguments that make no sense are a `UsageError`."""
    found = KINDS.get(kind)
    if found is None:
        near = did_you_mean(kind, KINDS)
        raise UsageError(f"unknown kind of data `{kind}`", fix=near or f"one of: {', '.join(KINDS)}")
    wanted = found.size if size is None else size
    if wanted > LARGEST and isfinite(wanted):
        raise UsageError(f"a size of {wanted:g} is more than can be made", fix=f"at most {LARGEST:g}")
    try:
        return found.make(wanted, p, seed)
    except MemoryError:
        raise UsageError(f"`{kind}` of size {wanted:g} does not fit in memory", fix="ask for a smaller size") from None
