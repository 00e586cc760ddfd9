"""The documents: every program in them parses, the tour runs, and every link inside the repository leads somewhere."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from emberlog.source import Source
from emberlog.syntax.parser import parse

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PROGRAM = re.compile(r"^```datalog\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Python, and what it prints where that follows.
SNIPPET = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(#[^)]*)?\)")


def programs() -> list[tuple[str, str]]:
    """Each program with the place where it stands."""
    found = []
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for match in PROGRAM.finditer(text):
            line = text.count("\n", 0, match.start(1)) + 1
            found.append((f"{document.relative_to(ROOT)}:{line}", match[1]))
    return found


@pytest.mark.parametrize(("place", "program"), [pytest.param(*found, id=found[0]) for found in programs()])
def test_programs_parse(place: str, program: str) -> None:
    assert parse(Source(place, program)).items


def test_the_tour_runs_and_prints_what_it_says(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its snippets, one after the other, in the session of the tests: `getOrCreate` gives that one."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for match in SNIPPET.finditer(text):
        line = text.count("\n", 0, match.start(1))
        printed = StringIO()
        with redirect_stdout(printed):
            # Empty lines first, so that errors name the line of the page.
            exec(compile("\n" * line + match[1], "docs/tour.md", "exec"), names)
        assert printed.getvalue() == (match[2] or ""), f"docs/tour.md:{line + 1}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for match in LINK.finditer(text):
        target = document.parent / match[1] if match[1] else document
        assert target.exists(), match[0]
        if match[2]:
            headings = re.findall(r"^#+ (.*)", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert match[2][1:] in {anchor(heading) for heading in headings}, match[0]


def anchor(heading: str) -> str:
    """The name under which a heading can be linked to."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
