"""Rules on their way to the core form: what normalizing makes, and the later passes order, type and elaborate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from emberlog.analysis.program import Literal
from emberlog.source import NOWHERE, Span
from emberlog.syntax.nodes import Aggregate, Constant, Term, Until


@dataclass(frozen=True, slots=True)
class Draft:
    """A rule with one head and one conjunction.

    Until `safety` the literals stand in the order they were written, an equation is a `Filter` whether or not it binds
    a variable, and a `Gather` does not know yet what it takes from outside. `item` is the number of the rule in the
    program's text, `head_span` the place of its head.
    """

    id: int
    item: int
    predicate: str
    arguments: tuple[Term, ...]
    body: tuple[Literal, ...]
    order: tuple[tuple[str, bool], ...] = ()
    limit: int | None = None
    start: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    head_span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def aggregates(self) -> tuple[tuple[int, Aggregate], ...]:
        """Position and aggregate of each aggregated column."""
        return tuple((i, arg) for i, arg in enumerate(self.arguments) if isinstance(arg, Aggregate))


# Aggregates to which a contribution that comes twice is as good as one that comes once.
_IDEMPOTENT = frozenset({"min", "max", "countd", "topk", "top"})


def without_copies(drafts: Iterable[Draft]) -> list[Draft]:
    """The rules without those that are written again word for word: a relation is a set.

    Copies stay where a sum, count or average is fed by the rules of a predicate: each rule contributes there.
    """
    rules = list(drafts)
    counting = {rule.predicate for rule in rules if any(one.function not in _IDEMPOTENT for _, one in rule.aggregates)}
    kept: dict[object, Draft] = {}
    for rule in rules:
        written = (rule.predicate, rule.arguments, rule.body, rule.order, rule.limit, rule.start)
        kept.setdefault(rule.id if rule.predicate in counting else written, rule)
    return list(kept.values())


@dataclass(frozen=True, slots=True)
class Fact:
    """A rule without a body whose arguments are all constants."""

    item: int
    predicate: str
    arguments: tuple[Constant, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class End:
    """The termination clause of a rule for `predicate`, and the variables that the rule has."""

    predicate: str
    until: Until
    variables: frozenset[str]


class Names:
    """Makes names of variables that nobody uses yet."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def fresh(self, stem: str = "") -> str:
        """`_1`, `_2`, ... or, for a variable that is renamed, `stem_1`, `stem_2`, ..."""
        return next(name for name in self._names(stem) if self.take(name))

    def take(self, name: str) -> bool:
        """Claims `name`; false if it was taken."""
        free = name not in self._taken
        self._taken.add(name)
        return free

    def _names(self, stem: str) -> Iterator[str]:
        while True:
            self._numbers[stem] = self._numbers.get(stem, 0) + 1
            yield f"{stem}_{self._numbers[stem]}"
