"""Counts, aggregates, projections and limits over what the kernels compute, done by the workers in place of rows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import emberlog
from emberlog.analysis.check import check
from emberlog.asked import sized_relations, wanted_relations
from emberlog.kernels.cluster.manifest import load
from emberlog.plan.compiler import plan_program
from emberlog.plan.partials import Decision, decide
from emberlog.source import Source
from emberlog.syntax.parser import parse

TC = "tc(X,Y) <- arc(X,Y).\ntc(X,Y) <- tc(X,Z), arc(Z,Y).\n"
DECLARED = ".decl arc(x: number, y: number)\n.input arc\n"
WAYS = (
    pytest.param({}, id="pivot"),
    pytest.param({"decompose": False}, id="one worker"),
    pytest.param({"decompose": False, "exchange": True}, id="exchange", marks=pytest.mark.slow),
)


def edges(nodes: int = 60, number: int = 110) -> list[tuple[int, int]]:
    draw = random.Random(1)
    return sorted({(draw.randrange(nodes), draw.randrange(nodes)) for _ in range(number)})


# --- what can be done in parts ---------------------------------------------------------------------------------------


def decided(
    rules: str,
    split: tuple[int, ...] | None,
    declared: str = DECLARED,
    only_counts: bool = False,
    recursion: str = TC,
) -> Decision:
    program = parse(Source("<program>", declared + recursion + rules))
    checked = check(program, {}, {}, require_sources=False)
    wanted = wanted_relations(program, checked)
    plan = plan_program(checked, wanted)
    stratum = next(stratum for stratum in plan.strata if "tc" in stratum.names)
    return decide(stratum, plan, frozenset(wanted - sized_relations(program)), {"tc": split}, only_counts=only_counts)


NOT_KEPT = "rows not kept"
PUSHED = [
    ("n(count<X>) <- tc(X,Y).", f"counted in the workers for n; {NOT_KEPT}"),
    ("n(count(_)) <- tc(X,Y).", f"counted in the workers for n; {NOT_KEPT}"),
    ("n(C) <- C = count : { tc(_,_) }.", f"counted in the workers for n; {NOT_KEPT}"),
    ("n(count<X>) <- tc(X,Y), X > Y.", f"aggregated in the workers for n; {NOT_KEPT}"),
    ("n(Y, sum<X>, min<X>, max<X>) <- tc(X,Y).", f"aggregated in the workers for n; {NOT_KEPT}"),
    ("n(X, countd<Y>, avg<Y>) <- tc(X,Y).", f"aggregated in the workers for n; {NOT_KEPT}"),
    ("n(Y) <- tc(_,Y).", f"projected in the workers for n; {NOT_KEPT}"),
    ("n(X,Y) <- tc(X,Y), sort((Y, desc)), limit(3).", f"cut to a limit in the workers for n; {NOT_KEPT}"),
    ("n(Y) <- tc(1,Y).", f"projected in the workers for n; {NOT_KEPT}"),
    ("n(1,Y) <- tc(1,Y).", f"projected in the workers for n; {NOT_KEPT}"),
]


@pytest.mark.parametrize(("rule", "told"), PUSHED)
def test_rows_that_are_only_aggregated_are_not_kept(rule: str, told: str) -> None:
    found = decided(f".output n\n{rule}", split=(0,))
    assert found.text == told
    assert not found.keep and [partial.counts for partial in found.partials] == [told.startswith("counted")]


KEPT = [
    ("n(countd<X>) <- tc(X,Y).", "`n` takes countd over the rows of all workers"),
    ("n(Y, avg<X>) <- tc(X,Y).", "`n` takes avg over the rows of all workers"),
    ("n(X, Y, count<X>) <- tc(X,Y).", "`n` has a row for each of them"),
    ("n(sum<Z>) <- tc(X,Y), Z = X + Y.", "`n` has an operation that may have no value"),
    ("n(count<X>) <- tc(X,Y), arc(Y,X).", "`n` reads them together with other rows"),
    ("n(count<X>) <- tc(X,Y). .output tc", "they are asked for"),
    ("n() <- tc(_,_).", "`n` only asks if there are any"),
]


@pytest.mark.parametrize(("rule", "why"), KEPT)
def test_why_rows_are_kept(rule: str, why: str) -> None:
    found = decided(f".output n\n{rule}", split=(0,))
    assert found == Decision(frozenset({"tc"}), (), {"tc": f"rows kept: {why}"})


def test_one_worker_has_every_group() -> None:
    for rule in ("n(countd<X>) <- tc(X,Y).", "n(Y, avg<X>) <- tc(X,Y)."):
        assert decided(f".output n\n{rule}", split=()).text == f"aggregated in the workers for n; {NOT_KEPT}"
        assert decided(f".output n\n{rule}", split=None).keep == {"tc"}


def test_a_recursion_needs_rows() -> None:
    rules = ".output n, m\nn(count<X>) <- tc(X,Y).\nm(X) <- tc(1,X).\nm(Y) <- m(X), tc(X,Y).\n"
    assert decided(rules, split=(0,)).keep == {"tc"}


def test_what_nobody_reads_is_not_kept() -> None:
    found = decided(".output n\nn(X) <- arc(X,_).\n.printsize tc", split=(0,))
    assert (found.keep, found.partials, found.text) == (frozenset(), (), f"counted in the workers; {NOT_KEPT}")


def test_only_counts() -> None:
    assert decided(".output n\nn(count<X>) <- tc(X,Y).", (), only_counts=True).keep == frozenset()
    assert decided(".output n\nn(X, count<Y>) <- tc(X,Y).", (), only_counts=True).keep == {"tc"}


def test_workers_know_no_text() -> None:
    declared = DECLARED.replace("number", "symbol")
    rule = '.output n\nn(count<X>) <- tc(X,Y), X < "b".'
    assert decided(rule, (0,), declared).text == "rows kept: `n` computes or compares values of type symbol"
    assert not decided(".output n\nn(X, min<Y>, count<Y>) <- tc(X,Y).", (0,), declared).keep


def test_workers_select_by_numbers_alone() -> None:
    weighted = ".decl arc(x: {0}, y: {0}, w: number)\n.input arc\n.output n\nn(count<X>) <- tc(X,Y), Y = 3, X != {1}.\n"
    rules = "tc(X,min<W>) <- arc(X,_,W). tc(Y,min<D>) <- tc(X,C), arc(X,Y,W), D = C + W.\n"
    assert not decided(rules, (), weighted.format("number", 7), recursion="").keep
    found = decided(rules, (), weighted.format("symbol", '"b"'), recursion="")
    assert found.text == "rows kept: `n` computes or compares values of type symbol"


# --- on Spark --------------------------------------------------------------------------------------------------------

MANY = """
.output counted, above, by_source, by_target, sums, best, different, sources, targets, loops, first, none, both
counted(count<X>) <- tc(X,Y).
above(count<Y>) <- tc(X,Y), X > 3.
by_source(X, count<Y>) <- tc(X,Y).
by_target(Y, count<X>, max<X>) <- tc(X,Y).
sums(sum<Y>) <- tc(X,Y).
best(max<Y>, min<X>) <- tc(X,Y).
different(X, countd<Y>) <- tc(X,Y).
sources(X) <- tc(X,_).
targets(Y) <- tc(_,Y).
loops(count<X>) <- tc(X,X).
first(X,Y) <- tc(X,Y), sort((Y, desc), (X, asc)), limit(3).
none(count<X>) <- tc(X,Y), Y < 0.
both(A, B) <- A = count : { tc(_,_) }, B = count : { tc(7,_) }.
"""
SOME = ".output counted, different, best\n" + "\n".join(
    line for line in MANY.splitlines() if line.startswith(("counted(", "different(", "best("))
)


def answers(result: emberlog.Result) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted(result[name].rows()) for name in result}


def written(folder: Path) -> set[str]:
    """The relations that workers wrote."""
    return {name for found in folder.rglob("manifest.json") for name in load(found.parent).relations}


@pytest.mark.parametrize("way", WAYS)
def test_every_aggregate_is_that_of_sql(spark: Any, tmp_path: Path, way: dict[str, Any]) -> None:
    program = TC + MANY
    apart = way.get("exchange", False)
    with emberlog.Engine(spark, run_dir=tmp_path, workers=2) as engine:
        engine.register("arc", edges())
        expected = answers(engine.run(program, evaluator="sql", placement="local"))
        result = engine.run(program, evaluator="kernel", placement="spark", **way)
        assert answers(result) == expected
        # Nothing says that a worker which owns facts by their slots has all of a group.
        assert ("tc" in written(tmp_path)) == apart
        kept = result.stats[0].kept
        assert kept == "rows kept: `different` takes countd over the rows of all workers" if apart else NOT_KEPT in kept
        assert result.stats[0].facts == expected["counted"][0][0]


def test_text_is_counted_and_compared_by_its_codes(spark: Any, tmp_path: Path) -> None:
    program = TC + ".output n, d, m\nn(count<X>) <- tc(X,Y).\nd(X, min<Y>, max<Y>) <- tc(X,Y).\nm(Y) <- tc(_,Y).\n"
    names = [(f"n{a:02}", f"n{b:02}") for a, b in edges(20, 30)]
    with emberlog.Engine(spark, run_dir=tmp_path, workers=2) as engine:
        engine.register("arc", names)
        expected = answers(engine.run(program, evaluator="sql", placement="local"))
        assert answers(engine.run(program, evaluator="kernel", placement="spark")) == expected
        assert written(tmp_path) == {"tc/part0", "tc/part1", "tc/part2"}


def test_values_and_unread_tables(spark: Any, tmp_path: Path) -> None:
    program = """
