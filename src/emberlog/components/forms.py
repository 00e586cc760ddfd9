"""Which loops suit a component: read off its nests and the layouts of its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from emberlog.components.domains import goal_variables, kind_of, variables_of
from emberlog.components.layout import TableLayout
from emberlog.components.nests import Key, Nest, Probe, Walk, probes, read_by
from emberlog.components.program import Atom, Check, Goal, Id, KernelProgram, Let, Missing
from emberlog.syntax.nodes import Variable

MOST_COLUMNS = 2  # of an index whose rows are divided


# --- minima, the smallest first --------------------------------------------------------------------------------------


def is_bucketed(program: KernelProgram, layouts: Sequence[TableLayout], nests: Sequence[Nest]) -> bool:
    """Is it one table of minima that computes its values from each other?"""
    if program.mode != "delta" or len(layouts) != 1:
        return False
    layout, table = layouts[0], layouts[0].table
    if layout.storage != "dense" or table.fold != "min" or isinstance(layout.value_kind, Id):
        return False
    values = {Variable(name) for nest in nests for spot, name in nest.binds if spot == table.value}
    return any(values.isdisjoint(nest.rule.arguments) for nest in nests)


def added_columns(program: KernelProgram) -> list[tuple[str, int]]:
    """The columns of numbers of other relations that rules compute values from, in the order of the rules."""
    found: dict[tuple[str, int], None] = {}
    for rule in program.rules:
        computed = {name for goal in rule.body if isinstance(goal, Let) for name in variables_of(goal.term)}
        for goal in rule.body:
            if isinstance(goal, Atom) and program.table(goal.relation) is None:
                kinds = program.static(goal.relation).kinds
                for spot, argument in enumerate(goal.arguments):
                    if kinds[spot] in ("int", "float") and isinstance(argument, Variable) and argument.name in computed:
                        found[goal.relation, spot] = None
    return list(found)


# --- many pivots at once ---------------------------------------------------------------------------------------------


def is_maskable(program: KernelProgram, layouts: Mapping[str, TableLayout], nests: tuple[Nest, ...]) -> bool:
    """Do the rules do nothing with their pivot but hand it on, and are all tables sets with a slot for each key?

    Rules above may look up finished facts, too: pivots that have one are a mask.
    """
    if any(layout.table.fold != "set" or layout.storage != "dense" for layout in layouts.values()):
        return False
    for nest in nests:
        pivoted = _pivot_names(nest, program, layouts)
        walks = [step for step in nest.steps if isinstance(step, Walk)]
        if any(not nest.above or not set(layouts[walk.relation].keys) <= set(walk.bound) for walk in walks):
            return False
        # A check is of the atom that the nest starts from: the pivot stands in it once more.
        others = [*nest.checks, *(goal for goal in nest.rule.body if not _is_of_table(goal, program))]
        if any(not pivoted.isdisjoint(goal_variables(goal)) for goal in others):
            return False
        head = layouts[nest.rule.head]
        if any(name in pivoted for key in head.keys for name in variables_of(nest.rule.arguments[key])):
            return False
    return True


def _is_of_table(goal: Goal, program: KernelProgram) -> bool:
    return isinstance(goal, Atom | Missing) and program.table(goal.relation) is not None


def orders_ids(nests: tuple[Nest, ...]) -> bool:
    """True if a rule compares ids by the order of their values, so that they cannot be numbered otherwise."""
    return any(
        isinstance(kind_of(term, nest.kinds), Id)
        for nest in nests
        for step in (*nest.checks, *nest.steps)
        if isinstance(step, Check) and step.condition.operator not in ("=", "!=")
        for term in (step.condition.left, step.condition.right)
    )


def _pivot_names(nest: Nest, program: KernelProgram, layouts: Mapping[str, TableLayout]) -> set[str]:
    layout = layouts[nest.rule.head]
    spots = set(layout.table.keys) - set(layout.keys)
    return {name for spot in spots for name in variables_of(nest.rule.arguments[spot])}


# --- sums that gather ------------------------------------------------------------------------------------------------


def turned(
    program: KernelProgram, layouts: Mapping[str, TableLayout], planned: tuple[Nest, ...]
) -> tuple[Nest, ...] | None:
    """The nests with one look-up turned round, from the group in the head to those that give to it, and put last.

    None where a nest does not have that form: one group, what it gives along each row, and rows from it to others.
    """
    if program.mode != "accumulate" or len(program.tables) > 1:
        return None
    (layout,) = layouts.values()
    if layout.storage != "dense" or len(layout.keys) != 1 or layout.value_kind != "float":
        return None
    found = [_turned(nest, layout, program) for nest in planned]
    return None if None in found else tuple(nest for nest in found if nest is not None)


def _turned(nest: Nest, layout: TableLayout, program: KernelProgram) -> Nest | None:
    (key,), value = layout.keys, layout.table.value
    taker = nest.rule.arguments[key]
    assert value is not None
    for spot, step in enumerate(nest.steps):
        rest = (*nest.steps[:spot], *nest.steps[spot + 1 :])
        match step, taker:
            case Probe(relation, (source,), (Variable(giver),), ((target, name),), False, False), Variable(bound) if (
                name == bound
                and (key, giver) in nest.binds
                and bound not in variables_of(nest.rule.arguments[value])
                and not any(bound in read_by(other) for other in (*nest.checks, *rest))
                and all(isinstance(program.static(relation).kinds[column], Id) for column in (source, target))
            ):
                back = Probe(relation, (target,), (taker,), ((source, giver),))
                return replace(nest, steps=(*rest, back))
            case _:
                continue
    return None


# --- workers that own ranges of slots --------------------------------------------------------------------------------


def is_ownable(program: KernelProgram, layouts: Mapping[str, TableLayout], planned: tuple[Nest, ...]) -> bool:
    """Are the tables sets and extrema with one key each, and is each fact found from one other?"""
    return (
        program.mode == "delta"
        and all(
            layout.storage == "dense"
            and len(layout.keys) == 1
            and layout.table.fold in ("set", "min", "max")
            and layout.divided_by is None
            for layout in layouts.values()
        )
        and not any(isinstance(step, Walk) for nest in planned for step in nest.steps)
    )


def owned_indexes(
    program: KernelProgram, layouts: Mapping[str, TableLayout], planned: tuple[Nest, ...]
) -> dict[Key, int]:
    """The indexes whose rows lead straight into slots, and the column that has the slot. One that is also read for
    something else has to be whole."""
    leading: dict[Key, set[int | None]] = {}
    reading: dict[Key, set[int]] = {}
    for nest in planned:
        for probe in probes(nest):
            key = probe.relation, probe.bound
            leading.setdefault(key, set()).add(_leads(nest, probe, program, layouts))
            reading.setdefault(key, set()).update(spot for spot, _ in probe.binds)
    return {
        key: spot
        for key, spots in leading.items()
        if len(spots) == 1 and (spot := next(iter(spots))) is not None and len(reading[key]) <= MOST_COLUMNS
    }


def _leads(nest: Nest, probe: Probe, program: KernelProgram, layouts: Mapping[str, TableLayout]) -> int | None:
    """The column of a static from which the head has its slot, if rows are found by one id and nobody else reads it."""
    kinds = program.static(probe.relation).kinds
    if probe not in nest.steps or len(probe.bound) != 1:
        return None
    key = nest.rule.arguments[layouts[nest.rule.head].keys[0]]
    spots = [spot for spot, name in probe.binds if Variable(name) == key]
    ids = all(isinstance(kinds[spot], Id) for spot in (*probe.bound, *spots))
    return spots[0] if spots and ids else None
