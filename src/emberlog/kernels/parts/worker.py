"""What runs in a Spark task that has a part of a component: its share of the inputs, and messages to the others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from time import monotonic

import numpy as np
import pyarrow as pa

from emberlog.components.program import COMPILED, OVER_COLUMNS
from emberlog.components.shares import WorkerPlan
from emberlog.kernels.choices import Columns, Evaluated
from emberlog.kernels.cluster.exchange import Alone, Array, Exchange
from emberlog.kernels.cluster.links import Links
from emberlog.kernels.cluster.parts import Output
from emberlog.kernels.cluster.peers import SocketPeers
from emberlog.kernels.cluster.sockets import SocketExchange
from emberlog.kernels.columns.joins import Column
from emberlog.kernels.component_worker import ComponentWorker, giving_up
from emberlog.kernels.encode import Encoder, is_unique
from emberlog.kernels.parts.build import compiles, kind_of_part, wide
from emberlog.kernels.parts.checkpoints import Checkpoints, PartKeeper, latest_of_all
from emberlog.kernels.parts.dictionaries import agreed_encoder, owner_number, owner_origin
from emberlog.kernels.parts.evaluate import starts_within
from emberlog.kernels.parts.iterations import settles
from emberlog.kernels.parts.letters import Letters
from emberlog.kernels.parts.parcels import Rows
from emberlog.kernels.parts.part import ComponentPart, EvaluatedPart
from emberlog.kernels.watch import Unsuited, Watch
from emberlog.workers.alone import Alone as AlonePeers
from emberlog.workers.alone import run_alone
from emberlog.workers.drive import drive
from emberlog.workers.modes import Auto
from emberlog.workers.straggle import Disturbance, Straggle
from emberlog.workers.termination import nothing_left
from emberlog.workers.worker import Worker

SEED = 0  # of stragglers: a run is disturbed in the same way each time


@dataclass(frozen=True, kw_only=True)
class PartWorker(ComponentWorker):
    """Evaluates its part of a component that workers share out. Inputs are this worker's rows: `static/p` by the names
    of the plan, `exit/p`, `start/p` of an iteration, and `unique/n` of what must be unique for the component's sums to
    be right."""

    plan: WorkerPlan
    mode: str
    checkpoints: Checkpoints | None = None

    def __call__(
        self, rank: int, size: int, inputs: dict[str, list[Array]], links: Links | None, output: Output, /
    ) -> bytes:
        watched = self.begin(output)
        with giving_up():
            self._check_contributors(inputs)
            exchange = Alone() if links is None else SocketExchange(links)
            part = self._part(rank, size, inputs, exchange, watched.watch)
            keeper = None if self.checkpoints is None else self.checkpoints.of(part)
            resumed = None if keeper is None else latest_of_all(keeper.found(), exchange)
            if resumed is not None:
                part.restore(resumed.state)
            replaces = self.program.mode == "replace"
            auto = Auto(self.plan.condenses) if self.mode == "auto" and not replaces else None
            mode = "bsp" if replaces else self.mode if resumed is None or auto is None else resumed.mode
            with watched.watch.halting(part.stop):
                worker, seconds = self._run(part, mode, auto, links, keeper)
            how = OVER_COLUMNS if isinstance(part, ComponentPart) else COMPILED
            done = Evaluated(
                part.encoder,
                {name: part.size_of(name) for name in self.names},
                f"{size} workers {how}, {self.mode}",
                rounds=worker.lane.iterations,
                derivations=worker.lane.derivations,
                bytes_exchanged=worker.lane.bytes,
                events=[*([] if resumed is None else [resumed.event]), *([] if keeper is None else keeper.events)],
                residual=None if self.end is None else part.residual,
                converged=self.end is not None,
                pieces=lambda name: iter([part.rows(name)]),
            )
            told = self.write(done, watched, output)
        ran = {"lane": asdict(worker.lane), "seconds": seconds, "why": "" if auto is None else auto.why}
        return json.dumps(told | ran).encode()

    def _check_contributors(self, inputs: Mapping[str, list[Array]]) -> None:
        """Raises where a contributor of `sum<(K,V)>` has several values at a time: its rows are all here."""
        for number, (name, columns) in enumerate(self.program.unique):
            rows = inputs[f"unique/{number}"]
            keys = [rows[place] for place in self.program.read_places(name, columns)]
            if not is_unique(keys, len(rows[0])):
                raise Unsuited(f"a contributor has several values in `{name}`")

    def _part(
        self, rank: int, size: int, inputs: Mapping[str, list[Array]], exchange: Exchange, watch: Watch
    ) -> EvaluatedPart:
        """The part with its first facts."""
        statics = {name: self.table(source, inputs[f"static/{name}"]) for name, source in self.plan.sources.items()}
        exits = {name: self.table(name, inputs[f"exit/{name}"]) for name in self.names}
        starts = {name: self.table(name, inputs[f"start/{name}"]) for name in self.names} if self.iterated else {}
        if self.program.mode == "accumulate":
            self._check_starts(starts, exits, exchange)
        seen: dict[str, list[pa.Table]] = {}
        for name, table in (*exits.items(), *starts.items()):
            seen.setdefault(name, []).append(table)
        for name, table in statics.items():
            seen.setdefault(self.plan.sources[name], []).append(table)
        encoder = agreed_encoder(self.program, seen, exchange)
        shares = {name: _columns(encoder, self.plan.sources[name], table) for name, table in statics.items()}
        rows = sum(table.num_rows for table in (*statics.values(), *exits.values()))
        part = self._empty_part(encoder, shares, rank, size, watch, rows)
        part.begin(_rows(encoder, starts), _rows(encoder, exits))
        return part

    def _check_starts(self, starts: Mapping[str, pa.Table], exits: Mapping[str, pa.Table], exchange: Exchange) -> None:
        """Raises, in all workers, where some group of the start has no constant: such a state is replaced in rounds."""
        within = int(starts_within(self.program, starts, exits))
        received, _ = exchange.swap([[np.array([within])]] * exchange.size)
        if not all(int(told[0]) for (told,) in received):
            raise Unsuited("nothing contributes to a group of the start")

    def _empty_part(
        self, encoder: Encoder, shares: Mapping[str, Columns], rank: int, size: int, watch: Watch, rows: int
    ) -> EvaluatedPart:
        """A part without facts: by compiled loops where there are many rows, and owners are found by ids there."""
        kinds = {table.kinds[spot] for table in self.plan.placed.tables for spot in self.plan.homes[table.name]}
        origins = {kind: owner_origin(encoder, kind) for kind in kinds}
        known = {kind: origin for kind, origin in origins.items() if origin is not None}
        fits = len(known) == len(origins) and compiles(self.plan, self.choices.storage, rows)
        make = kind_of_part(self.plan, fits)
        given = (self.plan, encoder, shares, rank, size, watch, self.end, partial(owner_number, encoder))
        return make(*given) if issubclass(make, ComponentPart) else make(*given, known)

    def _run(
        self, part: EvaluatedPart, mode: str, auto: Auto | None, links: Links | None, keeper: PartKeeper | None
    ) -> tuple[Worker, float]:
        """The worker after its work, and the seconds that this took."""
        settled = settles(self.end) if self.program.mode == "replace" else nothing_left
        if links is None:
            worker = Worker(part, AlonePeers(), mode, auto, keeper, settled)
            return worker, run_alone(worker)
        begun, straggle = monotonic(), self.choices.straggle
        peers = SocketPeers(links, Letters(self.plan.placed.tables))
        worker = Worker(part, peers, mode, auto, keeper, settled)
        drive(worker, peers, None if straggle is None else Disturbance(Straggle.of(straggle), SEED, links.rank))
        peers.leave()
        return worker, monotonic() - begun


def _rows(encoder: Encoder, tables: Mapping[str, pa.Table]) -> Rows:
    return Rows({name: _columns(encoder, name, table) for name, table in tables.items() if table.num_rows})


def _columns(encoder: Encoder, relation: str, table: pa.Table) -> list[Column]:
    return [wide(column) for column in encoder.rows(relation, table.columns)]
