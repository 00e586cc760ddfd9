"""Views with a folder: what is there after the process ended, and what happens to damaged and busy folders."""

from __future__ import annotations

import gc
import json
import random
import runpy
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

import emberlog
from agreement import LIMITS
from emberlog.maintain.durable import folder as folder_module
from maintain.sequences import Step, after, as_tables, assert_is, outcome_of, sequences
from maintain.templates import maintained_templates
from maintain.test_views import ANY
from strategies.cases import Case, tables

CLOSURE = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y). out(X,count(Y)) <- tc(X,Y)."
ARCS = [(1, 2), (2, 3), (3, 1), (3, 4)]
SOME = settings(max_examples=12, suppress_health_check=list(HealthCheck), deadline=None)
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
KILLED = Path(__file__).with_name("killed.py")


def opened(path: Path, text: str = CLOSURE, rows: Any = ARCS, **options: Any) -> emberlog.View:
    engine = emberlog.Engine(executor="local", workers=1, warnings="error")
    engine.register("arc", rows)
    return engine.maintain(text, path=path, **options)


def contents(view: emberlog.View) -> dict[str, set[Any]]:
    return {name: set(view[name].rows()) for name in view}


def fresh(rows: Any, text: str = CLOSURE) -> dict[str, set[Any]]:
    with emberlog.Engine(executor="local", workers=1) as engine:
        engine.register("arc", rows)
        return contents(engine.maintain(text))


# --- coming back -----------------------------------------------------------------------------------------------------


def test_a_view_comes_back_as_its_last_change_left_it(tmp_path: Path) -> None:
    with opened(tmp_path) as view:
        view.apply(insert={"arc": [(4, 5)]}, delete={"arc": [(3, 1)]})
        view.apply(insert={"arc": [(5, 6)]})
        view.what_if(delete={"arc": [(1, 2)]})
        before = contents(view)
    with opened(tmp_path, rows=[]) as view:
        assert contents(view) == before == fresh([(1, 2), (2, 3), (3, 4), (4, 5), (5, 6)])
        assert view.apply(delete={"arc": [(2, 3)]})["tc"].deleted >= {(2, 3), (1, 3)}
        assert contents(view) == fresh([(1, 2), (3, 4), (4, 5), (5, 6)])


def test_opening_loads_and_does_not_evaluate(tmp_path: Path) -> None:
    text = (
        CLOSURE + "low(X,min(Y)) <- tc(X,Y). best(X,min(D)) <- X = 1, D = 0. best(Y,min(D+1)) <- best(X,D), arc(X,Y)."
    )
    opened(tmp_path, text).close()
    with opened(tmp_path, text) as view:
        assert view.stats.active == 0
        assert contents(view) == fresh(ARCS, text)


def assert_comes_back(case: Case, steps: list[Step], path: Path) -> None:
    """A view that is closed and opened again before and after every change is what the reference gives."""
    with emberlog.Engine(executor="local", workers=1, warnings="ignore") as engine:
        try:
            open_case(engine, case, path)
        except emberlog.EmberlogError:  # test_views has those
            return
    for number, step in enumerate(steps):
        changed = after(case, step)
        right = outcome_of(changed)
        if isinstance(right, type):
            continue
        with emberlog.Engine(executor="local", workers=1, warnings="ignore") as engine:
            view = open_case(engine, case, path)
            assert number or not view.stats.active, view.stats
            view.apply(insert=as_tables(case, step.insert), delete=as_tables(case, step.delete))
            if number % 2:
                view.save()
        with emberlog.Engine(executor="local", workers=1, warnings="ignore") as engine:
            assert_is(open_case(engine, changed, path), changed, right, f"after {step}")
        case = changed


def open_case(engine: emberlog.Engine, case: Case, path: Path) -> emberlog.View:
    for name, found in tables(case).items():
        engine.register(name, found)
    return engine.maintain(case.program, params=dict(case.params), limits=LIMITS, path=path)


