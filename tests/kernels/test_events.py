"""What changes while a component is evaluated is an event of its stratum, and the rows are right all the same."""

from __future__ import annotations

from typing import Any

import pytest

import emberlog

TC = "tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), arc(Z, Y)."
SSSP = "d(X, min<D>) <- s(X), D = 0. d(Y, min<D>) <- d(X, C), arc(X, Y, W), D = C + W."
RANK = """
rank(0, X, r) <- start(X), r = 1.0.
rank(i+1, Y, sum[r]) <- node(Y), r = 0.15;
                     <- rank(i, X, q), edge(X, Y), r = 0.5 * q;
                     {sum[delta r] < 0.000001}.
"""
DEEP = f"p(X, Y) <- arc(X, Y). p(X0, X20) <- {', '.join(f'p(X{i}, X{i + 1})' for i in range(20))}."


def run(text: str, sources: dict[str, Any], name: str, **options: Any) -> tuple[list[str], list[Any], str]:
    """The events of a run, the rows of a relation, and the table of stats."""
    with emberlog.Engine(executor="local", workers=1) as engine:
        for source, rows in sources.items():
            engine.register(source, rows)
        result = engine.run(text, **options)
        found = sorted(result[name].rows())
        return [str(event) for stats in result.stats for event in stats.events], found, str(result.stats)


def test_nothing_changes() -> None:
    assert run(TC, {"arc": [(1, 2), (2, 3)]}, "tc", evaluator="kernel", storage="loops")[0] == []


def test_numbers_that_leave_32_bits() -> None:
    far = 2**31 - 10
    sources = {"s": [(1,)], "arc": [(1, 2, far), (2, 3, far), (3, 1, 1)]}
    events, rows, _ = run(SSSP, sources, "d", evaluator="kernel", storage="loops")
    assert events == ["whole numbers in 64 bits, because one left 32 bits, or an operation has no value"]
    assert rows == [(1, 0), (2, far), (3, 2 * far)]


def test_pivots_that_have_little_in_common() -> None:
    pairs = [(2 * i, 2 * i + 1) for i in range(20_000)]
    events, rows, table = run(TC, {"arc": pairs}, "tc", evaluator="kernel", storage="loops")
    assert events == ["pivot by pivot, because pivots have little in common"]
    assert rows == pairs
    assert events[0] in table


def test_a_group_of_the_start_that_gets_nothing() -> None:
    sources = {"start": [(1,), (7,)], "node": [(1,), (2,)], "edge": [(1, 2)]}
    events, rows, _ = run(RANK, sources, "rank", evaluator="kernel")
    assert events == ["each round replaces the state, because nothing contributes to a group of the start"]
    assert [node for node, _ in rows] == [1, 2]


def test_what_loops_cannot_do_is_done_by_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emberlog.choose.strata.SMALL_ROWS", -1)  # so that statements are not done with it before
    events, rows, _ = run(DEEP, {"arc": [(1, 1), (1, 2)]}, "p", storage="loops")
    assert events == ["statements, because a rule needs 19 loops inside one another, and at most 14 are compiled"]
    assert rows == [(1, 1), (1, 2)]
