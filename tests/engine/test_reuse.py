"""Engines that live on: sources that go again, results that the next run reads, files of results, threads."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import emberlog
from emberlog.executors import spark as spark_executor
from emberlog.executors.spark import SparkExecutor
from emberlog.result import file_names
from engine.places import Place

TC = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y)."
ARC = [(1, 2), (2, 3)]
CLOSURE = [(1, 2), (1, 3), (2, 3)]


def test_a_source_is_unregistered(local: Place) -> None:
    engine = local.engine({"arc": ARC})
    before = engine.run(TC)
    engine.unregister("arc")
    with pytest.raises(emberlog.ProgramError, match="arc"):
        engine.run(TC)
    assert sorted(before["tc"].rows()) == CLOSURE
    engine.register("arc", [(7, 8)])
    assert engine.run(TC)["tc"].rows() == [(7, 8)]


def test_what_is_not_registered_cannot_be_unregistered(local: Place) -> None:
    engine = local.engine({"arc": ARC})
    with pytest.raises(emberlog.UsageError, match="`arcs` is not registered") as raised:
        engine.unregister("arcs")
    assert raised.value.fix == "did you mean `arc`?"
    engine.close()
    with pytest.raises(emberlog.UsageError, match="closed"):
        engine.unregister("arc")


# --- a relation is a source ------------------------------------------------------------------------------------------


def test_the_next_run_reads_a_relation(place: Place) -> None:
    engine = place.engine({"arc": ARC})
    first = engine.run(TC, placement=place.placement)
    engine.register("tc", first["tc"])
    engine.unregister("arc")
    found = engine.run("n(X, count(Y)) <- tc(X, Y).", placement=place.placement)
    assert sorted(found["n"].rows()) == [(1, 2), (2, 1)]


def test_a_relation_keeps_its_types_and_its_rows_alive(place: Place) -> None:
    engine = place.engine({"s": [(2**64 - 1, 1.5, "x")]})
    engine.register("t", engine.run("t(A,B,C) <- s(A,B,C).", placement=place.placement)["t"])  # nobody else holds it
    found = engine.run("u(A,B,C) <- t(A,B,C).", placement=place.placement)["u"]
    assert [str(column.type) for column in found.schema] == ["unsigned", "float", "symbol"]
    assert found.rows() == [(2**64 - 1, 1.5, "x")]


def test_a_relation_without_columns(place: Place) -> None:
    engine = place.engine()
    engine.register("yes", engine.run("yes() <- 1 = 1.", placement=place.placement)["yes"])
    engine.register("no", engine.run("no() <- 1 = 2.", placement=place.placement)["no"])
    found = engine.run("p(1) <- yes(). p(2) <- no(). p(3) <- !no().", placement=place.placement)
    assert sorted(found["p"].rows()) == [(1,), (3,)]


@pytest.mark.spark
def test_many_rows_stay_on_spark(on_spark: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_executor, "SMALL_SOURCE", 1)
    engine = on_spark.engine({"arc": ARC})
    first = engine.run(TC, placement="spark")["tc"]
    engine.register("tc", first)
    monkeypatch.setattr(type(first), "to_arrow", None)  # nothing passes through the driver
    assert len(engine.run("p(X) <- tc(X, Y), Y > 2.")["p"]) == 2


def test_one_engine_reads_what_another_made(place: Place) -> None:
    one, other = place.engine({"arc": ARC}), place.engine()
    other.register("tc", one.run(TC, placement=place.placement)["tc"])
    assert len(other.run("p(X,Y) <- tc(X,Y).", placement=place.placement)["p"]) == 3
    one.close()
    with pytest.raises(emberlog.UsageError, match="the engine is closed, and the rows of this relation went with it"):
        other.run("p(X,Y) <- tc(X,Y).", placement=place.placement)


def test_a_relation_that_was_persisted_outlives_its_engine(place: Place, tmp_path: Path) -> None:
    one, other = place.engine({"arc": ARC}), place.engine()
    kept = one.run(TC, placement=place.placement, persist=tmp_path)["tc"]
    one.close()
    other.register("tc", kept)
    assert len(other.run("p(X,Y) <- tc(X,Y).", placement=place.placement)["p"]) == 3


@pytest.mark.parametrize("placement", ["auto", "spark"])
def test_a_persisted_relation_in_an_engine_with_its_own_session(
    spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, placement: str
) -> None:
    """The relation knows no session, as it outlives that of the engine; and none is active in the thread of a run."""
    monkeypatch.setattr(spark_executor, "SMALL_SOURCE", 2)
    engine = emberlog.Engine()
    engine._spark, engine._own_session = spark, True  # as if it had started it
    engine.register("arc", ARC)
    kept = engine.run(TC + "yes() <- tc(1, 3).", persist=tmp_path / "[1]")
    for name in kept:
        engine.register(name, kept[name])
    found = engine.run("p(X,Y) <- tc(X,Y), yes().", placement=placement)["p"]
    assert sorted(found.rows()) == CLOSURE


KINDS = {
    "a": pa.array([2**64 - 1], pa.uint64()),
    "b": pa.array([0.5]),
    "c": pa.array(["x"]),
    "d": pa.array([Decimal("1.25")]),
    "e": pa.array([date(2024, 2, 29)]),
    "f": pa.array([datetime(2024, 2, 29, 12, 30)]),
}


@pytest.mark.spark_sample(3)
@pytest.mark.parametrize("persisted", [False, True])
@pytest.mark.parametrize("placement", ["auto", "spark"])
@pytest.mark.parametrize("maker", ["local", "spark"])
def test_executors_read_what_others_made(
    spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, maker: str, placement: str, persisted: bool
) -> None:
    monkeypatch.setattr(spark_executor, "SMALL_SOURCE", 2)  # so that the closure goes to Spark
    one = Place(maker, *((placement, spark) if maker == "spark" else ("auto", None)))
    other = Place(*(("local", "auto", None) if maker == "spark" else ("spark", placement, spark)))
    with closing(one), closing(other):
        made = one.engine({"arc": ARC, "s": pa.table(KINDS)}).run(
            TC + "yes() <- tc(1, 3). kinds(A,B,C,D,E,F) <- s(A,B,C,D,E,F).",
            placement=one.placement,
            persist=tmp_path if persisted else None,
        )
        found = other.run("p(X,Y) <- tc(X,Y), yes(). q(A,B,C,D,E,F) <- kinds(A,B,C,D,E,F).", {n: made[n] for n in made})
        assert sorted(found["p"].rows()) == CLOSURE
        assert found["q"].rows() == [tuple(column[0].as_py() for column in KINDS.values())]


@pytest.mark.spark
@pytest.mark.parametrize("large", [False, True])
def test_a_session_reads_what_another_made(spark: Any, monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    """A session does not see the tables of another one."""
    with emberlog.Engine(spark) as one, emberlog.Engine(spark.newSession()) as other:
        one.register("arc", ARC)
        made = one.run(TC, placement="spark")["tc"]
        monkeypatch.setattr(SparkExecutor, "is_large", lambda *_: large)
        other.register("tc", made)
        assert sorted(other.run("p(X,Y) <- tc(X,Y).", placement="spark")["p"].rows()) == CLOSURE
        assert made.to_spark(other.spark).sparkSession is other.spark


# --- files of a result -----------------------------------------------------------------------------------------------


def test_persisted_relations_have_the_names_that_one_would_guess(place: Place, tmp_path: Path) -> None:
    engine = place.engine({"arc": ARC})
    engine.run(TC + "yes() <- tc(1, 3). Tc(X) <- tc(X, _).", placement=place.placement, persist=tmp_path)
    assert sorted(pq.read_table(tmp_path / "tc.parquet").to_pylist(), key=str) == [{"X": x, "Y": y} for x, y in CLOSURE]
    listed = json.loads((tmp_path / "relations.json").read_text())["relations"]
    assert {name: entry.get("file") for name, entry in listed.items()} == {
        "tc": "tc.parquet",
        "Tc": "Tc_1.parquet",
        "yes": None,
    }


def test_names_of_files() -> None:
    found = file_names(["tc", "Tc", "TC", "_hidden", "größe", "gr__e", "x" * 300, "a/b", "..", "goal0_tc"])
    assert found["goal0_tc"] == "goal0_tc.parquet"
    assert found["gr__e"] == "gr__e.parquet"
    assert found["größe"] == "gr__e_1.parquet"
    assert found["_hidden"] == "r_hidden.parquet"
    assert found["a/b"] == "a_b.parquet"
    assert found[".."] == "r__.parquet"
    assert len({name.casefold() for name in found.values()}) == len(found)
    assert all(len(name) < 120 and name[0].isalnum() for name in found.values())


def test_goals_have_files_of_their_own(place: Place, tmp_path: Path) -> None:
    engine = place.engine({"arc": ARC})
    text = "p(X) <- arc(X, _). goal0_p(Y) <- arc(_, Y). .output goal0_p\n?- p(1)."
    kept = engine.run(text, placement=place.placement, persist=tmp_path)
    engine.close()
    assert kept.goals[0].rows() == [(1,)]
    assert sorted(kept["goal0_p"].rows()) == [(2,), (3,)]


@pytest.mark.parametrize("name", ["_tmp", "größe"])
def test_names_that_readers_would_skip(place: Place, tmp_path: Path, name: str) -> None:
    engine = place.engine({"s": [(1,)]})
    kept = engine.run(f".decl {name}(x: number)\n{name}(X) <- s(X).", placement=place.placement, persist=tmp_path)
    engine.close()
    assert kept[name].rows() == [(1,)]


# --- threads ---------------------------------------------------------------------------------------------------------


def in_thread(work: Any) -> Any:
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except emberlog.EmberlogError as error:
            found.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def test_query_asks_the_last_program_of_its_own_thread(local: Place) -> None:
    engine = local.engine({"arc": ARC})
    engine.run("p(X) <- arc(X, _).")
    in_thread(lambda: engine.run("p(Y) <- arc(_, Y)."))
    assert sorted(engine.query("p(X)").rows()) == [(1,), (2,)]


def test_a_thread_that_ran_nothing_has_nothing_to_query(local: Place) -> None:
    engine = local.engine({"arc": ARC})
    engine.run("p(X) <- arc(X, _).")
    assert "this thread has run none" in str(in_thread(lambda: engine.query("p(X)")))
    assert sorted(in_thread(lambda: engine.query("q(X)", program="q(X) <- arc(X, _).")).rows()) == [(1,), (2,)]
