"""What is kept of registered sources between runs: used where nothing changed, and never where something did."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import emberlog
from emberlog.data.sources import ArrowSource, Source
from emberlog.store.kept import Kept

REACH = "r(1). r(Y) <- r(X), arc(X, Y)."
TEXTS = 'r("a"). r(Y) <- r(X), arc(X, Y).'


def numbers(*rows: tuple[int, int]) -> pa.Table:
    return pa.table(
        {"x": [row[0] for row in rows], "y": [row[1] for row in rows]}, pa.schema([("x", "i8"), ("y", "i8")])
    )


def sized(value: pa.Table) -> int:
    return int(value.nbytes)


@pytest.fixture
def sources() -> dict[str, Source]:
    return {"arc": ArrowSource(numbers((1, 2), (2, 3)))}


class Counted:
    """A function that counts its calls."""

    def __init__(self, made: Callable[[], object]) -> None:
        self.made, self.calls = made, 0

    def __call__(self) -> object:
        self.calls += 1
        return self.made()


def test_rows_of_a_source_are_read_once(sources: dict[str, Source]) -> None:
    kept = Kept(sources)
    kept.most = 1 << 20
    read = Counted(lambda: numbers((1, 2)))
    for _ in range(3):
        assert kept.rows("arc", sources["arc"], "all", read).num_rows == 1
    assert read.calls == 1
    kept.rows("arc", sources["arc"], "other columns", read)
    assert read.calls == 2
    kept.forget("arc")
    kept.rows("arc", sources["arc"], "other columns", read)
    assert read.calls == 3


def test_what_is_not_registered_is_not_kept(sources: dict[str, Source]) -> None:
    kept = Kept({})
    kept.most = 1 << 20
    read = Counted(lambda: numbers((1, 2)))
    kept.rows("arc", sources["arc"], "all", read)
    kept.rows("arc", sources["arc"], "all", read)
    assert read.calls == 2


def test_what_is_made_of_other_columns_is_not_kept(sources: dict[str, Source]) -> None:
    kept = Kept(sources)
    kept.most = 1 << 20
    table = kept.rows("arc", sources["arc"], "all", lambda: numbers((1, 2)))
    make = Counted(lambda: 7)
    for _ in range(2):
        assert kept.made("sum", table.columns, make, lambda _: 8) == 7
    assert make.calls == 1
    for _ in range(2):
        kept.made("sum", [*table.columns, pa.array([1])], make, lambda _: 8)
    assert make.calls == 3
    kept.made("another", table.columns, make, lambda _: 8)
    assert make.calls == 4


def test_the_source_that_was_not_read_for_long_makes_room(sources: dict[str, Source]) -> None:
    sources["other"] = ArrowSource(numbers((5, 6)))
    kept = Kept(sources)
    kept.most = 100
    first = kept.rows("arc", sources["arc"], "all", lambda: numbers((1, 2)))
    second = kept.rows("other", sources["other"], "all", lambda: numbers((5, 6)))
    kept.made("large", second.columns, lambda: 0, lambda _: 80)
    assert not kept.has(first.column(0)) and kept.has(second.column(0))
    kept.made("too large", second.columns, lambda: 0, lambda _: 90)
    assert kept.bytes == 0


@pytest.mark.parametrize("evaluator", ["auto", "kernel", "sql"])
def test_a_second_run_has_the_same_rows(evaluator: str) -> None:
    with emberlog.Engine(executor="local") as engine:
        engine.register("arc", numbers((1, 2), (2, 3), (5, 6)))
        found = [sorted(engine.run(REACH, evaluator=evaluator)["r"].rows()) for _ in range(3)]
    assert found == [[(1,), (2,), (3,)]] * 3


def test_registering_again_is_a_change() -> None:
    with emberlog.Engine(executor="local") as engine:
        for end in range(2, 6):
            engine.register("arc", numbers((1, end)))
            assert sorted(engine.run(REACH, evaluator="kernel")["r"].rows()) == [(1,), (end,)]


def test_values_that_the_kept_dictionary_lacks() -> None:
    with emberlog.Engine(executor="local") as engine:
        engine.register("arc", [("a", "b"), ("b", "c")])
        assert sorted(engine.run(TEXTS, evaluator="kernel")["r"].rows()) == [("a",), ("b",), ("c",)]
        more = 'r("0"). r("zz"). ' + TEXTS
        assert sorted(engine.run(more, evaluator="kernel")["r"].rows()) == [("0",), ("a",), ("b",), ("c",), ("zz",)]
        ordered = 's("a", "b"). s("a", "0"). s(Y, min<Z>) <- s(X, Z), arc(X, Y). s(X, min<Z>) <- arc(X, Z).'
        expected = [("a", "0"), ("b", "0"), ("c", "0")]
        assert sorted(engine.run(ordered, evaluator="kernel")["s"].rows()) == expected
        assert sorted(engine.run(TEXTS, evaluator="kernel")["r"].rows()) == [("a",), ("b",), ("c",)]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_that_changed_is_read_again(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"arc.{suffix}"

    def write(end: int, seconds: int) -> None:
        if suffix == "csv":
            path.write_text(f"x,y\n1,{end}\n", encoding="utf-8")
        else:
            pq.write_table(numbers((1, end)), path)
        os.utime(path, (seconds, seconds))

    with emberlog.Engine(executor="local") as engine:
        write(2, 1_000)
        engine.register("arc", path)
        for _ in range(2):
            assert sorted(engine.run(REACH)["r"].rows()) == [(1,), (2,)]
        write(3, 2_000)  # as long as before
        assert sorted(engine.run(REACH)["r"].rows()) == [(1,), (3,)]


def test_a_file_that_was_just_written_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "arc.csv"
    with emberlog.Engine(executor="local") as engine:
        for end in range(2, 9):  # faster than the clock of the file system, perhaps
            path.write_text(f"x,y\n1,{end}\n", encoding="utf-8")
            engine.register("arc", path) if end == 2 else None
            assert sorted(engine.run(REACH)["r"].rows()) == [(1,), (end,)]


def test_programs_that_read_other_columns() -> None:
    with emberlog.Engine(executor="local") as engine:
        engine.register("e", pa.table({"x": [1, 2, 3], "y": [2, 3, 4], "w": [5.0, 6.0, 7.0]}))
        for _ in range(2):
            paths = engine.run("p(X, Y) <- e(X, Y, _). p(X, Y) <- p(X, Z), e(Z, Y, _).", evaluator="kernel")
            assert paths["p"].count() == 6
            best = engine.run("s(1, 0.0). s(Y, min<D>) <- s(X, C), e(X, Y, W), D = C + W.", evaluator="kernel")
            assert sorted(best["s"].rows()) == [(1, 0.0), (2, 5.0), (3, 11.0), (4, 18.0)]


def test_forget_keeps_the_source_registered() -> None:
    with emberlog.Engine(executor="local") as engine:
        engine.register("arc", numbers((1, 2)))
        before = sorted(engine.run(REACH)["r"].rows())
        engine.forget("arc")
        engine.forget("no such relation")
        assert sorted(engine.run(REACH)["r"].rows()) == before
