"""Rounds of minima and maxima over small domains, on matrices (the loops are in `dense`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from emberlog.components.compositions import Composition, RowRelation, RowsProgram, Side
from emberlog.kernels.crew import Crew
from emberlog.kernels.rows.delta import Buffer, Delta, Metas, gathered
from emberlog.kernels.rows.dense import CHANGED, PAIRS, WHOLE, close_panel, fallen, relax, relax_panel, widest
from emberlog.kernels.rows.layout import Ids, Longs, Values
from emberlog.kernels.rows.plan import closure_of, order_of, terms_of
from emberlog.kernels.rows.relations import StaticValues
from emberlog.kernels.rows.turn import turned
from emberlog.kernels.rows.values import (
    ABSENT,
    ADD,
    BEYOND,
    EDGE,
    LIMIT,
    MAX,
    MIN,
    RIGHT,
    OutOfRange,
    code,
    dtype_of,
)  # fmt: skip

PANEL = 16
"""Rows that are closed at a time: they stay in the cache while all others are relaxed through them."""

NARROW = 1 << 24
"""Whole numbers up to here are exact as 32-bit floats, of which the most go into a vector instruction."""


class Matrix:
    """A recursive minimum: all its values, and the ids that changed in its last turn."""

    def __init__(self, relation: RowRelation, domains: tuple[int, int]) -> None:
        self.relation = relation
        self.first, self.second = domains
        dtype = dtype_of(relation.value)
        self.absent = dtype(ABSENT if relation.value == "int" else np.inf)
        self.edge = dtype(EDGE if relation.value == "int" else np.inf)
        self.limit = dtype(LIMIT if relation.value == "int" else np.inf)
        self.values: Values = np.full(domains, self.absent, dtype)
        self.before: Values = np.empty(domains, dtype)
        self.touched = np.zeros(self.first, np.bool_)
        self.facts = 0
        self._metas, self._tall = Metas(self.first), Metas(self.second)
        self._buffer = Buffer(0)
        self.delta = gathered([self._buffer], self._metas)
        self._flipped: tuple[Delta, Values] | None = None

    @property
    def bytes(self) -> int:
        return 2 * self.values.nbytes + self.delta.bytes

    def by(self, flipped: bool) -> tuple[Delta, Values]:
        """Delta and values, by columns as they were at the end of the last turn."""
        if not flipped:
            return self.delta, self.values
        if self._flipped is None:
            delta = turned(self.delta.xs, self.delta.view, self.delta.facts, self.first, self._tall, lists=True)
            self._flipped = delta, np.ascontiguousarray(self.values.T)
        return self._flipped

    def widest(self) -> float:
        """The largest absolute value."""
        return float(widest(self.values.reshape(-1), self.edge))

    def turn(self) -> int:
        """What fell becomes the delta; the number of its facts."""
        if self._flipped is not None:
            self._tall.give(self._flipped[0])
            self._flipped = None
        self._metas.give(self.delta)
        xs = np.flatnonzero(self.touched).astype(np.int32)
        buffer = self._buffer
        buffer.rows = np.empty((len(xs), 4), np.int64)
        buffer.items = np.empty(len(xs) * self.second, np.int32)
        fallen(
            xs, self.values, self.before, self.touched, self.absent, self.edge, buffer.rows, buffer.items, buffer.state
        )  # fmt: skip
        self.delta = gathered([buffer], self._metas)
        if self.delta.facts:
            self.facts = int(np.count_nonzero(self.values < self.edge))
        return self.delta.facts

    def settle(self) -> None:
        """Nothing that changed needs to be looked at."""
        self._metas.give(self.delta)
        self.delta = gathered([self._buffer], self._metas)

    def chunks(self, rows: int) -> Iterator[tuple[np.ndarray, ...]]:
        some = max(1, rows // max(self.second, 1))
        for begin in range(0, self.first, some):
            part = self.values[begin : begin + some]
            xs, ys = np.nonzero(part < self.edge)
            if len(xs):
                values = part[xs, ys]
                yield (
                    (xs + begin).astype(np.int32), ys.astype(np.int32),
                    -values if self.relation.kind == "max" else values,
                )  # fmt: skip


@dataclass(slots=True)
class Read:
    """A side as the loops read it: `values` lie beside `items` for PAIRS, else they are the matrix by rows."""

    mode: int
    meta: Longs
    items: Ids
    values: Values
    matrix: Values

    def xs(self) -> Ids:
        """The rows with anything in them; for a whole matrix all rows."""
        if self.mode == WHOLE:
            return np.arange(len(self.matrix), dtype=np.int32)
        return np.flatnonzero(self.meta[:, 1]).astype(np.int32)


class MatrixRun:
    """A component of minima, or maxima, over domains small enough for matrices."""

    def __init__(
        self, program: RowsProgram, domains: Mapping[str, int], statics: Mapping[str, StaticValues],
        exits: Mapping[str, StaticValues], crew: Crew,
    ) -> None:  # fmt: skip
        self._statics, self._crew = statics, crew
        self.derivations = 0
        self.relations = {
            relation.name: Matrix(relation, (domains[relation.first], domains[relation.second]))
            for relation in program.recursive
        }
        self._terms = {relation.name: terms_of(program, relation.name) for relation in program.recursive}
        self._order = order_of(program, tuple(exits))
        self._start(program, exits)
        self._closing = closure_of(program)

    @property
    def bytes(self) -> int:
        return sum(rows.bytes for rows in self.relations.values()) + sum(rows.bytes for rows in self._statics.values())

    def facts(self, name: str) -> int:
        return self.relations[name].facts

    def chunks(self, name: str, rows: int) -> Iterator[tuple[np.ndarray, ...]]:
        return self.relations[name].chunks(rows)

    def step(self) -> int:
        """One round; the number of facts that are new or changed. 0: the fixpoint is reached."""
        if self._closing is not None:
            rule, self._closing = self._closing, None
            if (new := self._close(rule)) is not None:
                return new
        return sum(self._turn(name) for name in self._order)

    def _start(self, program: RowsProgram, exits: Mapping[str, StaticValues]) -> None:
        """Take in the exit facts, and what rules make of static relations alone: deltas of the first turns."""
        for name, rows in exits.items():
            self._copy(self.relations[name], _pairs(rows, False), False)
        for rule in program.rules:
            if all(side.relation in self._statics for side in rule.sides()):
                left = self._full(rule.left)
                if rule.right is None:
                    self._copy(self.relations[rule.head], left, rule.irreflexive)
                else:
                    self._join(rule, left, self._full(rule.right))

    def _turn(self, name: str) -> int:
        for term in self._terms[name]:
            rule, side = term.rule, term.rule.sides()[term.delta]
            if not self.relations[side.relation].delta.facts:
                continue
            if rule.right is None:
                self._copy(self.relations[name], self._changed(side), rule.irreflexive)
            elif term.delta == 0:
                self._join(rule, self._changed(rule.left), self._full(rule.right))
            else:
                self._join(rule, self._full(rule.left), self._changed(rule.right))
        return self.relations[name].turn()

    def _copy(self, head: Matrix, right: Read, irreflexive: bool) -> None:
        self._relax(head, RIGHT, right, right, True, irreflexive)

    def _join(self, rule: Composition, left: Read, right: Read) -> None:
        head = self.relations[rule.head]
        assert rule.value is not None
        self._relax(head, code(rule.value, head.relation.kind), left, right, False, rule.irreflexive)

    def _relax(self, head: Matrix, op: int, left: Read, right: Read, copy: bool, irreflexive: bool) -> None:
        xs = left.xs()
        counts = [0] * self._crew.size

        def work(worker: int, begin: int, end: int) -> None:
            made = relax(
                xs, begin, end, op, copy, irreflexive, head.absent, head.edge, head.limit,
                left.mode, left.meta, left.items, left.values,
                right.mode, right.meta, right.items, right.values, right.matrix,
                head.values, head.before, head.touched,
            )  # fmt: skip
            if made < 0:
                raise OutOfRange(BEYOND)
            counts[worker] += made

        # While a row is relaxed it may have a value for (x, x) for a moment: others must not read it then.
        alone = irreflexive and right.matrix is head.values
        weight = 0 if alone else len(xs) * head.second
        self._crew.share(len(xs), work, least=self._crew.least(len(xs), weight))
        self.derivations += sum(counts)

    def _close(self, rule: Composition) -> int | None:
        """Close a relation under composition with itself, a panel of rows at a time; None if that may not be the end.

        One pass through all middle ids is the end where no way back to itself makes a value better: for operators
        that choose one of two values, and for sums of whole numbers that are not negative. (Sums of floats depend on
        their order.)
        """
        head = self.relations[rule.head]
        assert rule.value is not None
        op = code(rule.value, head.relation.kind)
        most = head.widest() * (head.first if op == ADD else 1)
        if op == ADD and (head.relation.value == "float" or most > LIMIT or head.values.min(initial=0) < 0):
            return None
        if op not in (ADD, MIN, MAX):
            return None
        for x in np.flatnonzero(~head.touched):
            head.before[x] = head.values[x]
        head.touched[:] = True
        values, absent, edge = head.values, head.absent, head.edge
        if head.relation.value == "int" and most <= NARROW:
            values = np.where(values < edge, values, np.inf).astype(np.float32)
            absent = edge = np.float32(np.inf)
        counts = [0] * self._crew.size
        for begin in range(0, head.first, PANEL):
            end = min(begin + PANEL, head.first)
            close_panel(op, values, begin, end, absent, edge)

            def work(worker: int, low: int, high: int, begin: int = begin, end: int = end) -> None:
                counts[worker] += relax_panel(op, values, begin, end, low, high, absent, edge)

            self._crew.share(head.first, work, least=32)
        self.derivations += sum(counts) * head.second
        if values is not head.values:
            head.values[values < edge] = values[values < edge]
        new = head.turn()
        head.settle()
        return new

    def _full(self, side: Side) -> Read:
        static = self._statics.get(side.relation)
        if static is not None:
            return _pairs(static, side.flipped)
        delta, values = self.relations[side.relation].by(side.flipped)
        return Read(WHOLE, delta.view.meta, delta.view.items, values.reshape(-1), values)

    def _changed(self, side: Side) -> Read:
        delta, values = self.relations[side.relation].by(side.flipped)
        return Read(CHANGED, delta.view.meta, delta.view.items, values.reshape(-1), values)


def _pairs(static: StaticValues, flipped: bool) -> Read:
    view = static.view(flipped)
    return Read(PAIRS, view.meta, view.items, view.values, np.empty((0, 0), view.values.dtype))
