"""Evaluates a component by compiled loops: encodes Arrow tables, picks the way, runs it, decodes what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from emberlog.choose.ways import Inputs, Way, choose_way
from emberlog.components.compose import Composed
from emberlog.components.linear import is_linear
from emberlog.components.nests import Nest, Probe
from emberlog.components.pivots import Pivots
from emberlog.components.program import End, KernelProgram
from emberlog.kernels.cache import call
from emberlog.kernels.choices import Choices, Columns, Evaluated
from emberlog.kernels.cluster.exchange import Exchange
from emberlog.kernels.encode import Encoder, Lazy, by_name, check_contributors
from emberlog.kernels.halting import Halt
from emberlog.kernels.iterations import accumulate, constant_groups, gather, replace, starts_within
from emberlog.kernels.masked import Disordered, MaskedRun, Sparse
from emberlog.kernels.memory import Memory
from emberlog.kernels.orders import AS_THEY_ARE, Numbering, along_edges
from emberlog.kernels.owned import run_owned
from emberlog.kernels.pivoted import Grouped, PivotRun, grouped_exits, own_exits
from emberlog.kernels.prepare import Arrays, Indexes, Prepared, prepare
from emberlog.kernels.rounds import Rounds, run_alone, run_together, run_worker
from emberlog.kernels.rows.relations import OverBudget
from emberlog.kernels.runtime import within
from emberlog.kernels.state import State
from emberlog.kernels.watch import Failed, Unsuited, Watch
from emberlog.memory import Budget
from emberlog.stats import Event
from emberlog.thresholds import ORDER_STEPS

HALF = 2**31 - 1


def evaluate(
    program: KernelProgram,
    statics: Mapping[str, pa.Table],
    exits: Mapping[str, pa.Table],
    watch: Watch,
    choices: Choices = Choices(),  # noqa: B008 - frozen
    starts: Mapping[str, pa.Table] | None = None,
    end: End | None = None,
    peers: Exchange | None = None,
) -> Evaluated:
    """The fixpoint, or the end of the iteration from `starts` whose rounds have the contributions `exits` each.

    Raises `Unsuited` or `Failed` where the relational evaluator has to do it.
    """
    budget = choices.budget or Budget.of(None)
    memory = Memory(budget.left(), None if choices.spill is None else Path(choices.spill))
    memory.meter = budget
    encoder = Encoder(program, by_name([statics, exits, starts or {}]), choices.workers, choices.kept)
    arrays = {name: encoder.columns(name, table.columns) for name, table in statics.items()}
    first = {name: _first_rows(encoder, name, table) for name, table in exits.items()}
    begin = {name: encoder.rows(name, table.columns) for name, table in (starts or {}).items()}
    check_contributors(program, arrays, statics)
    keeps = all(starts_within(begin[t.name], first[t.name], t.keys) for t in program.tables) if starts else True
    events: list[Event] = []
    if program.mode == "accumulate" and not keeps:
        events.append(Event("each round replaces the state", "nothing contributes to a group of the start"))
        program = replaced(program, mode="replace")
    counts = {name: table.num_rows for name, table in (*statics.items(), *exits.items())}
    inputs = Inputs(counts, encoder.sizes, memory.budget)
    way = choose_way(program, choices, choices.workers, inputs, 1 if peers is None else peers.size)
    if way.unfit:
        raise Unsuited(way.unfit)
    if program.above:
        alone = choose_way(program.alone, choices, choices.workers, inputs, 1 if peers is None else peers.size)
        if not way.pivoted or alone.kind != way.kind:
            raise Unsuited(f"the recursion alone is evaluated in a better way ({alone.kind})")
    if way.composed is not None:
        try:
            return _by_rows(way.composed, encoder, arrays, first, choices, watch, memory)
        except OverBudget as error:
            raise Unsuited(f"{error} (memory=)") from None
    fits = all(_fit_in_half(column) for name in first for column in first[name])

    def loops(way: Way) -> Evaluated:
        given = (program, encoder, arrays, first, begin, choices, watch, memory, end, peers)
        halt = Halt(watch.halted)
        with watch.halting(halt.set):
            found = evaluate_loops(way, *given, halt)
        found.events[:0] = events
        return found

    narrow = way.narrowed() if fits else way
    try:
        return loops(narrow)
    except Failed:
        if narrow is way:
            raise
    events.append(Event("whole numbers in 64 bits", "one left 32 bits, or an operation has no value"))
    return loops(way)


def evaluate_loops(
    way: Way,
    program: KernelProgram,
    encoder: Encoder,
    statics: Mapping[str, Lazy],
    exits: Mapping[str, Columns],
    starts: Mapping[str, Columns],
    choices: Choices,
    watch: Watch,
    memory: Memory,
    end: End | None,
    peers: Exchange | None,
    halt: Halt,
) -> Evaluated:
    """By loops over facts, which `halt` ends."""
    indexes: Indexes = {}
    events: list[Event] = []

    def made(way: Way) -> Prepared:
        return prepare(program, way, encoder, statics, choices.workers, indexes, memory.budget, halt)

    if way.kind == "gather" and not _lead_to_groups(way.back, statics, constant_groups(program, encoder.sizes, exits)):
        events.append(Event("sums hand on changes", "there are contributions to groups that are not there yet"))
        way = way.handing_on()
    prepared = made(way)
    if way.kind == "masks" and prepared.bytes + State.needs(prepared) > memory.budget:
        events.append(Event("pivot by pivot", "masks have no room in memory"))
        prepared = made(way.one_by_one())
    if prepared.ranges is not None:
        return _by_owners(prepared, encoder, exits, choices.workers, watch, memory)
    if way.kind == "shards":
        return _by_shards(prepared, encoder, exits, choices.workers, watch, memory)
    fitting = _with_room(prepared, choices, memory)
    if program.mode != "delta":
        found = _iterated(prepared, encoder, exits, starts, end, watch)
    elif way.pivoted:
        own = own_exits(prepared, exits, choices.part)
        grouped = grouped_exits(prepared, own)
        try:
            found = _by_pivots(prepared, encoder, grouped, fitting, watch, memory)
        except Sparse as reason:
            events.append(Event("pivot by pivot", str(reason)))
            prepared = made(way.one_by_one())
            found = _by_pivots(prepared, encoder, grouped, _with_room(prepared, choices, memory), watch, memory)
        except Disordered as reason:
            events.append(Event("ids in an order along the edges", str(reason)))
            indexes.clear()
            found = _renumbered(prepared, encoder, statics, own, choices, watch, memory)
    else:
        found = _by_rounds(prepared, encoder, exits, fitting, watch, memory, peers)
    found.events += events
    return found


def _lead_to_groups(back: tuple[Nest, ...], statics: Mapping[str, Lazy], there: np.ndarray[Any, Any]) -> bool:
    """True if every contribution goes to a group that already exists, so no group appears during the sweep."""
    ends = [nest.steps[-1] for nest in back]
    columns = [statics[probe.relation][probe.bound[0]] for probe in ends if isinstance(probe, Probe)]
    return bool(there.all()) or all(call(within, column, there) for column in columns)


def _with_room(prepared: Prepared, choices: Choices, memory: Memory) -> Choices:
    """The choices with as many workers as there is room for their tables; raises where there is for none."""
    each = State.needs(prepared)
    memory.check(prepared.bytes + each, "tables and indexes")
    if not choices.swaps and not prepared.way.pivoted:
        return choices
    room = (memory.budget - prepared.bytes) // max(each, 1)
    memory.dismissed = max(choices.workers - room, 0)
    return replaced(choices, workers=min(choices.workers, room))


def _fit_in_half(column: np.ndarray[Any, Any]) -> bool:
    """Do these numbers fit in 32 bits, with room for the worst one?"""
    if column.dtype != np.int64 or not len(column):
        return True
    return bool(column.min() > -HALF and column.max() < HALF)


# --- the ways --------------------------------------------------------------------------------------------------------


def _by_rows(
    composed: Composed,
    encoder: Encoder,
    statics: Mapping[str, Lazy],
    exits: Mapping[str, Columns],
    choices: Choices,
    watch: Watch,
    memory: Memory,
) -> Evaluated:
    from emberlog.kernels.rows.evaluate import RowsRun

    def turned(name: str, columns: Columns) -> tuple[np.ndarray[Any, Any], ...]:
        return (columns[1], columns[0], *columns[2:]) if name in composed.turned else tuple(columns)

    run = RowsRun(
        composed.program,
        {str(domain): size for domain, size in encoder.sizes.items()},
        {name: tuple(columns[: 3 if _is_valued(composed, name) else 2]) for name, columns in statics.items()},
        {name: turned(name, columns) for name, columns in exits.items()},
        workers=choices.workers,
        budget=memory.budget,
        look=lambda: watch.look(0),
    )
    names = [table.name for table in encoder.program.tables]
    try:
        # The first step takes up the exit rows.
        while delta := run.step():
            watch.rounds([delta], sum(run.facts(name) for name in names))
        watch.rounds([0], sum(run.facts(name) for name in names))
    finally:
        run.close()
    return Evaluated(
        encoder,
        {name: run.facts(name) for name in names},
        f"row by row, {_workers(choices.workers)}",
        derivations=run.derivations,
        pieces=lambda name: (list(turned(name, list(piece))) for piece in run.chunks(name)),
    )


def _is_valued(composed: Composed, name: str) -> bool:
    return any(static.name == name and static.valued for static in composed.program.statics)


def _by_pivots(
    prepared: Prepared,
    encoder: Encoder,
    grouped: Grouped,
    choices: Choices,
    watch: Watch,
    memory: Memory,
    numbering: Numbering | None = None,
) -> Evaluated:
    """By pivots. With a `numbering` they and what is prepared have its ids."""
    keep = frozenset(prepared.tables) if choices.keep is None else choices.keep
    masked = prepared.way.kind == "masks"
    many = "512 pivots at a time" if masked else "pivot by pivot"
    how = f"{many} ({_pivots(prepared.way.pivots)}), {_storages(prepared)}, {_workers(choices.workers)}"
    given = (prepared, grouped, choices.workers, keep, watch, memory)
    run: MaskedRun | PivotRun
    if not masked:
        run = PivotRun(*given)
    elif numbering is None and prepared.way.renumbers:
        run = MaskedRun(*given, patience=ORDER_STEPS * max(prepared.rows, 1))
    else:
        run = MaskedRun(*given, numbering=numbering or AS_THEY_ARE)
    try:
        result = run.run()
    except (Sparse, Disordered, Failed):
        memory.forget()
        raise
    if result.rounds > watch.most_rounds:
        watch.failed(2)
    how += memory.told
    return Evaluated(
        encoder,
        result.counts,
        how,
        result.rounds + 1,
        result.derivations,
        pieces=result.columns,
        pivots=prepared.way.pivots,
        shares=result.shares,
    )


def _renumbered(
    prepared: Prepared,
    encoder: Encoder,
    statics: Mapping[str, Lazy],
    exits: Mapping[str, Arrays],
    choices: Choices,
    watch: Watch,
    memory: Memory,
) -> Evaluated:
    """By masks over ids that are numbered along the edges. What comes of it has the ids of `encoder`."""
    numbering = along_edges(prepared, statics, exits, choices.workers)
    other = numbering.encoder(encoder)
    columns = {name: lazy.encoded_by(other) for name, lazy in statics.items()}
    rows = {name: numbering.renumber(encoder.program.kinds(name), found) for name, found in exits.items()}
    again = prepare(prepared.program, prepared.way, other, columns, choices.workers, halt=prepared.halt)
    grouped = grouped_exits(again, rows)
    return _by_pivots(again, encoder, grouped, _with_room(again, choices, memory), watch, memory, numbering)


def _by_owners(
    prepared: Prepared, encoder: Encoder, exits: Mapping[str, Columns], workers: int, watch: Watch, memory: Memory
) -> Evaluated:
    done = run_owned(prepared, exits, watch, memory)
    own = "" if done.owners == 1 else ", each with its own part of the tables"
    fewer = f" of {workers} ({done.ranges.why})" if done.owners < workers else ""
    return Evaluated(
        encoder,
        {name: done.count(name) for name in prepared.tables},
        f"rounds, {_storages(prepared)}, {_workers(done.owners)}{fewer}{own}",
        derivations=done.derivations,
        pieces=lambda name: iter([done.columns(name)]),
    )


def _by_shards(
    prepared: Prepared, encoder: Encoder, exits: Mapping[str, Columns], workers: int, watch: Watch, memory: Memory
) -> Evaluated:
    from emberlog.kernels.shards.run import run_shards

    done = run_shards(prepared, exits, workers, watch, memory)
    return Evaluated(
        encoder,
        {name: relation.count for name, relation in done.relations.items()},
        f"{prepared.way}, {_workers(workers)}",
        derivations=done.derivations,
        pieces=lambda name: map(list, done.relations[name].pieces()),
    )


def _by_rounds(
    prepared: Prepared,
    encoder: Encoder,
    exits: Mapping[str, Columns],
    choices: Choices,
    watch: Watch,
    memory: Memory,
    peers: Exchange | None,
) -> Evaluated:
    """Rounds by one worker, or by several that swap facts where the rules look up no facts of each other."""
    if peers is not None and peers.size > 1:
        if not is_linear(prepared.program):
            raise Unsuited("a rule looks up recursive facts, which another worker may have")
        done = Rounds(prepared, peers.rank, peers.size)
        done.states.append(State(prepared))
        run_worker(done.states[0], exits, peers, watch.rounds)
        done.derivations, done.bytes_exchanged = done.states[0].derivations, peers.bytes_sent
        how = f"rounds with an exchange, {_storages(prepared)}, {peers.size} workers"
    elif prepared.way.swaps:
        done = run_together(prepared, exits, choices.workers, watch)
        how = f"rounds with an exchange, {_storages(prepared)}, {_workers(choices.workers)}{memory.told}"
    else:
        done = run_alone(prepared, exits, watch, memory)
        alone = "" if choices.workers == 1 else f" of {choices.workers}: there is no pivot to share out"
        how = f"rounds, {_storages(prepared)}, one worker{alone}{memory.told}"
    return Evaluated(
        encoder,
        done.counts(),
        how,
        derivations=done.derivations,
        bytes_exchanged=done.bytes_exchanged,
        pieces=done.pieces,
    )


def _iterated(
    prepared: Prepared,
    encoder: Encoder,
    constants: Mapping[str, Columns],
    starts: Mapping[str, Columns],
    end: End | None,
    watch: Watch,
) -> Evaluated:
    if prepared.way.kind == "gather":
        way, how = gather, "sums gather what others give them (MRA)"
    elif prepared.program.mode == "accumulate":
        way, how = accumulate, "changes of sums are handed on (MRA)"
    else:
        way, how = replace, "each round replaces the state"
    done = way(prepared, constants, starts, end, watch)
    return Evaluated(
        encoder,
        done.counts(),
        how,
        derivations=done.derivations,
        residual=done.residual,
        converged=done.converged,
        pieces=lambda name: iter([done.columns(name)]),
    )


def _storages(prepared: Prepared) -> str:
    return f"{' and '.join(sorted({layout.storage for layout in prepared.layouts.values()}))} tables"


def _first_rows(encoder: Encoder, name: str, table: pa.Table) -> Columns:
    """Exit rows as numbers; where duplicates say nothing and are found at a glance, without them."""
    made = encoder.program.table(name)
    found = None
    if made is not None and made.fold != "sum" and encoder.program.mode == "delta":
        found = encoder.distinct_rows(name, table.columns)
    return encoder.rows(name, table.columns) if found is None else found


def _pivots(chosen: Pivots) -> str:
    return ", ".join(f"{name}: {', '.join(str(p + 1) for p in spots)}" for name, spots in chosen.items())


def _workers(number: int) -> str:
    return "one worker" if number == 1 else f"{number} workers"
