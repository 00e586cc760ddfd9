"""Warnings: what is warned about, where warnings appear, and how they become errors."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import emberlog
from emberlog.analysis.booleans import read_booleans
from emberlog.analysis.singles import single_variables
from emberlog.source import Source
from emberlog.syntax.parser import parse

ROOT = Path(__file__).parent.parent.parent
PEOPLE = [(1, "Ann", True), (2, "Bob", False)]
ONCE = "p(I) <- person(I, Ann, _)."


@pytest.fixture
def engine() -> Iterator[emberlog.Engine]:
    with emberlog.Engine(executor="local") as made:
        made.register("person", PEOPLE)
        yield made


def once(text: str) -> list[str]:
    """The names that are warned of, rule by rule."""
    found = single_variables(read_booleans(parse(Source("test.dl", text))))
    return [" ".join(label.span.text for label in diagnostic.labels) for diagnostic in found]


# --- variables that stand once ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (ONCE, ["Ann"]),
        ("p(X) <- e(X, Y), f(Z, X).", ["Y Z"]),
        ("p(X) <- e(X, Y).\nq(X) <- e(X, _), f(y).", ["Y", "y"]),
        ("p(X) <- e(X), Y = X + 1.", ["Y"]),
        ("n(count(_)) <- t(X).", ["X"]),
        ("c(N) <- N = count : { t(X) }.", ["X"]),
        ("database({e(X: integer, Y: string)}). p(X) <- e(X, Y), e(X, rome).", ["Y"]),
    ],
)
def test_a_variable_that_stands_once_is_warned_of(text: str, names: list[str]) -> None:
    assert once(text) == names


@pytest.mark.parametrize(
    "text",
    [
        "p(X) <- e(X, _), e(X, _y), e(X, _Ann).",
        "p(X), q(Y) <- e(X, Y).",  # all heads of a rule,
        "p(X) <- e(X, Y); f(Y, X).",  # all of its bodies,
        "p(X) <- e(X), !(f(X, Y), g(Y)).",
        "p(X) <- e(X, Y) ; :- f(X), g(Y).",
        "r(i+1, Y, sum[v]) :- node(Y), v = 0.1.",  # the index of an iteration,
        "r(X, sum[v]) :- r(X, w), v = w / 2; {sum[delta v] < 0.1}.",  # the clauses about a rule
        "p(X, D) <- p(X, C), e(X, D), is_min((X), C).",
        "p(X) <- e(X, Y), sort((X, desc)), limit(3), f(Y).",
        "?- e(1, Y).",
        "e(1, 2).",
    ],
)
def test_no_warning_where_names_are_used_or_any_value_is_meant(text: str) -> None:
    assert once(text) == []


def our_programs() -> Iterator[tuple[str, str]]:
    """The programs of our documents and examples; those of BigDatalog's paper stay as it prints them."""
    for document in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")):
        text = document.read_text(encoding="utf-8")
        for number, match in enumerate(re.finditer(r"^```datalog\n(.*?)^```", text, re.MULTILINE | re.DOTALL)):
            yield f"{document.relative_to(ROOT)}-{number}", match[1]
    for example in ROOT.glob("examples/**/*.dl"):
        if example.name not in ("triangles.dl", "pymk.dl"):
            yield str(example.relative_to(ROOT)), example.read_text(encoding="utf-8")


def test_our_own_programs_give_no_warning() -> None:
    found = [(place, name) for place, text in our_programs() for name in once(text)]
    assert found == []


# --- where warnings appear -------------------------------------------------------------------------------------------


def test_a_warning_is_a_python_warning_with_a_caret_at_the_callers_line(engine: emberlog.Engine) -> None:
    with pytest.warns(emberlog.EmberlogWarning) as told:
        result = engine.run(ONCE)
    (warning,) = told
    assert warning.filename == __file__
    shown = str(warning.message)
    assert "the variable `Ann` stands once in this rule" in shown
    assert "1 | p(I) <- person(I, Ann, _).\n  |                   ^^^" in shown
    assert '`"Ann"`' in shown
    assert result.warnings == ["<program>:1:19: the variable `Ann` stands once in this rule"]


def test_every_way_to_give_a_program_warns(engine: emberlog.Engine, tmp_path: Path) -> None:
    path = tmp_path / "program.dl"
    path.write_text(ONCE)
    for call in (
        lambda: engine.run(ONCE),
        lambda: engine.run_file(path),
        lambda: engine.query("p(X)", ONCE),
        lambda: engine.check(ONCE),
        lambda: engine.explain(ONCE),
    ):
        with pytest.warns(emberlog.EmberlogWarning, match="`Ann` stands once") as told:
            call()
        assert [warning.filename for warning in told] == [__file__]


def test_a_query_of_the_last_program_does_not_repeat_its_warnings(engine: emberlog.Engine) -> None:
    with pytest.warns(emberlog.EmberlogWarning):
        engine.run(ONCE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sorted(engine.query("p(X)").rows()) == [(1,), (2,)]


def test_rules_for_a_registered_relation_are_warned_of(engine: emberlog.Engine) -> None:
    text = 'person(3, "Eve", true) <- person(1, _, _).'
    for call in (engine.run, engine.check, engine.explain):
        with pytest.warns(emberlog.EmberlogWarning, match="`person` has rules and a registered source"):
            call(text)


def test_what_is_odd_about_data_is_warned_of(engine: emberlog.Engine) -> None:
    engine.register("e", [(1, 2), (1, 2)])
    with pytest.warns(emberlog.EmberlogWarning, match="1 duplicate row of `e` collapsed"):
        engine.run("d(X, count(Y)) <- e(X, Y).")


# --- warnings as errors ----------------------------------------------------------------------------------------------


def test_warnings_about_a_program_can_be_errors(engine: emberlog.Engine, tmp_path: Path) -> None:
    path = tmp_path / "program.dl"
    path.write_text(ONCE)
    for call in (
        lambda: engine.run(ONCE, warnings="error"),
        lambda: engine.run_file(path, warnings="error"),
        lambda: engine.query("p(X)", ONCE, warnings="error"),
        lambda: engine.check(ONCE, warnings="error"),
        lambda: engine.explain(ONCE, warnings="error"),
    ):
        with pytest.raises(emberlog.ProgramError, match=r"error\[W0201\]: the variable `Ann` stands once"):
            call()


def test_an_engine_has_a_way_of_its_own_with_warnings() -> None:
    with emberlog.Engine(executor="local", warnings="error") as engine:
        engine.register("person", PEOPLE)
        with pytest.raises(emberlog.ProgramError, match="`Ann` stands once"):
            engine.run(ONCE)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(engine.run(ONCE, warnings="ignore").warnings) == 1
    with pytest.raises(emberlog.UsageError, match="warnings 'loud' is not known"):
        emberlog.Engine(executor="local", warnings="loud")  # type: ignore[arg-type]


def test_warnings_about_data_can_be_errors(engine: emberlog.Engine) -> None:
    engine.register("e", [(1, 2), (1, 2)])
    with pytest.raises(emberlog.DataError, match="1 duplicate row of `e` collapsed"):
        engine.run("d(X, count(Y)) <- e(X, Y).", warnings="error")
    assert engine.run("d(X) <- e(X, _).", warnings="error")["d"].rows() == [(1,)]
