"""The verdicts on the aggregates of a recursive component."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf

from emberlog.analysis.program import Bind, CoreRule, Obligation, Verdict
from emberlog.analysis.proofs.bounds import NOT_NEGATIVE, NOT_ZERO, Needs, leaves_room, merged, show_bounds
from emberlog.analysis.proofs.ends import terminates
from emberlog.analysis.proofs.properties import Invariant, Kind, Property, uses
from emberlog.analysis.proofs.prover import Answer, Prover, ask, combines
from emberlog.analysis.proofs.steps import Origin, Row, Setting, Step, written
from emberlog.analysis.proofs.witness import Witness, find_witness
from emberlog.analysis.terms import term_variables, walk
from emberlog.syntax.nodes import Aggregate, Call, Term, Until, Variable
from emberlog.syntax.printer import show

KINDS: tuple[Kind, ...] = ("guard", "group", "value")
_THEOREMS = {
    "min": "PreM: min over a non-decreasing function",
    "max": "PreM: max over a non-decreasing function",
    "sum": "MRA: linear sum",
    "count": "monotone count",
    "countd": "monotone count",
}
_REASONS = {
    ("min", "prem"): "every recursive rule's value grows with the values that it reads",
    ("max", "prem"): "every recursive rule's value grows with the values that it reads",
    ("sum", "mra"): "every recursive rule's value is linear in the value that it reads",
    ("sum", "monotone"): "what goes into the sum stays in it",
    ("count", "monotone"): "what is counted stays counted",
    ("countd", "monotone"): "what is counted stays counted",
}


@dataclass
class _Finding:
    """What was found of one aggregate."""

    refuted: list[tuple[str, Witness]] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    needs: list[Needs] = field(default_factory=list)
    divides: dict[Origin | str, None] = field(default_factory=dict)  # a column, or a term as it is shown
    tested: bool = False  # the value is compared with a bound
    gated: bool = False  # a rule asks only whether a row is there, not for its value


class Examiner:
    """Judges the aggregates of one component."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.prover = Prover(setting)
        self.found = {name: _Finding() for name in setting.spots}
        self.steps = [step for rule in setting.rules if not rule.start for step in setting.steps(rule)]
        # A column is called as in the rules that compute with aggregated values, else as in any rule.
        self.names: dict[Origin, str] = {}
        for step in sorted((s for rule in setting.rules for s in setting.steps(rule)), key=lambda s: not s.values()):
            for name, origin in step.origins.items():
                self.names.setdefault(origin, name)

    def verdicts(self, until: Until | None, invents: bool) -> Iterator[Verdict]:
        for step in self.steps:
            if not self.setting.is_carried(step.head):  # those stand in the steps of who reads them
                self._step(step)
        heads = {rule.predicate: a for rule in reversed(self.setting.rules) for _, a in rule.aggregates}
        for name in sorted(self.found, key=lambda name: heads[name].span.start):
            yield self._verdict(name, heads[name], until, invents)

    # --- one step ---

    def _step(self, step: Step) -> None:
        values = step.values()
        for reason in step.opaque:
            for name in {*values.values(), step.head} & set(self.found):
                self.found[name].unknown.append(reason)
        if step.head in self.found and (any(self._only_there(row, step) for row in step.rows) or self._keyed(step)):
            self.found[step.head].gated = True
        for symbol, predicate in values.items():
            where = uses(step, symbol)
            for kind in KINDS:
                if where[kind]:
                    self._property(step, symbol, predicate, kind)

    def _only_there(self, row: Row, step: Step) -> bool:
        """Does a step use a row of the component, but not its value?"""
        values = [v.name for cell in row.cells for v in term_variables(cell) if step.origins[v.name].kind == "value"]
        return row.relation in self.setting.members and not any(uses(step, name)["value"] for name in values)

    def _keyed(self, step: Step) -> bool:
        """Does `sum<(K, V)>` make one contribution of several bindings?"""
        columns = (*step.columns, step.key) if step.key is not None else ()
        return bool(columns) and not self.setting.tells_all(step, [c for c in columns if c is not step.value])

    def _property(self, step: Step, symbol: str, predicate: str, kind: Kind) -> None:
        function = self.setting.spots[predicate][1]
        finding = self.found[step.head if kind == "value" else predicate]
        query = Property(step, symbol, function, kind, step.guards)
        doubt = self._doubt(query)
        if doubt is not None:
            finding.unknown.append(doubt)
            return
        if kind == "guard":
            finding.tested = True
            if not query.picks:
                kept = self.prover.keeps(Origin("value", predicate, self.setting.spots[predicate][0]), NOT_NEGATIVE)
                if kept is None or not self._agrees(kept):
                    self._shrinks(query, finding)
                    return
                finding.needs.append(kept)
        answer, needs = self.prover.prove(query, _among(query))
        if answer.status == "holds" and not self._agrees(needs):
            needs = merged(self._needed())
            answer = ask(query, merged([self.prover.knowledge.of_step(step), needs]))
        if answer.status == "holds":
            finding.needs.append(needs)
            finding.divides.update(dict.fromkeys(self._divisors(query, needs)))
        else:
            self._fails(query, answer, finding)

    def _needed(self) -> Iterator[Needs]:
        """The conditions that were found so far, of all aggregates."""
        return (needs for finding in self.found.values() for needs in finding.needs)

    def _agrees(self, needs: Needs) -> bool:
        """Can data worth having meet these conditions, too?"""
        return leaves_room(merged([needs, *self._needed()]))

    def _doubt(self, query: Property) -> str | None:
        """Why this property is not even tried."""
        head = query.step.function
        if query.kind != "value":
            return None
        if head == "countd":
            return f"`countd` counts the values of the recursion, `{_text(query.step)}`"
        if query.function == "countd":
            return "it computes with a `countd` of the recursion: different values of parts may be the same"
        if head == "sum" and query.step.merges:
            through = query.step.chain[-1]
            return f"it adds up values of the plain predicate `{through}`, where equal ones are one row"
        return None

    def _shrinks(self, query: Property, finding: _Finding) -> None:
        """A sum that is compared with a bound, and that may become smaller."""
        reason = "the sum is compared with a bound, and what goes into it may be negative"
        loose = replace(query, grows=False)
        self._fails(loose, ask(loose, self.prover.knowledge.of_step(query.step)), finding, reason)

    def _fails(self, query: Property, answer: Answer, finding: _Finding, reason: str | None = None) -> None:
        if answer.status == "unknown" or not answer.exact:
            why = (
                "Z3 found no answer in the time that it has"
                if answer.exact
                else "it has functions without an exact form"
            )
            finding.unknown.append(f"{reason or self._reason(query, 'is not known to')}: {why}")
            return
        reason = reason or self._reason(query, "does not")
        known = self.prover.knowledge.of_step(query.step)
        witness = find_witness(query, self.setting, known, answer.model)
        if witness is None:
            finding.unknown.append(f"{reason}, but no facts were found that show it")
        else:
            finding.refuted.append((reason, witness))

    # --- words ---

    def _reason(self, query: Property, how: str) -> str:
        """What is wrong, or not known; `how` is the verb."""
        step = query.step
        match query.kind:
            case "guard":
                return self._blamed_guard(query)
            case "group":
                in_key = step.key is not None and _mentions(step.key, query.symbol)
                return "the value decides who contributes" if in_key else f"the value decides a group of `{step.head}`"
            case "value":
                return _blamed_value(query, how)

    def _blamed_guard(self, query: Property) -> str:
        known = self.prover.knowledge.of_step(query.step)
        alone = [replace(query, guards=(guard,)) for guard in query.guards]
        wrong = next((q.guards[0] for q in alone if ask(q, known).status != "holds"), query.guards[0])
        match wrong.how:
            case "test":
                return f"`{wrong.text}` may hold for a value and not for the one that follows"
            case "join":
                return f"the value `{wrong.text}` is used to join"
            case "negation":
                return f"the value is used in a negation, `{wrong.text}`"

    # --- divisors ---

    def _divisors(self, query: Property, needs: Needs) -> Iterator[Origin | str]:
        """What a value is divided by, where that is not known to be unlike 0."""
        step = query.step
        known = merged([self.prover.knowledge.of_step(step), needs])
        for term in query.terms():
            for node in walk(term):
                if isinstance(node, Call) and node.function in ("/", "%"):
                    divisor = node.arguments[1]
                    variables = list(term_variables(divisor))
                    if any(step.origins[v.name].kind == "value" for v in variables):
                        continue
                    if variables and ask(Invariant(step, divisor, NOT_ZERO), known).status != "holds":
                        plain = _stripped(divisor)
                        column = step.origins[plain.name] if isinstance(plain, Variable) else Origin("free")
                        yield _shown(plain) if column.kind == "free" else column

    # --- verdicts ---

    def _verdict(self, name: str, aggregate: Aggregate, until: Until | None, invents: bool) -> Verdict:
        finding, function = self.found[name], aggregate.function
        own = [step for step in self.steps if step.head == name]
        needs = merged(finding.needs)
        ends = terminates(function, own, merged([needs, *map(self.prover.knowledge.of_step, own)]), until, invents)
        verdict = Verdict(name, function, "unknown", "", (), ends, None, "", (), aggregate.span)
        if not combines(function):
            return replace(verdict, reason=f"partial results of `{function}` cannot be put together")
        if finding.refuted:
            reason, witness = finding.refuted[0]
            return replace(
                verdict, status="refuted", counterexample=witness.text, reason=reason, facts=witness.facts
            )  # fmt: skip
        if finding.unknown:
            return replace(verdict, reason=finding.unknown[0])
        licence, theorem = self._licence(finding, function)
        names = self._named((*needs, *(each for each in finding.divides if isinstance(each, Origin))))
        divisors = (names[each] if isinstance(each, Origin) else each for each in finding.divides)
        shown = (show_bounds(names[origin], bounds) for origin, bounds in needs.items())
        texts = _without_repeats((*shown, *(f"{divisor} != 0" for divisor in divisors)))
        return replace(
            verdict,
            status="conditional" if texts else "proved",
            theorem=theorem,
            licence=licence,
            assumptions=texts,
            reason=_REASONS[function, licence] + (f", if {' and '.join(texts)}" if texts else ""),
            obligations=tuple(_obligations(needs, names)),
        )

    def _licence(self, finding: _Finding, function: str) -> tuple[OneOf["prem", "mra", "monotone"], str]:
        if function in ("min", "max"):
            return "prem", _THEOREMS[function]
        if function == "sum" and not finding.tested and not finding.gated:
            return "mra", _THEOREMS[function]
        return "monotone", _THEOREMS[function] if function != "sum" else "monotone sum: each contribution counts once"

    def _named(self, origins: Iterable[Origin]) -> dict[Origin, str]:
        """What columns are called: like the variable of a rule, unless there is none or several are called so."""
        short = {origin: self.names.get(origin, "_").partition("#")[0] for origin in origins}
        often = Counter(short.values())
        return {o: self._whole_name(o) if n.startswith("_") or often[n] > 1 else n for o, n in short.items()}

    def _whole_name(self, origin: Origin) -> str:
        return f"{origin.relation}.{self.setting.signatures[origin.relation].columns[origin.position].name}"


