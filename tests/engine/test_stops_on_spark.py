"""Whatever ends work on Spark, the user sees what it was: a limit, Ctrl-C, somebody who cancels jobs, or the cause of a
failure. In rounds of SQL, in the jobs of workers, while their inputs are made, and while results are read."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from time import monotonic, sleep
from typing import Any

import pytest

import emberlog
from emberlog import sessions
from emberlog.kernels.cluster.job import Setup, run_workers
from emberlog.kernels.cluster.probe import Unavailable
from emberlog.stopping import Stop
from engine.places import Place

ENDLESS = "n(0). n(Y) <- n(X), Y = X + 1."
# Statements that would take a quarter of an hour or more. Spark's tasks end between two rows of A.
LONG = "p(count(_)) <- m(A), m(B), m(C), A + B + C = 7."
LONG_EXIT = "r(A) <- m(A), m(B), m(C), A + B + C = 7. r(Y) <- r(X), arc(X,Y)."
MANY = [(i,) for i in range(10_000)]
SOURCES = {"m": MANY, "arc": [(1, 2)]}
FOR_EVER = {"rounds": 10**9}

Work = Callable[[emberlog.Engine], object]


def rounds(engine: emberlog.Engine, **limits: float) -> object:
    return engine.run(ENDLESS, placement="spark", evaluator="sql", limits={**FOR_EVER, **limits})


def workers(engine: emberlog.Engine, **limits: float) -> object:
    return engine.run(ENDLESS, placement="spark", evaluator="kernel", limits={**FOR_EVER, **limits})


def inputs_of_workers(engine: emberlog.Engine, **limits: float) -> object:
    return engine.run(LONG_EXIT, placement="spark", evaluator="kernel", limits={**FOR_EVER, **limits})


def reading(engine: emberlog.Engine) -> object:
    return engine.run(LONG, placement="spark")["p"].rows()


def some(always: list[Any], others: list[Any]) -> pytest.MarkDecorator:
    """Work of a kind is stopped in one of the ways in every run, and in all of them in slow ones."""
    return pytest.mark.parametrize("work", [*always, *(pytest.param(work, marks=pytest.mark.slow) for work in others)])


def answers(engine: emberlog.Engine) -> bool:
    return engine.run("s(count(_)) <- m(_).", placement="spark")["s"].rows() == [(10_000,)]


@contextmanager
def meanwhile(act: Callable[[], object], after: float) -> Iterator[None]:
    """Does something in another thread while what is inside goes on, which must end soon then."""

    def acting() -> None:
        sleep(after)
        act()

    thread = Thread(target=acting, daemon=True)
    thread.start()
    started = monotonic()
    try:
        yield
    finally:
        took = monotonic() - started
        thread.join()
        assert took < after + 45  # most of which only a busy machine takes


@some([rounds, workers], [inputs_of_workers])
def test_a_time_limit_is_told_as_one(work: Any, on_spark: Place) -> None:
    engine = on_spark.engine(SOURCES)
    assert answers(engine)  # so that the limit is not spent on warming up
    with pytest.raises(emberlog.LimitError, match="stopped at the limit of 3 seconds while computing") as raised:
        work(engine, seconds=3)
    assert raised.value.exit_code == 3
    assert answers(engine)


def test_workers_tell_the_limits_of_the_run(on_spark: Place) -> None:
    """Not what was left of them when workers began."""
    engine = on_spark.engine(SOURCES)
    with pytest.raises(emberlog.LimitError, match="the limit of 10,100 rows while computing n"):
        engine.run(
            "k(count(_)) <- m(_). .output k\n" + ENDLESS + ".output n\n",
            placement="spark",
            evaluator="kernel",
            limits={**FOR_EVER, "rows": 10_100},
        )


@some([workers, reading], [rounds, inputs_of_workers])
def test_ctrl_c_is_told_as_one(work: Work, on_spark: Place) -> None:
    engine = on_spark.engine(SOURCES)
    with pytest.raises(KeyboardInterrupt), meanwhile(lambda: os.kill(os.getpid(), signal.SIGINT), after=3):
        work(engine)
    assert answers(engine)
    assert len(engine.run("q(X) <- m(X), X < 7.", placement="spark")["q"].rows()) == 7


@some([rounds, inputs_of_workers], [workers, reading])
def test_who_else_cancelled_a_job_is_told(work: Work, on_spark: Place) -> None:
    engine, context = on_spark.engine(SOURCES), on_spark.session.sparkContext

    def cancel() -> None:
        for _ in range(20):  # rounds of SQL have moments without a job
            context.cancelAllJobs()
            sleep(0.05)

    message = "somebody else cancelled the Spark job, not Emberlog: .*as part of cancellation of all jobs"
    with pytest.raises(emberlog.ExecutionError, match=message) as raised, meanwhile(cancel, after=3):
        work(engine)
    assert raised.value.exit_code == 4
    assert answers(engine)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("p(X) <- bad(X).", {}),
        ("p(X) <- bad(X). p(Y) <- p(X), arc(X,Y).", {"evaluator": "sql"}),
        ("p(X) <- bad(X). p(Y) <- p(X), arc(X,Y).", {"evaluator": "kernel"}),
    ],
    ids=["loading", "rounds", "workers"],
)
def test_a_failure_of_python_is_told_by_its_last_line(text: str, options: dict[str, Any], on_spark: Place) -> None:
    from pyspark.sql.functions import udf

    def fail(value: int) -> int:
        if value >= 0:
            raise ValueError("seven is not a node")
        return value

    frame = on_spark.session.range(3).select(udf(fail, "long", useArrow=False)("id").alias("x"))
    engine = on_spark.engine({**SOURCES, "bad": frame})
    with pytest.raises(emberlog.ExecutionError, match="ValueError: seven is not a node") as raised:
        engine.run(text, placement="spark", **options)["p"].rows()
    assert len(raised.value.message.splitlines()) == 1


def test_a_failure_of_java_is_told_by_its_deepest_cause(on_spark: Place, tmp_path: Any) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"nonsense" * 100)
    frame = on_spark.session.read.schema("x long").parquet(str(tmp_path / "bad.parquet"))
    with pytest.raises(emberlog.ExecutionError, match=r"bad\.parquet is not a Parquet file"):
        on_spark.engine({"bad": frame}).run("p(X) <- bad(X).", placement="spark")["p"].rows()


# --- what workers need -----------------------------------------------------------------------------------------------


def test_more_workers_than_slots_are_left_to_sql(on_spark: Place) -> None:
    engine = on_spark.engine({"arc": [(1, 2), (2, 3)]}, workers=7)
    text = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y)."
    result = engine.run(text, placement="spark")
    assert sorted(result["tc"].rows()) == [(1, 2), (1, 3), (2, 3)]
    assert result.stats[-1].evaluator == "sql"
    assert result.stats[-1].because == "7 workers need 7 slots at once, and the session has 2"
    with pytest.raises(emberlog.ExecutionError, match="no workers for `tc` can run in this session: 7 workers need 7"):
        engine.run(text, placement="spark", evaluator="kernel")


def test_workers_that_find_no_slots_are_given_up(on_spark: Place, tmp_path: Any) -> None:
    """Another job has all slots: the one of the workers is cancelled, and somebody else evaluates."""
    session, over = on_spark.session, tmp_path / "over"
    path = str(over)

    def wait(batches: Any) -> Any:
        import os
        from time import sleep

        yield from batches
        while not os.path.exists(path):
            sleep(0.1)

    def nothing(*_: Any) -> bytes:
        return b""

    run_workers(session, {}, nothing, 2, tmp_path / "run" / "warm", {})
    other = Thread(target=lambda: session.range(0, 2, 1, 2).mapInArrow(wait, "id long").toArrow(), daemon=True)
    other.start()
    sleep(2)
    try:
        with pytest.raises(Unavailable, match="2 slots did not get free at once within 1 s"):
            run_workers(session, {}, nothing, 2, tmp_path / "run" / "late", {}, Setup(start_within=1.0))
    finally:
        over.touch()
        other.join()


# --- the thread beside Ctrl-C ----------------------------------------------------------------------------------------


def test_work_beside_ctrl_c_has_the_settings_of_the_users_thread(spark: Any) -> None:
    context = spark.sparkContext
    context.setLocalProperty("spark.scheduler.pool", "mine")
    try:
        found = sessions.beside_interrupts(spark, Stop(), lambda: context.getLocalProperty("spark.scheduler.pool"))
    finally:
        context.setLocalProperty("spark.scheduler.pool", None)
    assert found == "mine"


def test_errors_beside_ctrl_c_are_those_of_the_work(spark: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        sessions.beside_interrupts(spark, Stop(), lambda: 1 / 0)


def test_a_tag_within_itself_stays(spark: Any) -> None:
    jobs = sessions.TaggedJobs(spark, "emberlog_test_tag")
    with jobs.tagged():
        with jobs.tagged():
            assert "emberlog_test_tag" in spark.sparkContext.getJobTags()
        assert "emberlog_test_tag" in spark.sparkContext.getJobTags()
    assert "emberlog_test_tag" not in spark.sparkContext.getJobTags()
