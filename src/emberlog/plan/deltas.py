"""Delta rules: what follows from the rows of the last round.

A rule with n atoms of its own component has n delta bodies. Body i reads the last round's rows (`recent`) at the i-th
of these atoms, everything so far (`all`) at those before it and what was there before the last round (`stable`) at
those after it. So each combination of rows that holds a recent one is met exactly once. Semi-naive evaluation takes
the rows of a round for `recent`; maintenance takes the rows of a change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from emberlog.analysis.program import Bind, CoreRule, Match, Signature
from emberlog.plan.bodies import Bodies, contributed_rows, is_condition_column, variables
from emberlog.plan.logical import Contribution, Plan, Version, columns
from emberlog.plan.missing import spelled_out
from emberlog.syntax.nodes import Variable


def delta_bodies(
    rule: CoreRule, bodies: Bodies, inside: frozenset[str], *, later: Version = "stable"
) -> Iterator[Plan]:
    """The delta bodies of a rule whose component is `inside`. `later` is what the atoms after the recent one read."""
    spots = [i for i, lit in enumerate(rule.body) if isinstance(lit, Match) and lit.predicate in inside]
    for recent in spots:
        versions: dict[int, Version] = {
            spot: "recent" if spot == recent else "all" if spot < recent else later for spot in spots
        }
        yield bodies.of_rule(rule, versions)


def contribution(
    rule: CoreRule, bodies: Bodies, inside: frozenset[str], signatures: Mapping[str, Signature]
) -> Contribution:
    """What a recursive rule gives to a sum or count.

    Its identity is every variable that does not come from an aggregated value: when such a value changes, the
    contribution changes with it and does not become another one. All atoms read current values, so that a change
    seen from two atoms gives one and the same row.
    """
    moving = changing_variables(rule, inside, signatures)
    body_columns = columns(bodies.of_rule(rule))
    # Columns of constants, and of what stands twice, follow from the others; their names are new in every body.
    identity = tuple(name for name in body_columns if name not in moving and not is_condition_column(name))
    steps = tuple(
        contributed_rows(rule, body, kept=identity) for body in delta_bodies(rule, bodies, inside, later="all")
    )
    return Contribution(rule.id, identity, steps)


def changing_variables(rule: CoreRule, inside: frozenset[str], signatures: Mapping[str, Signature]) -> set[str]:
    """The variables that hold an aggregated value of the component, and those that are computed from one."""
    moving = {
        argument.name
        for literal in rule.body
        if isinstance(literal, Match) and literal.predicate in inside
        for spot, argument in enumerate(literal.arguments)
        if spot in signatures[literal.predicate].aggregates and isinstance(argument, Variable)
    }
    for literal in spelled_out(rule.body, rule.types):
        if isinstance(literal, Bind) and not moving.isdisjoint(variables(literal.term)):
            moving.add(literal.variable)
    return moving
