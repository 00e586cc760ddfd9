"""Why a row does not hold: for each rule how far its body can be satisfied, and what is nearly there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from emberlog.analysis.program import Absent, Bind, CoreRule, Filter, Gather, Literal, Match
from emberlog.diagnostics import counted
from emberlog.syntax.nodes import Constant, Term, Variable
from emberlog.why.cone import Definitions
from emberlog.why.lookups import Lookups
from emberlog.why.questions import Fact, Question, Questions, Values
from emberlog.why.tree import Node
from emberlog.why.wording import Wording, place_of

MOST_BINDINGS = 100  # of the literals that can be satisfied: among so many the next literal is looked at
TRIED = 3  # bindings whose nearest rows are looked for
NEAREST = 3  # rows that differ in one column, for each binding and column


class Refusals:
    """Answers for rows that do not hold; `width` is how many nearest rows are shown."""

    def __init__(self, definitions: Definitions, lookups: Lookups, width: int) -> None:
        self._definitions = definitions
        self._signatures = definitions.program.signatures
        self._questions = Questions(self._signatures)
        self._words = Wording(self._signatures)
        self._lookups = lookups
        self._width = width

    def tree(self, fact: Fact) -> Node:
        """Why a row does not hold."""
        predicate, row = fact
        if self._definitions.is_base(predicate):
            near = self._near(predicate, dict(enumerate(row)))
            return self._missing(fact, f"`{predicate}` is a base relation without such a row", near)
        group = self._group(fact)
        if group:
            return self._missing(fact, "its group has another value", group)
        attempts = tuple(self._attempt(rule, row) for rule in self._definitions.rules[predicate])
        given = "; it is no given row either" if self._definitions.is_given_too(predicate) else ""
        return self._missing(fact, f"{counted(len(attempts), 'rule')} could give it, and none does{given}", attempts)

    def _missing(self, fact: Fact, note: str, children: Iterable[Node]) -> Node:
        values = self._signatures[fact[0]].row(fact[1])
        return Node("missing", self._words.fact(fact), note, fact[0], values, children=tuple(children))

    def _group(self, fact: Fact) -> list[Node]:
        """The rows of an aggregated relation that are in the group of a row."""
        predicate, row = fact
        signature = self._signatures[predicate]
        if not signature.aggregates:
            return []
        question = self._questions.matching(predicate, signature.groups)
        rows = self._rows(question, tuple(row[spot] for spot in signature.groups))
        return [self._row(predicate, values, "the row of this group") for values in rows]

    # --- rules ---------------------------------------------------------------------------------------------------

    def _attempt(self, rule: CoreRule, row: Values) -> Node:
        """How far the body of a rule can be satisfied: its first literals, then the first one that fails."""
        prefixes = self._questions.prefixes(rule)
        body = prefixes[-1].body
        satisfied, bindings = 0, self._bindings(prefixes[0], row)
        while satisfied < len(body) and (longer := self._bindings(prefixes[satisfied + 1], row)):
            satisfied, bindings = satisfied + 1, longer
        nodes = [Node("holds", self._words.literal(literal, bindings[0])) for literal in body[:satisfied]]
        if satisfied < len(body):
            nodes.append(self._failure(body[satisfied], bindings))
        note = f"{satisfied} of {counted(len(body), 'literal')} can be satisfied"
        rule_as_text, place = self._words.rule(rule), place_of(rule)
        return Node(
            "attempt", rule_as_text, note, rule.predicate, rule=rule_as_text, place=place, children=tuple(nodes)
        )

    def _bindings(self, question: Question, row: Values) -> list[dict[str, Any]]:
        answers = self._lookups.answers(question, [row], MOST_BINDINGS)
        return [question.binding(values) for _, *values in answers]

    def _failure(self, literal: Literal, bindings: Sequence[Mapping[str, Any]]) -> Node:
        """The first literal that cannot be satisfied, shown for one binding of those before it."""
        first = bindings[0]
        text, many = self._words.literal(literal, first), self._for_others(bindings)
        match literal:
            case Match(predicate, arguments):
                known = [_known(arguments, binding) for binding in bindings[:TRIED]]
                near = [node for values in known for node in self._near(predicate, values)]
                base = self._definitions.is_base(predicate)
                told = f"the base relation `{predicate}` has no such row" if base else f"no such row of `{predicate}`"
                shown = tuple(dict.fromkeys(near))[: self._width]
                return Node("fails", text, told + many, predicate, children=shown)
            case Absent(predicate, arguments):
                rows = self._matching(predicate, _known(arguments, first))
                found = tuple(self._row(predicate, row, "this row is in the way") for row in rows)
                return Node("fails", text, f"`{predicate}` has such a row{many}", predicate, children=found)
            case Filter():
                return Node("fails", text, f"is not so{many}")
            case Gather():
                return Node("fails", text, f"ranges over nothing{many}")
            case Bind():
                return Node("fails", text, f"has no value{many}")
            case _:
                return Node("fails", text, f"gives no value{many}")

    def _for_others(self, bindings: Sequence[object]) -> str:
        if len(bindings) == 1:
            return ""
        more = "at least " if len(bindings) == MOST_BINDINGS else ""
        return f", for this and {more}{counted(len(bindings) - 1, 'other binding')}"

    # --- rows ----------------------------------------------------------------------------------------------------

    def _near(self, predicate: str, known: Mapping[int, Any]) -> Iterator[Node]:
        """Rows that have all but one of the known values: the first columns, mostly the key, are kept longest."""
        seen = set[Values]()
        for left_out in sorted(known, reverse=True):
            rest = {spot: value for spot, value in known.items() if spot != left_out}
            if not rest and len(self._signatures[predicate].columns) > 1:
                continue
            name = self._signatures[predicate].columns[left_out].name
            for row in self._matching(predicate, rest)[:NEAREST]:
                if row not in seen:
                    seen.add(row)
                    yield self._row(predicate, row, f"the nearest: another value of `{name}`")

    def _matching(self, predicate: str, known: Mapping[int, Any]) -> list[Values]:
        spots = sorted(known)
        return self._rows(self._questions.matching(predicate, spots), tuple(known[spot] for spot in spots))

    def _rows(self, question: Question, row: Values) -> list[Values]:
        answers = self._lookups.answers(question, [row], self._width)
        return sorted(question.facts(values)[0][1] for _, *values in answers)

    def _row(self, predicate: str, values: Values, note: str) -> Node:
        whole = self._signatures[predicate].row(values)
        return Node("near", self._words.fact((predicate, values)), note, predicate, whole)


def _known(arguments: Sequence[Term], binding: Mapping[str, Any]) -> dict[int, Any]:
    """The arguments of an atom whose values are known."""
    found: dict[int, Any] = {}
    for spot, argument in enumerate(arguments):
        match argument:
            case Variable(name) if name in binding:
                found[spot] = binding[name]
            case Constant(value, ""):
                found[spot] = value
    return found