@SOME
@given(drawn=sequences(maintained_templates(), most=3))
def test_a_view_comes_back_before_and_after_every_change(
    drawn: tuple[Case, list[Step]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert_comes_back(*drawn, tmp_path_factory.mktemp("view"))


@pytest.mark.slow
@settings(SOME, max_examples=500)
@given(drawn=sequences(ANY))
def test_views_of_all_kinds_come_back_before_and_after_every_change(
    drawn: tuple[Case, list[Step]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert_comes_back(*drawn, tmp_path_factory.mktemp("view"))


def test_every_method_comes_back(tmp_path: Path) -> None:
    text = """
        .decl own(x: symbol, y: symbol, w: float)
        .decl nothing()
        both(X) <- own(X,_,_). both(X) <- own(_,X,_).
        avgs(X,avg(W)) <- own(X,_,W).
        total(X,sum(W)) <- own(X,_,W).
        many(X,count(Y)) <- own(X,Y,_).
        controls(X,Y) <- held(X,Y,N), N > 0.5.
        held(X,Y,sum<(Z,W)>) <- share(X,Z,Y,W).
        share(X,X,Y,W) <- own(X,Y,W).
        share(X,Z,Y,W) <- controls(X,Z), own(Z,Y,W).
        some() <- nothing().
        root(X,W) <- own(X,_,W), !both(X).
    """
    rows = [("a", "b", 0.6), ("b", "c", 0.3), ("a", "c", 0.3), ("c", "a", 0.1), ("é", "a", float("nan"))]
    with emberlog.Engine(executor="local", workers=1) as engine:
        engine.register("own", rows)
        view = engine.maintain(text, path=tmp_path)
        view.apply(insert={"nothing": [()]}, delete={"own": rows[-1:]})
        before = contents(view)
    assert ("a", "c") in before["controls"]
    with emberlog.Engine(executor="local", workers=1) as engine:
        view = engine.maintain(text, path=tmp_path)
        assert contents(view) == before
        assert view.apply(delete={"own": [("b", "c", 0.3)]})["controls"].deleted == {("a", "c")}
        assert view.apply(delete={"nothing": [()]})["some"].deleted == {()}


def test_rule_changes_come_back(tmp_path: Path) -> None:
    extra = "loop(X) <- tc(X,X), !bad(X)."
    with opened(tmp_path) as view:
        view.add_rule(extra)
        view.apply(insert={"bad": [(1,)]})
        view.remove_rule("out(X,count(Y)) <- tc(X,Y).")
        view.apply(insert={"bad": [(2,)]})
        before = contents(view)
    with opened(tmp_path) as view:
        assert contents(view) == before
        assert before["loop"] == {(3,)} and "out" not in before
        view.save()
    with opened(tmp_path, "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y). " + extra) as view:
        assert contents(view) == before


def test_the_rows_of_a_source_that_a_rule_brings_in_are_kept(tmp_path: Path) -> None:
    with opened(tmp_path, "p(X) <- q(X). q(1) <- r(). r().") as view:
        view.add_rule("far(X) <- arc(X,_).")
    with opened(tmp_path, "p(X) <- q(X). q(1) <- r(). r().", rows=[(9, 9)]) as view:
        assert set(view["far"].rows()) == {(1,), (2,), (3,)}


def killed(path: Path, points: int, seed: int) -> str:
    """Kills processes that change a view, and says how many changes came through."""
    line = [sys.executable, str(KILLED), str(path / "view"), str(points), str(seed)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.apart
def test_a_killed_process_loses_nothing_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    assert "10 points" in killed(tmp_path, 10, seed=1)


@pytest.mark.slow
def test_a_process_that_is_killed_at_two_hundred_points(tmp_path: Path) -> None:
    print(killed(tmp_path, 200, seed=2))


FULL = """
import resource, emberlog
with emberlog.Engine(executor="local", workers=1, warnings="ignore") as engine:
    engine.register("arc", [(1, 2)])
    view = engine.maintain("p(X) <- arc(X, _).", path=PATH)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    size, refused = 1, 0
    for i in range(12):
        size *= 2
        before = view["p"].count()
        try:
            view.apply(insert={"arc": [(i * 10_000 + j, j) for j in range(size)]})
        except emberlog.ExecutionError as error:
            assert "cannot write" in str(error) and "File too large" in str(error), error
            assert view["p"].count() == before
            refused += 1
    view.apply(insert={"arc": [(-1, 0)]})
    print(refused, view["arc"].count())
"""


@pytest.mark.apart
def test_a_full_disk_is_told_and_leaves_the_view_as_it_was(tmp_path: Path) -> None:
    code = FULL.replace("PATH", repr(str(tmp_path / "view")))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    refused, count = map(int, done.stdout.split())
    assert refused > 0
    with emberlog.Engine(executor="local", workers=1) as engine:
        assert engine.maintain("p(X) <- arc(X, _).", path=tmp_path / "view")["arc"].count() == count


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_an_interruption_finds_the_change_committed_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    commit = folder_module.Folder.commit

    def interrupted(self: folder_module.Folder, *record: Any) -> None:
        if late:
            commit(self, *record)
        raise KeyboardInterrupt

    with opened(tmp_path) as view:
        monkeypatch.setattr(folder_module.Folder, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            view.apply(insert={"arc": [(4, 5)]})
        monkeypatch.undo()
        before = contents(view)
        assert ((4, 5) in before["arc"]) is late
    with opened(tmp_path) as view:
        assert contents(view) == before


# --- the folder ------------------------------------------------------------------------------------------------------


def test_the_log_is_replaced_by_a_snapshot_when_it_outgrows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "MIN_LOG_BYTES", 4000)
    rows: set[tuple[int, int]] = set(ARCS)
    generations = set()
    with opened(tmp_path, "far(X,Y) <- arc(X,Z), arc(Z,Y).") as view:
        for i in range(60):
            view.apply(insert={"arc": [(i, i + 1)]}, delete={"arc": [(i - 5, i - 4)]})
            rows = (rows - {(i - 5, i - 4)}) | {(i, i + 1)}
            generations.add(json.loads((tmp_path / "manifest.json").read_text())["body"]["generation"])
    assert len(generations) > 2
    assert len(list(tmp_path.iterdir())) < 8
    with opened(tmp_path, "far(X,Y) <- arc(X,Z), arc(Z,Y).") as view:
        assert contents(view) == fresh(rows, "far(X,Y) <- arc(X,Z), arc(Z,Y).")


def test_a_snapshot_keeps_the_files_of_what_did_not_change(tmp_path: Path) -> None:
    text = CLOSURE + "other(X) <- big(X)."
    with opened(tmp_path, text) as view:
        view.apply(insert={"big": [(i,) for i in range(100)]})
        view.save()
        before = {file.name for file in tmp_path.glob("*.parquet")}
        view.apply(insert={"arc": [(7, 8)]})
        view.save()
        kept = before & {file.name for file in tmp_path.glob("*.parquet")}
        assert any(pq.read_table(tmp_path / name).num_rows == 100 for name in kept)
        assert before - kept  # and the files of what changed are gone


def test_a_second_process_is_refused_with_who_has_the_view(tmp_path: Path) -> None:
    code = f"import emberlog; emberlog.Engine(executor='local').maintain({CLOSURE!r}, path={str(tmp_path)!r})"
    with opened(tmp_path):
        with pytest.raises(emberlog.UsageError, match=r"is open already: process \d+ on .* has it since"):
            opened(tmp_path)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode != 0 and "is open already: process" in done.stderr
    opened(tmp_path).close()


def test_a_view_that_nobody_holds_lets_go_of_its_folder(tmp_path: Path) -> None:
    opened(tmp_path)
    opened(tmp_path).close()


def test_a_closed_view_takes_no_changes(tmp_path: Path) -> None:
    view = opened(tmp_path)
    view.close()
    with pytest.raises(emberlog.UsageError, match="closed"):
        view.apply(insert={"arc": [(8, 9)]})


def test_another_program_is_refused_with_the_difference_or_changes_the_rules(tmp_path: Path) -> None:
    other = CLOSURE.replace("out(X,count(Y)) <- tc(X,Y).", "out(X,max(Y)) <- tc(X,Y).")
    opened(tmp_path).close()
    with pytest.raises(emberlog.UsageError, match=r"another program:\n-out\(X, count\(Y\)\).*\n\+out\(X, max\(Y\)\)"):
        opened(tmp_path, other)
    with opened(tmp_path, other, change_rules=True) as view:
        assert contents(view) == fresh(ARCS, other)
    with opened(tmp_path, other) as view:
        assert contents(view) == fresh(ARCS, other)


def test_other_parameters_are_refused(tmp_path: Path) -> None:
    text = "p(X) <- arc(X,Y), Y > $least."
    opened(tmp_path, text, params={"least": 2}).close()
    with pytest.raises(emberlog.UsageError, match="least=2, not least=3"):
        opened(tmp_path, text, params={"least": 3})


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("all of it")
    with pytest.raises(emberlog.UsageError, match=r"no folder of a view: it holds thesis\.tex"):
        opened(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "all of it"


# --- damage ----------------------------------------------------------------------------------------------------------


def written(path: Path) -> tuple[Path, bytes]:
    """A view with three changes in its log; the log and what is in it."""
    with opened(path) as view:
        for i in range(4, 7):
            view.apply(insert={"arc": [(i, i + 1)]})
    (log,) = path.glob("log-*")
    return log, log.read_bytes()


def test_a_torn_last_record_is_dropped_wherever_it_is_torn(tmp_path: Path) -> None:
    log, data = written(tmp_path)
    with opened(tmp_path) as view:
        whole = contents(view)["arc"]
        view.apply(insert={"arc": [(7, 8)]})
    longer = log.read_bytes()
    for end in range(len(data), len(longer), 37):
        for tail in (b"", b"\0" * 40):
            log.write_bytes(longer[:end] + (tail if end == len(data) else b""))
            with opened(tmp_path) as view:
                assert contents(view)["arc"] == whole
            assert log.read_bytes() == data
    log.write_bytes(longer[:-3] + b"\1\2\3")  # a block of the last record did not come to the disk
    with opened(tmp_path) as view:
        assert contents(view)["arc"] == whole
        view.apply(insert={"arc": [(9, 9)]})
    with opened(tmp_path) as view:
        assert contents(view)["arc"] == whole | {(9, 9)}


def test_damage_elsewhere_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    log, data = written(tmp_path)
    for at in (3, 20, len(data) // 2):
        log.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(emberlog.DataError, match=f"{log} is damaged"):
            opened(tmp_path)
    log.write_bytes(data)
    for file in [*tmp_path.glob("*.parquet"), tmp_path / "manifest.json"]:
        good = file.read_bytes()
        at = len(good) // 3
        file.write_bytes(good[:at] + bytes([good[at] ^ 255]) + good[at + 1 :])
        with pytest.raises(emberlog.DataError, match=f"{file} is damaged"):
            opened(tmp_path)
        file.write_bytes(good)
    log.unlink()
    with pytest.raises(emberlog.DataError, match=f"{log} is damaged"):
        opened(tmp_path)


def test_a_manifest_of_a_later_format_is_refused(tmp_path: Path) -> None:
    written(tmp_path)
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 99}))
    with pytest.raises(emberlog.UsageError, match="format 99"):
        opened(tmp_path)


def test_another_version_evaluates_derived_relations_anew_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    monkeypatch.setattr(emberlog, "__version__", "99.0")
    with opened(tmp_path) as view:
        assert contents(view) == fresh([*ARCS, (4, 5), (5, 6), (6, 7)])
        view.save()
    with opened(tmp_path) as view:
        assert view.stats.active == 0


# --- batches ---------------------------------------------------------------------------------------------------------


def test_a_batch_is_applied_once_also_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as view:
        assert view.apply(insert={"arc": [(4, 5)]}, batch=("s", 0))
        assert not view.apply(delete={"arc": [(4, 5)]}, batch=("s", 0))
        assert not view.apply(batch=("s", 1))  # nothing in it, yet it is remembered
    with opened(tmp_path) as view:
        assert view.batches == {"s": 1}
        assert not view.apply(insert={"arc": [(8, 9)]}, batch=("s", 1))
        assert view.apply(insert={"arc": [(8, 9)]}, batch=("t", 0))
        view.save()
    with opened(tmp_path) as view:
        assert view.batches == {"s": 1, "t": 0}


def test_the_example_takes_each_day_once(tmp_path: Path) -> None:
    run = runpy.run_path(str(EXAMPLES / "daily.py"))["run"]
    days = {"2026-11-16": "ada,bo,60,insert\ncy,di,50,insert\n", "2026-11-17": "bo,cy,90,insert\ncy,di,50,delete\n"}
    files = [tmp_path / f"{day}.csv" for day in days]
    for file, rows in zip(files, days.values(), strict=True):
        file.write_text("buyer,company,share,_change_type\n" + rows)
    assert set(run(tmp_path / "state", files[:1])["2026-11-16"]["group"].inserted) == {
        ("ada", "ada"),
        ("bo", "ada"),
        ("cy", "cy"),
        ("di", "cy"),
    }
    changes = run(tmp_path / "state", files)
    assert list(changes) == ["2026-11-17"]
    assert changes["2026-11-17"]["group"].inserted == {("cy", "ada")}
    assert changes["2026-11-17"]["group"].deleted == {("cy", "cy"), ("di", "cy")}


def test_changes_one_after_another_are_forced_to_disk_together(tmp_path: Path) -> None:
    with opened(tmp_path) as view:
        view.apply_each({"insert": {"arc": [(i, i + 1)]}} for i in range(10, 20))
        with pytest.raises(emberlog.DataError):
            view.apply_each([{"insert": {"arc": [(30, 31)]}}, {"insert": {"arc": [("x", 1)]}}])
        before = contents(view)
    with opened(tmp_path) as view:
        assert contents(view) == before and (30, 31) in before["arc"]


@pytest.mark.slow
def test_ten_thousand_changes_take_no_more_memory_and_disk_than_what_is_there(tmp_path: Path) -> None:
    draw = random.Random(1)
    with opened(tmp_path, CLOSURE + "cc(X, min(X)) <- arc(X, _). cc(Y, min(V)) <- cc(X, V), arc(X, Y).", []) as view:

        def churn(times: int) -> int:
            """Inserts and deletes the same rows; returns the bytes that are left in use afterwards."""
            for _ in range(times):
                rows = [(draw.randrange(30), draw.randrange(30)) for _ in range(2)]
                view.apply_each([{"insert": {"arc": rows}}, {"delete": {"arc": rows}}])
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            first = churn(500)
            last = churn(4500)
        finally:
            tracemalloc.stop()
        assert not view["arc"] and not view["tc"] and not view["cc"]
        assert last - first < 200_000
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 2 * folder_module.MIN_LOG_BYTES
