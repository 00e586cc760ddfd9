"""What is written in a shorter way, written out: the forms that all other checks know."""

from __future__ import annotations

from collections.abc import Callable, Container

from emberlog.analysis.named import with_positions
from emberlog.analysis.witnesses import with_plain_extrema
from emberlog.syntax.nodes import Program


def written_out(
    program: Program, names_of_source: Callable[[str], tuple[str, ...] | None], given: Container[str]
) -> Program:
    """The program with all arguments by position, and with the rules that witnesses of extrema stand for. A source
    tells the names of its columns; `given` are the relations that have one. Raises ProgramError."""
    return with_plain_extrema(with_positions(program, names_of_source), given)
