"""Where the columns of a predicate are, now that iteration indexes are gone from some places and kept in others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from emberlog.analysis.names import Predicate
from emberlog.analysis.strata import Part
from emberlog.types import NUMBER, Type


class Layout:
    """The columns of each predicate as its relation has them.

    The index of an iteration is a column only if the states are kept; the rules of the iteration itself do not mention
    it even then, so that their positions are `shift`ed by one.
    """

    def __init__(self, predicates: Mapping[str, Predicate], indexed: Mapping[str, bool], parts: Iterable[Part]) -> None:
        self.predicates = predicates
        self._indexed = indexed
        self._home = {name: number for number, part in enumerate(parts) for name in part.predicates}

    def arity(self, name: str) -> int:
        return self.predicates[name].arity - self._dropped(name)

    def names(self, name: str) -> tuple[str, ...]:
        """The declared or registered names of the columns, () if there are none."""
        return self.predicates[name].names[self._dropped(name) :]

    def types(self, name: str) -> tuple[Type | None, ...]:
        """The declared or registered types of the columns; None where it is to be inferred."""
        predicate = self.predicates[name]
        if predicate.types:
            return predicate.types[self._dropped(name) :]
        inferred: list[Type | None] = [None] * self.arity(name)
        if self._indexed.get(name):
            inferred[0] = NUMBER
        return tuple(inferred)

    def shift(self, reader: str, name: str) -> int:
        """How far the arguments of `name` in a rule of `reader` stand from its columns."""
        kept = self._indexed.get(name, False)
        return 1 if kept and self._home.get(reader) == self._home.get(name) else 0

    def _dropped(self, name: str) -> int:
        return 1 if name in self._indexed and not self._indexed[name] else 0
