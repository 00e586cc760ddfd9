"""An aggregate on top of a recursion moves into it, where that is proved to change nothing.

    path(X, Y, D) <- arc(X, Y, D).                              path(X, Y, min<D>) <- arc(X, Y, D).
    path(X, Y, D) <- path(X, Z, C), arc(Z, Y, W), D = C + W.    path(X, Y, min<D>) <- path(X, Z, C), ...
    best(X, Y, min<D>) <- path(X, Y, D).                        best(X, Y, min<D>) <- path(X, Y, D).

The left program derives every length of every path, without end on a cycle; the right one the shortest. PreM says that
`best` is the same. The move is made if nothing else reads `path` and nobody asks for its rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from emberlog.analysis.program import Absent, CheckedProgram, Component, CoreRule, Filter, Match, atoms
from emberlog.analysis.terms import literal_terms, names, term_variables
from emberlog.analysis.verdicts import examine
from emberlog.syntax.nodes import Aggregate, Variable


@dataclass(frozen=True, slots=True)
class _Move:
    """The extremum of a column of `inner` that every reader of it takes."""

    inner: str
    position: int
    aggregate: Aggregate
    outer: str


def push_aggregates(program: CheckedProgram, wanted: Collection[str]) -> CheckedProgram:
    """The program with every aggregate moved into the recursion below it, where that is proved; `wanted` are the
    relations that somebody asks for."""
    readers = _readers(program)
    for number, component in enumerate(program.components):
        for move in _moves(component, readers, wanted):
            moved = _moved(program, component, move)
            if moved is not None:
                signature = program.signatures[move.inner]
                aggregated = replace(signature, aggregates={move.position: move.aggregate.function})
                program = replace(
                    program,
                    components=(*program.components[:number], moved, *program.components[number + 1 :]),
                    signatures={**program.signatures, move.inner: aggregated},
                )
                break
    return program


def _readers(program: CheckedProgram) -> dict[str, list[CoreRule]]:
    """The rules that read each predicate from outside of its component."""
    found: dict[str, list[CoreRule]] = {}
    for component in program.components:
        for rule in component.rules:
            for name in {*rule.reads()} - {*component.predicates}:
                found.setdefault(name, []).append(rule)
    return found


def _moves(component: Component, readers: Mapping[str, Sequence[CoreRule]], wanted: Collection[str]) -> Iterator[_Move]:
    if not component.recursive or component.indexed or any(rule.aggregates for rule in component.rules):
        return
    for name in component.predicates:
        if name in wanted:
            continue
        moves = [_read(rule, name) for rule in readers.get(name, ())]
        if len({None if move is None else (move.position, move.aggregate.function) for move in moves}) == 1:
            if moves[0] is not None:
                yield moves[0]


def _read(rule: CoreRule, inner: str) -> _Move | None:
    """The extremum that a rule takes of a column of `inner`, if that is all it does with this column."""
    read = [literal for literal in rule.body if isinstance(literal, Match) and literal.predicate == inner]
    if len(rule.aggregates) != 1 or rule.limit is not None or len(read) != 1:
        return None
    (_, aggregate), atom = rule.aggregates[0], read[0]
    value = aggregate.arguments[0]
    if aggregate.function not in ("min", "max") or not isinstance(value, Variable):
        return None
    rest = tuple(literal for literal in rule.body if literal is not atom)
    others = [argument for argument in rule.arguments if argument is not aggregate]
    others += [term for literal in rest for term in literal_terms(literal)]
    plain = all(isinstance(argument, Variable) for argument in atom.arguments)
    once = sum(v.name == value.name for argument in atom.arguments for v in term_variables(argument)) == 1
    simple = all(isinstance(literal, Match | Absent | Filter) for literal in rest)
    elsewhere = value.name in names(others) or any(other.predicate == inner for other in atoms(rest))
    if not (plain and once and simple) or elsewhere:
        return None
    position = next(i for i, argument in enumerate(atom.arguments) if argument == value)
    return _Move(inner, position, aggregate, rule.predicate)


def _moved(program: CheckedProgram, component: Component, move: _Move) -> Component | None:
    """The component with the aggregate inside; None if that is not proved to be the same."""
    rules = tuple(_aggregated(rule, move) if rule.predicate == move.inner else rule for rule in component.rules)
    judged = examine(component.predicates, rules, program.signatures, program.facts, component.until, component.invents)
    if judged.spills or any(verdict.status != "proved" for verdict in judged.verdicts):
        return None
    taken = f"the {move.aggregate.function} of `{move.outer}` is taken inside"
    note = f"{taken}: nothing else reads `{move.inner}`, and PreM holds"
    return replace(component, rules=rules, evaluation="delta", verdicts=judged.verdicts, note=note)


def _aggregated(rule: CoreRule, move: _Move) -> CoreRule:
    value = rule.arguments[move.position]
    inside = replace(move.aggregate, arguments=(value,), monotonic=False)
    arguments = (*rule.arguments[: move.position], inside, *rule.arguments[move.position + 1 :])
    return replace(rule, arguments=arguments)
