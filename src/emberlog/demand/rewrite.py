"""All versions of predicates that a program needs, and the rules that say what each is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from emberlog.analysis.program import Absent, CoreRule, Gather, Literal, Match, Signature, atoms
from emberlog.analysis.terms import literal_terms
from emberlog.demand.names import WHOLE, Bound, demand_name, facts_name, version_name
from emberlog.demand.settings import Setting, has_aggregates, signatures_of_facts
from emberlog.demand.sideways import Body, Handed, constants_of, with_constants
from emberlog.demand.versions import Draft, version, whole_rules
from emberlog.rules.changes import Place, atoms_of, literal_at
from emberlog.syntax.nodes import Constant, Variable
from emberlog.types import Value

Asked = tuple[str, Bound]  # a predicate, and the columns by which it is asked for


@dataclass
class Rewritten:
    """The new program, as far as it is made. `asked` has the versions of each predicate, `read_whole` a reader of each
    predicate that is evaluated whole, `refused` why some are although columns of them are known."""

    setting: Setting
    whole: Mapping[str, str]
    instead: Mapping[Asked, Bound]
    rules: dict[CoreRule, CoreRule] = field(default_factory=dict)  # by the rule without its number
    signatures: dict[str, Signature] = field(default_factory=dict)
    facts: dict[str, dict[tuple[Value, ...], None]] = field(default_factory=dict)
    asked: dict[str, dict[Bound, None]] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)  # the old predicate of each version
    turned: list[str] = field(default_factory=list)
    read_whole: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def rewrite(setting: Setting, whole: Mapping[str, str], instead: Mapping[Asked, Bound]) -> Rewritten:
    """The rules for all that is wanted. `whole` are the predicates that are evaluated whole, with reasons; `instead`
    has, for some ways of asking, others that are more general."""
    made = Rewritten(setting, whole, instead)
    seen: set[Asked] = set()
    waiting: list[Asked] = [(name, WHOLE) for name in sorted(setting.wanted) if name in setting.rules]
    made.read_whole.update(dict.fromkeys((name for name, _ in waiting), ""))
    numbers = count(1 + max((rule.id for part in setting.program.components for rule in part.rules), default=0))
    while waiting:
        asked = waiting.pop()
        if asked in seen:
            continue
        seen.add(asked)
        for draft in _drafts(made, asked):
            waiting += _Rule(made, draft, numbers).write()
    _add_facts(made)
    return made


def _drafts(made: Rewritten, asked: Asked) -> Sequence[Draft]:
    predicate, bound = asked
    if not bound:
        return whole_rules(made.setting, predicate)
    found = version(made.setting, predicate, bound)
    made.signatures.update((signature.name, signature) for signature in found.signatures)
    name = version_name(predicate, bound, len(made.setting.signature(predicate).columns))
    made.asked.setdefault(predicate, {})[bound] = None
    made.origin[name] = predicate
    if found.turned:
        made.turned.append(name)
    return found.drafts


def _add_facts(made: Rewritten) -> None:
    """Adds the relations of facts that versions read."""
    read = {name for rule in made.rules.values() for name in rule.reads()}
    for signature in signatures_of_facts(made.setting):
        if signature.name in read:
            made.signatures[signature.name] = signature
    for name, facts in made.setting.facts.items():
        if facts_name(name) in read:
            made.facts[facts_name(name)] = dict.fromkeys(facts)


@dataclass
class _Rule:
    """One rule of the new program: its body with versions in place of predicates, and the rules of their demand."""

    made: Rewritten
    draft: Draft
    numbers: Iterator[int]

    def write(self) -> Iterator[Asked]:
        """Adds the rules; yields what they ask for."""
        body = self.draft.rule.body
        handed = self._handed() if self._may_ask() else {}
        chosen: dict[Place, Asked] = {}
        for at, atom in atoms_of(body):
            if atom.predicate in self.made.setting.rules:
                chosen[at] = (atom.predicate, self._bound(atom, handed.get(at)))
        renamed = {at: self._name(asked) for at, asked in chosen.items()}
        for at, asked in chosen.items():
            if asked[1]:
                self._ask(handed[at], asked, renamed)
            else:
                self.made.read_whole.setdefault(asked[0], self.draft.rule.predicate)
        self._add(self.draft.with_body(_with_names(body, renamed)))
        yield from chosen.values()

    def _add(self, rule: CoreRule) -> None:
        """Adds a rule. One of the old program that is as it was keeps its number."""
        same = rule == self.draft.rule and rule.predicate in self.made.setting.rules
        self.made.rules.setdefault(replace(rule, id=0), rule if same else replace(rule, id=next(self.numbers)))

    def _name(self, asked: Asked) -> str:
        return version_name(asked[0], asked[1], len(self.made.setting.signature(asked[0]).columns))

    # --- what is known of its atoms ---

    @property
    def _is_goal(self) -> bool:
        return self.draft.rule.predicate in self.made.setting.goals

    @property
    def _targets(self) -> set[str]:
        """The predicates of the body that might be restricted."""
        setting = self.made.setting
        read = {atom.predicate for atom in atoms(self.draft.rule.body) if atom.predicate in setting.rules}
        if self.draft.lead is None and not self._is_goal:
            read = {name for name in read if name in setting.reading_recursion or setting.advice.wants(name)}
        return {name for name in read if not setting.is_view(name)}

    def _may_ask(self) -> bool:
        """True if the body may know something of what it reads."""
        setting, rule = self.made.setting, self.draft.rule
        part = setting.home.get(rule.predicate)
        if part is not None and part.evaluation not in ("once", "delta"):
            return False
        if not self._targets:
            return False
        return self.draft.lead is not None or self._lists or _has_constants(rule.body)

    @property
    def _lists(self) -> bool:
        """True if relations in the body may be lists of what is asked."""
        wants = self.made.setting.advice.wants
        return self.draft.lead is None and (self._is_goal or any(map(wants, self._targets)))

    def _handed(self) -> dict[Place, Handed]:
        """What is known of each atom. A demand that follows from the recursion itself makes what is asked a part of it.
        That is for predicates of the recursion, and for others with a recursion of their own; not where rules
        aggregate, under negation, or in body aggregates."""
        body, inside = self.draft.rule.body, self.draft.inside
        wide = self._walk(lambda name: True, led=True)
        narrow = self._walk(lambda name: name not in inside, led=not self.draft.grows)
        setting = self.made.setting
        sets = not any(has_aggregates(setting.home[name]) for name in inside)
        through = {
            at
            for at, atom in atoms_of(body)
            if sets and len(at) == 1 and isinstance(atom, Match)
            if atom.predicate in inside or atom.predicate in setting.reading_recursion
        }
        return {at: (wide if at in through else narrow)[at] for at in wide}

    def _walk(self, usable: Callable[[str], bool], led: bool) -> dict[Place, Handed]:
        rule, targets, lists = self.draft.rule, self._targets, self._lists
        lead = self._lead_variables if led else ()
        body = Body(rule.body, rule.types, lead, usable, lambda name: lists and name not in targets)
        return {handed.at: handed for handed in body.walk()}

    @property
    def _lead_variables(self) -> tuple[str, ...]:
        lead = self.draft.lead
        if lead is None:
            return ()
        return tuple(term.name for term in lead.arguments if isinstance(term, Variable))

    def _bound(self, atom: Match | Absent, handed: Handed | None) -> Bound:
        """By which columns an atom asks for its predicate."""
        name, setting = atom.predicate, self.made.setting
        if handed is None or name not in self._targets:
            return WHOLE
        signature = setting.signature(name)
        bound = tuple(
            spot for spot in handed.bound if spot in signature.groups and signature.columns[spot].type.kind != "decimal"
        )
        if not bound:
            return WHOLE
        reason = self.made.whole.get(name, "")
        if not reason and handed.lists and not setting.advice.wants(name):
            reason = setting.why_not_by(handed.lists, name)
        if reason:
            self.made.refused[name] = reason
            return WHOLE
        return self.made.instead.get((name, bound), bound)

    # --- demand ---

    def _ask(self, handed: Handed, asked: Asked, renamed: Mapping[Place, str]) -> None:
        """Adds the rule that says which values the atom asks for."""
        rule = self.draft.rule
        constants = constants_of(rule.body, rule.types, self._lead_variables)
        atom = with_constants(literal_at(rule.body, handed.at), constants)
        assert isinstance(atom, Match | Absent)
        head = Match(demand_name(self._name(asked)), tuple(atom.arguments[spot] for spot in asked[1]))
        prefix = [with_constants(_named(literal_at(rule.body, at), renamed.get(at)), constants) for at in handed.prefix]
        if handed.led and self.draft.lead is not None:
            prefix.insert(0, self.draft.lead)
        values = [term.value for term in head.arguments if isinstance(term, Constant)]
        if not prefix and len(values) == len(head.arguments):
            self.made.facts.setdefault(head.predicate, {})[tuple(values)] = None
        elif prefix != [head]:
            self._add(
                replace(
                    rule, predicate=head.predicate, arguments=head.arguments, body=tuple(prefix), order=(), limit=None
                )
            )


def _has_constants(body: Sequence[Literal]) -> bool:
    """True if a constant stands in an atom or an equation of a body."""
    return any(
        isinstance(term, Constant)
        for literal in body
        for term in (
            (argument for atom in atoms((literal,)) for argument in atom.arguments)
            if isinstance(literal, Gather)
            else literal_terms(literal)
        )
    )


def _named(literal: Literal, name: str | None) -> Literal:
    """The literal; an atom with another predicate, if it has one."""
    return replace(literal, predicate=name) if name and isinstance(literal, Match | Absent) else literal


def _with_names(body: Sequence[Literal], renamed: Mapping[Place, str], within: Place = ()) -> tuple[Literal, ...]:
    """The body with other predicates at some places."""
    found: list[Literal] = []
    for index, literal in enumerate(body):
        at = (*within, index)
        if isinstance(literal, Gather):
            bodies = (_with_names(inner, renamed, (*at, number)) for number, inner in enumerate(literal.bodies))
            literal = replace(literal, bodies=tuple(bodies))
        found.append(_named(literal, renamed.get(at)))
    return tuple(found)
