"""Who is told how a run goes on: functions and objects of the caller, and what happens when they raise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import emberlog
from emberlog import ProgressEvent
from engine.places import Place

TC = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y)."
PROGRAM = f"{TC} n(count<X>) <- tc(X,_)."
ARC = [(1, 2), (2, 3), (3, 4)]


def kinds(events: list[ProgressEvent]) -> list[str]:
    return [event.kind for event in events]


def test_a_function_is_called_with_each_event(local: Place) -> None:
    events: list[ProgressEvent] = []
    local.engine({"arc": ARC}).run(PROGRAM, evaluator="sql", progress=events.append)
    assert [str(event) for event in events] == [
        "stratum 1 of 2: tc",
        "stratum 1 of 2: tc, round 1: 3 changed, 3 facts",
        "stratum 1 of 2: tc, round 2: 2 changed, 5 facts",
        "stratum 1 of 2: tc, round 3: 1 changed, 6 facts",
        "stratum 1 of 2: tc, round 4: 0 changed, 6 facts",
        "stratum 2 of 2: n",
        "done",
    ]
    assert events[2] == ProgressEvent("round", ("tc",), 1, 2, 2, 2, 5, events[2].rate) and events[2].rate > 0


@pytest.mark.parametrize("storage", ["columns", "loops", "rows"])
def test_kernels_tell_of_their_rounds_too(storage: str, local: Place) -> None:
    events: list[ProgressEvent] = []
    engine = local.engine({"arc": ARC})
    apart: dict[str, Any] = {} if storage == "columns" else {"decompose": False}
    engine.run(TC, evaluator="kernel", storage=storage, progress=events.append, **apart)
    assert kinds(events)[0] == "stratum" and kinds(events)[-1] == "done"
    assert sum(event.delta for event in events) == 6


def test_print_is_a_progress_function(local: Place, capsys: pytest.CaptureFixture[str]) -> None:
    local.engine({"arc": ARC}, progress=print).run(TC)
    assert capsys.readouterr().out.splitlines()[0] == "stratum 1 of 1: tc"


def ways(engine: emberlog.Engine, folder: Path) -> dict[str, Callable[[Any], object]]:
    """Every call that takes a progress function."""
    path = folder / "tc.dl"
    path.write_text(TC)
    return {
        "run": lambda told: engine.run(TC, progress=told),
        "run_file": lambda told: engine.run_file(path, progress=told),
        "query": lambda told: engine.query("tc(1,Y)", program=TC, progress=told).count(),
    }


@pytest.mark.parametrize("way", ["run", "run_file", "query"])
def test_every_call_takes_a_function_and_it_goes_before_that_of_the_engine(
    way: str, local: Place, tmp_path: Path
) -> None:
    of_engine: list[ProgressEvent] = []
    of_call: list[ProgressEvent] = []
    engine = local.engine({"arc": ARC}, progress=of_engine.append)
    ways(engine, tmp_path)[way](of_call.append)
    assert kinds(of_call)[-1] == "done" and not of_engine
    ways(engine, tmp_path)[way](None)
    assert kinds(of_engine)[-1] == "done"


def test_functions_are_told_on_every_executor(place: Place) -> None:
    events: list[ProgressEvent] = []
    place.engine({"arc": ARC}).run(PROGRAM, placement=place.placement, progress=events.append)
    assert kinds(events)[0] == "stratum" and kinds(events)[-1] == "done"
    assert [event.predicates for event in events if event.kind == "stratum"] == [("tc",), ("n",)]


# --- functions that raise ------------------------------------------------------------------------------------------


class Enough(Exception):
    """What a caller's function raises."""


class Raising:
    """Raises at the first event of a kind, and counts what it is told."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.told: list[str] = []

    def __call__(self, event: ProgressEvent) -> None:
        self.told.append(event.kind)
        if event.kind == self.kind:
            raise Enough(event.kind) from ValueError("its cause")


@pytest.mark.spark_sample(2)
@pytest.mark.parametrize("kind", ["stratum", "round", "done"])
@pytest.mark.parametrize("evaluator", ["sql", "auto"])
def test_what_a_function_raises_ends_the_run_and_reaches_the_caller(
    kind: str, evaluator: str, place: Place, tmp_path: Path
) -> None:
    raising = Raising(kind)
    engine = place.engine({"arc": ARC}, run_dir=tmp_path / "scratch")
    if kind == "round" and (place.placement, evaluator) == ("spark", "auto"):
        engine.run(TC, placement="spark", progress=raising)
        assert raising.told == ["stratum", "done"]  # rounds in the tasks of a job are not told
        return
    with pytest.raises(Enough, match=kind) as raised:
        engine.run(TC, evaluator=evaluator, placement=place.placement, progress=raising)
    assert isinstance(raised.value.__cause__, ValueError)
    assert raising.told.count(kind) == 1 and raising.told[-1] == kind  # it is told no more
    assert not list((tmp_path / "scratch").iterdir())
    assert len(engine.run(TC, placement=place.placement)["tc"]) == 6  # and the engine goes on


def test_objects_that_raise_end_the_run_as_functions_do(local: Place) -> None:
    class Told:
        def stratum(self, predicates: tuple[str, ...], number: int, total: int, placement: str) -> None:
            return

        def round(self, number: int, delta: int, facts: int, rate: float) -> None:
            raise Enough("round")

        def done(self) -> None:
            return

    with pytest.raises(Enough, match="round"):
        local.engine({"arc": ARC}).run(TC, evaluator="sql", progress=Told())


def test_an_interrupt_by_a_function_is_an_interrupt(local: Place) -> None:
    def stop(event: ProgressEvent) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        local.engine({"arc": ARC}).run(TC, progress=stop)


def test_what_ended_a_run_goes_before_what_a_function_raises_then(local: Place) -> None:
    raising = Raising("done")
    with pytest.raises(emberlog.DataError, match="a divisor is zero"):
        local.engine({"arc": ARC}).run("p(Y) <- arc(X,_), Y = 1 / (X - 1).", progress=raising)
    assert raising.told[-1] == "done"


@pytest.mark.parametrize("nobody", ["print", 7, object()])
def test_what_cannot_be_called_is_no_progress(nobody: Any, local: Place) -> None:
    with pytest.raises(emberlog.UsageError, match="progress is a function") as raised:
        local.engine({"arc": ARC}).run(TC, progress=nobody)
    assert raised.value.fix == "progress=print prints a line for each event"
