"""The documents: every program in them parses, the tour runs, and every link inside the repository leads somewhere."""

from __future__ import annotations

import json
import re
from contextlib import redirect_stdout
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import emberlog
from emberlog.source import Source
from emberlog.syntax.parser import parse

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PROGRAM = re.compile(r"^```datalog\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Python, and what it prints where that follows.
SNIPPET = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
# A program, and the rows that it gives.
EXAMPLE = re.compile(r"^```datalog\n((?:(?!```).)*)^```\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
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


def examples() -> list[Any]:
    """The programs of the reference and the cookbook that say what they give."""
    found = []
    for page in ("language", "cookbook"):
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        for match in EXAMPLE.finditer(text):
            found.append(pytest.param(*match.groups(), id=f"{page}:{text.count(chr(10), 0, match.start()) + 1}"))
    return found


@pytest.mark.parametrize(("program", "rows"), examples())
def test_examples_of_the_reference_give_what_they_say(program: str, rows: str) -> None:
    with emberlog.Engine(executor="local") as engine:
        result = engine.run(program)
        found = [f"{name}({', '.join(map(shown, row))})" for name in result for row in result[name].rows()]
    assert sorted(found) == sorted(rows.splitlines())


def shown(value: Any) -> str:
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False, default=str)


@pytest.mark.parametrize(("place", "program"), [pytest.param(*found, id=found[0]) for found in programs()])
def test_programs_parse(place: str, program: str) -> None:
    assert parse(Source(place, program)).items


def test_the_tour_runs_and_prints_what_it_says(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the session of the tests: `getOrCreate` gives that one."""
    monkeypatch.chdir(tmp_path)
    run_snippets("docs/tour.md")


def test_asking_why_runs_and_prints_and_shows_what_it_says() -> None:
    names = run_snippets("docs/why.md")
    assert names["why"].to_svg() == (ROOT / "docs" / "why.svg").read_text(encoding="utf-8")
    names["engine"].close()


def test_the_page_about_goals_runs_and_prints_what_it_says() -> None:
    run_snippets("docs/goals.md")


def test_the_page_on_functions_runs_and_prints_what_it_says() -> None:
    run_snippets("docs/functions.md")


@pytest.mark.parametrize("page", ["placement", "tables"])
def test_pages_about_tables_run_and_print_what_they_say(page: str) -> None:
    run_snippets(f"docs/{page}.md")


def test_the_page_on_maintenance_runs_and_prints_what_it_says() -> None:
    run_snippets("docs/maintenance.md")


def test_the_page_on_daily_jobs_runs_and_prints_what_it_says(spark: Any) -> None:
    run_snippets("docs/daily-jobs.md")


def test_the_page_on_coordination_runs_and_prints_what_it_says() -> None:
    run_snippets("docs/coordination.md")


def run_snippets(page: str) -> dict[str, Any]:
    """Runs the snippets of a page one after the other; each prints what the page says. Returns what they define."""
    text = (ROOT / page).read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for match in SNIPPET.finditer(text):
        line = text.count("\n", 0, match.start(1))
        printed = StringIO()
        with redirect_stdout(printed):
            # Empty lines first, so that errors name the line of the page.
            exec(compile("\n" * line + match[1], page, "exec"), names)
        assert printed.getvalue() == (match[2] or ""), f"{page}:{line + 1}"
    return names


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
