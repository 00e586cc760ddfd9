"""The physical plan: which operator does each step, and where rows move between tasks.

`physical` turns a logical plan into operators one to one. Each operator asks something of the partitioning of its
inputs: a join wants both sides partitioned by the columns that it matches, a distinct or group wants equal rows in one
place. An `Exchange` stands where an input does not have that, so counting exchanges says what a plan costs on a
cluster. The rules are those by which Spark SQL plans; with `distributed=False` all is in one place and no rows move.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from emberlog.plan.logical import (
    Antijoin,
    Distinct,
    Expand,
    Extend,
    Group,
    Guard,
    Join,
    Lookup,
    Plan,
    Project,
    Scan,
    Select,
    Top,
    Union,
    Unit,
    bottom_up,
    children,
    columns,
)
from emberlog.plan.show import indent, label, shared
from emberlog.syntax.nodes import Variable

# The columns by whose hash rows are spread over tasks; `one` if all rows are in one task, None if nothing is known.
Partitioning: TypeAlias = frozenset[str] | Literal["one"] | None


@dataclass(frozen=True, slots=True)
class Operator:
    """`name` says how it works, `detail` on what. `partitioning` is that of the rows it gives."""

    name: str
    detail: str
    inputs: tuple[Physical, ...]
    partitioning: Partitioning


@dataclass(frozen=True, slots=True)
class Exchange:
    """Moves rows between tasks: by the hash of columns, all to one task, or a copy of all to each task."""

    input: Physical
    to: tuple[str, ...] | Literal["one", "each"]

    @property
    def partitioning(self) -> Partitioning:
        match self.to:
            case "one":
                return "one"
            case "each":
                return None
            case names:
                return frozenset(names)


Physical: TypeAlias = Operator | Exchange


def physical(plan: Plan, *, distributed: bool = True) -> Physical:
    """The operators of a logical plan, one for each node, with the exchanges that they need in between."""
    made: dict[int, Physical] = {}
    for node in bottom_up(plan, lambda node: id(node) in made):
        made[id(node)] = _operator(node, tuple(made[id(child)] for child in children(node)), distributed)
    return made[id(plan)]


def _operator(plan: Plan, sources: tuple[Physical, ...], distributed: bool) -> Physical:
    """The operator of a node over those of its inputs."""
    match plan:
        case Unit():
            return Operator("OneRow", "", (), "one")
        case Scan():
            # Tables are kept without a partitioning: those of sources, and those of rounds, which are unions of parts.
            return Operator("ScanTable", label(plan).removeprefix("Scan "), (), None if distributed else "one")
        case Select() | Extend() | Expand() | Guard():
            (source,) = sources
            return Operator(_ROW_WISE[type(plan)], _detail(plan), (source,), source.partitioning)
        case Project(_, items):
            (source,) = sources
            return Operator("Compute", _detail(plan), (source,), _renamed(source.partitioning, items))
        case Join() | Antijoin() | Lookup():
            return _joined(plan, *sources)
        case Distinct(child):
            source = clustered(sources[0], tuple(columns(child)))
            return Operator("HashDistinct", "", (source,), source.partitioning)
        case Group(_, keys, _):
            source = clustered(sources[0], keys)
            kept = source.partitioning if source.partitioning == "one" else frozenset(keys)
            return Operator("HashAggregate", _detail(plan), (source,), kept)
        case Union():
            together = all(source.partitioning == "one" for source in sources) and not distributed
            return Operator("Append", "", sources, "one" if together else None)
        case Top():
            name, _, rest = label(plan).partition(" ")
            source = clustered(sources[0], plan.groups)
            return Operator(name, rest, (source,), frozenset(plan.groups) if plan.groups else "one")
        case _:
            assert_never(plan)


_ROW_WISE: dict[type, str] = {Select: "Filter", Extend: "Compute", Expand: "Expand", Guard: "Guard"}


def _detail(plan: Plan) -> str:
    return label(plan).partition(" ")[2]


def _joined(plan: Join | Antijoin | Lookup, left: Physical, right: Physical) -> Operator:
    """Both sides by the columns that they share; without one, every task gets all rows of the right side."""
    names = shared(plan.left, plan.right)
    if names:
        outer = isinstance(plan, Join) and plan.spares
        kind = (
            "OuterHashJoin"
            if outer
            else {Join: "HashJoin", Antijoin: "AntiHashJoin", Lookup: "OuterHashJoin"}[type(plan)]
        )
        left, right = hashed(left, names), hashed(right, names)
        if left.partitioning == "one" != right.partitioning:
            left = Exchange(left, names)
        elif right.partitioning == "one" != left.partitioning:
            right = Exchange(right, names)
    else:
        kind = {Join: "LoopJoin", Antijoin: "AntiLoopJoin", Lookup: "OuterLoopJoin"}[type(plan)]
        right = right if left.partitioning == right.partitioning == "one" else Exchange(right, "each")
    detail = "" if isinstance(plan, Join) and not names else _detail(plan)
    return Operator(kind, detail, (left, right), left.partitioning)


def hashed(source: Physical, names: tuple[str, ...]) -> Physical:
    """An input of a join: partitioned by exactly the columns that it matches, or all in one task."""
    return source if source.partitioning in ("one", frozenset(names)) else Exchange(source, names)


def clustered(source: Physical, names: tuple[str, ...]) -> Physical:
    """Rows with equal values of `names` in one task: partitioned by some of these columns is enough."""
    match source.partitioning:
        case "one":
            return source
        case None:
            return Exchange(source, names or "one")
        case known:
            return source if known and known <= set(names) else Exchange(source, names or "one")


def _renamed(partitioning: Partitioning, items: tuple[tuple[str, object], ...]) -> Partitioning:
    """The partitioning after a projection: it is kept when every column of it is."""
    if partitioning is None or partitioning == "one":
        return partitioning
    new = {term.name: name for name, term in reversed(items) if isinstance(term, Variable)}
    return frozenset(new[name] for name in partitioning) if partitioning <= new.keys() else None


# --- reading physical plans ------------------------------------------------------------------------------------------


def inputs(plan: Physical) -> tuple[Physical, ...]:
    return (plan.input,) if isinstance(plan, Exchange) else plan.inputs


def walk(plan: Physical) -> Iterator[tuple[Physical, int]]:
    """Every operator with its depth, a node before its inputs."""
    waiting = [(plan, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting.extend((source, depth + 1) for source in reversed(inputs(node)))


def exchanges(plan: Physical) -> int:
    """How often rows move between tasks."""
    return sum(isinstance(node, Exchange) for node, _ in walk(plan))


def operator_label(plan: Physical) -> str:
    """One operator, without its inputs, in one line."""
    match plan:
        case Operator(name, detail):
            return f"{name} {detail}".rstrip()
        case Exchange(_, "one"):
            return "Gather to one task"
        case Exchange(_, "each"):
            return "Broadcast to each task"
        case Exchange(_, names):
            return f"Exchange by {', '.join(names)}"
        case _:
            assert_never(plan)


def show_physical(plan: Physical) -> str:
    """The plan as an indented tree, an operator a line."""
    return "\n".join(indent(depth) + operator_label(node) for node, depth in walk(plan))