.output n
d(Y, min<D>) <- warc(0, Y, D).
d(Y, min<D>) <- d(X, C), warc(X, Y, W), D = C + W.
n(count<Y>, max<D>, sum<D>) <- d(Y, D).
"""
    weighted = [(a, b, 0.5 * (a + b)) for a, b in edges()]
    with emberlog.Engine(spark, run_dir=tmp_path, workers=2) as engine:
        engine.register("warc", [(0, 1, 1.0), *weighted])
        expected = answers(engine.run(program, evaluator="sql", placement="local"))
        assert answers(engine.run(program, evaluator="kernel", placement="spark")) == expected
        assert written(tmp_path) == {"d/part0"}


@pytest.mark.parametrize(("weight", "evaluator"), [(7, "kernel"), (2**63, "sql")])
def test_unsigned_weights(spark: Any, weight: int, evaluator: str) -> None:
    """Workers hold them as signed numbers; Spark SQL takes over where they cannot."""
    program = "d(Y, min<W>) <- warc(0u, Y, W). d(Y, min<D>) <- d(X, C), warc(X, Y, W), D = C + W. n(max<D>) <- d(_, D)."
    columns = zip((0, 1, 5), (1, 2, weight), (2, 3, 0), strict=True)
    with emberlog.Engine(spark, workers=2) as engine:
        engine.register("warc", pa.table([pa.array(c, pa.uint64()) for c in columns], names=["x", "y", "w"]))
        result = engine.run(program, evaluator="kernel", placement="spark")
        assert sorted(result["d"].rows()) == [(1, 5), (2, 5 + weight), (3, 5 + weight)]
        assert result["n"].rows() == [(5 + weight,)]
        assert result.stats[0].evaluator == evaluator


def test_many_groups_are_put_together_by_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlog.executors import distributed

    monkeypatch.setattr(distributed, "FEW_RETURNED", 10)
    program = TC + ".output d, n\nd(Y, count<X>) <- tc(X,Y).\nn(count<X>) <- tc(X,Y).\n"
    with emberlog.Engine(spark, workers=2) as engine:
        engine.register("arc", edges())
        expected = answers(engine.run(program, evaluator="sql", placement="local"))
        assert answers(engine.run(program, evaluator="kernel", placement="spark")) == expected


def test_a_sum_that_fits_only_as_a_whole(spark: Any) -> None:
    big = 1 << 62
    arcs = [(0, big + i) for i in range(3)] + [(1, -big - i) for i in range(3)]
    with emberlog.Engine(spark, workers=2) as engine:
        engine.register("arc", arcs)
        result = engine.run(TC + ".output s\ns(sum<Y>) <- tc(X,Y).", evaluator="kernel", placement="spark")
        assert result["s"].rows() == [(0,)]
        assert result.stats[0].kept == "rows kept: a worker's part of a sum does not fit in 64 bits"


def test_a_sum_that_fits_only_in_parts(spark: Any) -> None:
    big = 1 << 62
    with emberlog.Engine(spark, workers=2) as engine:
        engine.register("arc", [(0, big + 1), (1, big + 2)])
        with pytest.raises(emberlog.EmberlogError, match="does not fit in 64 bits"):
            engine.run(TC + ".output s\ns(sum<Y>) <- tc(X,Y).", evaluator="kernel", placement="spark")["s"].rows()


def test_sizes_and_goals_do_without_rows_until_they_are_read(spark: Any, tmp_path: Path) -> None:
    with emberlog.Engine(spark, run_dir=tmp_path, workers=2) as engine:
        engine.register("arc", edges())
        expected = answers(engine.run(TC, evaluator="sql", placement="local"))["tc"]
        sized = engine.run(TC + ".printsize tc", evaluator="kernel", placement="spark")
        assert sized["tc"].count() == len(expected)
        assert sized.stats[0].kept == "counted in the workers; rows not kept"
        asked = engine.query("tc(7, Y)", evaluator="kernel", placement="spark")
        assert sorted(asked.rows()) == [row for row in expected if row[0] == 7]
        assert "tc" not in written(tmp_path)
        assert sorted(sized["tc"].rows()) == expected
        assert sized["tc"].to_spark().count() == len(expected)


def jobs(spark: Any) -> list[int]:
    return list(spark.sparkContext.statusTracker().getJobIdsForGroup())


def test_a_count_of_kept_rows_is_no_job_and_a_limit_reads_one_part(spark: Any) -> None:
    with emberlog.Engine(spark, workers=2) as engine:
        engine.register("arc", edges())
        result = engine.run(TC, evaluator="kernel", placement="spark")
        before = set(jobs(spark))
        assert result["tc"].count() == result.stats[0].facts
        assert set(jobs(spark)) == before
        assert len(result["tc"].to_spark().limit(5).collect()) == 5
        (job,) = set(jobs(spark)) - before
        tracker = spark.sparkContext.statusTracker()
        assert [tracker.getStageInfo(stage).numTasks for stage in tracker.getJobInfo(job).stageIds] == [1]


def test_exit_rows_that_are_columns_of_files_in_another_order(spark: Any, tmp_path: Path) -> None:
    program = """
