"""Checkpoints: what is written is a state from which the same answer follows, and only whole ones are used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

import emberlog
from emberlog.kernels.parts.checkpoints import Checkpoints, PartKeeper, fingerprint, key_of, latest
from emberlog.workers.messages import Saved
from emberlog.workers.part import Part
from emberlog.workers.simulated import Costs, Simulation
from emberlog.workers.threads import run_threads, thread_peers
from emberlog.workers.worker import Worker
from workers.programs import ACYCLIC, MODES, PROGRAMS, answers, graph, inputs, state
from workers.test_termination import seeded
from workers.tokens import TokenPart, family

TC = "tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), tc(Z, Y)."
LINE = [(i, i + 1) for i in range(40)]


@dataclass
class Memory:
    """Keeps the parts of all checkpoints."""

    rank: int
    seconds: float
    published: list[tuple[str, dict[int, object]]]
    parts: dict[int, dict[int, object]] = field(default_factory=dict)  # by checkpoint and rank; shared by all workers
    first: int = 0

    def save(self, checkpoint: int, part: Part) -> Saved:
        self.parts.setdefault(checkpoint, {})[self.rank] = part.snapshot()
        return Saved(checkpoint)

    def publish(self, checkpoint: int, mode: str, saved: Mapping[int, Saved]) -> None:
        self.published.append((mode, self.parts[checkpoint]))


def test_every_checkpoint_leads_to_the_end_in_every_mode() -> None:
    """Nothing is lost and nothing is counted twice, whatever was held or on its way when it was due."""
    made = 0
    for seed in range(250):
        parts, first, costs, mode = seeded(seed)
        right, size = family(first, len(parts)), len(parts)
        published: list[tuple[str, dict[int, object]]] = []
        shared: dict[int, dict[int, object]] = {}
        every = Random(seed).choice((0.0, 2.0, 7.0)) * (costs.iteration + costs.latency)
        keepers = [Memory(rank, every, published, shared) for rank in range(size)]
        Simulation(parts, mode, costs, keepers=keepers).run()
        assert sum((Counter(part.taken) for part in parts), Counter()) == right, seed
        for mode_then, states in published[:3] + published[-1:]:
            again = [TokenPart(rank, size) for rank in range(size)]
            for rank, part in enumerate(again):
                part.restore(states[rank])
            Simulation(again, mode_then, costs).run()
            assert sum((Counter(part.taken) for part in again), Counter()) == right, seed
            made += 1
    assert made > 300


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["non-linear", "all pairs", "mutual", "count", "paths", "cost"])
def test_files_hold_all_of_a_part(name: str, mode: str, tmp_path: Path) -> None:
    """Tables with what waits, buffers and sums come back from files, on threads."""
    found = inputs({**PROGRAMS, **ACYCLIC}[name], graph(Random(name + mode), name in ACYCLIC, 12))
    checkpoints = Checkpoints(str(tmp_path / key_of(found.plan)), 0.0)

    def run(resume: bool) -> tuple[Any, list[PartKeeper]]:
        parts = found.parts(3)
        keepers = [checkpoints.of(part) for part in parts]
        served = latest([keeper.found() for keeper in keepers])
        assert bool(served) == resume
        for part, one in zip(parts, served, strict=False):
            part.restore(one.state)
        peers = thread_peers(3)
        run_threads([Worker(*each[:2], mode, None, each[2]) for each in zip(parts, peers, keepers, strict=True)], peers)
        return state(parts), keepers

    def rounded(facts: Any) -> Any:
        return {
            name: {key: None if v is None else round(v, 9) for key, v in rows.items()} for name, rows in facts.items()
        }

    first, keepers = run(resume=False)
    if keepers[0]._numbers():
        assert len(keepers[0]._numbers()) <= 2  # older ones go
        assert rounded(run(resume=True)[0]) == rounded(first)


@pytest.mark.parametrize("damage", ["truncate", "flip", "remove", "manifest", "all"])
def test_a_damaged_checkpoint_is_found_and_an_earlier_one_used(tmp_path: Path, damage: str) -> None:
    found = inputs(PROGRAMS["non-linear"], [(a, b, 1) for a, b in LINE])
    checkpoints = Checkpoints(str(tmp_path / "c"), 0.0)
    parts = found.parts(2)
    keepers = [checkpoints.of(part) for part in parts]
    simulation = Simulation(parts, "bsp", Costs(), keepers=keepers)
    simulation.run()
    older, newer = keepers[0]._numbers()
    path = tmp_path / "c" / (f"{newer}.json" if damage == "manifest" else f"{newer}-1.part")
    data = path.read_bytes()
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes(
            data[: len(data) // 2] if damage == "truncate" else data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]
        )
    if damage == "all":
        (tmp_path / "c" / f"{older}-0.part").write_bytes(b"")
    again = found.parts(2)
    served = latest([checkpoints.of(part).found() for part in again])
    assert [one.number for one in served] == ([] if damage == "all" else [older] * 2)
    for part, one in zip(again, served, strict=False):
        part.restore(one.state)
    Simulation(again, "async", Costs()).run()
    assert state(again) == state(parts)


def test_a_checkpoint_of_other_rows_or_workers_does_not_serve(tmp_path: Path) -> None:
    rows = [(a, b, 1) for a, b in LINE]
    checkpoints = Checkpoints(str(tmp_path / "c"), 0.0)
    parts = inputs(PROGRAMS["non-linear"], rows).parts(2)
    Simulation(parts, "bsp", Costs(), keepers=[checkpoints.of(part) for part in parts]).run()
    same, other = inputs(PROGRAMS["non-linear"], rows[::-1]), inputs(PROGRAMS["non-linear"], [*rows, (7, 3, 1)])
    assert all(checkpoints.of(part).found() for part in same.parts(2))
    assert not latest([checkpoints.of(part).found() for part in other.parts(2)])
    assert not any(checkpoints.of(part).found() for part in same.parts(3))
    assert fingerprint(same.parts(2)[0]) == fingerprint(inputs(PROGRAMS["non-linear"], rows).parts(2)[0])


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path) -> None:
    text = "p(X, Y, min<D>) <- arc(X, Y, D). p(X, Y, min<D>) <- p(X, Z, A), p(Z, Y, B), D = A + B."
    arcs = [(i, (i * 7 + 3) % 60, i % 5 + 1) for i in range(60)] + [(i, (i + 1) % 60, 3) for i in range(60)]
    options: dict[str, Any] = {"executor": "local", "workers": 2, "coordination": "bsp"}
    with emberlog.Engine(**options, checkpoint=tmp_path / "kept", checkpoint_seconds=0) as engine:
        engine.register("arc", arcs)
        with pytest.raises(emberlog.LimitError):
            engine.run(text, limits={"rows": 2000})
        assert list((tmp_path / "kept").glob("*/*.json"))
        (stratum,) = (s for s in engine.run(text, coordination="async").stats.strata if s.coordination)
        assert [event.what for event in stratum.events] == ["resumed"]
        assert "derivations were not made again" in stratum.events[0].why
        assert not (tmp_path / "kept").exists()  # what is done needs no checkpoint
        result = engine.run(text)
        assert result.stats[0].coordination is not None and "checkpoints in" in str(result.stats[0].coordination)
        assert set(result["p"].rows()) == answers(text, arcs)["p"]


def test_where_nothing_can_be_written_the_run_goes_on_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    place = tmp_path / "file" / "below"
    with emberlog.Engine(
        executor="local", workers=2, coordination="bsp", checkpoint=place, checkpoint_seconds=0
    ) as engine:
        engine.register("arc", LINE)
        result = engine.run(TC)
        assert len(result["tc"].rows()) == 820
        assert {event.what for event in result.stats[0].events} == {"no checkpoint"}


def test_checkpoints_need_workers_that_coordinate(tmp_path: Path) -> None:
    with emberlog.Engine(executor="local", checkpoint=tmp_path) as engine:
        engine.register("arc", LINE)
        with pytest.raises(emberlog.UsageError, match="checkpoints are of workers that coordinate"):
            engine.run(TC)
    with pytest.raises(emberlog.UsageError, match="checkpoint_seconds"):
        emberlog.Engine(checkpoint_seconds=-1)
