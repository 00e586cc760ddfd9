"""Rules cut where the next atom is owned elsewhere: the bindings so far become facts of a table of their own.

    sg(X, Y) <- arc(P, X), sg(P, Q), arc(Q, Y).

meets at the owner of P, but the rows of the second `arc` lie with the owner of Q. It becomes

    sg#1(X, Q) <- arc(P, X), sg(P, Q).
    sg(X, Y) <- sg#1(X, Q), arc(Q, Y).

and a rule with three recursive atoms becomes two with two. The new table is a set, so that equal bindings die before
they multiply. Heads that are sums are not cut: a set would lose contributions that are equal in what is left of them.
A variable that holds a float is no key, so that what would have to carry one is not cut either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations

from emberlog.components.domains import goal_variables, variables_of
from emberlog.components.program import Atom, Check, Goal, KernelProgram, KernelRule, Table
from emberlog.syntax.nodes import Term, Variable

# The spots of goals that are read together first, or None where a rule stays as it is.
First = Callable[[KernelRule, KernelProgram], Sequence[int] | None]


def cut_rules(program: KernelProgram, first: First) -> KernelProgram:
    """The program with every rule cut after what `first` says, again and again, as long as it says so."""
    done: list[KernelRule] = []
    waiting = list(program.rules)
    while waiting:
        rule = waiting.pop(0)
        spots = first(rule, program)
        pieces = None if spots is None else _cut(rule, spots, program, len(program.tables))
        if pieces is None:
            done.append(rule)
            continue
        table, *rules = pieces
        program = replace(program, tables=(*program.tables, table))
        waiting[:0] = rules
    return replace(program, rules=tuple(replace(rule, id=number) for number, rule in enumerate(done)))


def _cut(
    rule: KernelRule, spots: Sequence[int], program: KernelProgram, number: int
) -> tuple[Table, KernelRule, KernelRule] | None:
    """The table between the two halves of a rule, and these; None where it cannot be cut."""
    head = program.table(rule.head)
    assert head is not None
    known = {name for spot in spots for name in goal_variables(rule.body[spot])}
    early = [spot for spot, goal in enumerate(rule.body) if spot in spots or _is_test(goal, known)]
    late = [goal for spot, goal in enumerate(rule.body) if spot not in early]
    needed = {name for goal in late for name in goal_variables(goal)}
    needed |= {name for argument in rule.arguments for name in variables_of(argument)}
    carried = tuple(sorted(known & needed))
    kinds = tuple(rule.kinds[name] for name in carried)
    if head.fold == "sum" or not carried or "float" in kinds:
        return None
    table = Table(f"{rule.head}#{number}", kinds)
    terms = tuple(Variable(name) for name in carried)
    names = {*(one.name for one in program.tables), table.name}
    one = _rule(rule, table.name, terms, [rule.body[spot] for spot in early], names)
    other = _rule(rule, rule.head, rule.arguments, [Atom(table.name, terms), *late], names)
    return table, one, other


def _is_test(goal: Goal, known: set[str]) -> bool:
    return isinstance(goal, Check) and known.issuperset(goal_variables(goal))


def _rule(rule: KernelRule, head: str, arguments: tuple[Term, ...], body: list[Goal], tables: set[str]) -> KernelRule:
    carriers = tuple(spot for spot, goal in enumerate(body) if isinstance(goal, Atom) and goal.relation in tables)
    return replace(rule, head=head, arguments=arguments, body=tuple(body), carriers=carriers)


def closest_pair(rule: KernelRule, program: KernelProgram) -> Sequence[int] | None:
    """Of more than two recursive atoms the two that have most variables in common."""
    if len(rule.carriers) <= 2:
        return None

    def shared(pair: tuple[int, int]) -> int:
        one, other = (set(goal_variables(rule.body[spot])) for spot in pair)
        return len(one & other)

    return max(combinations(rule.carriers, 2), key=shared)
