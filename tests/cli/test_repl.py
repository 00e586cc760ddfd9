"""`emberlog repl`: what is typed in, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import emberlog
from emberlog.cli import app
from emberlog.cli.repl import Repl


@pytest.fixture
def session() -> Iterator[Repl]:
    with emberlog.Engine(executor="local") as engine:
        yield Repl(engine)


def told(session: Repl, *lines: str) -> list[str]:
    return [text for line in lines for text in session.read(line)]


def test_rules_add_up_and_goals_are_answered(session: Repl) -> None:
    told(session, "arc(1, 2). arc(2, 3).", "tc(X, Y) <- arc(X, Y).")
    assert told(session, "tc(X, Y) <-", "  tc(X, Z), arc(Z, Y).") == []
    *rows, last = told(session, "?- tc(1, Y).")
    assert rows == ["1\t2", "1\t3"] and last.startswith("2 rows in ")
    assert told(session, ":list")[-1] == "tc(X, Y) :- tc(X, Z), arc(Z, Y)."


def test_a_mistake_changes_nothing(session: Repl) -> None:
    told(session, "arc(1, 2).")
    for wrong in ("p(X, Y) <- arc(X, _).", "arc(1).", ":nope", ":drop q", ":table arc", "?- arc(1)."):
        with pytest.raises(emberlog.EmberlogError):
            told(session, wrong)
    assert session.items == ["arc(1, 2)."] and not session.waits


def test_predicates_go_and_what_is_begun_is_forgotten(session: Repl) -> None:
    told(session, "arc(1, 2).", "p(X) <- arc(X, _).", "pq(X) <- arc(_, X).", ":drop p", "q(X) <-")
    session.forget()
    assert session.items == ["arc(1, 2).", "pq(X) :- arc(_, X)."] and not session.waits


def test_questions_and_proofs(session: Repl) -> None:
    told(session, "arc(1, 2).", "d(X, min<C>) <- X = 1, C = 0.", "d(Y, min<C>) <- d(X, A), arc(X, Y), C = A + 1.")
    assert "arc(1, 2)" in told(session, ":why d(2, 1).")[0]
    assert "does not hold" in told(session, ":not d(2, 7).")[0]
    assert "proved" in told(session, ":check")[0]
    assert "d" in told(session, ":explain")[0]


def test_the_command_reads_programs_facts_and_scripts(tmp_path: Path) -> None:
    (tmp_path / "tc.dl").write_text("tc(X, Y) <- arc(X, Y).\n")
    facts = tmp_path / "facts"
    facts.mkdir()
    (facts / "arc.csv").write_text("x,y\n1,2\n")
    words = ["repl", str(tmp_path / "tc.dl"), "-F", str(facts)]
    done = CliRunner().invoke(app, words, input="?- tc(X, 2).\n:quit\nnever read\n")
    assert done.exit_code == 0 and done.output.startswith("1\t2\n1 row in "), done.output
    wrong = CliRunner().invoke(app, words, input=":nope\n")
    assert isinstance(wrong.exception, emberlog.EmberlogError)
