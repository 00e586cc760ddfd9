"""The predicate connection graph as an indented AND/OR tree, and what is known of its recursive components.

A predicate is an OR node: any of its rules gives a row. A rule is an AND node: all of its atoms must hold. A
predicate is opened where it is met first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from emberlog.analysis.program import (
    Absent,
    Bind,
    CheckedProgram,
    Component,
    CoreRule,
    Filter,
    Gather,
    Literal,
    Match,
    Spread,
    Verdict,
)
from emberlog.plan.names import stateless
from emberlog.plan.strata import ProgramPlan
from emberlog.rules.text import rule_text
from emberlog.syntax.printer import show

DEEPEST = 24  # levels of a tree; what is deeper begins a tree of its own


def and_or_tree(checked: CheckedProgram, plan: ProgramPlan, goals: Mapping[str, str]) -> list[str]:
    """The predicates that the plan needs, from what is asked for down to the sources; a node a line.

    `goals` are predicates that stand for a goal, and its text.
    """
    return list(_Tree(checked, planned_components(checked, plan), goals).lines())


def planned_components(checked: CheckedProgram, plan: ProgramPlan) -> list[Component]:
    """The components with rules that the plan evaluates."""
    planned = {rule.id for rule in plan.rules.values()}
    names = {stateless(name) for stratum in plan.strata for name in stratum.names}
    return [
        part
        for part in checked.components
        if part.rules and part.rules[0].id in planned and not names.isdisjoint(part.predicates)
    ]


class _Tree:
    def __init__(self, checked: CheckedProgram, components: list[Component], goals: Mapping[str, str]) -> None:
        self.checked = checked
        self.goals = goals
        self.home = {name: part for part in components for name in part.predicates}
        self.components = components
        self.opened: set[str] = set()

    def lines(self) -> Iterator[str]:
        roots = [name for part in reversed(self.components) for name in part.predicates]
        for name in roots:
            if name not in self.opened:
                yield from self._predicate(name, "", 0, None)

    def _predicate(self, name: str, how: str, depth: int, inside: Component | None) -> Iterator[str]:
        """An OR node; `inside` is the component of the rule that mentions it."""
        part = self.home.get(name)
        line = f"{'  ' * depth}OR {name}{how}"
        if part is None:
            yield f"{line}: {self._given(name)}"
        elif name in self.opened:
            yield f"{line}: {'recursive' if part is inside and part.recursive else 'above'}"
        elif depth >= DEEPEST:
            yield f"{line}: below"
        else:
            self.opened.add(name)
            notes = [f"{part.shape} recursion"] if part.recursive else []
            notes += [self._given(name)] if self._has_rows(name) else []
            yield line + (f": {', '.join(notes)}" if notes else "")
            for rule in part.rules:
                if rule.predicate == name:
                    yield from self._rule(rule, depth + 1, part)

    def _rule(self, rule: CoreRule, depth: int, part: Component) -> Iterator[str]:
        """An AND node."""
        role = " (start)" if rule.start else ""
        yield f"{'  ' * depth}AND {self.goals.get(rule.predicate) or rule_text(rule)}{role}"
        for name, how in dict.fromkeys(_mentions(rule.body)):
            yield from self._predicate(name, how, depth + 1, part)

    def _has_rows(self, name: str) -> bool:
        return self.checked.signatures[name].external or bool(self.checked.facts.get(name))

    def _given(self, name: str) -> str:
        facts = len(self.checked.facts.get(name, ()))
        counted = f"{facts:,} {'fact' if facts == 1 else 'facts'}" if facts else ""
        if self.checked.signatures[name].external or not facts:
            return f"source and {counted}" if facts else "source"
        return counted


def _mentions(body: tuple[Literal, ...], how: str = "") -> Iterator[tuple[str, str]]:
    for literal in body:
        match literal:
            case Match(predicate):
                yield predicate, how
            case Absent(predicate):
                yield predicate, f"{how}, negated"
            case Gather(bodies=bodies):
                for inner in bodies:
                    yield from _mentions(inner, ", aggregated")
            case Filter() | Bind() | Spread():
                pass
            case _:
                assert_never(literal)


# --- recursion -------------------------------------------------------------------------------------------------------


def recursion(checked: CheckedProgram, plan: ProgramPlan) -> list[str]:
    """The recursive components: shape, and the verdict on each aggregate inside."""
    lines: list[str] = []
    for part in planned_components(checked, plan):
        if not part.recursive:
            continue
        ends = f", until {show(part.until)[1:-1]}" if part.until is not None else ""
        index = ", with an iteration index" if part.indexed else ""
        lines.append(f"{', '.join(part.predicates)}: {part.shape}{index}{ends}")
        lines += [f"  rewritten: {part.note}"] if part.note else []
        for verdict in part.verdicts:
            lines += [f"  {line}" for line in verdict_lines(verdict)]
        if not part.verdicts:
            lines.append("  no aggregate inside: any order of derivation gives the same rows")
    return lines


def verdict_lines(verdict: Verdict) -> list[str]:
    """A verdict: what was found, by which theorem, under which assumptions, and what is known of ending."""
    theorem = f" ({verdict.theorem})" if verdict.theorem else ""
    lines = [f"{verdict.aggregate} of {verdict.predicate}: {verdict.status}{theorem}"]
    details = (
        ("because", verdict.reason),
        ("assumes", ", ".join(verdict.assumptions)),
        ("against it", verdict.counterexample or ""),
        ("ends", verdict.terminates),
    )
    return lines + [f"  {name}: {text}" for name, text in details if text]
