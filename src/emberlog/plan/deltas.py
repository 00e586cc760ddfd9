"""Delta rules as plans: what follows from the rows of the last round.

A relation is stored in three versions while its component is evaluated: `recent` are the rows of the last round,
`stable` those before it, `all` both. The atom that carries the change reads `recent`, `new` is `all`, `old` is
`stable`.
"""

from __future__ import annotations

from collections.abc import Mapping

from emberlog.analysis.program import CoreRule, Signature
from emberlog.plan.bodies import Bodies, contributed_rows
from emberlog.plan.logical import Plan, Version, columns
from emberlog.plan.strata import Contribution
from emberlog.rules.changes import DeltaRule, State, delta_rules

VERSIONS: Mapping[State, Version] = {"old": "stable", "new": "all"}


def delta_body(delta: DeltaRule, bodies: Bodies) -> Plan:
    """The bindings of a rule that one of its atoms finds in the rows of the last round."""
    versions: dict[int, Version] = {place[0]: VERSIONS[state] for place, state in delta.reads}
    return bodies.of_rule(delta.rule, {**versions, delta.at[0]: "recent"})


def contribution(
    rule: CoreRule, bodies: Bodies, inside: frozenset[str], signatures: Mapping[str, Signature]
) -> Contribution:
    """What a recursive rule gives to a sum or count.

    When an aggregated value changes, a contribution changes with it and does not become another one. All atoms read
    `new`, so that a change seen from two atoms gives one and the same row: the later one replaces the other.
    """
    deltas = delta_rules(rule, inside, signatures)
    found = set(deltas[0].identity)
    identity = tuple(name for name in columns(bodies.of_rule(rule)) if name in found)
    steps = (contributed_rows(rule, delta_body(delta.reading_new(), bodies), kept=identity) for delta in deltas)
    return Contribution(rule.id, identity, tuple(steps))
