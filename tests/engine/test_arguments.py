"""Arguments that make no sense are told as such, before anything is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import emberlog


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"memory": -5}, "memory is a size such as 4GB, not '-5'"),
        ({"memory": [1]}, "memory is a size such as 4GB"),
        ({"workers": "a"}, "workers is a number of at least 1, not 'a'"),
        ({"workers": 1.5}, "workers is a number of at least 1, not 1.5"),
        ({"run_dir": 5}, "run_dir is a path, not 5"),
    ],
)
def test_engines(given: dict[str, Any], told: str) -> None:
    with pytest.raises(emberlog.UsageError) as raised:
        emberlog.Engine(**given)
    assert told in raised.value.message


def test_memory_in_bytes() -> None:
    with emberlog.Engine(executor="local", memory=2_000_000_000) as engine:
        result = engine.run("p(1).")
        assert result["p"].rows() == [(1,)]
        assert "2.0 GB" in result.stats.memory


CALLS: dict[str, tuple[Callable[[emberlog.Engine], object], str]] = {
    "a program": (lambda engine: engine.run(None), "a program is a text, not NoneType"),  # type: ignore[arg-type]
    "bytes": (lambda engine: engine.run(b"p(1)."), "a program is a text, not bytes"),  # type: ignore[arg-type]
    "explain": (lambda engine: engine.explain(5), "a program is a text, not int"),  # type: ignore[arg-type]
    "check": (lambda engine: engine.check(5), "a program is a text, not int"),  # type: ignore[arg-type]
    "a goal": (lambda engine: engine.query(None), "a goal is a text, not NoneType"),  # type: ignore[arg-type]
    "params": (lambda engine: engine.run("p(1).", params=[1]), "params are values by name, not [1]"),  # type: ignore[arg-type]
    "no value": (lambda engine: engine.run("p($A).", params={"A": None}), "the parameter `A`"),  # type: ignore[dict-item]
    "persist": (lambda engine: engine.run("p(1).", persist=5), "persist is a path, not 5"),  # type: ignore[arg-type]
    "a name": (lambda engine: engine.register(5, [(1,)]), "the name of a relation is a text, not 5"),  # type: ignore[arg-type]
    "no name": (lambda engine: engine.register("", [(1,)]), "the name of a relation is a text, not ''"),
}


@pytest.mark.parametrize(("call", "told"), CALLS.values(), ids=list(CALLS))
def test_calls(call: Callable[[emberlog.Engine], object], told: str) -> None:
    with emberlog.Engine(executor="local") as engine, pytest.raises(emberlog.UsageError) as raised:
        call(engine)
    assert told in raised.value.message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("s(X) <- a(X), N = to_number(X), N = 5.", "for X = 'x': a conversion fails ('x' is not a number)"),
        ("s(X) <- a(T), N = to_number(T), X = range(0, N).", "for T = 'x': a conversion fails ('x' is not a number)"),
    ],
)
def test_errors_name_what_was_written_and_the_one_cause(text: str, told: str) -> None:
    with emberlog.Engine(executor="local") as engine:
        engine.register("a", [("x",)])
        with pytest.raises(emberlog.DataError) as raised:
            engine.run(text)
    assert raised.value.message == f"this rule has no value {told}"
