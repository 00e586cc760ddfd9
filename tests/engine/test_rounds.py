"""Hundreds of rounds on Spark: plans do not grow, stacks do not overflow, no checkpoint folder is asked for."""

from __future__ import annotations

from typing import Any

import pytest

import emberlog

TC = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y)."
CHAIN = [(i, i + 1) for i in range(250)]


def test_a_chain_in_the_driver(spark: Any) -> None:
    with emberlog.Engine(spark) as engine:
        engine.register("arc", CHAIN)
        result = engine.run(TC, evaluator="sql")
        assert (len(result["tc"]), result.stats[0].rounds) == (31_375, 251)


@pytest.mark.slow
def test_a_chain_on_spark(spark: Any) -> None:
    with emberlog.Engine(spark) as engine:
        engine.register("arc", CHAIN)
        result = engine.run(TC, evaluator="sql", placement="spark")
        assert (len(result["tc"]), result.stats[0].rounds) == (31_375, 251)
