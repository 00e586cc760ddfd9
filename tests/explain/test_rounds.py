"""The physical plan tells what the relational evaluator does: its statements move rows as often as was told."""

from __future__ import annotations

from typing import Any

import pytest

import emberlog
from emberlog.plan.logical import Plan
from emberlog.plan.physical import exchanges, physical
from emberlog.plan.rounds import physical_stratum
from emberlog.sql.duck import DuckEngine
from emberlog.sql.evaluate import SqlEvaluator
from emberlog.sql.statement import Statement
from planned import planned

PROGRAMS = {
    "set": "p(X, Y) :- arc(X, Y). p(X, Y) :- p(X, Z), arc(Z, Y).",
    "two joins": "p(X, Y) :- arc(P, X), arc(P, Y), X != Y. p(X, Y) :- arc(A, X), p(A, B), arc(B, Y).",
    "two steps": "p(X, Y) :- arc(X, Y). p(X, Y) :- p(X, Z), p(Z, Y).",
    "extremum": "p(Y, min(D)) :- arc(Y, _), D = 0. p(Y, min(D)) :- p(X, C), arc(X, Y), D = C + 1.",
    "total": "p(Y, sum(C)) :- arc(1, Y), C = 1. p(Y, sum(C)) :- p(X, C), arc(X, Y).",
    "state": "p(0, X, v) :- arc(X, _), v = 1.0. "
    "p(i+1, Y, sum[v]) :- p(i, X, u), arc(X, Y), v = 0.5 * relu(u); {sum[delta v] < 0.1}.",
    "changes": "p(0, X, v) :- arc(X, _), v = 1.0. "
    "p(i+1, Y, sum[v]) :- arc(Y, _), v = 0.5; :- p(i, X, u), arc(X, Y), v = 0.5 * u; {sum[delta v] < 0.1}.",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_statements_move_rows_as_told(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    moves: list[int] = []
    merged: set[str] = set()
    compiled, update = SqlEvaluator.statement, DuckEngine.update

    def statement(self: SqlEvaluator, plan: Plan) -> Statement:
        moves.append(exchanges(physical(plan)))
        return compiled(self, plan)

    def updated(self: DuckEngine, name: str, other: str, keys: Any) -> None:
        merged.add(name)
        update(self, name, other, keys)

    monkeypatch.setattr(SqlEvaluator, "statement", statement)
    monkeypatch.setattr(DuckEngine, "update", updated)
    with emberlog.Engine(executor="local") as engine:
        engine.register("arc", [(1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (4, 6)])
        engine.run(text, evaluator="sql")
    _, _, plan = planned(text)
    told = physical_stratum(plan.strata[0], plan)
    # A merge is no statement: the rows that are there and the rows that come move to their keys.
    assert told.exchanges_once + told.exchanges_a_round == sum(moves) + 2 * len(merged)
