"""The rows that a row rests on, found backwards, and trees of smallest height among them.

A row is an OR of its derivations, a derivation an AND of the rows that it reads. Rows are looked up level by level, all
of a level at once; heights go the other way (Knuth's generalisation of Dijkstra's algorithm, done as rows come in). A
tree of height h reads no row beyond level h, so that a height is the smallest as soon as so many levels are known. The
heights fall along every derivation that is kept, so that no tree has a row below itself.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from emberlog.analysis.program import CheckedProgram, Component, CoreRule, Gather, Literal, Match, atoms
from emberlog.plan.names import given_part
from emberlog.syntax.nodes import Variable
from emberlog.why.linear import linear_rules
from emberlog.why.lookups import Lookups
from emberlog.why.questions import Fact, Question, Questions, Values

DEEP = 12  # levels after which all rows of a recursion are looked up at once, if they are few
MANY = 20_000  # rows that are few
BEST = frozenset({"min", "max", "topk"})  # aggregates whose value is that of one contribution


@dataclass(frozen=True, slots=True)
class Derivation:
    """One way in which a row comes to be: a body of a rule with its values. Without a question, the row is given; or
    it is a total, which `totals` of the derivation says: what it is made of is looked up when it is shown."""

    question: Question | None
    values: Values
    reads: tuple[Fact, ...]
    totals: bool = False


UNKNOWN = 1 << 60  # more than any height
GIVEN = Derivation(None, (), ())
TOTAL = Derivation(None, (), (), totals=True)


class Definitions:
    """What defines each predicate of a program: rules, given rows, and the component that it belongs to.

    `relations` are those that the run has read or evaluated. It has not read what only an aggregate reads whose value
    nobody uses; rules do without such aggregates here.
    """

    def __init__(self, program: CheckedProgram, relations: Collection[str]) -> None:
        self.program = program
        self.component = {name: part for part in program.components if part.rules for name in part.predicates}
        self.rules: dict[str, list[CoreRule]] = defaultdict(list)
        for part in program.components:
            for rule in part.rules:
                body = tuple(literal for literal in rule.body if _is_read(literal, relations))
                self.rules[rule.predicate].append(replace(rule, body=body))

    def is_base(self, predicate: str) -> bool:
        """True if no rule derives rows of it."""
        return predicate not in self.component

    def is_total(self, predicate: str) -> bool:
        """True if a row is made of all that contributes to its group, or is a state of an iteration."""
        if self.is_base(predicate):
            return False
        functions = list(self.program.signatures[predicate].aggregates.values())
        best = len(functions) == 1 and functions[0] in BEST
        return self.component[predicate].indexed or (bool(functions) and not best)

    def is_given_too(self, predicate: str) -> bool:
        """True if rows come from facts or a source, besides those that rules derive."""
        signature = self.program.signatures[predicate]
        return signature.external or bool(self.program.facts.get(predicate))

    def together(self, one: str, other: str) -> bool:
        """True if two predicates depend on each other."""
        part = self.component.get(one)
        return part is not None and part.recursive and other in part.predicates

    def needed(self, predicate: str) -> set[str]:
        """The predicates that one rests on, and itself."""
        found, waiting = {predicate}, [predicate]
        while waiting:
            for rule in self.rules.get(waiting.pop(), ()):
                new = set(rule.reads()) - found
                found |= new
                waiting += new
        return found


def _is_read(literal: Literal, relations: Collection[str]) -> bool:
    """True if all relations that a literal reads are among these; each has its given rows under another name."""
    read = [atom.predicate for atom in atoms((literal,))]
    return not isinstance(literal, Gather) or all(name in relations or given_part(name) in relations for name in read)


class Heights:
    """The height of the smallest tree of each row, as far as derivations are known. Rows that are `forbidden` have
    none: those that a tree is to do without."""

    def __init__(self, forbidden: Collection[Fact] = ()) -> None:
        self.of: dict[Fact, int] = {}
        self.best: dict[Fact, Derivation] = {}
        self._forbidden = forbidden
        self._readers: defaultdict[Fact, list[tuple[Fact, Derivation]]] = defaultdict(list)

    def base(self, fact: Fact) -> None:
        """A row of a base relation."""
        if fact not in self.of and fact not in self._forbidden:
            self.of[fact] = 0
            self._propagate(fact)

    def learn(self, fact: Fact, derivations: Iterable[Derivation]) -> None:
        """Derivations of a row."""
        if fact in self._forbidden:
            return
        for derivation in derivations:
            for read in set(derivation.reads):
                self._readers[read].append((fact, derivation))
            if self._improves(fact, derivation):
                self._propagate(fact)

    def _improves(self, fact: Fact, derivation: Derivation) -> bool:
        height = height_above(derivation, self)
        if height >= self.of.get(fact, UNKNOWN):
            return False
        self.of[fact], self.best[fact] = height, derivation
        return True

    def _propagate(self, fact: Fact) -> None:
        waiting = deque([fact])
        while waiting:
            for reader, derivation in self._readers[waiting.popleft()]:
                if self._improves(reader, derivation):
                    waiting.append(reader)


def height_above(derivation: Derivation, heights: Heights) -> int:
    """The height of the tree that begins with a derivation: 0 for a row that is given, `UNKNOWN` without heights of all
    rows that it reads."""
    if derivation is GIVEN:
        return 0
    return min(UNKNOWN, 1 + max((heights.of.get(read, UNKNOWN) for read in derivation.reads), default=0))


@dataclass(frozen=True)
class Proof:
    """Trees of some rows: the heights along which they go. `smallest` says that none has a tree of a smaller height."""

    heights: Heights
    smallest: bool

    def __contains__(self, fact: Fact) -> bool:
        return fact in self.heights.of

    def height(self, fact: Fact) -> int:
        """The height of the tree of one of the rows."""
        return self.heights.of[fact]

    def derivation(self, fact: Fact) -> Derivation:
        """How the trees derive one of their rows."""
        return self.heights.best.get(fact, GIVEN)


class Cone:
    """Derivations of rows, looked up when they are first asked for. At most `budget` of them. With `kept` only those
    by linear rules, which keep the recursive atom of that number, see `linear`."""

    def __init__(self, definitions: Definitions, lookups: Lookups, budget: int, kept: int | None = None) -> None:
        self._definitions = definitions
        self._lookups = lookups
        self._questions = Questions(definitions.program.signatures)
        self._of_predicate: dict[str, list[Question]] = {}
        self._known: dict[Fact, list[Derivation]] = {}
        self._budget = budget
        self._kept = kept
        self.examined = 0

    @property
    def is_spent(self) -> bool:
        """True if derivations may be missing because the budget is used up."""
        return self.examined >= self._budget

    @property
    def is_whole(self) -> bool:
        """True if derivations by all bodies of rules are looked up."""
        return self._kept is None

    def derivations(self, fact: Fact) -> list[Derivation]:
        """All derivations of a row, as far as the budget goes."""
        self._look_up([fact])
        return self._known[fact]

    def prove(self, goals: Collection[Fact], forbidden: Collection[Fact] = ()) -> Proof:
        """Trees of smallest height for rows, which do without some others. A row has none if each of its trees needs
        one of those, or if the budget does not reach."""
        heights, level = Heights(forbidden), 0
        frontier = list(self._new(goals, heights, seen := set[Fact]()))
        while frontier and not self.is_spent and not _are_smallest(goals, heights, level):
            level += 1
            if level == DEEP:
                frontier += self._new(self._all_rows(goals, frontier), heights, seen)
            self._look_up(frontier)
            reads = [read for fact in frontier for one in self._known[fact] for read in one.reads]
            for fact in frontier:
                heights.learn(fact, self._known[fact])
            frontier = list(self._new(reads, heights, seen))
        complete = not frontier or _are_smallest(goals, heights, level)
        return Proof(heights, self.is_whole and not self.is_spent and complete)

    def _new(self, facts: Iterable[Fact], heights: Heights, seen: set[Fact]) -> Iterator[Fact]:
        """Those of these rows that are yet to be looked up. Base rows are not: they have a height at once."""
        for fact in facts:
            if fact in seen:
                continue
            seen.add(fact)
            if self._definitions.is_base(fact[0]):
                heights.base(fact)
            else:
                yield fact

    # --- looking up ----------------------------------------------------------------------------------------------

    def _look_up(self, facts: Iterable[Fact]) -> None:
        """Has the derivations of all these rows: for each rule one statement."""
        by_predicate: defaultdict[str, list[Fact]] = defaultdict(list)
        for fact in facts:
            if fact not in self._known:
                by_predicate[fact[0]].append(fact)
                self._known[fact] = [TOTAL] if self._definitions.is_total(fact[0]) else []
        for predicate, new in by_predicate.items():
            if self._definitions.is_total(predicate):
                continue
            rows = [values for _, values in new]
            if self._definitions.is_given_too(predicate):
                given = self._questions.matching(predicate, range(len(rows[0])), given=True)
                for number, *_ in self._lookups.answers(given, rows):
                    self._known[new[number]].append(GIVEN)
            for question in self._bodies(predicate):
                self._add(question, new, self._lookups.answers(question, rows, self._budget - self.examined + 1))

    def _add(self, question: Question, facts: list[Fact], answers: list[Values]) -> None:
        self.examined += len(answers)
        for number, *values in answers:
            self._known[facts[number]].append(Derivation(question, tuple(values), question.facts(values)))

    def _bodies(self, predicate: str) -> list[Question]:
        if predicate not in self._of_predicate:
            self._of_predicate[predicate] = [
                replace(self._questions.bodies(form), rule=rule)
                for rule in self._definitions.rules[predicate]
                for form in self._forms(rule)
            ]
        return self._of_predicate[predicate]

    def _forms(self, rule: CoreRule) -> Iterable[CoreRule]:
        """The rules whose bodies are looked up for a rule."""
        part = self._definitions.component[rule.predicate]
        return [rule] if self._kept is None else linear_rules(rule, part, self._kept)

    def _all_rows(self, goals: Collection[Fact], frontier: Iterable[Fact]) -> Iterator[Fact]:
        """All rows of the recursions that have come so far, if they are few: of one whose rules hand columns on
        unchanged, those with the values of the rows that are asked about."""
        predicates = {predicate for predicate, _ in frontier if not self._definitions.is_total(predicate)}
        for predicate in sorted(predicates):
            part = self._definitions.component[predicate]
            if not part.recursive:
                continue
            asked = [values for goal, values in goals if goal == predicate]
            pivots = _pivots(part) if len(asked) == len(goals) else ()
            question = self._questions.matching(predicate, pivots)
            rows = {tuple(values[spot] for spot in pivots) for values in asked} or {()}
            answers = self._lookups.answers(question, rows, MANY + 1)
            if len(answers) <= MANY:
                yield from (fact for _, *values in answers for fact in question.facts(values))


def _are_smallest(goals: Iterable[Fact], heights: Heights, levels: int) -> bool:
    """True if all rows have heights, and what lies beyond the levels that are known cannot lower them."""
    return all(heights.of.get(goal, levels + 2) <= levels + 1 for goal in goals)


def _pivots(part: Component) -> tuple[int, ...]:
    """The positions of a single recursive predicate whose value every recursive rule hands on unchanged."""
    if len(part.predicates) > 1:
        return ()
    (name,) = part.predicates
    pairs = [
        (rule.arguments, literal.arguments)
        for rule in part.rules
        for literal in rule.body
        if isinstance(literal, Match) and literal.predicate == name
    ]
    width = len(part.rules[0].arguments)
    return tuple(
        spot
        for spot in range(width)
        if all(isinstance(head[spot], Variable) and head[spot] == body[spot] for head, body in pairs)
    )
