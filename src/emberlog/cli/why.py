"""Questions of the command line, and their answers in one text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Literal

from emberlog.result import Result
from emberlog.syntax.parser import parse_goal
from emberlog.why.asked import row_of_goal
from emberlog.why.limits import at_least
from emberlog.why.page import page
from emberlog.why.tree import Answer


def answers(result: Result, text: str, absent: bool, most: int, limits: Mapping[str, int]) -> list[Answer]:
    """Why the row that a text names holds, in up to so many ways; or why it does not."""
    relation, row = row_of_goal(parse_goal(text))
    if absent:
        return [result.why_not(relation, row, width=limits["width"])]
    return list(islice(result.why(relation, row, all=True, **limits), at_least("--all", most, 1)))


def joined(found: Sequence[Answer], form: Literal["text", "html", "svg", "json"]) -> str:
    """All answers in one form; a picture shows the first."""
    match form:
        case "text":
            return "\n\n".join(map(str, found))
        case "json":
            parts = [answer.to_json() for answer in found]
            return parts[0] if len(parts) == 1 else "[\n" + ",\n".join(parts) + "\n]"
        case "html":
            return page(*found)
        case "svg":
            return found[0].to_svg()
