"""Derivations as trees: each row unfolded into the literals of the body that gives it.

A row that is read twice is unfolded once. Totals are unfolded into contributions, each with a tree of its own. In a
recursion through sums and counts a contribution may rest on the total itself, which had a smaller value when that was
so; a tree then does without the rows above it, and a row that has no such tree is named and not unfolded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, assert_never

from emberlog.analysis.program import Absent, Bind, CoreRule, Filter, Gather, Literal, Match, Spread
from emberlog.deep import Deep, run_deep
from emberlog.diagnostics import counted
from emberlog.syntax.nodes import Constant, Variable
from emberlog.why.cone import Cone, Definitions, Derivation, Proof
from emberlog.why.limits import Shape
from emberlog.why.lookups import Lookups
from emberlog.why.questions import OWNER, PART, Fact, Question, Questions, Values
from emberlog.why.tree import Kind, Node
from emberlog.why.wording import Wording, place_of, value_text


@dataclass(frozen=True)
class _Place:
    """Where in a tree a row stands: the trees that it is taken from, how many levels are left, and the rows above it
    that trees below do without."""

    proof: Proof
    depth: int
    above: tuple[Fact, ...] = ()

    @property
    def below(self) -> _Place:
        return replace(self, depth=self.depth - 1)


@dataclass(frozen=True)
class _Contribution:
    """What one binding contributes: without a question a given row does."""

    part: Any
    reads: tuple[Fact, ...]
    question: Question | None = None
    values: Values = ()


class Unfolding:
    """Makes trees of derivations."""

    def __init__(self, definitions: Definitions, cone: Cone, lookups: Lookups, shape: Shape) -> None:
        self._definitions = definitions
        self._signatures = definitions.program.signatures
        self._questions = Questions(self._signatures)
        self._words = Wording(self._signatures)
        self._cone = cone
        self._lookups = lookups
        self._shape = shape
        self._unfolded: set[Fact] = set()

    def tree(self, fact: Fact, derivation: Derivation, proof: Proof, above: tuple[Fact, ...] = ()) -> Node:
        """The tree of a row that begins with a derivation and goes on as the proof says, which does without the rows
        `above`."""
        return run_deep(self._derived(fact, derivation, _Place(proof, self._shape.depth, above)))

    # --- rows ----------------------------------------------------------------------------------------------------

    def _row(self, fact: Fact, place: _Place) -> Deep[Node]:
        """A row that a body reads."""
        if fact in place.proof:
            derivation = place.proof.derivation(fact)
            if fact in self._unfolded and derivation.question is not None and not place.above:
                return self._fact("repeat", fact, "unfolded at another place")
            node: Node = yield self._derived(fact, derivation, place)
            return node
        if place.above:
            return self._fact("cut", fact, self._why_not_below(fact, place))
        return self._fact("cut", fact, "not unfolded: the budget is spent")

    def _why_not_below(self, fact: Fact, place: _Place) -> str:
        """Why a row is not unfolded below the rows of its own recursion."""
        if self._definitions.component[fact[0]].indexed:
            return "a row of the last state"
        above = ", ".join(self._words.fact(one) for one in place.above if self._definitions.together(fact[0], one[0]))
        return f"needs a row above ({above}), with the value that it had before"

    def _derived(self, fact: Fact, derivation: Derivation, place: _Place) -> Deep[Node]:
        if derivation.question is None and not derivation.totals:
            source = "a row of" if self._signatures[fact[0]].external else "a fact of"
            return self._fact("given", fact, f"{source} `{fact[0]}`")
        if place.depth <= 0:
            return self._fact("cut", fact, "not unfolded: deeper than asked for")
        node: Node
        if derivation.question is None:
            node = yield self._total(fact, place.below)
            return node
        self._unfolded.add(fact)
        question = derivation.question
        children = yield self._body(question, derivation.values, place.below)
        row = self._fact("rule", fact, self._note(question.rule))
        return replace(row, rule=self._words.rule(question.rule), place=place_of(question.rule), children=children)

    def _fact(self, kind: Kind, fact: Fact, note: str) -> Node:
        return Node(kind, self._words.fact(fact), note, fact[0], self._signatures[fact[0]].row(fact[1]))

    def _note(self, rule: CoreRule) -> str:
        """What is to be said of a row of a rule besides its body."""
        functions = [aggregate.function for _, aggregate in rule.aggregates]
        notes = [self._definitions.component[rule.predicate].note]
        notes += [f"one of the best rows of `{rule.predicate}`" for name in functions if name == "topk"]
        notes += [f"the value of this one is the {name}imum" for name in functions if name in ("min", "max")]
        notes += [f"one of the first {rule.limit} rows of the rule"] if rule.limit is not None else []
        return "; ".join(note for note in notes if note)

    # --- bodies --------------------------------------------------------------------------------------------------

    def _body(self, question: Question, values: Values, place: _Place, written: Iterable[Literal] = ()) -> Deep[Any]:
        """A node for each literal of a body, in the order in which they are written."""
        binding = question.binding(values)
        matches = [literal for literal in question.body if isinstance(literal, Match)]
        facts = list(zip(matches, question.facts(values), strict=True))
        nodes: list[Node] = []
        for literal in written or question.rule.body:
            if isinstance(literal, Match):
                at = next(i for i, (match, _) in enumerate(facts) if match == literal)
                nodes.append((yield self._row(facts.pop(at)[1], place)))
            elif (node := (yield self._condition(literal, question.rule, binding, place))) is not None:
                nodes.append(node)
        return tuple(nodes)

    def _condition(self, literal: Literal, rule: CoreRule, binding: dict[str, Any], place: _Place) -> Deep[Node | None]:
        match literal:
            case Absent(predicate):
                atom = self._words.literal(literal, binding).removeprefix("!")
                return Node("absence", f"no row of `{predicate}` matches {atom}", relation=predicate)
            case Filter():
                return Node("condition", self._words.literal(literal, binding))
            case Bind(_, Constant() | Variable()):
                return None
            case Bind() | Spread():
                return Node("condition", self._words.given_value(literal, binding))
            case Gather():
                node: Node = yield self._gathered(literal, rule, binding, place)
                return node
            case Match():
                raise AssertionError("atoms are rows")
            case _:
                assert_never(literal)

    # --- totals --------------------------------------------------------------------------------------------------

    def _total(self, fact: Fact, place: _Place) -> Deep[Node]:
        """A row that all contributions to its group make."""
        part = self._definitions.component[fact[0]]
        if part.keeps_states:
            return self._fact("total", fact, "a state of an iteration: what it was computed from is not unfolded")
        found, number = self._contributions(fact)
        above = (*place.above, fact) if part.recursive else ()
        children = yield self._shown(found, number, place, above, part.indexed)
        functions = ", ".join(self._signatures[fact[0]].aggregates.values()) or "value"
        note = f"the {functions} of {counted(number, 'contribution')}"
        if part.indexed:
            note = f"the last state of an iteration; {note}, computed from the last state"
        return replace(self._fact("total", fact, note), children=children)

    def _contributions(self, fact: Fact) -> tuple[list[_Contribution], int]:
        """What contributes most to the group of a row, the largest first, and how many contributions there are."""
        predicate, row = fact
        rules = self._definitions.rules[predicate]
        steady = [rule for rule in rules if not rule.start] or rules
        questions = map(self._questions.contributions, steady)
        found, number = self._largest(questions, row)
        groups = self._signatures[predicate].groups
        if self._definitions.is_given_too(predicate) and not self._definitions.component[predicate].indexed:
            given = self._questions.matching(predicate, groups, given=True)
            rows = self._lookups.answers(given, [tuple(row[spot] for spot in groups)])
            spot = next(iter(self._signatures[predicate].aggregates))
            values = [given.facts(values)[0][1] for _, *values in rows]
            found += [_Contribution(one[spot], ((predicate, one),)) for one in values]
            number += len(values)
        if self._signatures[predicate].aggregates:
            found.sort(key=lambda one: one.part, reverse=True)
        return found[: self._shape.width], number

    def _largest(self, questions: Iterable[Question], row: Values) -> tuple[list[_Contribution], int]:
        found: list[_Contribution] = []
        number = 0
        for question in questions:
            seen = set[Any]()
            for _, *values in self._lookups.read(question, question.largest(self._shape.width), [row]):
                binding = question.binding(values)
                if OWNER not in binding or binding[OWNER] not in seen:
                    seen.add(binding.get(OWNER))
                    found.append(_Contribution(binding.get(PART), question.facts(values), question, tuple(values)))
            number += self._lookups.count(question, row)
        return found, number

    def _shown(
        self, found: list[_Contribution], number: int, place: _Place, above: tuple[Fact, ...], stops: bool = False
    ) -> Deep[tuple[Node, ...]]:
        """Contributions with the trees of what they read, which do without the rows `above`. `stops` says that rows of
        the recursion itself are not unfolded: they are of another state."""
        facts = dict.fromkeys(fact for one in found if one.question is not None for fact in one.reads)
        inside = [fact for fact in facts if above and self._definitions.together(fact[0], above[-1][0])]
        goals = [fact for fact in facts if not (stops and fact in inside)]
        here = _Place(self._cone.prove(goals, above), place.depth, above)
        nodes: list[Node] = []
        for one in found:
            nodes.append((yield self._contribution(one, here)))
        if number > len(found):
            nodes.append(Node("rest", f"and {counted(number - len(found), 'contribution')} more"))
        return tuple(nodes)

    def _contribution(self, one: _Contribution, place: _Place) -> Deep[Node]:
        if one.question is None:
            return self._fact("given", one.reads[0], f"contributes {value_text(one.part)}")
        binding = one.question.binding(one.values)
        owner = f" for {value_text(binding[OWNER])}" if OWNER in binding else ""
        children = yield self._body(one.question, one.values, place.below)
        part = value_text(one.part) if PART in binding else "computed by"
        rule = one.question.rule
        return Node("contribution", part + owner, children=children, rule=self._words.rule(rule), place=place_of(rule))

    def _gathered(self, gather: Gather, rule: CoreRule, binding: dict[str, Any], place: _Place) -> Deep[Node]:
        """An aggregate in a body with what it ranges over; of a minimum or maximum the first binding that gives it."""
        text = self._words.given_value(gather, binding)
        if place.depth <= 0:
            return Node("aggregate", text, "not unfolded: deeper than asked for")
        row = tuple(binding[name] for name in (*gather.injected, gather.variable))
        children: list[Node] = []
        left, number = self._shape.width, 0
        for disjunct, body in enumerate(gather.bodies):
            question = self._questions.collected(rule, gather, disjunct)
            found, count = self._largest([question], row)
            number += count
            proof = self._cone.prove({fact for one in found[:left] for fact in one.reads})
            for one in found[:left]:
                below = yield self._body(question, one.values, _Place(proof, place.depth - 1), body)
                children.append(Node("contribution", value_text(one.part), children=below))
            left -= len(found[:left])
        if gather.function in ("min", "max"):
            return Node("aggregate", text, children=tuple(children[:1]))
        if number > len(children):
            children.append(Node("rest", f"and {counted(number - len(children), 'contribution')} more"))
        return Node("aggregate", text, f"over {counted(number, 'binding')}", children=tuple(children))