.output back, low
back(Y,X) <- arc(X,Y).
back(Y,X) <- back(Y,Z), arc(X,Z).
low(X, min<X>) <- arc(X, _).
low(Y, min<V>) <- low(X, V), arc(X, Y).
"""
    with emberlog.Engine(spark, workers=2) as engine:
        engine.register("arc", in_file(tmp_path, edges()))
        expected = answers(engine.run(program, evaluator="sql", placement="local"))
        assert answers(engine.run(program, evaluator="kernel", placement="spark")) == expected


def test_copies_of_files_are_made_by_the_workers(spark: Any, tmp_path: Path) -> None:
    program = """
.output cc, n
uarc(X, Y) <- arc(X, Y).
uarc(X, Y) <- arc(Y, X).
cc(X, min<X>) <- uarc(X, _).
cc(Y, min<V>) <- cc(X, V), uarc(X, Y).
n(V, count<X>) <- cc(X, V).
"""
    with emberlog.Engine(spark, workers=2) as engine:
        engine.register("arc", in_file(tmp_path, edges(200, 150)))
        expected = answers(engine.run(program, evaluator="sql", placement="local"))
        result = engine.run(program, evaluator="kernel", placement="spark")
        assert answers(result) == expected
        copies = {entry.predicates for entry in result.stats if entry.stopped == "read where its columns are"}
        assert copies == {("uarc",)}
        # A count needs sets, and so does whoever asks for the rows.
        counting = program + "m(X, count<Y>) <- uarc(X, Y).\n.output m, uarc\n"
        expected = answers(engine.run(counting, evaluator="sql", placement="local"))
        result = engine.run(counting, evaluator="kernel", placement="spark")
        assert answers(result) == expected
        assert not any(entry.stopped == "read where its columns are" for entry in result.stats)


def test_rows_of_a_file_and_rules_for_one_relation(spark: Any, tmp_path: Path) -> None:
    with emberlog.Engine(spark, workers=2) as engine:
        engine.register("tc", in_file(tmp_path, edges(20, 15)))
        engine.register("arc", edges(20, 30))
        expected = answers(engine.run(TC, evaluator="sql", placement="local"))
        assert answers(engine.run(TC, evaluator="kernel", placement="spark")) == expected


def in_file(folder: Path, rows: list[tuple[int, int]]) -> Path:
    path = folder / "arc.parquet"
    columns = zip(*rows, strict=True)
    pq.write_table(pa.table([pa.array(column) for column in columns], names=["a", "b"]), path)
    return path


def test_files_of_workers_are_handed_out(spark: Any, tmp_path: Path) -> None:
    target = tmp_path / "answers" / "tc.parquet"
    with emberlog.Engine(spark, workers=2) as engine:
        engine.register("arc", edges())
        result = engine.run(TC, evaluator="kernel", placement="spark")
        expected = sorted(result["tc"].rows())
        before = set(jobs(spark))
        for _ in range(2):  # the second time over the first
            result["tc"].write(target)
        assert set(jobs(spark)) == before
        persisted = engine.run(TC, evaluator="kernel", placement="spark", persist=tmp_path / "kept")
    table = pq.read_table(target)
    assert table.column_names == ["X", "Y"]
    assert sorted(zip(*table.to_pydict().values(), strict=True)) == expected
    assert sorted(persisted["tc"].rows()) == expected
    assert [path.name for path in target.parent.iterdir()] == ["tc.parquet"]


def test_names_that_differ_in_case_alone(spark: Any, tmp_path: Path) -> None:
    program = ".decl arc(x: number, y: number)\n.decl tc(a: number, A: number)\n.input arc\n" + TC
    with emberlog.Engine(spark, workers=2) as engine:
        engine.register("arc", edges())
        expected = sorted(engine.run(program, evaluator="sql", placement="local")["tc"].rows())
        assert sorted(engine.run(program, evaluator="kernel", placement="spark")["tc"].rows()) == expected


# --- in this process -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"decompose": False}, {"storage": "rows"}], ids=str)
def test_locally_a_count_keeps_no_rows(options: dict[str, Any]) -> None:
    with emberlog.Engine(executor="local", workers=2) as engine:
        engine.register("arc", edges())
        expected = answers(engine.run(TC + SOME, evaluator="sql"))
        assert answers(engine.run(TC + SOME, evaluator="kernel", **options)) == expected
        counted = engine.run(TC + ".output n\nn(count<X>) <- tc(X,Y).", evaluator="kernel", **options)
        assert counted["n"].rows() == expected["counted"]
        assert counted.stats[0].kept == "counted in the workers for n; rows not kept"
        sized = engine.run(TC + ".printsize tc", evaluator="kernel", **options)
        assert [(sized["tc"].count(),)] == expected["counted"]
        assert len(sized["tc"].rows()) == sized["tc"].count()


def test_nothing_has_no_count() -> None:
    with emberlog.Engine(executor="local") as engine:
        engine.register("arc", pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64())}))
        rules = ".output n, z\nn(count<X>) <- tc(X,Y).\nz(C) <- C = count : { tc(_,_) }.\n"
        result = engine.run(TC + rules, evaluator="kernel")
        assert (result["n"].rows(), result["z"].rows()) == ([], [(0,)])


def test_explain_tells_what_is_done_with_rows() -> None:
    counting = DECLARED + TC + ".output n\nn(count<X>) <- tc(X,Y).\n"
    with emberlog.Engine(executor="local") as engine:
        assert "rows        counted in the workers for n; rows not kept" in str(engine.explain(counting))
        assert "rows        rows kept: they are asked for" in str(engine.explain(counting + ".output tc\n"))
        assert "rows   " not in str(engine.explain(DECLARED + TC))
