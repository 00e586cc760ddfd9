"""Workers that coordinate, as users ask for them: on the local executor, by option and on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import emberlog
from emberlog.cli import app

TC = "tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), tc(Z, Y)."
LINE = [(i, i + 1) for i in range(20)]

TEXT = 's(X) <- arc(_, X). s(Y) <- s(X), arc(X, Y), cat("a", "b") = "ab".'


@pytest.fixture
def engine() -> Iterator[emberlog.Engine]:
    with emberlog.Engine(executor="local", workers=3) as engine:
        engine.register("arc", LINE)
        yield engine


def test_stats_tell_what_ran(engine: emberlog.Engine) -> None:
    result = engine.run(TC, coordination="ssp:3:2")
    assert len(result["tc"].rows()) == 210
    (stratum,) = result.stats.strata
    ran = stratum.coordination
    assert ran is not None and ran.mode == "ssp:3:2" and len(ran.lanes) == 3
    assert stratum.how == "3 workers over columns, ssp:3:2" and stratum.placement == "columns"
    assert sum(lane.facts for lane in ran.lanes) > 0 and stratum.bytes_exchanged == sum(
        lane.bytes for lane in ran.lanes
    )
    headings, *rows = ran.table()
    assert headings[:3] == ("worker", "compute", "wait") and [row[0] for row in rows] == ["0", "1", "2"]
    assert ran.to_svg().count("<text") == 1 + 3 and "ssp:3:2" in ran.to_svg()


def test_the_engine_has_a_mode_for_all_runs() -> None:
    with emberlog.Engine(executor="local", workers=2, coordination="async") as engine:
        engine.register("arc", LINE)
        ran = engine.run(TC).stats[0].coordination
        assert ran is not None and ran.mode == "async"
        other = engine.run(TC, coordination="dws").stats[0].coordination
        assert other is not None and other.mode == "dws"


def test_nobody_coordinates_unasked(engine: emberlog.Engine) -> None:
    assert engine.run(TC).stats[0].coordination is None


def test_auto_says_why(engine: emberlog.Engine) -> None:
    ran = engine.run(TC, coordination="auto").stats[0].coordination
    assert ran is not None and "round" in ran.why


def test_a_simulated_clock_is_the_same_each_time(engine: emberlog.Engine) -> None:
    first, second, other = (
        engine.run(TC, coordination="dws", simulate=f"jitter=1,seed={seed}").stats[0].coordination for seed in (1, 1, 2)
    )
    assert first is not None and second is not None and other is not None
    assert first.seconds == second.seconds != other.seconds and "simulated" in first.why


def test_stragglers_cost_time(engine: emberlog.Engine) -> None:
    plain, disturbed = (
        engine.run(TC, coordination="bsp", simulate="", straggle=straggle).stats[0].coordination
        for straggle in (None, "10000,0.01,0.9")
    )
    assert plain is not None and disturbed is not None and disturbed.compute > 2 * plain.compute


def test_a_part_of_a_program_that_workers_cannot_share_out_is_noted(engine: emberlog.Engine) -> None:
    stats = engine.run(TC + TEXT, coordination="bsp").stats
    (event,) = (event for stratum in stats.strata for event in stratum.events)
    assert event.what == "no workers that coordinate" and "cat" in event.why
    assert sum(stratum.coordination is not None for stratum in stats.strata) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("p(X) <- arc(X, _).", "there is no recursion"),
        (
            "a(X) <- arc(X, _). b(X) <- a(X). c(X, count<Y>) <- a(X), b(X), d(Y), arc(Y, X). d(X) <- c(X, N), N > 1."
            "a(X) <- d(X).",
            "3 recursive atoms, and at most 2 can meet",
        ),
        (TEXT, "cat"),
    ],
)
def test_a_mode_without_effect_is_an_error(engine: emberlog.Engine, text: str, reason: str) -> None:
    with pytest.raises(emberlog.UsageError, match="coordination has no effect") as error:
        engine.run(text, coordination="bsp")
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"coordination": "bps"}, "there is no coordination"),
        ({"coordination": "bsp", "exchange": True}, "exchange and other storages say nothing"),
        ({"straggle": "1,1,0.5"}, "for workers that coordinate"),
        ({"coordination": "bsp", "straggle": "1"}, "rate,duration,share"),
        ({"coordination": "bsp", "simulate": "speed=3"}, "no cost 'speed'"),
        ({"coordination": "bsp", "simulate": "latency=x"}, "not a number"),
    ],
)
def test_wrong_options(engine: emberlog.Engine, options: dict[str, object], told: str) -> None:
    with pytest.raises(emberlog.UsageError) as error:
        engine.run(TC, **options)  # type: ignore[arg-type]
    assert told in str(error.value)


@pytest.mark.parametrize("limits", [{"rows": 100}, {"seconds": 0.5}, {"rounds": 20}])
def test_limits_hold_for_all_workers(engine: emberlog.Engine, limits: dict[str, float]) -> None:
    endless = "n(X) <- arc(X, _). n(Y) <- n(X), Y = X + 1."
    with pytest.raises(emberlog.LimitError):
        engine.run(endless, coordination="async", limits=limits)


def test_the_plan_is_explained_in_operators(engine: emberlog.Engine) -> None:
    text = str(engine.explain("p(X, Y, min<D>) <- w(X, Y, D). p(X, Y, min<D>) <- p(X, Z, A), p(Z, Y, B), D = A + B.",
                              coordination="bsp"))  # fmt: skip
    for line in (
        "p: partition by (1), which lie in its group-by key (SSP, Theorem 1)",
        "p@0: a copy of p by (0)",
        "delta p -> Distribute min by (0) -> Gather p@0",
        "delta p -> Join p@0 by its index (0) -> Let D -> Distribute min by (1) -> Gather p",
    ):
        assert line in text


def test_the_command_line_takes_it(tmp_path: Path) -> None:
    program, picture = tmp_path / "tc.dl", tmp_path / "lanes.svg"
    program.write_text("arc(1, 2). arc(2, 3).\n" + TC + "\n.printsize tc\n", encoding="utf-8")
    arguments = ["run", str(program), "--executor", "local", "--workers", "2", "--coordination", "ssp:2"]
    done = CliRunner().invoke(app, [*arguments, "--stats", "--timeline", str(picture)])
    assert done.exit_code == 0, done.output
    assert "tc\t3" in done.output and re.search(r"tc: ssp:2 on 2 workers", done.output)
    assert picture.read_text(encoding="utf-8").startswith("<svg")


def test_a_time_limit_ends_compiled_loops_in_their_middle() -> None:
    rows = np.arange(1_500_000)
    arc = pa.table({"x": rows // 750, "y": (rows // 750 * 7 + rows % 750 * 3 + 1) % 2000})
    text = "tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), tc(Z, Y), X * Y + Z < -1."
    with emberlog.Engine(executor="local", workers=2) as engine:
        engine.register("arc", [(0, 1), (1, 2)])
        engine.run(text, coordination="bsp", storage="loops")  # compiles them
        engine.register("arc", arc)
        began = monotonic()
        with pytest.raises(emberlog.LimitError, match=r"limit of 2 seconds"):
            engine.run(text, coordination="bsp", storage="loops", limits={"seconds": 2})
        assert monotonic() - began < 2 + 3
