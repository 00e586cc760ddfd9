"""Which columns of a plan are copies of which columns of relations, and what that says of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from emberlog.deep import Deep, run_deep
from emberlog.plan.logical import (
    Distinct,
    Expand,
    Extend,
    Group,
    Join,
    Lookup,
    Plan,
    Project,
    Scan,
    Top,
    Union,
    children,
    columns,
    keep,
    map_children,
    scans,
    walk,
)
from emberlog.syntax.nodes import Variable

Values = Callable[[str, int], int]  # how many values a column of a relation has at most


def copied_from(plan: Plan, relation: str) -> frozenset[str]:
    """The columns of a plan that hold values of a column of `relation`: rows can be told apart by them where it is
    read."""
    return run_deep(_copied_from(plan, relation))


def _copied_from(plan: Plan, relation: str) -> Deep[frozenset[str]]:
    match plan:
        case Scan(name, names):
            return frozenset(column for column in names if column is not None and name == relation)
        case Project(child, items):
            found = yield _copied_from(child, relation)
            return frozenset(name for name, term in items if isinstance(term, Variable) and term.name in found)
        case Group(child, keys):
            found = yield _copied_from(child, relation)
            return frozenset(key for key in keys if key in found)
        case Top():
            return frozenset()  # which rows are first is known of all together
        case Union(inputs):
            spots: set[int] = set()
            for child in inputs:
                found = yield _copied_from(child, relation)
                spots |= {spot for spot, name in enumerate(columns(child)) if name in found}
            return frozenset(name for spot, name in enumerate(columns(plan)) if spot in spots)
        case _:
            together: set[str] = set()
            for child in children(plan):
                together |= yield _copied_from(child, relation)
            return frozenset(together & columns(plan).keys())


def most_values(plan: Plan, values: Values) -> dict[str, int]:
    """How many different values columns of a plan have at most; those of which this is not known are missing."""
    return run_deep(_most_values(plan, values))


def _most_values(plan: Plan, values: Values) -> Deep[dict[str, int]]:
    below: list[dict[str, int]] = []
    for child in children(plan):
        found = yield _most_values(child, values)
        below.append(found)
    match plan:
        case Scan(name, names):
            return {column: values(name, spot) for spot, column in enumerate(names) if column is not None}
        case Project(_, items):
            known = below[0]
            return {n: known[term.name] for n, term in items if isinstance(term, Variable) and term.name in known}
        case Union(inputs):
            parts = [[known.get(name) for name in columns(child)] for child, known in zip(inputs, below, strict=True)]
            sums = {name: [part[spot] for part in parts] for spot, name in enumerate(columns(plan))}
            return {name: sum(n for n in each if n is not None) for name, each in sums.items() if None not in each}
        case _:
            copied = ({name for known in below for name in known} & columns(plan).keys()) - _made(plan)
            return {name: min(known[name] for known in below if name in known) for name in copied}


def _made(plan: Plan) -> set[str]:
    """The columns whose values a node makes."""
    match plan:
        case Group(_, _, folds):
            return {fold.column for fold in folds}
        case Lookup(_, _, column) | Extend(_, column) | Expand(_, column):
            return {column}
        case _:
            return set()


def most_rows(plan: Plan, values: Values) -> int | None:
    """How many different rows a plan has at most; None where this is not known."""
    known, product = most_values(plan, values), 1
    for name in columns(plan):
        if name not in known:
            return None
        product *= known[name]
    return product


def makes_sets(plan: Plan) -> bool:
    """Does a plan keep its rows to find those that come twice?"""
    return any(isinstance(node, Distinct) for node in walk(plan))


@dataclass(frozen=True)
class Heavy:
    """A relation with so many rows that statements over it may not fit in memory; `values` are bounds on the different
    values of its columns. The rows of a `streamed` one come piece by piece, and the engine does not know how many."""

    rows: int
    values: tuple[int, ...]
    streamed: bool = False


@dataclass(frozen=True)
class Pieces:
    """How a relation that may be large is best computed piece by piece.

    About `rows` rows of `width` columns are kept, and compared with each other if they are made a set (`sets`). Pieces
    `by` the values of these columns need only some of what is read: they are copies of columns of the largest relation.
    None: by all columns. If it reads what is `streamed`, the order of its joins is chosen (`large_first`).
    """

    rows: int
    width: int
    by: tuple[int, ...] = ()
    sets: bool = True
    streamed: bool = False


def pieces(plan: Plan, heavy: Mapping[str, Heavy], count: Callable[[str], int]) -> Pieces:
    """How to compute a plan that reads heavy relations; `count` gives the number of rows of others."""
    width = len(columns(plan))
    read = {scan.relation for scan in scans(plan)} & heavy.keys()
    if not read:
        return Pieces(0, width)

    def values(relation: str, spot: int) -> int:
        return heavy[relation].values[spot] if relation in heavy else count(relation)

    rows, bound = sum(heavy[name].rows for name in read), most_rows(plan, values)
    largest = max(read, key=lambda name: heavy[name].rows)
    copied = copied_from(plan, largest)
    by = tuple(spot for spot, name in enumerate(columns(plan)) if name in copied)
    streamed = any(heavy[name].streamed for name in read)
    return Pieces(rows if bound is None else min(rows, bound), width, by, makes_sets(plan), streamed)


def large_first(plan: Plan, heavy: Mapping[str, Heavy]) -> Plan:
    """The plan with the largest input of each join on the left, and the others in their order, those that share columns
    with what stands before them first. An engine that takes joins as they are then makes tables of the small inputs,
    and the rows of the large one pass by. Joins are natural, so their order is free."""
    return run_deep(_large_first(plan, heavy))


def _large_first(plan: Plan, heavy: Mapping[str, Heavy]) -> Deep[Plan]:
    if not isinstance(plan, Join):
        below: list[Plan] = []
        for child in children(plan):
            found = yield _large_first(child, heavy)
            below.append(found)
        following = iter(below)
        return map_children(plan, lambda _: next(following))

    def weight(part: Plan) -> int:
        return max((heavy[scan.relation].rows for scan in scans(part) if scan.relation in heavy), default=0)

    left: list[Plan] = []
    for part in joined(plan):
        found = yield _large_first(part, heavy)
        left.append(found)
    made = max(left, key=weight)
    left.remove(made)
    while left:
        next_one = next((part for part in left if columns(part).keys() & columns(made).keys()), left[0])
        left.remove(next_one)
        made = Join(made, next_one)
    return keep(made, tuple(columns(plan)))


def joined(plan: Plan) -> list[Plan]:
    """What joins that stand in each other join, in order."""
    found: list[Plan] = []
    waiting: list[Plan] = [plan]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Join):
            waiting += [one.right, one.left]
        else:
            found.append(one)
    return found
