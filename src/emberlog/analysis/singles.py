"""Variables that stand once in a rule as written.

Such a variable matches anything, and is often a constant that lost its quotes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from emberlog.analysis.terms import walk
from emberlog.diagnostics import Diagnostic, Label, warning
from emberlog.syntax.nodes import Formula, Program, Rule, Until, Variable


def single_variables(program: Program) -> Iterator[Diagnostic]:
    """A warning for each rule with such variables. Names that begin with `_` say that any value is meant.

    A variable that stands in a head alone is not bound, which `safety` tells, or counts the rounds of an iteration.
    """
    for item in program.items:
        if not isinstance(item, Rule) or item.body is None:
            continue
        times = Counter[str](item.named)
        times.update(node.name for head in item.heads for node in walk(head) if isinstance(node, Variable))
        in_body = list(_variables(item.body))
        times.update(node.name for node in in_body)
        times.update(node.variable for node in walk(item.body) if isinstance(node, Until))
        once = [node for node in in_body if times[node.name] == 1 and not node.name.startswith("_")]
        if once:
            yield _warning(once)


def _variables(body: Formula) -> Iterator[Variable]:
    return (node for node in walk(body) if isinstance(node, Variable))


def _warning(once: list[Variable]) -> Diagnostic:
    *others, last = (f"`{node.name}`" for node in once)
    subject = f"the variables {', '.join(others)} and {last} stand" if others else f"the variable {last} stands"
    labels = [Label(node.span, "nothing else in the rule names it") for node in once]
    name = once[0].name
    help = f'if any value will do, write `_` or `_{name}`; text stands in quotes: `"{name}"`'
    return warning("W0201", f"{subject} once in this rule", labels, help)
