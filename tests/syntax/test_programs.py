"""Every program that the papers print parses, and survives printing."""

from __future__ import annotations

from pathlib import Path

import pytest

from emberlog.source import Source
from emberlog.syntax import nodes
from emberlog.syntax.parser import parse
from emberlog.syntax.printer import show


def printed_programs() -> list[tuple[str, str]]:
    """Title and text of each program of the fixture file."""
    text = (Path(__file__).parent / "printed_programs.txt").read_text(encoding="utf-8")
    parts = text.split("=== ")[1:]
    return [(title, body) for title, _, body in (part.partition("\n") for part in parts)]


PROGRAMS = dict(printed_programs())


@pytest.mark.parametrize("title", PROGRAMS)
def test_printed_program_parses_and_prints(title: str) -> None:
    program = parse(Source(title, PROGRAMS[title]))
    assert program.items
    assert all(isinstance(item, nodes.Rule | nodes.Declaration) for item in program.items)
    assert parse(Source(title, show(program))) == program


def test_labels_are_not_read_as_facts() -> None:
    program = parse(Source("tc", PROGRAMS["BigDatalog 1: transitive closure"]))
    assert [show(item) for item in program.items] == [
        "tc(X, Y) :- arc(X, Y).",
        "tc(X, Y) :- tc(X, Z), arc(Z, Y).",
    ]


def test_dialects_meet_in_one_tree() -> None:
    """The same rule of three papers, in three spellings, is one tree."""
    spellings = (
        "cc(Y,min(Z)) ← cc(X,Z), arc(X,Y).",
        "cc(Y,min<Z>) <- cc(X,Z), arc(X,Y).",
        "r1. cc(Y,min[Z]) :- cc(X,Z), arc(X,Y);.",
    )
    assert len({parse(Source("cc", text)) for text in spellings}) == 1


def test_bodies_of_pagerank() -> None:
    rank = parse(Source("pagerank", PROGRAMS["PageRank"])).items[2]
    assert isinstance(rank, nodes.Rule) and isinstance(rank.body, nodes.Or)
    assert [type(part) for part in rank.body.parts] == [nodes.And, nodes.And, nodes.Until]
    assert [part.span.text for part in rank.body.parts] == [
        "node(Y), r = 0.15",
        "rank(i, X, q), edge(X, Y), degree(X, d), r = 0.85 * q / d",
        "{sum[delta r] < 0.0001}",
    ]
