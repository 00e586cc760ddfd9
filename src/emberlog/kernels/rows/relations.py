"""What relations of a run have in common: static ones, and recursive ones with their deltas."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from emberlog.components.compositions import Kind, RowRelation, ValueType
from emberlog.kernels.crew import Crew
from emberlog.kernels.rows.delta import Buffer, Delta, Metas, gathered
from emberlog.kernels.rows.layout import Ids, Values, View, grouped, words_of
from emberlog.kernels.rows.parts import packed, together
from emberlog.kernels.rows.values import dtype_of, kept


class OverBudget(Exception):
    """The rows take more memory than they were given."""


class StaticRows:
    """A relation that does not change, by its first or its second column; each is made when first asked for."""

    def __init__(self, pairs: tuple[Ids, Ids], domains: tuple[int, int]) -> None:
        self._pairs, self._domains = pairs, domains
        self._distinct = True
        self._views: dict[bool, View] = {}
        self.facts = len(pairs[0])

    def view(self, flipped: bool) -> View:
        if flipped not in self._views:
            (keys, values), (domain, width) = self._pairs, self._domains
            if flipped:
                keys, values, domain, width = values, keys, width, domain
            self._views[flipped] = grouped(keys, values, domain, width, distinct=self._distinct)
        return self._views[flipped]

    def columns(self, flipped: bool) -> tuple[Ids, Ids]:
        """The pairs, from first to second or back."""
        return self._pairs[::-1] if flipped else self._pairs

    @property
    def bytes(self) -> int:
        return sum(view.meta.nbytes + view.items.nbytes for view in self._views.values())


class StaticValues(StaticRows):
    """A static relation with a value for each pair, or with none (zeros, which nobody asks for)."""

    def __init__(
        self, pairs: tuple[Ids, Ids], domains: tuple[int, int], values: Values | None, kind: Kind, value: ValueType
    ) -> None:
        super().__init__(pairs, domains)
        self._distinct = False  # a pair may have several values
        dtype = dtype_of(value)
        self._given = kept(values, kind, value) if values is not None else np.zeros(self.facts, dtype)

    def view(self, flipped: bool) -> View:
        known = flipped in self._views
        view = super().view(flipped)
        if not known:
            places = np.arange(self.facts, dtype=np.int32)
            keys, domain = self._pairs[flipped], self._domains[flipped]
            view.values = self._given[grouped(keys, places, domain, max(self.facts, 1), distinct=False).items]
        return view


@dataclass(frozen=True, slots=True)
class Join:
    """One join of rows: for each of `xs`, its left row with right rows, or for a `copy` the right row of x itself.

    `op` makes the value, if the head has one. `weight` facts say whether sharing the work pays. `alone` forbids it.
    """

    xs: Ids
    left: View
    right: View
    copy: bool = False
    irreflexive: bool = False
    op: int = 0
    weight: int = 0
    alone: bool = False


class Stored(Protocol):
    """Rows of a relation in memory."""

    @property
    def view(self) -> View: ...

    @property
    def bytes(self) -> int: ...


class Rows(ABC):
    """A recursive relation: its full rows, the facts of its last turn, and both by columns where rules read them so."""

    store: Stored
    columns: Stored | None

    def __init__(self, relation: RowRelation, domains: tuple[int, int], crew: Crew) -> None:
        self.relation, self.crew = relation, crew
        self.first, self.second = domains
        self.words = words_of(self.second)
        self.metas, self.tall = Metas(self.first), Metas(self.second)
        dtype = None if relation.kind == "set" else dtype_of(relation.value)
        self.buffers = [Buffer(self.words, dtype) for _ in range(crew.size)]
        self.delta = gathered(self.buffers, self.metas)
        self.facts = 0
        self._turned: Delta | None = None
        self._found: list[Delta] = []

    @abstractmethod
    def join(self, join: Join) -> int:
        """Join rows, take in what is new or better; the number of derivations."""

    @abstractmethod
    def turned(self, delta: Delta) -> Delta:
        """A delta by columns."""

    @abstractmethod
    def chunks(self, rows: int) -> Iterator[tuple[np.ndarray, ...]]:
        """The facts as columns, in pieces of about `rows` facts."""

    def full(self, flipped: bool) -> View:
        """All facts, by the first column or, `flipped`, by the second."""
        found = self.columns if flipped else self.store
        assert found is not None
        return found.view

    @property
    def stored(self) -> int:
        """The bytes of the full rows."""
        return self.store.bytes + (self.columns.bytes if self.columns is not None else 0)

    @property
    def bytes(self) -> int:
        return self.stored + self.delta.bytes + sum(found.bytes for found in self._found)

    def changed(self, flipped: bool) -> Delta:
        """The facts of the last turn."""
        if not flipped:
            return self.delta
        if self._turned is None:
            self._turned = self.turned(self.delta)
        return self._turned

    def take(self, found: Delta) -> None:
        """Note facts that were found in this turn and are in the full rows."""
        if found.facts:
            self._found.append(found)
        else:
            self.metas.give(found)

    def turn(self) -> int:
        """The turn ends: what was found becomes the delta; the number of its facts."""
        if self._turned is not None:
            self.tall.give(self._turned)
            self._turned = None
        self.metas.give(self.delta)
        found, self._found = self._found, []
        if len(found) == 1:
            self.delta = found[0]
        elif not found:
            self.delta = gathered(self.buffers, self.metas)
        else:
            self.delta = together([packed(one, one.xs) for one in found], self.words, self.metas)
            for one in found:
                self.metas.give(one)
        return self.delta.facts

    @property
    def finds(self) -> int:
        """How often facts were found in this turn."""
        return len(self._found)

    def forget(self, finds: int) -> None:
        """Forget what was found after the first `finds` times: rules need not be applied to it."""
        while len(self._found) > finds:
            self.metas.give(self._found.pop())

    def only(self, rows: npt.NDArray[np.bool_]) -> None:
        """Forget what was found in other rows."""
        found, self._found = self._found, []
        for one in found:
            xs = one.xs[rows[one.xs]]
            if len(xs):
                self._found.append(together([packed(one, xs)], self.words, self.metas))
            self.metas.give(one)
