"""Any text at all gives a program or a ProgramError, and in time that grows with its length."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from emberlog.diagnostics import ProgramError
from emberlog.source import Source
from emberlog.syntax import nodes
from emberlog.syntax.parser import parse, parse_goal
from emberlog.syntax.printer import show
from syntax import trees

WORDS = st.sampled_from(
    [
        "p", "q(x)", "X", "_", "not", "true", "and", "count", "min", "sum", "topk", "mod", "bnot", "as", "contains",
        "sort", "limit", "database", "delta", "Δ", "r1", "r1.", ".decl", ".input", ".output", ".type", ".pragma",
        ".plan", ".comp", ".", ",", ";", ":", ":-", "<-", "←", "?-", "(", ")", "[", "]", "{", "}", "<", ">", "=",
        "==", "!=", "<:", "|", "&", "!", "~", "+", "-", "*", "/", "%", "^", "1", "0x", "1.5", "1e", "5u", "$P", "$",
        "9" * 30, '"a"', '"', "'", "\\", "//", "/*", "*/", "#", "#include", "\n", " ", "\0", "\ud800", "é", "😀",
    ]
)  # fmt: skip
ANY_TEXT = st.text() | st.lists(WORDS).map(" ".join) | st.lists(WORDS).map("".join)


def check_spans(source: Source, program: nodes.Program) -> None:
    last = 0
    for item in program.items:
        assert item.span.source is source
        assert 0 <= item.span.start <= item.span.end <= len(source.text)
        if isinstance(item, nodes.Rule):
            assert item.span.start >= last
            last = item.span.end


@given(ANY_TEXT)
@example("p(1). /*")
@example("p('\ud800').")
@example("\0")
@example(".")
@example("r1.")
@example("database({")
@example("p(x) :- {sum[Δ1] < 1}.")
def test_any_text_is_read_or_refused(text: str) -> None:
    source = Source("test", text)
    try:
        program = parse(source)
    except ProgramError as error:
        for diagnostic in error.diagnostics():
            assert diagnostic.code.startswith("E01") and diagnostic.span is not None
        assert str(error)
    else:
        check_spans(source, program)
        assert parse(Source("test", show(program))) == program


@given(ANY_TEXT)
def test_any_goal_is_read_or_refused(text: str) -> None:
    try:
        goal = parse_goal(text)
    except ProgramError:
        return
    assert parse_goal(show(goal)) == goal


@given(trees.programs, st.data())
def test_a_program_with_a_piece_cut_out_is_read_or_refused(program: nodes.Program, data: st.DataObject) -> None:
    text = show(program)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    try:
        parse(Source("test", text[:start] + text[end:]))
    except ProgramError as error:
        assert str(error)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 20_000,
        "p(" * 2_000,
        "p :- " + "(" * 20_000,
        "!" * 20_000,
        '"' * 20_001,
        "/*" * 20_000,
        "p(x) :- x <-1, " * 2_000,
        "\n%" * 2_000,
        " \n" * 20_000,
        "p(x) & " * 6_000,
        "." * 20_000,
        "r1." * 2_000,
        "p(x) :- " + "q(x), " * 2_000,
        "a " * 20_000,
        "9" * 40_000,
        "e(1, " + "2, " * 2_000,
        "\\" * 20_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_time_grows_with_length(text: str) -> None:
    began = time.process_time()
    try:
        parse(Source("test", text))
    except ProgramError as error:
        assert error.diagnostics()
    assert time.process_time() - began < 3


def test_many_facts() -> None:
    """100,000 facts take about two seconds; the bound leaves room for a busy machine."""
    text = "".join(f"edge({number}, {number * 7}).\n" for number in range(100_000))
    began = time.process_time()
    program = parse(Source("test", text))
    assert time.process_time() - began < 10
    assert len(program.items) == 100_000
