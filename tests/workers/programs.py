"""Programs and graphs on which every mode must give the same answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa

import emberlog
from emberlog.components.shares import WorkerPlan, plan_workers
from emberlog.kernels import evaluate as evaluation
from emberlog.kernels.parts.build import build_parts
from emberlog.kernels.parts.part import ComponentPart
from emberlog.workers.simulated import Costs, Simulation

Row = tuple[Any, ...]

PROGRAMS: dict[str, str] = {
    "linear": "tc(X, Y) <- arc(X, Y, _). tc(X, Y) <- tc(X, Z), arc(Z, Y, _).",
    "right linear": "tc(X, Y) <- arc(X, Y, _). tc(X, Y) <- arc(X, Z, _), tc(Z, Y).",
    "non-linear": "tc(X, Y) <- arc(X, Y, _). tc(X, Y) <- tc(X, Z), tc(Z, Y).",
    "same generation": """
        sg(X, Y) <- arc(P, X, _), arc(P, Y, _), X != Y. sg(X, Y) <- arc(P, X, _), sg(P, Q), arc(Q, Y, _).""",
    "three": "tc(X, Y) <- arc(X, Y, _). tc(X, Y) <- tc(X, Z), tc(Z, W), tc(W, Y).",
    "three minima": """
        p(X, Y, min<D>) <- arc(X, Y, D).
        p(X, Y, min<D>) <- p(X, Z, A), p(Z, W, B), p(W, Y, C), arc(Y, _, _), D = A + B + C.""",
    "without": "tc(X, Y) <- arc(X, Y, _). tc(X, Y) <- tc(X, Z), arc(Z, Y, _), !arc(Y, X, _), X != Y.",
    "mutual": "odd(X, Y) <- arc(X, Y, _). even(X, Y) <- odd(X, Z), odd(Z, Y). odd(X, Y) <- even(X, Z), arc(Z, Y, _).",
    "components": "cc(X, min<X>) <- arc(X, _, _). cc(Y, min<Z>) <- cc(X, Z), arc(X, Y, _).",
    "shortest": "d(X, min<C>) <- X = 0, C = 0. d(Y, min<C>) <- d(X, A), arc(X, Y, W), C = A + W.",
    "all pairs": "p(X, Y, min<D>) <- arc(X, Y, D). p(X, Y, min<D>) <- p(X, Z, A), p(Z, Y, B), D = A + B.",
    "widest": "w(X, Y, max<D>) <- arc(X, Y, D). w(X, Y, max<D>) <- w(X, Z, A), arc(Z, Y, B), D = min(A, B).",
    "count": """
        attend(X) <- arc(X, 1, _). cnt(Y, count<X>) <- attend(X), arc(X, Y, _). attend(X) <- cnt(X, N), N >= 2.""",
}
# Sums and counts of paths end on graphs without cycles.
ACYCLIC: dict[str, str] = {
    "paths": "n(X, Y, sum<N>) <- arc(X, Y, _), N = 1. n(X, Y, sum<N>) <- n(X, Z, N), arc(Z, Y, _).",
    "cost": "s(X, sum<C>) <- arc(0, X, W), C = W / 10.0. s(Y, sum<C>) <- s(X, A), arc(X, Y, W), C = A * W / 10.0.",
}


MODES = (
    "bsp",
    "ssp:1",
    "ssp:3:2",
    "ssp:0:2",
    "async",
    "dws",
    "aap",
    "adaptive",
    "adaptive:tau=0.1,beta=64,threshold=3",
    "auto",
)


def graph(random: Random, acyclic: bool = False, nodes: int = 10) -> list[Row]:
    """Arcs with weights from 1 to 9."""
    size = random.randint(2, nodes)
    pairs = {(random.randrange(size), random.randrange(size)) for _ in range(random.randint(1, 3 * size))}
    return [(a, b, random.randint(1, 9)) for a, b in sorted(pairs) if a < b or not acyclic]


@dataclass(frozen=True)
class Inputs:
    """A component as workers get it."""

    plan: WorkerPlan
    statics: Mapping[str, pa.Table]
    exits: Mapping[str, pa.Table]

    def parts(self, size: int, small: Collection[str] = (), compiled: bool = False) -> list[Any]:
        """The parts, where statics are divided however small they are, but for some."""
        plan = plan_workers(self.plan.program, small=small)
        assert isinstance(plan, WorkerPlan)
        given = (self.statics, self.exits, size, lambda rank: Patience())
        return list(build_parts(plan, *given, compiled=compiled)[1])

    def simulation(self, mode: str, size: int, costs: Costs, **more: Any) -> Simulation:
        return Simulation(self.parts(size), mode, costs, **more)


class Patience:
    """Watches nothing."""

    most_rounds = 1 << 40

    def look(self, facts: int) -> None:
        return

    def rounds(self, deltas: list[int], facts: int) -> None:
        return

    def failed(self, code: int) -> None:
        raise AssertionError(code)

    def halting(self, halt: Any) -> Any:
        raise AssertionError

    def halted(self) -> None:
        raise AssertionError


class _Seen(Exception):
    """The inputs of a component were seen; nothing more is wanted."""


def inputs(text: str, rows: Iterable[Row]) -> Inputs:
    """What an engine would give to the workers of a program's recursive component."""
    seen: list[Inputs] = []

    def look(plan: WorkerPlan, statics: Any, exits: Any, *_: Any) -> None:
        seen.append(Inputs(plan, statics, exits))
        raise _Seen

    with (
        patch.object(evaluation, "evaluate_by_workers", look),
        suppress(_Seen),
        emberlog.Engine(executor="local", workers=1) as engine,
    ):
        arcs = pa.Table.from_pylist([dict(zip("abc", row, strict=True)) for row in rows], ARCS)
        engine.register("arc", arcs)
        engine.run(text, coordination="bsp")
    return seen[0]


ARCS = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.int64())])


def state(parts: Iterable[ComponentPart]) -> dict[str, dict[Row, Any]]:
    """The facts of all parts: by relation, from keys to values (None for sets)."""
    found: dict[str, dict[Row, Any]] = {}
    for part in parts:
        for table in part.plan.program.tables:
            columns = [column.tolist() for column in part.rows(table.name)]
            keys = zip(*(columns[key] for key in table.keys), strict=True)
            values = columns[table.value] if table.value is not None else [None] * len(columns[0])
            rows = dict(zip(keys, values, strict=True))
            assert found.setdefault(table.name, {}).keys().isdisjoint(rows), "a fact has two owners"
            found[table.name] |= rows
    return found


def answers(text: str, rows: Iterable[Row], workers: int = 1, **options: Any) -> Mapping[str, set[Row]]:
    """The rows of every relation of a program."""
    with emberlog.Engine(executor="local", workers=workers) as engine:
        engine.register("arc", list(rows))
        result = engine.run(text, **options)
        if "coordination" in options:
            assert any(stratum.coordination is not None for stratum in result.stats.strata)
        return {name: set(result[name].rows()) for name in result}
