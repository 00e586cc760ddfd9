"""A goal derives about what a program by hand does, and far less than the whole relation has."""

from __future__ import annotations

import pytest

import emberlog
from demand.examples import EXAMPLES, LEFT, Example

CHAIN = [(i, i + 1) for i in range(100)]
ARCS = [*CHAIN, *((i, i + 7) for i in range(0, 90, 9))]
MOST = 3  # times the facts of the program by hand
FEW = 12  # facts that make no difference


def engine() -> emberlog.Engine:
    made = emberlog.Engine(executor="local", workers=1, warnings="ignore")
    made.register("arc", ARCS)
    made.register("w", [(x, y, 1 + (x + y) % 3) for x, y in ARCS])
    made.register("wanted", [(90,), (95,)])
    return made


def facts(answer: emberlog.Answer) -> int:
    return answer.stats.demanded + answer.stats.derived


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_work_is_that_of_a_program_by_hand(example: Example) -> None:
    with engine() as ours:
        answer = ours.query(example.goal, example.program)
        arity = len(answer.columns)
        by_hand = ours.query(f"a({', '.join(f'V{i}' for i in range(arity))})", example.by_hand)
        whole = ours.run(example.program).stats
        if example.goal != "tc(90,95)":
            assert sorted(answer.rows()) == sorted(by_hand.rows())
        assert facts(answer) <= MOST * facts(by_hand) + FEW
        assert facts(answer) < whole.derived / 2


def test_a_question_at_the_end_of_a_chain_needs_few_rows() -> None:
    with emberlog.Engine(executor="local") as ours:
        ours.register("arc", [(i, i + 1) for i in range(3000)])
        answer = ours.query("tc(2990, Y)", LEFT, limits={"rows": 100})
        assert sorted(answer.rows()) == [(2990, i) for i in range(2991, 3001)]
        with pytest.raises(emberlog.LimitError):
            ours.run(LEFT, limits={"rows": 100})
