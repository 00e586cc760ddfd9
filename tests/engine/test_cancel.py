"""`engine.cancel()`: ends what an engine is running, wherever that runs, and leaves an engine that works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

import pytest

import emberlog
from emberlog.data import load, sources
from emberlog.stopping import Stop
from engine.places import Place

ENDLESS = "n(0). n(Y) <- n(X), Y = X + 1."
TC = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y)."
# A statement that would take a quarter of an hour or more. Spark's tasks end between two rows of A.
LONG = "p(count(_)) <- m(A), m(B), m(C), A + B + C = 7."
MANY = [(i,) for i in range(10_000)]
WIDE = [(i, (i * 7 + k) % 40_000) for i in range(40_000) for k in range(6)]
FOR_EVER = {"rounds": 10**9}
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "a statement": (LONG, {}),
    "rounds of SQL": (ENDLESS, {"evaluator": "sql", "limits": FOR_EVER}),
    "the interpreter": (ENDLESS, {"storage": "columns", "limits": FOR_EVER}),
    "loops": (ENDLESS, {"evaluator": "kernel", "storage": "loops", "limits": FOR_EVER}),
    "loops by pivots": (TC, {"evaluator": "kernel", "storage": "hash"}),
    "loops by masks": (TC, {"evaluator": "kernel", "storage": "loops"}),
    "a check of PreM": (
        "d(X,min<D>) <- X = 0, D = 0. d(Y,min<D>) <- d(X,C), arc(X,Y), D = C - 1.",
        {"check_prem": True, "limits": FOR_EVER},
    ),
    "rows": (TC, {"evaluator": "kernel", "storage": "rows"}),
    "workers that exchange": (ENDLESS, {"evaluator": "kernel", "exchange": True, "limits": FOR_EVER}),
    "workers that coordinate": (ENDLESS, {"coordination": "async", "limits": FOR_EVER}),
}


class Begun:
    """A progress that tells when the first stratum has begun."""

    def __init__(self) -> None:
        self.event = Event()

    def stratum(self, predicates: tuple[str, ...], number: int, total: int, placement: str) -> None:
        self.event.set()

    def round(self, number: int, delta: int, facts: int, rate: float) -> None:
        return

    def done(self) -> None:
        return


def cancelled(engine: emberlog.Engine, work: Callable[[Begun], object], after: float = 0.3) -> emberlog.CancelledError:
    """The error of some work that is cancelled a while after it began."""
    begun = Begun()

    def cancel() -> None:
        begun.event.wait(60)
        sleep(after)
        engine.cancel()

    Thread(target=cancel, daemon=True).start()
    started = monotonic()
    with pytest.raises(emberlog.CancelledError, match=r"engine\.cancel\(\) ended this run") as raised:
        work(begun)
    assert monotonic() - started < 60  # most of which a busy machine takes, or a compiler
    return raised.value


def answers(engine: emberlog.Engine, **options: Any) -> bool:
    """True if the engine gives the right answer to a small question."""
    return engine.run("s(count(_)) <- m(_).", **options)["s"].rows() == [(10_000,)]


@pytest.mark.parametrize(("text", "options"), WAYS.values(), ids=WAYS)
def test_a_run_is_cancelled(text: str, options: dict[str, Any], local: Place) -> None:
    engine = local.engine({"m": MANY, "arc": WIDE}, workers=2)
    error = cancelled(engine, lambda begun: engine.run(text, progress=begun, **options))
    assert isinstance(error, emberlog.EmberlogError) and error.exit_code == 130
    assert answers(engine)


def test_a_run_is_cancelled_by_its_own_progress(local: Place) -> None:
    engine = local.engine({"m": MANY})

    class Impatient(Begun):
        def round(self, number: int, delta: int, facts: int, rate: float) -> None:
            engine.cancel()

    with pytest.raises(emberlog.CancelledError):
        engine.run(ENDLESS, progress=Impatient(), limits=FOR_EVER)
    assert answers(engine)


def test_loading_is_cancelled(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = local.engine({"m": MANY, "k": MANY})
    loaded: list[str] = []
    load_table = sources.load_table

    def cancelling(relation: str, *rest: Any) -> Any:
        loaded.append(relation)
        engine.cancel()
        return load_table(relation, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(load, "load_table", cancelling)
        with pytest.raises(emberlog.CancelledError):
            engine.run("p(X) <- m(X), k(X).")
    assert len(loaded) == 1
    assert answers(engine)


def test_writing_is_cancelled(local: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = local.engine()
    program = tmp_path / "program.dl"
    program.write_text("p(1). q(2). .output p\n.output q\n")
    from emberlog.data import directives

    write = directives.write_directive

    def cancelling(*given: Any) -> None:
        write(*given)
        engine.cancel()

    monkeypatch.setattr(directives, "write_directive", cancelling)
    with pytest.raises(emberlog.CancelledError):
        engine.run_file(program, output_dir=tmp_path / "out")
    assert len(list((tmp_path / "out").iterdir())) == 1


def test_every_run_of_an_engine_is_cancelled_and_no_other(local: Place) -> None:
    engine, other = local.engine({"m": MANY}), local.engine({"m": MANY})
    errors: list[str] = []
    going = [Begun(), Begun()]

    def run(begun: Begun) -> None:
        try:
            engine.run(ENDLESS, evaluator="sql", progress=begun, limits=FOR_EVER)
        except emberlog.CancelledError as error:
            errors.append(error.message)

    threads = [Thread(target=run, args=(begun,)) for begun in going]
    for thread, begun in zip(threads, going, strict=True):
        thread.start()
        assert begun.event.wait(60)
    other.cancel()
    sleep(0.2)
    assert all(thread.is_alive() for thread in threads)
    engine.cancel()
    for thread in threads:
        thread.join(60)
    assert len(errors) == 2
    assert answers(engine) and answers(other)


def test_with_nothing_running_nothing_is_cancelled(local: Place) -> None:
    engine = local.engine({"m": MANY})
    engine.cancel()
    result = engine.run("p(X) <- m(X).")
    engine.cancel()
    assert len(result["p"].rows()) == 10_000 and answers(engine)


# --- on Spark --------------------------------------------------------------------------------------------------------

ON_SPARK: dict[str, tuple[str, dict[str, Any]]] = {
    "a statement": (LONG, {"limits": {"seconds": 600}}),  # with a limit it is computed at once
    "rounds of SQL": (ENDLESS, {"evaluator": "sql", "limits": FOR_EVER}),
    "workers": (ENDLESS, {"evaluator": "kernel", "limits": FOR_EVER}),
}


@pytest.mark.parametrize(("text", "options"), ON_SPARK.values(), ids=ON_SPARK)
def test_a_run_on_spark_is_cancelled(text: str, options: dict[str, Any], on_spark: Place) -> None:
    engine = on_spark.engine({"m": MANY})
    cancelled(engine, lambda begun: engine.run(text, placement="spark", progress=begun, **options), after=3.0)
    assert answers(engine, placement="spark")


def test_reading_from_spark_is_cancelled(on_spark: Place) -> None:
    engine = on_spark.engine({"m": MANY})
    relation = engine.run(LONG, placement="spark")["p"]  # computed when it is read

    def read(begun: Begun) -> None:
        begun.event.set()
        relation.rows()

    cancelled(engine, read, after=2.0)
    assert answers(engine, placement="spark")


# --- the token -------------------------------------------------------------------------------------------------------


def test_what_is_asked_of_earlier_work_counts_no_more() -> None:
    stop = Stop()
    stop.cancel()
    with stop.working():
        stop.check()
        with stop.working():
            stop.cancel()
        with pytest.raises(emberlog.CancelledError):
            stop.check()
    with stop.working():
        stop.check()


def test_a_call_is_interrupted_until_it_has_ended() -> None:
    stop, calls, enough = Stop(), [], Event()

    def interrupt() -> None:
        calls.append(monotonic())
        if len(calls) == 3:
            enough.set()
        raise ConnectionError  # whatever happens there

    with stop.working(), stop.interruptible(interrupt):
        stop.cancel()
        assert enough.wait(30)
    number = len(calls)
    sleep(0.5)
    assert len(calls) <= number + 1


def test_a_call_is_interrupted_when_its_time_is_over() -> None:
    interrupted = Event()
    with Stop().interruptible(interrupted.set, seconds=0.01):
        assert interrupted.wait(30)


def test_a_call_that_begins_too_late_is_not_made() -> None:
    stop = Stop()
    with stop.working():
        stop.interrupt()
        with pytest.raises(KeyboardInterrupt), stop.interruptible(lambda: None):
            raise AssertionError("it was begun")
