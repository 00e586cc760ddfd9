"""The pass: a checked program that derives what is asked for, and no more of it than needed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from emberlog.analysis.program import CheckedProgram, CoreRule
from emberlog.demand.advice import Advice
from emberlog.demand.names import Bound, is_demand
from emberlog.demand.rewrite import Asked, Rewritten, rewrite
from emberlog.demand.settings import Setting
from emberlog.demand.strata import components

MOST_WAYS = 4
"""In more ways a predicate is not asked for: its versions would derive the same rows again."""


@dataclass(frozen=True)
class Demanded:
    """A program that was rewritten, or was not. `rules` are those that the pass wrote, `notes` tell which predicates
    are evaluated whole although columns of them are known, and why."""

    program: CheckedProgram
    rules: tuple[CoreRule, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The predicates of what is asked for, those that have only facts too."""
        return frozenset(name for name in self.program.signatures if is_demand(name))


def restrict(
    program: CheckedProgram,
    wanted: Collection[str],
    goals: Collection[str],
    advice: Advice | None = None,
    rows: Mapping[str, int] | None = None,
) -> Demanded:
    """The program in which predicates that are asked for by some of their columns derive only rows that are asked for.

    `wanted` are the predicates whose rows somebody asks for, `goals` those among them that stand for goals. Relations
    have the same rows as before for all that is wanted. A rule that makes an error for bindings that nobody asks for
    makes none; no rule makes one that it did not.
    """
    setting = Setting(program, frozenset(goals), frozenset(wanted), advice or Advice(), rows or {})
    if not goals and not setting.reading_recursion:
        return Demanded(program)
    whole = dict(setting.whole)
    instead: dict[Asked, Bound] = {}
    while True:
        made = rewrite(setting, whole, instead)
        if more := _read_whole(made):
            whole |= more
        elif wider := _more_general(made):
            instead |= wider
        else:
            parts, refused = components(made)
            if not refused:
                break
            whole |= refused
    notes = tuple(f"`{name}` is evaluated whole: {reason}" for name, reason in sorted(made.refused.items()))
    if not made.asked:
        return Demanded(program, notes=notes)
    facts = {**program.facts, **{name: tuple(rows) for name, rows in made.facts.items()}}
    rewritten = replace(program, signatures={**program.signatures, **made.signatures}, facts=facts, components=parts)
    old = {rule for part in program.components for rule in part.rules}
    return Demanded(rewritten, tuple(rule for rule in made.rules.values() if rule not in old), notes)


def _read_whole(made: Rewritten) -> dict[str, str]:
    """The predicates that are asked for by columns, and are evaluated whole anyway; or are asked in too many ways."""
    found = {
        name: f"`{reader}` reads all of it" if reader else "all of it is asked for"
        for name, reader in made.read_whole.items()
        if name in made.asked
    }
    many = (name for name, ways in made.asked.items() if len(ways) > MOST_WAYS)
    return {**dict.fromkeys(many, f"it is asked for in more than {MOST_WAYS} ways"), **found}


def _more_general(made: Rewritten) -> dict[Asked, Bound]:
    """For ways of asking that have rows of another, more general one, that one: rows are derived once."""
    return {
        (name, bound): min(wider, key=len)
        for name, ways in made.asked.items()
        for bound in ways
        if (wider := [other for other in ways if set(other) < set(bound)])
    }
