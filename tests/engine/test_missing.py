"""A missing value is an error wherever the rule runs, and only for bindings that satisfy the rest of the body."""

from __future__ import annotations

from typing import Any

import pytest

import emberlog
from missing_values import DECLARED, FACTS, MISSING, ORDERS, PLAIN, Row

RECURSIVE = [(text, answer) for text, answer in MISSING if text.count("p(") > 2]


def agrees(engine: emberlog.Engine, text: str, answer: set[Row] | None, **how: Any) -> None:
    for name, rows in FACTS.items():
        engine.register(name, rows)
    program = DECLARED + text
    if answer is None:
        with pytest.raises(emberlog.DataError, match="has no value") as raised:
            engine.run(program, **how)["p"].rows()
        assert raised.value.span is not None
    else:
        assert set(engine.run(program, **how)["p"].rows()) == answer


@pytest.mark.parametrize("evaluator", ["sql", "auto"])
@pytest.mark.parametrize(("text", "answer"), MISSING)
def test_in_this_process(text: str, answer: set[Row] | None, evaluator: str) -> None:
    with emberlog.Engine(executor="local") as engine:
        agrees(engine, text, answer, evaluator=evaluator)


@pytest.mark.parametrize("storage", ["columns", "loops", "hash"])
@pytest.mark.parametrize(("text", "answer"), RECURSIVE)
def test_in_recursion(text: str, answer: set[Row] | None, storage: str) -> None:
    with emberlog.Engine(executor="local") as engine:
        agrees(engine, text, answer, storage=storage)


SOME = PLAIN[:1] + PLAIN[8:10] + RECURSIVE[:2] + PLAIN[-3:] + [(r % ", ".join(p), a) for r, p, a in ORDERS[::10]]


@pytest.mark.parametrize(("text", "answer"), SOME)
def test_on_spark(spark: Any, text: str, answer: set[Row] | None) -> None:
    with emberlog.Engine(spark) as engine:
        agrees(engine, text, answer, placement="spark")


@pytest.mark.slow
@pytest.mark.parametrize(("text", "answer"), MISSING)
def test_all_on_spark(spark: Any, text: str, answer: set[Row] | None) -> None:
    with emberlog.Engine(spark) as engine:
        agrees(engine, text, answer, placement="spark")
