"""Pivots: argument positions that every rule hands on unchanged, the recursive ones and those above.

A pivot set has a list of positions for each table such that, in every rule, the head and every atom of a table, negated
or not, carry the same variables there, in the same order, and each once. Facts with different values there never meet,
so that the fixpoint falls apart into one for each value, in which the values need no comparing. Found as the largest
such set: a position of the first table is tried together with each combination that rules force on the other tables.
"""

from __future__ import annotations

from collections.abc import Mapping

from emberlog.components.program import Atom, Id, KernelProgram, KernelRule, Missing
from emberlog.syntax.nodes import Variable

Pivots = dict[str, tuple[int, ...]]


def pivots(program: KernelProgram) -> Pivots:
    """The positions of each table's pivot columns; empty tuples where there are none."""
    found: list[dict[str, int]] = []
    first = program.tables[0]
    for position in first.keys:
        if isinstance(first.kinds[position], Id):
            for candidate in _grown(program, {first.name: position}):
                if all(_are_apart(program, candidate, other) for other in found):
                    found.append(candidate)
                    break
    return {table.name: tuple(one[table.name] for one in found) for table in program.tables}


def _are_apart(program: KernelProgram, one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    """True if no rule carries one variable at both: `p(X,X) <- p(X,X), ...` would have to compare their values."""
    places = ((rule.arguments[one[rule.head]], rule.arguments[other[rule.head]]) for rule in _rules(program))
    return all(one[name] != other[name] for name in one) and all(left != right for left, right in places)


def _grown(program: KernelProgram, chosen: dict[str, int]) -> list[dict[str, int]]:
    """Every assignment of one position to each table that contains `chosen` and that all rules keep."""
    found, waiting = [], [chosen]
    while waiting:
        partial = waiting.pop()
        if (more := _extended(program, partial)) is None:
            found.append(partial)
        else:
            waiting.extend(reversed(more))
    return found


def _extended(program: KernelProgram, chosen: dict[str, int]) -> list[dict[str, int]] | None:
    """The assignments with one table more that a rule allows; None if every table has its position and all rules keep
    them."""
    for rule in _rules(program):
        atoms = [goal for goal in rule.body if isinstance(goal, Atom | Missing) and program.table(goal.relation)]
        places = [(rule.head, rule.arguments), *((atom.relation, atom.arguments) for atom in atoms)]
        known = [(name, arguments) for name, arguments in places if name in chosen]
        if not known:
            continue
        name, arguments = known[0]
        carried = arguments[chosen[name]]
        if not isinstance(carried, Variable):
            return []
        for name, arguments in places:
            if name in chosen:
                if arguments[chosen[name]] != carried:
                    return []
            else:
                table = program.table(name)
                assert table is not None
                return [{**chosen, name: spot} for spot in table.keys if arguments[spot] == carried]
    return None if len(chosen) == len(program.tables) else []


def _rules(program: KernelProgram) -> tuple[KernelRule, ...]:
    return (*program.rules, *program.above)


def divided(found: Pivots, program: KernelProgram, partition: Mapping[str, int] | None) -> Pivots:
    """The pivots to use. Where the user divides a predicate by an argument, that one, if it is one."""
    asked = {name: spot for name, spot in (partition or {}).items() if program.table(name) is not None}
    apart = all(spot in found.get(name, ()) for name, spot in asked.items())
    if not asked:
        return {table.name: found.get(table.name, ()) for table in program.tables}
    first = {found[name].index(spot) for name, spot in asked.items()} if apart else set()
    if len(first) != 1:
        return {table.name: () for table in program.tables}
    (spot,) = first
    return {table.name: (found[table.name][spot],) for table in program.tables}
