"""Recursion over deep trees without Python's call stack, whose depth is bounded.

A recursive function is written as a generator: `yield f(child)` in place of the call `f(child)`. `run_deep` drives it,
with the pending calls in a list; what a call raises is raised in the one that waits for it. So bodies of hundreds of
literals are no special case, on any thread.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

Answer = TypeVar("Answer")

# What a recursive function returns that is written as a generator; it yields the calls that it waits for.
Deep: TypeAlias = Generator[Any, Any, Answer]


def run_deep(call: Deep[Answer]) -> Answer:
    """The answer of a call, after those of all calls that it waits for."""
    waiting: list[Deep[Any]] = [call]
    answer: Any = None
    error: Exception | None = None
    while waiting:
        try:
            asked = waiting[-1].send(answer) if error is None else waiting[-1].throw(error)
        except StopIteration as done:
            waiting.pop()
            answer, error = done.value, None
        except Exception as raised:
            waiting.pop()
            if not waiting:
                raise
            error = raised
        else:
            waiting.append(asked)
            answer, error = None, None
    return answer  # type: ignore[no-any-return]