def _obligations(needs: Needs, names: Mapping[Origin, str]) -> Iterator[Obligation]:
    for origin, bounds in needs.items():
        for bound in bounds:
            yield Obligation(origin.relation, origin.position, bound, show_bounds(names[origin], (bound,)))


def _without_repeats(texts: Iterable[str]) -> tuple[str, ...]:
    """Each assumption once; `w >= 0` and `w != 0` are `w > 0`."""
    found = dict.fromkeys(texts)
    for text in list(found):
        name, operator, number = text.rpartition(" ")[0].rpartition(" ")[0], *text.split(" ")[-2:]
        if (operator, number) == ("!=", "0") and f"{name} >= 0" in found:
            found = dict.fromkeys(f"{name} > 0" if each in (f"{name} >= 0", text) else each for each in found)
    return tuple(found)


def _among(query: Property) -> Iterable[str]:
    """The columns on which conditions may be put. Those that make a sum linear would have to make its value 0, and
    those that make a join always or never happen would make it pointless."""
    if query.kind == "group" or (query.kind == "value" and not query.picks):
        return ()
    if query.kind == "guard" and any(guard.how != "test" for guard in query.guards):
        return ()
    return ("lower", "member", "value")


def _blamed_value(query: Property, how: str) -> str:
    text, head = _text(query.step), query.step.function or ""
    if query.picks and head in ("min", "max"):
        return f"`{text}` {how} {'grow' if head == query.function else 'fall'} with the value that it reads"
    if head == "sum" and not query.picks:
        linear = "is not linear" if how == "does not" else "is not known to be linear"
        return f"`{text}` {linear} in the value that it reads"
    return f"{'it adds up' if head == 'sum' else f'it takes the {head} of'} values of {query.function}"


def _mentions(term: Term, symbol: str) -> bool:
    return any(variable.name == symbol for variable in term_variables(term))


def _text(step: Step) -> str:
    """What goes into the aggregate, as the user wrote it."""
    term = step.rule.arguments[_spot(step.rule)]
    if isinstance(term, Aggregate):
        term = term.arguments[-1]
    name = term.name if isinstance(term, Variable) else ""
    bound = [literal.term for literal in step.rule.body if isinstance(literal, Bind) and literal.variable == name]
    return written(bound[0] if bound else term)


def _spot(rule: CoreRule) -> int:
    return next((position for position, _ in rule.aggregates), len(rule.arguments) - 1)


def _stripped(term: Term) -> Term:
    """A divisor without the conversions that analysis put around it."""
    while isinstance(term, Call) and term.function == "to_float":
        term = term.arguments[0]
    return term


def _shown(term: Term) -> str:
    return show(term).replace("#", "")
