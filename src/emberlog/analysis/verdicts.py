"""May an aggregate stand inside recursion? A conservative answer from the form of the rules.

min and max are right if each recursive rule's value grows with the values that it reads (PreM); a sum if its value is
linear in one of them (MRA); a count always. The values may be tested against bounds that a better value still passes,
and be used for nothing else: not to join, not to group, not in a negation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from emberlog.analysis.influence import (
    BENT,
    NONE,
    Influence,
    constant_value,
    influence,
    join,
    of_columns,
    of_variables,
)
from emberlog.analysis.program import (
    Absent,
    CoreRule,
    Filter,
    Gather,
    Literal,
    Match,
    Obligation,
    Signature,
    Verdict,
)
from emberlog.analysis.signs import Signs
from emberlog.analysis.terms import operands, term_variables
from emberlog.syntax.nodes import Aggregate, Comparison, Term, Test, Until, Variable
from emberlog.syntax.printer import show
from emberlog.types import Value

_NEGATED = {"!<": ">=", "!<=": ">", "!>": "<=", "!>=": "<"}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_THEOREMS = {
    "min": "PreM: min over a non-decreasing function",
    "max": "PreM: max over a non-decreasing function",
    "sum": "MRA: linear sum",
    "count": "monotone count",
    "countd": "monotone count",
}


@dataclass
class _Finding:
    """What speaks against one aggregate, or is needed for it."""

    refuted: list[tuple[str, str]] = field(default_factory=list)  # reason, counter-example
    unknown: list[str] = field(default_factory=list)
    needed: list[Obligation] = field(default_factory=list)
    tested: bool = False  # its value is compared with a bound
    value: Influence = NONE  # what its value takes from the recursion


@dataclass(frozen=True, slots=True)
class Recursion:
    """The aggregates of a recursive component: their verdicts, and whether values reach columns of plain predicates."""

    verdicts: tuple[Verdict, ...]
    spills: bool


def examine(
    members: Iterable[str],
    rules: Iterable[CoreRule],
    signatures: Mapping[str, Signature],
    facts: Mapping[str, tuple[tuple[Value, ...], ...]],
    until: Until | None,
    invents: bool,
) -> Recursion:
    """The verdicts of the aggregates of a recursive component."""
    return _Examiner(frozenset(members), list(rules), signatures, facts).recursion(until, invents)


class _Examiner:
    def __init__(
        self,
        members: frozenset[str],
        rules: list[CoreRule],
        signatures: Mapping[str, Signature],
        facts: Mapping[str, tuple[tuple[Value, ...], ...]],
    ) -> None:
        self.members = members
        self.rules = rules
        self.heads = {rule.predicate: aggregate for rule in reversed(rules) for _, aggregate in rule.aggregates}
        self.spots = {rule.predicate: position for rule in rules for position, _ in rule.aggregates}
        self.plain = of_columns(rules, members, self.spots)
        self.signs = Signs(rules, members, signatures, facts)
        self.found = {name: _Finding() for name in self.spots}

    def recursion(self, until: Until | None, invents: bool) -> Recursion:
        for rule in self.rules:
            self._rule(rule)
        for name, finding in self.found.items():
            if finding.tested and self._function(name) == "sum":
                self._contributions(name, finding)
        order = sorted(self.found, key=lambda name: self.heads[name].span.start)
        verdicts = tuple(self._verdict(name, until, invents) for name in order)
        spills = any(name not in self.spots for name, _ in self.plain)
        return Recursion(verdicts, spills)

    def _function(self, name: str) -> str:
        return self.heads[name].function

    def _blame(self, part: Influence, reason: str, example: str) -> None:
        for name in part.sources:
            self.found[name].refuted.append((reason, example))

    def _doubt(self, part: Influence, reason: str) -> None:
        for name in part.sources:
            self.found[name].unknown.append(reason)

    # --- one rule ---

    def _rule(self, rule: CoreRule) -> None:
        of = of_variables(rule, self.members, self.spots, self.plain)
        if of:
            self._keys(rule, of)
            for literal in rule.body:
                if isinstance(literal, Filter):
                    self._condition(literal.condition, rule, of)
        if rule.predicate in self.spots:
            self._head(rule, of)

    def _keys(self, rule: CoreRule, of: Mapping[str, Influence]) -> None:
        """Values of the recursion must not decide which rows match."""
        carried: set[str] = set()
        for literal, term in _arguments(rule.body):
            for variable in term_variables(term):
                part = of.get(variable.name)
                if part is None:
                    continue
                if isinstance(literal, Absent):
                    reason = f"the value `{variable.name}` is used in a negation"
                    self._blame(part, reason, "a row is absent for one value and present for the next one")
                elif variable.name in carried or not self._carries(literal, variable, part):
                    reason = f"the value `{variable.name}` is used to join"
                    self._blame(part, reason, "a row joins with one value and not with the better one that follows")
                carried.add(variable.name)

    def _carries(self, atom: Match, variable: Variable, part: Influence) -> bool:
        """Does this atom give the variable its value?"""
        return atom.predicate in self.members and variable.name in part.through and variable in atom.arguments

    def _condition(self, condition: Comparison | Test, rule: CoreRule, of: Mapping[str, Influence]) -> None:
        parts = [influence(term, of, rule.types) for term in operands(condition)]
        if not any(parts):
            return
        text = show(condition)
        if isinstance(condition, Test) or all(parts):
            for part in parts:
                self._doubt(part, f"`{text}` tests values of the recursion")
            return
        part, operator, bound = parts[0], _NEGATED.get(condition.operator, condition.operator), condition.right
        if not part:
            part, operator, bound = parts[1], _MIRRORED[operator], condition.left
        if part.direction == "down":
            operator = _MIRRORED[operator]
        functions = {self._function(name) for name in part.sources}
        wanted = ("<", "<=") if functions == {"min"} else (">", ">=") if "min" not in functions else ()
        if operator not in wanted and wanted:
            reason = f"`{text}` may hold for a value and not for the one that follows"
            self._blame(part, reason, _passes(part, operator, bound, text, functions))
        elif not wanted or part.direction == "other":
            self._doubt(part, f"it is not known how `{text}` follows the value")
        self._factors(part, rule, part.sources)
        for name in part.sources:
            self.found[name].tested = True

    def _factors(self, part: Influence, rule: CoreRule, blamed: Iterable[str]) -> None:
        """The factors of a product must not be negative: columns of lower strata say so."""
        for factor in part.factors:
            needed = self.signs.of_term(factor, rule)
            for name in blamed:
                if needed is None:
                    self.found[name].unknown.append(f"the sign of the factor `{show(factor)}` is not known")
                else:
                    self.found[name].needed.extend(needed)

    # --- heads of aggregated predicates ---

    def _head(self, rule: CoreRule, of: Mapping[str, Influence]) -> None:
        spot = self.spots[rule.predicate]
        finding = self.found[rule.predicate]
        for position, argument in enumerate(rule.arguments):
            part = influence(argument, of, rule.types)
            if position != spot and part:
                example = "a group that one value opened stays when the value is gone"
                self._blame(part, f"the value decides a group of `{rule.predicate}`", example)
        value = rule.arguments[spot]
        part = influence(value, of, rule.types)
        if isinstance(value, Aggregate) and len(value.arguments) == 2:
            key = influence(value.arguments[0], of, rule.types)
            if key:
                self._blame(key, "the value decides who contributes", "one contributor becomes another")
        if part:
            finding.value = join([finding.value, part])
            self._value(rule, part, finding)

    def _value(self, rule: CoreRule, part: Influence, finding: _Finding) -> None:
        function = self._function(rule.predicate)
        text = show(_last(rule.arguments[self.spots[rule.predicate]]))
        others = {self._function(name) for name in part.sources} - {function}
        match function:
            case "count":
                return
            case "countd":
                finding.unknown.append(f"`countd` counts the values of the recursion, `{text}`")
            case "sum":
                if others - {"count", "countd"}:
                    finding.unknown.append(f"it adds up values of {_list(others)}")
                elif not part.linear or len(part.through) > 1:
                    self._not_linear(part, text, finding)
            case _:
                if others:
                    finding.unknown.append(f"it takes the {function} of values of {_list(others)}")
                elif part.direction == "down":
                    example = f"1 < 2, but `{text}` of 1 is above that of 2"
                    finding.refuted.append((f"`{text}` falls when the value that it reads grows", example))
                elif part.direction == "other":
                    finding.unknown.append(f"it is not known whether `{text}` grows with the value that it reads")
                self._factors(part, rule, [rule.predicate])

    def _not_linear(self, part: Influence, text: str, finding: _Finding) -> None:
        bent = part.operations & BENT
        if bent:
            reason = f"`{text}` is not linear: {_list(bent)} of a sum is not the sum of the parts"
            finding.refuted.append((reason, _RELU if bent <= {"max", "relu"} else _CLIP))
        elif len(part.through) > 1:
            finding.unknown.append(f"`{text}` multiplies or adds values of the recursion")
        else:
            finding.unknown.append(f"`{text}` is not known to be linear in the value that it reads")

    def _contributions(self, name: str, finding: _Finding) -> None:
        """A sum that is compared with a bound must only grow: what goes in is not negative."""
        needed = self.signs.of_contributions(name, self.spots[name])
        if needed is None:
            finding.unknown.append("the sum is compared with a bound, and what goes into it may be negative")
        else:
            finding.needed.extend(needed)

    # --- verdicts ---

    def _verdict(self, name: str, until: Until | None, invents: bool) -> Verdict:
        finding, aggregate = self.found[name], self.heads[name]
        ends = _terminates(aggregate.function, finding.value, until, invents)
        span = aggregate.span
        if finding.refuted:
            reason, example = finding.refuted[0]
            return Verdict(name, aggregate.function, "refuted", "", (), ends, example, reason, (), span)
        if finding.unknown:
            return Verdict(name, aggregate.function, "unknown", "", (), ends, None, finding.unknown[0], (), span)
        theorem = _THEOREMS[aggregate.function]
        needed = tuple({(o.relation, o.position): o for o in reversed(finding.needed)}.values())[::-1]
        if needed:
            texts = tuple(dict.fromkeys(o.text for o in needed))
            reason = f"right if {' and '.join(texts)}"
            return Verdict(name, aggregate.function, "conditional", theorem, texts, ends, None, reason, needed, span)
        reason = _REASONS[aggregate.function]
        return Verdict(name, aggregate.function, "proved", theorem, (), ends, None, reason, (), span)


_REASONS = {
    "min": "every recursive rule's value grows with the values that it reads",
    "max": "every recursive rule's value grows with the values that it reads",
    "sum": "every recursive rule's value is linear in the value that it reads",
    "count": "what is counted does not depend on the counts",
    "countd": "what is counted does not depend on the counts",
}
_RELU = (
    "-1, 2, 1, -2: max(-1 + 2, 0) = 1, but max(-1, 0) + max(2, 0) = 2; "
    "max(1 - 2, 0) = 0, but max(1, 0) + max(-2, 0) = 1"
)
_CLIP = "1, 1 and a bend at 1: 1 + 1 gives 1, but 1 and 1 give 1 + 1 = 2"


def _arguments(body: Iterable[Literal]) -> Iterator[tuple[Match | Absent, Term]]:
    for literal in body:
        match literal:
            case Match(_, arguments) | Absent(_, arguments):
                yield from ((literal, argument) for argument in arguments)
            case Gather(bodies=bodies):
                for inner in bodies:
                    yield from _arguments(inner)
            case _:
                pass


def _last(term: Term) -> Term:
    return term.arguments[-1] if isinstance(term, Aggregate) else term


def _list(functions: Iterable[str]) -> str:
    return " and ".join(sorted(functions))


def _passes(part: Influence, operator: str, bound: Term, text: str, functions: set[str]) -> str:
    """Two numbers, of which the first passes the condition, and the better one that follows does not."""
    what, step = ("minimum", -1) if functions == {"min"} else (_list(functions), 1)
    limit = constant_value(bound)
    direct = part.operations <= {"to_float"}
    if limit is None or not direct:
        return f"a value passes `{text}`, and the {what} that follows does not"
    first, then = {
        "=": (limit, limit + step),
        "!=": (limit - step, limit),
    }.get(operator, (limit - step, limit + step))
    return f"{_number(first)} passes `{text}`; the {what} may become {_number(then)}, which does not"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _terminates(function: str, value: Influence, until: Until | None, invents: bool) -> str:
    if until is not None:
        return "until clause"
    if function == "sum" and value:
        return "no cycle, contraction or until clause"
    if not invents:
        return "finite domain"
    if value.operations & {"*", "/", "^"}:
        return f"no cycle whose product improves the {function}"
    if value.operations & {"+", "-"}:
        return {"min": "no negative cycle", "max": "no positive cycle"}.get(function, "not known")
    return "not known"
