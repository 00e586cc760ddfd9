"""Rounds on rows.

A round gives every relation its turn. In its turn a relation takes in what its rules make of the facts that the
relations they read found in their last turns; the facts are seen by the turns that follow, in the same round. So each
delta is used exactly once by every rule that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from emberlog.components.compositions import Composition, RowsProgram, Side, Storage
from emberlog.diagnostics import sized
from emberlog.kernels.crew import Crew
from emberlog.kernels.rows._jit import jit
from emberlog.kernels.rows.delta import Delta
from emberlog.kernels.rows.layout import SIZE, Ids, Longs, View
from emberlog.kernels.rows.maprows import MapRows
from emberlog.kernels.rows.plan import Term, by_column, order_of, terms_of
from emberlog.kernels.rows.ranks import Sweep, sweep_of
from emberlog.kernels.rows.reach import columns_of
from emberlog.kernels.rows.relations import Join, OverBudget, Rows, StaticRows
from emberlog.kernels.rows.setrows import SetRows
from emberlog.kernels.rows.slab import slabs_pay
from emberlog.kernels.rows.turn import turned
from emberlog.kernels.rows.values import RIGHT, code


class RowRun:
    """A component of recursive sets, minima and maxima, each kept as rows."""

    def __init__(
        self, program: RowsProgram, domains: Mapping[str, int], statics: Mapping[str, StaticRows],
        exits: Mapping[str, StaticRows], crew: Crew, budget: int | None, storage: Storage,
    ) -> None:  # fmt: skip
        self._program, self._statics, self._budget = program, statics, budget
        self.derivations = 0
        columns = by_column(program)
        self._rows: dict[str, Rows] = {}
        for relation in program.recursive:
            sizes = domains[relation.first], domains[relation.second]
            if relation.kind == "set":
                self._rows[relation.name] = SetRows(relation, sizes, crew, storage, columns[relation.name])
            else:
                self._rows[relation.name] = MapRows(relation, sizes, crew, columns[relation.name])
        for name, marks in columns_of(program, domains, statics, exits).items():
            rows = self._rows[name]
            if isinstance(rows, SetRows):
                rows.width = int(np.count_nonzero(marks))
        self._terms = {relation.name: terms_of(program, relation.name) for relation in program.recursive}
        self._order = order_of(program, tuple(exits))
        self._sweep = sweep_of(program, domains, statics)
        self._start(exits)

    def facts(self, name: str) -> int:
        return self._rows[name].facts

    @property
    def bytes(self) -> int:
        return sum(rows.bytes for rows in self._statics.values()) + sum(rows.bytes for rows in self._rows.values())

    def step(self) -> int:
        """One round; the number of facts that are new or changed. 0: the fixpoint is reached."""
        if self._sweep is not None:
            sweep, self._sweep = self._sweep, None
            return self._swept(sweep)
        return sum(self._turn(name) for name in self._order)

    def chunks(self, name: str, rows: int) -> Iterator[tuple[np.ndarray, ...]]:
        return self._rows[name].chunks(rows)

    def _start(self, exits: Mapping[str, StaticRows]) -> None:
        """Take in the exit facts, and what rules make of static relations alone: deltas of the first turns."""
        for name, rows in exits.items():
            self._join(name, _copy(_all(rows.view(False)), False))
        for rule in self._program.rules:
            if all(side.relation in self._statics for side in rule.sides()):
                left = _all(self._full(rule.left))
                if rule.right is None:
                    self._join(rule.head, _copy(left, rule.irreflexive))
                else:
                    self._compose(rule, left.xs, left.view, self._full(rule.right), left.facts)

    def _turn(self, name: str) -> int:
        for term in self._terms[name]:
            self._apply(term)
        return self._rows[name].turn()

    def _swept(self, sweep: Sweep) -> int:
        """Evaluate the rows that have ranks, and join the others once with all that is known; the facts found."""
        for rows in self._rows.values():
            rows.only(sweep.rest[rows.relation.first])
        for rank in range(sweep.ranks):
            for name in sweep.order:
                rows = self._rows[name]
                finds = rows.finds
                self._evaluate(name, sweep.rows[rows.relation.first][rank])
                rows.forget(finds)
        for name in sweep.order:
            self._evaluate(name, np.flatnonzero(sweep.rest[self._rows[name].relation.first]).astype(np.int32))
        for rows in self._rows.values():
            rows.turn()
        return sum(rows.facts for rows in self._rows.values())

    def _evaluate(self, name: str, xs: Ids) -> None:
        """Apply all rules of a relation to its rows `xs`, with all that is known."""
        if not len(xs):
            return
        for rule in self._program.rules:
            if rule.head == name and any(side.relation in self._rows for side in rule.sides()):
                left = self._full(rule.left)
                pairs = count_pairs(xs, left.meta)
                if rule.right is None:
                    self._join(name, Join(xs, left, left, True, rule.irreflexive, RIGHT, pairs))
                else:
                    self._compose(rule, xs, left, self._full(rule.right), pairs * self._degree(rule.right))

    def _degree(self, side: Side) -> int:
        """The average length of a row, rounded up."""
        static = self._statics.get(side.relation)
        facts = static.facts if static is not None else self._rows[side.relation].facts
        return facts // max(len(self._full(side).meta), 1) + 1

    def _apply(self, term: Term) -> None:
        rule = term.rule
        side = rule.sides()[term.delta]
        if not self._rows[side.relation].delta.facts:
            return
        delta = self._rows[side.relation].changed(side.flipped)
        if rule.right is None:
            self._join(rule.head, _copy(delta, rule.irreflexive))
        elif term.delta == 0:
            self._push(rule, rule.right, delta)
        else:
            self._pull(rule, delta)

    def _push(self, rule: Composition, right: Side, delta: Delta) -> None:
        """Join a delta on the left with the right side: row by row, or by columns where that is cheaper."""
        head = self._rows[rule.head]
        if right.relation in self._statics and isinstance(head, SetRows):
            xs = head.open(delta.xs)
            pairs = self._statics[right.relation].facts
            if slabs_pay(len(xs), delta.facts, pairs, 64 * delta.view.words, head.second):
                columns = self._full(Side(right.relation, not right.flipped))
                self.derivations += head.join_dense(xs, delta.view, columns, rule.irreflexive)
                return
        self._compose(rule, delta.xs, delta.view, self._full(right), delta.facts)

    def _pull(self, rule: Composition, delta: Delta) -> None:
        """Join left rows with a delta on the right: first find the rows that lead to it."""
        left, back = self._full(rule.left), self._full(Side(rule.left.relation, not rule.left.flipped))
        pairs = count_pairs(delta.xs, back.meta)
        if not pairs:
            return
        if pairs >= 4 * left.meta.shape[0]:
            xs = np.flatnonzero(left.meta[:, 1]).astype(np.int32)
            self._compose(rule, xs, left, delta.view, delta.facts)
            return
        metas = self._rows[rule.head].metas
        backward = turned(delta.xs, back, pairs, back.meta.shape[0], metas)
        if not left.values.size and 4 * pairs < count_pairs(backward.xs, left.meta):
            left = backward.view
        self._compose(rule, backward.xs, left, delta.view, delta.facts)
        metas.give(backward)

    def _compose(self, rule: Composition, xs: Ids, left: View, right: View, weight: int) -> None:
        head = self._rows[rule.head]
        op = code(rule.value, head.relation.kind) if rule.value is not None else 0
        # Tables move while they grow: others must not read them at the same time.
        alone = rule.value is not None and right is head.full(False)
        self._join(rule.head, Join(xs, left, right, False, rule.irreflexive, op, weight, alone))

    def _join(self, head: str, join: Join) -> None:
        self.derivations += self._rows[head].join(join)
        if self._budget is not None and self.bytes > self._budget:
            raise OverBudget(f"the rows need {sized(self.bytes)}, and {sized(self._budget)} may be used")

    def _full(self, side: Side) -> View:
        static = self._statics.get(side.relation)
        return static.view(side.flipped) if static is not None else self._rows[side.relation].full(side.flipped)


def _copy(delta: Delta, irreflexive: bool) -> Join:
    return Join(delta.xs, delta.view, delta.view, True, irreflexive, RIGHT, delta.facts)


@jit
def count_pairs(zs: Ids, meta: Longs) -> int:
    """The ids in the rows `zs`."""
    total = 0
    for z in zs:
        total += meta[z, 1] >> SIZE
    return total


def _all(view: View) -> Delta:
    """A static relation, all of it as a delta."""
    xs = np.flatnonzero(view.meta[:, 1]).astype(np.int32)
    return Delta(xs, view, len(view.items), xs)
