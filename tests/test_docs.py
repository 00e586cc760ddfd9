"""The documents: every program in them parses, and every link inside the repository leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from emberlog.source import Source
from emberlog.syntax.parser import parse

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PROGRAM = re.compile(r"^```datalog\n(.*?)^```", re.MULTILINE | re.DOTALL)
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
