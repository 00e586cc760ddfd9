"""The rules of a predicate that is asked for by some of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from emberlog.analysis.program import CoreRule, Literal, Match, Signature
from emberlog.analysis.terms import gives, names
from emberlog.demand.names import Bound, demand_name, exits_name, origin_name, version_name
from emberlog.demand.settings import Setting, has_aggregates
from emberlog.demand.turns import Step, Turn, doubling, is_plain, linear, turn_of
from emberlog.syntax.nodes import Term, Variable
from emberlog.types import Column


@dataclass(frozen=True, slots=True)
class Draft:
    """A rule of the new program whose body reads the predicates of the old one. `lead` is its atom that has what is
    asked for, which the body lacks. `inside` are the predicates of the old rule's component; `grows` says that the
    lead atom is of the recursion, and its values are known only while that goes on."""

    rule: CoreRule
    lead: Match | None
    inside: frozenset[str]
    bound: Bound = ()  # the columns of the head that the lead atom restricts
    grows: bool = False

    def with_body(self, body: Sequence[Literal]) -> CoreRule:
        """The rule with this body and its lead atom: first, so that evaluation starts there, unless what computes its
        arguments must come before it."""
        rule, lead = self.rule, self.lead
        if lead is None or self._is_implied(body):
            return replace(rule, body=tuple(body))
        computed = {name for literal in body for name in gives(literal)}
        plain = all(not names((term,)) or isinstance(term, Variable) for term in lead.arguments)
        first = plain and computed.isdisjoint(names(lead.arguments))
        return replace(rule, body=(lead, *body) if first else (*body, lead))

    def _is_implied(self, body: Sequence[Literal]) -> bool:
        """True if the body reads the rule's own predicate by the very columns that are asked for: its rows have
        them."""
        return any(
            isinstance(literal, Match)
            and literal.predicate == self.rule.predicate
            and all(literal.arguments[spot] == self.rule.arguments[spot] for spot in self.bound)
            for literal in (body if self.bound else ())
        )


@dataclass(frozen=True)
class Version:
    """A predicate asked for by its columns `bound`: the rules, and the predicates that they define beside it."""

    drafts: tuple[Draft, ...]
    signatures: tuple[Signature, ...]
    turned: bool = False


def whole_rules(setting: Setting, predicate: str) -> tuple[Draft, ...]:
    """The rules of a predicate that is evaluated whole."""
    part = setting.home[predicate]
    own = (rule for rule in part.rules if rule.predicate == predicate)
    return tuple(Draft(rule, None, frozenset(part.predicates)) for rule in own)


def version(setting: Setting, predicate: str, bound: Bound) -> Version:
    """The rules of a predicate that is asked for by some columns."""
    signature, part = setting.signature(predicate), setting.home[predicate]
    name = version_name(predicate, bound, len(signature.columns))
    asked = demanded_signature(signature, bound, demand_name(name))
    described = (asked, replace(signature, name=name))
    inside = frozenset(part.predicates) if part.recursive else frozenset[str]()
    rules, exits = _linear_rules(setting, predicate, inside)
    turn = None
    if inside and not has_aggregates(part):
        turn = turn_of(predicate, bound, {**setting.rules, predicate: rules}, inside)
    if turn is not None:
        drafts, more = _turned(setting, name, predicate, bound, turn)
        return Version((*drafts, *exits), (*described, *more, *_exit_signatures(signature, exits)), turned=True)
    drafts = tuple(_restricted(rule, name, bound, asked.name, inside) for rule in rules)
    return Version((*drafts, *exits), (*described, *_exit_signatures(signature, exits)))


def demanded_signature(signature: Signature, bound: Bound, name: str) -> Signature:
    """The relation of the values that are asked for."""
    columns = tuple(signature.columns[spot] for spot in bound)
    return _plain_signature(signature, name, columns)


def _plain_signature(signature: Signature, name: str, columns: Sequence[Column]) -> Signature:
    wide = tuple(replace(column, type=column.type.wide) for column in columns)
    return Signature(name, wide, {}, external=False, declared=False, span=signature.span)


def _restricted(rule: CoreRule, name: str, bound: Bound, asked: str, inside: frozenset[str]) -> Draft:
    lead = Match(asked, tuple(rule.arguments[spot] for spot in bound), rule.span)
    return Draft(replace(rule, predicate=name), lead, inside, bound)


def _linear_rules(
    setting: Setting, predicate: str, inside: frozenset[str]
) -> tuple[tuple[CoreRule, ...], tuple[Draft, ...]]:
    """The rules of a predicate, with a doubling rule made linear; and those of its exit rows, where one atom does not
    say what they are."""
    rules = setting.rules[predicate]
    found = doubling(rules, inside) if inside else None
    if found is None:
        return rules, ()
    rule, second = found
    exits = [other for other in rules if other is not rule]
    copied = _copied(exits)
    if copied is not None:
        return (*exits, linear(rule, second, copied)), ()
    name = exits_name(predicate)
    drafts = tuple(Draft(replace(one, predicate=name), None, frozenset[str]()) for one in exits)
    return (*exits, linear(rule, second, name)), drafts


def _copied(exits: Sequence[CoreRule]) -> str | None:
    """The relation whose rows the exit rules copy, if that is all they do."""
    if len(exits) == 1 and len(exits[0].body) == 1 and isinstance(atom := exits[0].body[0], Match):
        return atom.predicate if atom.arguments == exits[0].arguments and is_plain(atom.arguments) else None
    return None


def _exit_signatures(signature: Signature, exits: Sequence[Draft]) -> Iterator[Signature]:
    if exits:
        yield replace(signature, name=exits_name(signature.name), external=False, domains={})


def _turned(
    setting: Setting, name: str, predicate: str, bound: Bound, turn: Turn
) -> tuple[tuple[Draft, ...], tuple[Signature, ...]]:
    """The rules of a version whose questions come back unchanged, and the predicates of where they lead."""
    signature = setting.signature(predicate)
    origins = tuple(signature.columns[spot] for spot in bound)
    asked = tuple(Variable(f"asked/{spot}") for spot in bound)
    typed = {one.name: column.type.wide for one, column in zip(asked, origins, strict=True)}

    def origin(where: str, arguments: tuple[Term, ...]) -> Match:
        return Match(origin_name(name, where), (*asked, *arguments))

    first = setting.rules[predicate][0]
    begin = replace(
        first, predicate=origin_name(name, predicate), arguments=(*asked, *asked), body=(), types=typed, order=()
    )
    drafts = [Draft(begin, Match(demand_name(name), asked), frozenset())]

    def step(one: Step) -> Draft:
        rule = one.rule
        lead = origin(rule.predicate, tuple(rule.arguments[spot] for spot in turn.bound[rule.predicate]))
        onward = tuple(one.atom.arguments[spot] for spot in turn.bound[one.atom.predicate])
        head = origin(one.atom.predicate, onward)
        types = {**rule.types, **typed}
        handed = replace(rule, predicate=head.predicate, arguments=head.arguments, body=one.rest, types=types)
        return Draft(handed, lead, frozenset(), grows=True)

    def answer(rule: CoreRule) -> Draft:
        spots = turn.bound[rule.predicate]
        lead = origin(rule.predicate, tuple(rule.arguments[spot] for spot in spots))
        free = iter([argument for spot, argument in enumerate(rule.arguments) if spot not in spots])
        known = iter(asked)
        arguments = tuple(next(known if spot in bound else free) for spot in range(len(signature.columns)))
        return Draft(
            replace(rule, predicate=name, arguments=arguments, types={**rule.types, **typed}), lead, frozenset()
        )

    drafts += [*map(step, turn.steps), *map(answer, turn.exits)]
    return tuple(drafts), tuple(_origin_signatures(setting, name, signature, origins, turn))


def _origin_signatures(
    setting: Setting, name: str, signature: Signature, origins: Sequence[Column], turn: Turn
) -> Iterator[Signature]:
    """The relations of where questions lead."""
    for where, spots in turn.bound.items():
        reached = [setting.signature(where).columns[spot] for spot in spots]
        columns = [replace(column, name=f"asked_{column.name}") for column in origins]
        yield _plain_signature(signature, origin_name(name, where), (*columns, *reached))
