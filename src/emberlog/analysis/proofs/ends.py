"""What is known of termination."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import z3

from emberlog.analysis.proofs.bounds import Needs
from emberlog.analysis.proofs.formulas import Encoder, NotReal, better
from emberlog.analysis.proofs.properties import bounded, uses
from emberlog.analysis.proofs.prover import solve
from emberlog.analysis.proofs.steps import Step
from emberlog.analysis.terms import term_variables, walk
from emberlog.syntax.nodes import Call, Term, Until, Variable


def terminates(function: str, steps: Iterable[Step], needs: Needs, until: Until | None, invents: bool) -> str:
    """What is known of ending, for an aggregate and the steps that derive its predicate."""
    if until is not None:
        return "until clause"
    steps = list(steps)
    read = [(step, symbol) for step in steps for symbol in step.values() if uses(step, symbol)["value"]]
    if function == "sum" and read:
        return "no cycle, contraction or until clause"
    if not invents:
        return "finite domain"
    if function in ("min", "max") and read and all(_finite_groups(step) for step in steps):
        if all(_never_improves(step, symbol, function, needs) for step, symbol in read):
            return f"finite: a cycle never improves the {function}"
    operations = {name for step, _ in read for name in _operations(step)}
    if operations & {"*", "/", "^"}:
        return f"no cycle whose product improves the {function}"
    if operations & {"+", "-"}:
        return {"min": "no negative cycle", "max": "no positive cycle"}.get(function, "not known")
    return "not known"


def _operations(step: Step) -> Iterator[str]:
    """The functions that are applied to aggregated values on the way to the head."""
    values = step.values()
    for node in walk(step.value) if step.value is not None else ():
        if isinstance(node, Call) and any(variable.name in values for variable in _variables(node)):
            yield node.function


def _variables(call: Call) -> Iterator[Variable]:
    return term_variables(call)


def _finite_groups(step: Step) -> bool:
    """Are the columns of the head but its aggregate taken from rows, not computed?"""
    return not step.opaque and not any(isinstance(column, Call) for column in step.columns if column is not step.value)


def _never_improves(step: Step, symbol: str, function: str, needs: Needs) -> bool:
    """Is what a step derives never better than the value that it reads, and that value of the same aggregate?"""
    term: Term | None = step.value
    if term is None or step.values()[symbol] != step.head or len(step.values()) > 1:
        return False
    encoder = Encoder(step.types, loose=True)
    try:
        value = encoder.term(term, {})
        formulas = [z3.Not(better(function, encoder.symbol(symbol), value))]
        formulas += [encoder.condition(condition, {}) for condition in step.context]
        formulas += [encoder.guard(guard, {}) for guard in step.guards]
    except NotReal:
        return False
    for name, known in list(encoder.symbols().items()):
        formulas += [bounded(known, bound) for bound in needs.get(step.origins[name], ())]
    return solve(formulas + encoder.sides + encoder.known()).status == "unsat"
