"""What a view tells of itself: why rows hold, and how it is maintained, as text, page and picture."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

import pytest

import emberlog

PROGRAM = """
    arc(9, 1).
    tc(X, Y) <- arc(X, Y).
    tc(X, Y) <- tc(X, Z), arc(Z, Y).
    out(X, count(Y)) <- tc(X, Y).
    root(X) <- arc(X, _), !tc(_, X).
    long(X) <- out(X, N), match(".", to_string(N)).
"""


@pytest.fixture
def view() -> Iterator[emberlog.View]:
    with emberlog.Engine(executor="local", workers=1) as engine:
        engine.register("arc", [(1, 2), (2, 3), (3, 4)])
        yield engine.maintain(PROGRAM)


def test_why_follows_the_changes(view: emberlog.View) -> None:
    assert "arc(3, 4)" in str(view.why("tc", (1, 4)))
    view.apply(delete={"arc": [(2, 3)]}, insert={"arc": [(1, 3)]})
    assert "arc(1, 3)" in str(view.why("tc", (1, 4)))
    assert "arc(2, 3)" not in str(view.why("tc", (1, 4)))
    assert "arc(9, 1)" in str(view.why("out", (9, 4)))
    assert len(list(view.why("tc", (9, 3), all=True))) == 1
    with pytest.raises(emberlog.UsageError, match="does not hold"):
        view.why("tc", (2, 4))
    assert "tc(2, 4)" in str(view.why_not("tc", (2, 4)))
    assert "tc(" in str(view.why_not("root", (3,)))


def test_why_sees_rules_that_were_added(view: emberlog.View) -> None:
    view.add_rule("pair(X, Y) <- tc(X, Y), tc(Y, X).")
    view.apply(insert={"arc": [(4, 1)]})
    assert "arc(4, 1)" in str(view.why("pair", (1, 4)))


def test_a_view_is_explained_as_page_and_picture(view: emberlog.View) -> None:
    view.apply(insert={"arc": [(5, 1)]})
    told = view.explain()
    assert "recomputed" in told and "keeps a derivation" in told
    root = ElementTree.fromstring(told.to_svg())
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    for name in ("arc", "tc", "out", "root", "long"):
        assert name in texts
    assert "<svg" in told._repr_html_() and told.to_html().startswith("<!DOCTYPE html>")


def test_a_view_without_rules_is_explained(view: emberlog.View) -> None:
    with emberlog.Engine(executor="local") as engine:
        assert "0 tasks" in engine.maintain(".decl a(x: number)").explain()
        ElementTree.fromstring(engine.maintain(".decl a(x: number)").explain().to_svg())
