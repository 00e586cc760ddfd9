"""How a component would be evaluated by the kernels, in words, as far as that is known without data."""

from __future__ import annotations

from emberlog.kernels.compose import Composed, compose
from emberlog.kernels.lower import lower
from emberlog.kernels.pivots import pivots
from emberlog.kernels.program import INTERPRETED, Ineligible, KernelProgram
from emberlog.kernels.rows.program import Composition, Side
from emberlog.plan.partials import Split, decide
from emberlog.plan.strata import ProgramPlan, Stratum


def describe(stratum: Stratum, plan: ProgramPlan, asked: frozenset[str]) -> str:
    """The evaluator of a stratum and why; of the kernels also the way that they go. `asked` are the relations that
    somebody asks for."""
    if stratum.evaluation == "once":
        for_kernels = asked.isdisjoint(stratum.names) and _only_kernels_read(stratum, plan)
        return "sql, or over columns while it is small and simple: only kernels read it" if for_kernels else "sql"
    program = lower(stratum, plan)
    if isinstance(program, Ineligible):
        return f"sql: {program.reason}"
    small = INTERPRETED if program.mode == "delta" else "sql"
    return f"kernel: {_way(program)}; {small} while it is small"


def _only_kernels_read(stratum: Stratum, plan: ProgramPlan) -> bool:
    readers = [reader for name in stratum.names for reader in plan.readers.get(name, ())]
    return bool(readers) and all(
        reader.evaluation != "once" and isinstance(lower(reader, plan), KernelProgram) for reader in readers
    )


def kept(stratum: Stratum, plan: ProgramPlan, rows: frozenset[str], executor: str) -> str:
    """What is done with the rows of a component where the kernels make them, or why they are kept; nothing where
    nobody asks for less than the rows. `rows` are the relations whose rows are asked for."""
    program = None if stratum.evaluation == "once" else lower(stratum, plan)
    if not isinstance(program, KernelProgram):
        return ""
    if executor == "local":
        return decide(stratum, plan, rows, dict.fromkeys(stratum.names, ()), only_counts=True).text
    # Without a pivot one worker has all rows.
    alone: Split = dict.fromkeys(stratum.names, ())
    return decide(stratum, plan, rows, pivots(program) if program.mode == "delta" else alone).text


def _way(program: KernelProgram) -> str:
    if program.mode == "accumulate":
        return "sums accumulate: they gather where all groups are there from the start, else hand on changes (MRA)"
    if program.mode == "replace":
        return "each round computes a new state from the last one"
    found = {name: spots for name, spots in pivots(program).items() if spots}
    if found:
        spots = ", ".join(f"{name}({', '.join(str(p + 1) for p in at)})" for name, at in found.items())
        return f"one fixpoint for each value of the pivot {spots}, without an exchange"
    composed = compose(program)
    if composed is not None:
        return f"row by row, {_rules(composed)}"
    if any(table.fold in ("min", "max") for table in program.tables):
        return "rounds over tables of groups, in which a better value replaces the one before"
    return "rounds over tables of facts"


def _rules(composed: Composed) -> str:
    return "; ".join(_rule(rule) for rule in composed.program.rules)


def _rule(rule: Composition) -> str:
    sides = " . ".join(_side(side) for side in rule.sides())
    return f"{rule.head} |= {sides}"


def _side(side: Side) -> str:
    return f"{side.relation}~" if side.flipped else side.relation
