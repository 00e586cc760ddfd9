"""`check_prem`: PreM, checked round by round before a stratum with a min or max inside its recursion is evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from emberlog.analysis.program import CheckedProgram, Component, Signature
from emberlog.diagnostics import DataError
from emberlog.plan.logical import Scan
from emberlog.plan.names import given_part, positions
from emberlog.plan.strata import Stratum
from emberlog.stats import StratumStats
from emberlog.types import Value

if TYPE_CHECKING:
    from emberlog.executors.base import Executor

MOST_ROUNDS = 1000


def check_prem(executor: Executor, stratum: Stratum, stats: StratumStats) -> None:
    """Raises a `DataError` with the round and the group in which PreM does not hold for the data at hand."""
    extrema = any(verdict.aggregate in ("min", "max") for verdict in stratum.verdicts)
    if not extrema or stratum.indexed:  # an iteration computes each state from the one before, whatever it was
        return
    from emberlog.analysis.proofs.rounds import find_violation
    from emberlog.analysis.proofs.steps import Setting

    program = executor.program
    component = _component(program, stratum)
    setting = Setting(frozenset(component.predicates), component.rules, program.signatures, program.facts)
    lower = {name for rule in component.rules for name in rule.reads()} - setting.members
    with executor.guarded(stats):
        relations = {name: _rows(executor, name, program.signatures[name]) for name in lower}
        given = _given(executor, component)
    rounds = executor.options.limits.rounds or MOST_ROUNDS
    found = find_violation(setting, relations, given, rounds, lambda: executor.meter.check(stats, 0))
    if found is None:
        return
    verdict = next(verdict for verdict in stratum.verdicts if verdict.predicate == found.predicate)
    group = ", ".join(map(_shown, found.group))
    first, last = ("nothing" if value is None else _shown(value) for value in (found.first, found.last))
    raise DataError(
        f"PreM does not hold in round {found.round}: for the group ({group}) of `{found.predicate}` aggregating first "
        f"gives {first}, aggregating last gives {last}",
        span=verdict.span,
        fix=f"the {verdict.aggregate} must be taken after the recursion, or the rules changed",
    )


def _component(program: CheckedProgram, stratum: Stratum) -> Component:
    return next(part for part in program.components if set(part.predicates) <= set(stratum.names))


def _given(executor: Executor, component: Component) -> Mapping[str, list[tuple[Value, ...]]]:
    """The rows that predicates of the component have from facts and sources."""
    program = executor.program
    names = [n for n in component.predicates if program.facts.get(n) or program.signatures[n].external]
    return {name: _rows(executor, given_part(name), program.signatures[name]) for name in names}


def _rows(executor: Executor, relation: str, signature: Signature) -> list[tuple[Any, ...]]:
    types = tuple(column.type.wide for column in signature.columns)
    run = executor.home(relation)
    if not types:
        return [()] if run.engine.count(run.table(relation)) else []
    table = run.engine.read(run.statement(Scan(relation, positions(len(types)), types)))
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _shown(value: Value) -> str:
    return repr(value) if isinstance(value, str) else str(value)
