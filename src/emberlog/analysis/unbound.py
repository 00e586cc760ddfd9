"""What to say of variables that nothing binds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal as OneOf

from emberlog.diagnostics import Diagnostic, Label
from emberlog.source import Span
from emberlog.syntax.nodes import Variable

Where = OneOf["head", "negation", "comparison", "computed", "aggregate", "aggregates"]


@dataclass(frozen=True, slots=True)
class Use:
    """A place that needs a variable. `binds` says that it would bind it, if another variable were bound first."""

    where: Where
    variable: Variable
    span: Span
    binds: bool = False


def roots(uses: Iterable[Use], bound: set[str]) -> list[str]:
    """The unbound variables that are to blame: those that no stuck literal would bind; all of them in a circle."""
    unbound = [use for use in uses if use.variable.name not in bound]
    bindable = {use.variable.name for use in unbound if use.binds}
    all_names = dict.fromkeys(use.variable.name for use in unbound)
    return [name for name in all_names if name not in bindable] or list(all_names)


def explain(name: str, uses: Iterable[Use]) -> Diagnostic:
    """The diagnostic for one unbound variable: the most telling of its uses first, the head after it."""
    ranked = sorted((use for use in uses if use.variable.name == name), key=lambda use: _RANK[use.where])
    first = ranked[0]
    code, message, label, help = _texts(first.where, name)
    labels = [Label(first.variable.span, label)]
    head = next((use for use in ranked if use.where == "head"), None)
    if head is not None and head is not first:
        labels.append(Label(head.variable.span, "the head needs its value"))
    return Diagnostic(code, message, tuple(labels), help)


_RANK: dict[Where, int] = {"aggregates": -1, "negation": 0, "computed": 1, "comparison": 2, "aggregate": 3, "head": 4}


def _texts(where: Where, name: str) -> tuple[str, str, str, str]:
    match where:
        case "head":
            return (
                "E0401",
                f"the variable `{name}` of the head is not bound by the body",
                "no value",
                f'add an atom with `{name}` to the body; a constant stands in quotes: `"{name}"`',
            )
        case "negation":
            return (
                "E0402",
                f"the variable `{name}` occurs only in a negation",
                "a negated atom binds nothing",
                f"bind `{name}` by an atom that is not negated, or write `_` if any value will do",
            )
        case "comparison":
            return (
                "E0403",
                f"the variable `{name}` occurs only in a comparison",
                "a comparison binds nothing unless it is an equation with a known side",
                f"bind `{name}` by an atom, or by `{name} = ...`",
            )
        case "computed":
            return (
                "E0404",
                f"the variable `{name}` occurs only in a computed argument",
                "an expression is not solved for its variables",
                f"bind `{name}` by another atom, or write the argument as a variable of its own",
            )
        case "aggregate":
            return (
                "E0405",
                f"the variable `{name}` is bound only inside of an aggregate",
                "not bound outside",
                f"bind `{name}` by an atom outside; only min and max give the values that they were reached with",
            )
        case "aggregates":
            return (
                "E0406",
                f"the variable `{name}` could take its value from several aggregates",
                "one of them",
                f"bind `{name}` by an atom outside, or use another name in all but one of them",
            )
