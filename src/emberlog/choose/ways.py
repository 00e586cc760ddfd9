"""How loops evaluate a component: chosen from its rules and wishes, again when its inputs are known.

The first that applies:

    rows           a binary relation as rows of sets, which rules join and unite as wholes
    states         each round of an iteration replaces the state
    gather, sums   an iteration's sums read what they get, where all groups are there from the start, or hand on changes
    buckets        minima over computed values: groups wait in buckets, the smallest values first
    masks          a fixpoint for each value of the pivot, many of them at once as bits of a word
    shards         rules look up facts of growing tables, which all workers read and each fills a part of
    facts          rounds over tables of facts
    parts          the same over a worker's part of the tables, under some coordination

A component with a pivot is evaluated pivot by pivot. One without, by rounds in which workers own ranges of the slots
(`owned`) or swap what they find (`swaps`), where that can be. Small components are interpreted in place of all this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from emberlog.choose.wishes import Wishes
from emberlog.components.compose import Composed, compose
from emberlog.components.compositions import Composition, Side
from emberlog.components.forms import added_columns, is_bucketed, is_maskable, is_ownable, orders_ids, turned
from emberlog.components.layout import TableLayout, has_scans, layouts
from emberlog.components.linear import is_linear
from emberlog.components.nests import Nest, nests, too_large
from emberlog.components.pivots import Pivots, divided, pivots
from emberlog.components.program import Id, KernelProgram
from emberlog.components.shards import set_columns, suits
from emberlog.components.shares import WorkerPlan
from emberlog.thresholds import FEW_ROWS, MATRIX_BYTES, SET_IDS, SMALL_ROOM, SMALL_ROWS

Kind = Literal["rows", "states", "gather", "sums", "buckets", "masks", "shards", "facts", "parts"]

VALUE_BYTES = 8


@dataclass(frozen=True, slots=True)
class Inputs:
    """What is known of the inputs of a component: the `rows` of each relation, the `sizes` of the domains of ids, and
    the `room` in bytes that it may use."""

    rows: Mapping[str, int]
    sizes: Mapping[int, int] | None = None
    room: int | None = None

    @property
    def total(self) -> int:
        return sum(self.rows.values())


@dataclass(frozen=True, slots=True)
class Way:
    """How loops evaluate a component. `nests` and `layouts` are theirs; `unfit` says why there are no loops."""

    kind: Kind
    pivots: Pivots = field(default_factory=dict)
    nests: tuple[Nest, ...] = ()
    layouts: Mapping[str, TableLayout] = field(default_factory=dict)
    composed: Composed | None = None  # the rules as compositions of rows
    back: tuple[Nest, ...] = ()  # nests of sums that gather
    ordered: bool = False  # small values first; of sums, large changes
    renumbers: bool = False  # ids may be numbered along the edges, where they lie in disorder
    swaps: bool = False
    owned: bool = False
    unfit: str = ""

    @property
    def pivoted(self) -> bool:
        return any(self.pivots.values())

    @property
    def loops(self) -> tuple[Nest, ...]:
        """The nests that are compiled."""
        return self.back if self.kind == "gather" else self.nests

    def one_by_one(self) -> Way:
        """The same with each pivot by itself."""
        return replace(self, kind="facts")

    def handing_on(self) -> Way:
        """The same with sums that hand on changes."""
        return replace(self, kind="sums")

    def narrowed(self) -> Way:
        """The same with whole numbers in 32 bits, where values lie in buckets: less memory to walk."""
        if self.kind != "buckets":
            return self
        made = {name: replace(layout, narrow=layout.value_kind == "int") for name, layout in self.layouts.items()}
        return replace(self, layouts=made)

    def __str__(self) -> str:
        """What holds whatever the inputs are, in words."""
        if self.pivoted:
            places = ((name, ", ".join(str(spot + 1) for spot in spots)) for name, spots in self.pivots.items())
            spots = ", ".join(f"{name}({found})" for name, found in places)
            order = "; ids are numbered along the edges if they lie in disorder" if self.renumbers else ""
            return f"one fixpoint for each value of the pivot {spots}, without an exchange{order}"
        match self.kind:
            case "rows":
                assert self.composed is not None
                return f"row by row, {'; '.join(map(_composition, self.composed.program.rules))}"
            case "states":
                return "each round computes a new state from the last one"
            case "gather" | "sums":
                return "sums gather where all groups are there from the start, else they hand on changes (MRA)"
            case "buckets":
                return "rounds over tables of groups, the smallest values first"
            case "shards":
                columns = {name: layout.set_column for name, layout in self.layouts.items()}
                rows = [f"{name} as sets of column {spot + 1}" for name, spot in columns.items() if spot is not None]
                return f"rounds over tables in shards{''.join(f', {row}' for row in rows)}"
            case "facts" | "masks" | "parts":
                groups = any(layout.table.fold in ("min", "max") for layout in self.layouts.values())
                better = "groups, in which a better value replaces the one before"
                return f"rounds over tables of {better if groups else 'facts'}"


def choose_way(
    program: KernelProgram, wishes: Wishes, workers: int = 1, inputs: Inputs | None = None, peers: int = 1
) -> Way:
    """The way to evaluate a component by so many `workers` of each of so many `peers`: from its rules alone, or with
    what is known of its `inputs`."""
    found = pivots(program) if wishes.decompose and program.mode == "delta" else {}
    chosen = divided(found, program, wishes.partition)
    apart = peers > 1 or (wishes.swaps and workers > 1 and is_linear(program))
    composed = compose(program) if wishes.storage in ("auto", "rows") and not apart else None
    if composed is not None and (wishes.storage == "rows" or _rows_pay(composed, chosen, inputs)):
        return Way("rows", composed=composed)
    planned = nests(program, chosen)
    if not apart and (not any(chosen.values()) or has_scans(program, chosen, planned)):
        sharded = _in_shards(program, wishes, inputs)
        if sharded is not None:
            return sharded
    unfit = too_large(planned)
    if unfit:
        return Way("facts", chosen, unfit=unfit)
    rows, sizes = 0, dict.fromkeys(range(len(program.domains)), 1)  # small, as long as nothing is known
    if inputs is not None:
        rows, sizes = inputs.total, dict(inputs.sizes or sizes)
    made = layouts(program, chosen, planned, sizes, rows, wishes.storage == "hash", wishes.partition)
    # Workers that swap facts find what they have for others in lists.
    ordered = wishes.ordered and not apart and not (wishes.swaps and workers > 1)
    swaps = apart and not any(chosen.values())
    way = Way("facts", chosen, planned, made, ordered=ordered, swaps=swaps)
    match program.mode:
        case "replace":
            return replace(way, kind="states")
        case "accumulate":
            back = turned(program, made, planned) if wishes.storage == "auto" and not apart else None
            return replace(way, kind="sums") if back is None else replace(way, kind="gather", back=back)
        case "delta":
            return _of_facts(program, way, wishes, inputs)


def part_way(plan: WorkerPlan, inputs: Inputs) -> Way:
    """How the loops of a worker evaluate its part."""
    program, planned = plan.placed, nests(plan.placed, {})
    assert inputs.sizes is not None
    made = layouts(program, {}, planned, inputs.sizes, inputs.total)
    at_home = {name: replace(layout, home=plan.homes[name]) for name, layout in made.items()}
    return Way("parts", {}, planned, at_home, unfit=too_large(planned) or "")


def interprets(program: KernelProgram, wishes: Wishes, inputs: Inputs | None = None) -> bool:
    """True if the interpreter evaluates this: what is small, unless somebody chose a way of the loops."""
    if wishes.storage == "columns":
        return True
    if wishes.storage != "auto" or not wishes.decompose or wishes.swaps or program.mode != "delta":
        return False
    return inputs is None or (inputs.total <= SMALL_ROWS and (inputs.room is None or inputs.room >= SMALL_ROOM))


def _rows_pay(composed: Composed, chosen: Pivots, inputs: Inputs | None) -> bool:
    """True if rows of sets beat loops over facts: where there is no pivot, and more than a few facts; values need a
    matrix that fits."""
    if any(chosen.values()) or inputs is None or inputs.sizes is None:
        return not any(chosen.values())
    sizes, recursive = inputs.sizes, composed.program.recursive
    cells = max(sizes[int(relation.first)] * sizes[int(relation.second)] for relation in recursive)
    valued = any(relation.kind != "set" for relation in recursive)
    return inputs.total >= FEW_ROWS and (not valued or cells * VALUE_BYTES <= MATRIX_BYTES)


def _in_shards(program: KernelProgram, wishes: Wishes, inputs: Inputs | None) -> Way | None:
    """The way of rules that look up facts of growing tables, None for others."""
    if wishes.swaps or wishes.storage == "loops":
        return None
    planned = nests(program, {}, narrow=True)
    if too_large(planned) or not suits(program, planned):
        return None
    sizes = dict.fromkeys(range(len(program.domains)), 1) if inputs is None or inputs.sizes is None else inputs.sizes
    columns = {} if wishes.storage == "hash" else set_columns(program, SET_IDS, sizes)
    made = {}
    for table in program.tables:
        keys = tuple(key for key in table.keys if key != columns.get(table.name))
        domains = tuple(kind.domain if isinstance(kind := table.kinds[key], Id) else None for key in keys)
        made[table.name] = TableLayout(table, "hash", keys, domains, set_column=columns.get(table.name))
    return Way("shards", nests=planned, layouts=made)


def _of_facts(program: KernelProgram, way: Way, wishes: Wishes, inputs: Inputs | None) -> Way:
    tables = list(way.layouts.values())
    if way.ordered and _has_steps(program, inputs) and is_bucketed(program, tables, way.nests):
        way = replace(way, kind="buckets")
    elif way.pivoted and is_maskable(program, way.layouts, way.nests):
        way = replace(way, kind="masks", renumbers=not orders_ids(way.nests))
    alone = not way.pivoted and not way.swaps and not wishes.swaps
    return replace(way, owned=alone and is_ownable(program, way.layouts, way.nests))


def _has_steps(program: KernelProgram, inputs: Inputs | None) -> bool:
    """True if values are computed from a column that has some: they tell how far apart values lie."""
    return any(inputs is None or inputs.rows[name] for name, _ in added_columns(program))


def _composition(rule: Composition) -> str:
    return f"{rule.head} |= {' . '.join(map(_side, rule.sides()))}"


def _side(side: Side) -> str:
    return f"{side.relation}~" if side.flipped else side.relation
