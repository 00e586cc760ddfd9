"""The components of the rewritten program, and what may not go round in them.

**Why verdicts carry over.** Let a component with aggregates in its recursion be rewritten. The demand of its versions
does not depend on its rows (`rewrite` sees to that, and a component with a demand inside is refused here), so the
groups that are asked for are fixed before the first round. They are closed: if a group is asked for, so is every group
that a binding of its rules reads, because the demand of each atom follows from a part of that very body. The rules of a
version are the old ones with one more atom, over columns of the group alone: it lets all contributions to a group
that is asked for pass, with their values and their identities (it binds no variable), and none to others. So in every
round each version holds exactly the rows that the old program has for those groups, aggregated or not; what a proof
says of the rounds of the old program (aggregating before and after a step is the same; what passes a condition goes on
to pass it) it says of these, group by group. Assumptions are about relations of lower strata, which are checked whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal as OneOf

from emberlog.analysis.graphs import strongly_connected
from emberlog.analysis.program import Component, CoreRule, Match
from emberlog.analysis.strata import invents
from emberlog.demand.names import demand_name, origin_name
from emberlog.demand.rewrite import Rewritten
from emberlog.rules.changes import atoms_of


def components(made: Rewritten) -> tuple[tuple[Component, ...], dict[str, str]]:
    """The components of the new program in an order in which each reads only earlier ones; and the predicates whose
    demand would bring into a recursion what may not stand in one, with the reason."""
    rules: dict[str, list[CoreRule]] = {}
    for rule in made.rules.values():
        rules.setdefault(rule.predicate, []).append(rule)
    graph = {name: {read for rule in own for read in rule.reads() if read in rules} for name, own in rules.items()}
    found: list[Component] = []
    refused: dict[str, str] = {}
    for members in strongly_connected(graph):
        own = sorted((rule for name in members for rule in rules[name]), key=lambda rule: rule.id)
        recursive = len(members) > 1 or members[0] in graph[members[0]]
        reason = _breach(made, members, own) if recursive and not _is_old(made, members) else ""
        if reason:
            refused.update(dict.fromkeys(_demanded(made, members), reason))
        found.append(_component(made, members, tuple(own), recursive))
    return tuple(found), refused


def _is_old(made: Rewritten, members: Sequence[str]) -> bool:
    """True if this is a component of the old program."""
    part = made.setting.home.get(members[0])
    return part is not None and set(part.predicates) == set(members)


def _breach(made: Rewritten, members: Sequence[str], rules: Iterable[CoreRule]) -> str:
    """What stands in a new recursion and may not; nothing if all is well."""
    inside = frozenset(members)
    first = _old(made, members[0])
    aggregates = (
        first is not None and first.evaluation == "delta" and all(_old(made, name) is first for name in members)
    )
    for rule in rules:
        for at, atom in atoms_of(rule.body):
            if atom.predicate in inside and (len(at) > 1 or not isinstance(atom, Match)):
                what = "negation" if not isinstance(atom, Match) else "an aggregate over a body"
                return f"its demand would make {what} recursive"
        if rule.aggregates and not aggregates:
            return "its demand would make an aggregate recursive"
        if rule.limit is not None:
            return "its demand would make a limit recursive"
    return ""


def _old(made: Rewritten, name: str) -> Component | None:
    """The component of the old program that a predicate is a version of."""
    return made.setting.home.get(made.origin.get(name, name))


def _demanded(made: Rewritten, members: Sequence[str]) -> Iterator[str]:
    """The predicates whose demand is part of a component."""
    inside = set(members)
    for version, predicate in made.origin.items():
        where = (origin_name(version, name) for name in made.setting.home[predicate].predicates)
        if not inside.isdisjoint((demand_name(version), *where)):
            yield predicate


def _component(made: Rewritten, members: tuple[str, ...], rules: tuple[CoreRule, ...], recursive: bool) -> Component:
    old = _old(made, members[0])
    if old is not None and _is_old(made, members):
        return replace(old, rules=rules)
    if not recursive:
        return Component(members, rules, False, "", "once")
    part = next((old for name in members if (old := _old(made, name)) is not None), None)
    verdicts = tuple(
        replace(verdict, predicate=name)
        for name in members
        for verdict in (part.verdicts if part is not None else ())
        if verdict.predicate == made.origin.get(name, name)
    )
    return Component(members, rules, True, _shape(members, rules), "delta", verdicts, invents=invents(rules, members))


def _shape(members: Sequence[str], rules: Iterable[CoreRule]) -> OneOf["linear", "non-linear", "mutual"]:
    if len(members) > 1:
        return "mutual"
    reads: Mapping[int, int] = {rule.id: sum(name == members[0] for name in rule.reads()) for rule in rules}
    return "non-linear" if max(reads.values()) > 1 else "linear"
