"""Settings of the session that our statements need: they hold while these run, and its own come back."""

from __future__ import annotations

from typing import Any

import pytest

import emberlog
from emberlog.executors.session import OPTIMIZER, run_settings

(NAME,) = OPTIMIZER

# A union below an aggregate, with columns of what it is joined with: Spark's optimizer fails on it.
UNION = (
    'p(W0) :- W1 = Y + X, W0 = max Z : { (D != "b"; E != D), e(D, Z, x), e(D, X, X) }, e(_, Y, X), e(E, x, y), '
    "y < 1 band X, e(D, Z, W1)."
)
ROWS = [("c", 1, 1), ("a", -1, 0), ("c", 0, 3), ("b", 2, 1), ("a", 2, 0), ("b", 2, -1), ("c", 0, 0)]


def test_what_the_optimizer_fails_on(spark: Any) -> None:
    found = []
    for executor in ("local", "spark"):
        with emberlog.Engine(spark, executor=executor, warnings="ignore") as engine:
            engine.register("e", ROWS)
            placement = "spark" if executor == "spark" else "auto"
            found.append(sorted(engine.run(UNION, placement=placement, evaluator="sql")["p"].rows()))
    assert found[0] == found[1] != []


@pytest.mark.parametrize("before", ["true", "false"])
def test_the_own_settings_come_back(spark: Any, before: str) -> None:
    spark.conf.set(NAME, before)
    try:
        with run_settings(spark, "auto"):
            assert spark.conf.get(NAME) == "false"
            with run_settings(spark, "shuffle"):
                assert spark.conf.get("spark.sql.autoBroadcastJoinThreshold") == "-1"
            assert spark.conf.get(NAME) == "false"
        assert spark.conf.get(NAME) == before
        assert spark.conf.get("spark.sql.autoBroadcastJoinThreshold") != "-1"
    finally:
        spark.conf.unset(NAME)
