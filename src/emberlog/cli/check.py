"""`emberlog check`: the verdict on every aggregate inside recursion, as text or as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emberlog.analysis.check import check_aggregates
from emberlog.analysis.given import with_functions
from emberlog.analysis.parameters import check_parameters
from emberlog.analysis.program import Verdict
from emberlog.asked import conditions_as_rules
from emberlog.callables import functions_of_file
from emberlog.diagnostics import Diagnostic, ProgramError, render
from emberlog.engine import read_program
from emberlog.notices import Notices, tell_of_program
from emberlog.source import Span
from emberlog.syntax.parser import parse
from emberlog.types import Params

_COLOURS: Mapping[str, str] = {"proved": "green", "conditional": "yellow", "refuted": "red", "unknown": "magenta"}


@dataclass(frozen=True)
class Checked:
    """What was found of one program: verdicts, or the mistakes that left nothing to judge."""

    path: Path
    verdicts: tuple[Verdict, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    mistakes: tuple[Diagnostic, ...] = ()

    @property
    def right(self) -> bool:
        return not self.mistakes and all(verdict.holds for verdict in self.verdicts)


def check_file(path: Path, params: Params, warnings: Notices = "show", functions: Path | None = None) -> Checked:
    """The verdicts on a program's aggregates, and what is odd about it."""
    check_parameters(params)
    try:
        given = {} if functions is None else {function.name: function for function in functions_of_file(functions)}
        program = with_functions(parse(read_program(path)), given)
        checked = check_aggregates(conditions_as_rules(program), {}, params)
        if warnings == "error":
            tell_of_program(checked.warnings, warnings)
        return Checked(path, checked.verdicts, () if warnings == "ignore" else checked.warnings)
    except ProgramError as error:
        return Checked(path, mistakes=error.diagnostics())


# --- text ------------------------------------------------------------------------------------------------------------


def print_text(found: list[Checked]) -> None:
    """The verdicts as text, coloured on a terminal."""
    from rich.console import Console

    console, errors = (Console(highlight=False, soft_wrap=True, stderr=to_stderr) for to_stderr in (False, True))
    for number, checked in enumerate(found):
        if number:
            console.print()
        for found_of in (*checked.mistakes, *checked.warnings):
            errors.print(render(found_of), markup=False)
        for line, style in lines_of(checked, alone=len(found) == 1):
            console.print(line, style=style, markup=False)
    if len(found) > 1:
        console.print(f"\n{_summary(found)}", markup=False)


def lines_of(checked: Checked, alone: bool) -> Iterator[tuple[str, str]]:
    """The lines on a program, each with its style. Programs are told apart unless one is `alone`."""
    if not checked.verdicts and not checked.mistakes:
        yield f"{'' if alone else f'{checked.path}: '}no aggregates in recursion; no mistakes found", ""
    for verdict in checked.verdicts:
        yield from _verdict(verdict)


def _verdict(verdict: Verdict) -> Iterator[tuple[str, str]]:
    colour = _COLOURS[verdict.status]
    theorem = f" ({verdict.theorem})" if verdict.theorem else ""
    yield f"{verdict.span}: {verdict.aggregate} in {verdict.predicate}: {verdict.status}{theorem}", f"bold {colour}"
    yield from _excerpt(verdict.span, colour)
    checked = "; the data are checked before the recursion starts" if verdict.obligations else ""
    for label, text in (
        ("because", verdict.reason),
        ("assumes", ", ".join(verdict.assumptions) + checked if verdict.assumptions else ""),
        ("counter-example", verdict.counterexample or ""),
        ("ends", verdict.terminates),
    ):
        if text:
            yield f"  {label}: {text}", ""


def _excerpt(span: Span, colour: str) -> Iterator[tuple[str, str]]:
    line, column = span.source.position(span.start)
    text = span.source.line(line)
    shown = "".join(char if char.isprintable() else " " for char in text)
    width = max(1, min(span.end - span.start, len(text) - column + 1))
    yield f"  {line} | {shown}", ""
    yield f"  {' ' * len(str(line))} | {' ' * (column - 1)}{'^' * width}", colour


def _summary(found: list[Checked]) -> str:
    counts = Counter[str](verdict.status for checked in found for verdict in checked.verdicts)
    parts = [f"{counts[status]} {status}" for status in _COLOURS if counts[status]]
    wrong = sum(bool(checked.mistakes) for checked in found)
    parts += [f"{wrong} with mistakes"] if wrong else []
    return f"{len(found)} programs: {', '.join(parts) or 'no aggregates in recursion'}"


# --- JSON ------------------------------------------------------------------------------------------------------------


def as_json(found: list[Checked]) -> list[dict[str, Any]]:
    """The verdicts as plain values, one entry a program."""
    return [
        {
            "program": str(checked.path),
            "verdicts": [_verdict_values(verdict) for verdict in checked.verdicts],
            "mistakes": [_diagnostic_values(mistake) for mistake in checked.mistakes],
            "warnings": [_diagnostic_values(warning) for warning in checked.warnings],
        }
        for checked in found
    ]


def _diagnostic_values(found: Diagnostic) -> dict[str, Any]:
    return {"code": found.code, "message": found.message, "help": found.help, **_place(found.span)}


def _verdict_values(verdict: Verdict) -> dict[str, Any]:
    return {
        "predicate": verdict.predicate,
        "aggregate": verdict.aggregate,
        "status": verdict.status,
        "holds": verdict.holds,
        "theorem": verdict.theorem,
        "licence": verdict.licence,
        "assumptions": list(verdict.assumptions),
        "terminates": verdict.terminates,
        "reason": verdict.reason,
        "counterexample": verdict.counterexample,
        "facts": [[name, list(row)] for name, row in verdict.facts],
        **_place(verdict.span),
    }


def _place(span: Span | None) -> dict[str, int]:
    if span is None:
        return {}
    line, column = span.source.position(span.start)
    return {"line": line, "column": column}
