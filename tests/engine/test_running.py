"""The engine as users call it: sources in, answers and errors out."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import emberlog

TC = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y)."
ARC = [(1, 2), (2, 3)]
CLOSURE = [(1, 2), (1, 3), (2, 3)]


@pytest.fixture
def engine() -> Iterator[emberlog.Engine]:
    with emberlog.Engine(executor="local") as made:
        yield made


def sources(folder: Path) -> dict[str, object]:
    table = pa.table({"x": [1, 2], "y": [2, 3]})
    (folder / "arc.csv").write_text("x,y\n1,2\n2,3\n")
    (folder / "arc.facts").write_text("1\t2\n2\t3\n")
    pd.DataFrame(ARC, columns=["x", "y"]).to_parquet(folder / "arc.parquet")
    return {
        "tuples": ARC,
        "arrow": table,
        "pandas": pd.DataFrame(ARC, columns=["x", "y"]),
        "polars": pl.DataFrame({"x": [1, 2], "y": [2, 3]}),
        "csv": folder / "arc.csv",
        "facts": str(folder / "arc.facts"),
        "parquet": folder / "arc.parquet",
    }


@pytest.mark.parametrize("kind", ["tuples", "arrow", "pandas", "polars", "csv", "facts", "parquet"])
def test_a_source_of_any_kind(engine: emberlog.Engine, tmp_path: Path, kind: str) -> None:
    engine.register("arc", sources(tmp_path)[kind])
    assert sorted(engine.run(TC)["tc"].rows()) == CLOSURE


def test_an_empty_list_is_an_empty_relation(engine: emberlog.Engine) -> None:
    engine.register("arc", [])
    assert engine.run(TC)["tc"].rows() == []


def test_a_source_registered_again_has_the_new_rows(engine: emberlog.Engine) -> None:
    engine.register("arc", ARC)
    engine.register("arc", [(7, 8)])
    engine.register("unused", [("x",)])
    assert engine.run(TC)["tc"].rows() == [(7, 8)]


def test_nulls_are_an_error_or_dropped() -> None:
    frame = pa.table({"x": [1, None], "y": [2, 3]})
    with emberlog.Engine(executor="local") as engine:
        engine.register("arc", frame)
        with pytest.raises(emberlog.DataError, match="1 in column x"):
            engine.run(TC)
    with emberlog.Engine(executor="local", nulls="drop") as engine:
        engine.register("arc", frame)
        result = engine.run(TC)
        assert result["tc"].rows() == [(1, 2)]
        assert any("null" in warning for warning in result.warnings)


def test_duplicates_collapse_and_are_told_where_they_would_count(engine: emberlog.Engine) -> None:
    engine.register("e", [(1, 2), (1, 2), (1, 3)])
    counted = engine.run("d(X, count(Y)) <- e(X, Y).")
    assert counted["d"].rows() == [(1, 2)]
    assert any("1 duplicate row" in warning for warning in counted.warnings)
    assert engine.run("d(X) <- e(X, _).").warnings == []


def test_dates_decimals_and_booleans_pass_through(engine: emberlog.Engine) -> None:
    day, later = datetime.date(2024, 2, 29), datetime.date(2024, 3, 1)
    engine.register("s", [("a", day, Decimal("1.50"), True), ("b", later, Decimal("2.25"), False)])
    result = engine.run(
        """
        late(N, D) <- s(N, D, _, _), D >= "2024-03-01".
        total(sum(V)) <- s(_, _, V, _).
        first(min(D)) <- s(_, D, _, _).
        yes(N) <- s(N, _, _, true).
        """
    )
    assert result["late"].rows() == [("b", later)]
    assert result["total"].rows() == [(Decimal("3.75"),)]
    assert result["first"].rows() == [(day,)]
    assert result["yes"].rows() == [("a",)]


def test_unsigned_and_sized_columns(engine: emberlog.Engine) -> None:
    program = """
        .decl u(x: unsigned)
        u(18446744073709551615).
        .decl small(x: int8)
        small(Y) <- n(X), Y = X * {}.
        big(Y) <- u(X), Y = X - 15u.
    """
    engine.register("n", [(1,), (2,)])
    assert sorted(engine.run(program.format(60))["small"].rows()) == [(60,), (120,)]
    assert engine.run(program.format(1))["big"].rows() == [(18446744073709551600,)]
    with pytest.raises(emberlog.DataError):
        engine.run(program.format(100))


@pytest.mark.parametrize(
    ("goal", "rows"),
    [("tc(1, Y)", [(1, 2), (1, 3)]), ("tc(X, X)", []), ("tc(_, 3)", [(1, 3), (2, 3)]), ("arc(2, Z)", [(2, 3)])],
)
def test_goals(engine: emberlog.Engine, goal: str, rows: list[tuple[int, int]]) -> None:
    engine.register("arc", ARC)
    assert sorted(engine.query(goal, program=TC).rows()) == rows
    assert sorted(engine.query(goal).rows()) == rows
    assert sorted(engine.run(f"{TC} ?- {goal}.").goals[0].rows()) == rows


def test_limits_are_errors(engine: emberlog.Engine) -> None:
    engine.register("arc", [(i, i + 1) for i in range(40)])
    for limits in ({"rounds": 5}, {"rows": 100}, {"seconds": 0.000001}):
        with pytest.raises(emberlog.LimitError) as raised:
            engine.run(TC, limits=limits)
        assert raised.value.exit_code == 3
    assert len(engine.run(TC, limits={"rounds": 41, "rows": 1000, "seconds": 60})["tc"]) == 820


def test_a_time_limit_interrupts_a_statement(engine: emberlog.Engine) -> None:
    engine.register("n", [(i,) for i in range(3000)])
    with pytest.raises(emberlog.LimitError, match="seconds"):
        engine.run("p(count(X)) <- n(X), n(Y), n(Z), X + Y > Z.", limits={"seconds": 0.5})


@pytest.mark.parametrize(
    "wrong",
    [{"executor": "dask"}, {"coordination": "x"}, {"workers": 0}, {"limits": {"round": 3}}, {"nulls": "keep"}],
)
def test_arguments_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(emberlog.UsageError):
        emberlog.Engine(**wrong)


def test_unknown_names_get_a_hint(engine: emberlog.Engine) -> None:
    engine.register("arc", ARC)
    with pytest.raises(emberlog.UsageError, match="did you mean `tc`"):
        engine.run(TC)["tcc"]
    with pytest.raises(emberlog.UsageError):
        engine.run(TC, placement="moon")


def test_naive_allows_what_deltas_may_not(engine: emberlog.Engine) -> None:
    engine.register("e", [(1, 2), (2, 3)])
    program = "p(Y, max<D>) <- Y = 1, D = 8. p(Y, max<D>) <- p(X, C), e(X, Y), D = 10 - C."
    with pytest.raises(emberlog.ProgramError):
        engine.run(program)
    assert sorted(engine.run(program, naive=True)["p"].rows()) == [(1, 8), (2, 2), (3, 8)]


def test_figures_of_a_run(engine: emberlog.Engine) -> None:
    engine.register("arc", ARC)
    (stats,) = engine.run(TC).stats
    assert (stats.predicates, stats.placement, stats.rounds, stats.facts) == (("tc",), "columns", 3, 3)
    assert stats.deltas == [2, 1, 0]
    assert stats.stopped == "fixpoint"
    assert stats.seconds > 0


def test_relations_convert(engine: emberlog.Engine, tmp_path: Path) -> None:
    engine.register("arc", ARC)
    relation = engine.run(".decl tc(from: number, to: number)\n" + TC)["tc"]
    assert (len(relation), relation.columns, bool(relation)) == (3, ["from", "to"], True)
    assert relation.to_arrow().column_names == ["from", "to"]
    assert sorted(relation.to_pandas().itertuples(index=False, name=None)) == CLOSURE
    assert sorted(relation.to_polars().rows()) == CLOSURE
    for ending in ("csv", "tsv", "facts", "parquet", "arrow"):
        path = tmp_path / f"tc.{ending}"
        relation.write(path)
        with emberlog.Engine(executor="local") as other:
            other.register("tc", path)
            assert sorted(other.run("p(X,Y) <- tc(X,Y).")["p"].rows()) == CLOSURE


def test_rows_go_with_the_engine_unless_persisted(tmp_path: Path) -> None:
    with emberlog.Engine(executor="local", run_dir=tmp_path / "scratch") as engine:
        engine.register("arc", ARC)
        gone = engine.run(TC)["tc"]
        kept = engine.run(TC, persist=tmp_path / "kept")["tc"]
        assert list((tmp_path / "scratch").iterdir())
    assert not list((tmp_path / "scratch").iterdir())
    with pytest.raises(emberlog.UsageError, match="closed"):
        gone.rows()
    with pytest.raises(emberlog.UsageError, match="closed"):
        engine.run(TC)
    assert sorted(kept.rows()) == CLOSURE
    assert json.loads((tmp_path / "kept" / "relations.json").read_text())["relations"]["tc"]["rows"] == 3


def test_an_error_leaves_no_scratch(tmp_path: Path) -> None:
    with emberlog.Engine(executor="local", run_dir=tmp_path) as engine:
        engine.register("n", [(0,)])
        with pytest.raises(emberlog.DataError):
            engine.run("p(Y) <- n(X), Y = 1 / X.")
        assert not list(tmp_path.iterdir())


HOSTILE = ["it's", '"', "\\", "a\nb", "a\tb", "nul\0", "😀", ":p0", "$p0", "${x}", "--", "/* */", "<<emberlog 0>>", ""]


def test_hostile_text_is_only_text(engine: emberlog.Engine) -> None:
    engine.register("s", [(text,) for text in HOSTILE])
    rows = engine.run("p(X, Y) <- s(X), Y = cat(X, $END). q(X) <- s(X), X != $END.", params={"END": "';--"})
    assert sorted(rows["p"].rows()) == sorted((text, text + "';--") for text in HOSTILE)
    assert sorted(rows["q"].rows()) == sorted((text,) for text in HOSTILE)


def test_names_that_differ_in_case_only(engine: emberlog.Engine) -> None:
    engine.register("A", [(1,)])
    engine.register("a", [(2,)])
    result = engine.run("p(x, X) <- A(x), a(X). P(c0) <- a(c0). select(order) <- A(order).")
    assert (result["p"].rows(), result["P"].rows(), result["select"].rows()) == ([(1, 2)], [(2,)], [(1,)])


def test_many_rules_atoms_and_columns(engine: emberlog.Engine) -> None:
    engine.register("e", [(1, 1)])
    engine.register("wide", [tuple(range(50))])
    chain = "".join(f"p{i + 1}(X) <- p{i}(X).\n" for i in range(300)) + "p0(X) <- e(X, _).\n"
    body = ", ".join(f"e(X{i}, X{i + 1})" for i in range(12))
    columns = ", ".join(f"V{i}" for i in range(50))
    result = engine.run(f"{chain} far(X0, X12) <- {body}. w({columns}) <- wide({columns}).")
    assert result["p300"].rows() == [(1,)]
    assert result["far"].rows() == [(1, 1)]
    assert result["w"].rows() == [tuple(range(50))]


def test_verdicts(engine: emberlog.Engine) -> None:
    sssp = "sp(Y,min<D>) <- Y=1, D=0. sp(Y,min<D>) <- sp(X,C), arc(X,Y,W), D=C{}W."
    (proved,) = engine.check(sssp.format("+"))
    assert (proved.status, proved.holds, proved.assumptions) == ("proved", True, ())
    (conditional,) = engine.check(sssp.format("*"))
    assert (conditional.status, conditional.holds, conditional.assumptions) == ("conditional", True, ("W >= 0",))


@pytest.mark.apart
def test_an_engine_that_nobody_closes_ends_well(tmp_path: Path) -> None:
    script = (
        "import emberlog, sys\n"
        "engine = emberlog.Engine(executor='local', run_dir=sys.argv[1])\n"
        "for _ in range(5): engine.run('p(1). q(X) <- p(X).')\n"
        "kept = engine.run('p(1). q(X) <- p(X).')\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(tmp_path.iterdir())
