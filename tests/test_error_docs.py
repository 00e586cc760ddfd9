"""The page of errors knows every code."""

from __future__ import annotations

import re
from pathlib import Path

from emberlog.analysis.codes import CODES, WARNINGS

ROOT = Path(__file__).parent.parent


def test_every_code_is_on_the_page() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    raised = {
        code for path in (ROOT / "src").rglob("*.py") for code in re.findall(r'"([EW]0\d{3})"', path.read_text("utf-8"))
    }
    assert {code for code in raised if code.startswith("W")} == set(WARNINGS)
    assert {code for code in raised | set(CODES) | set(WARNINGS) if code not in page} == {"E0000"}
