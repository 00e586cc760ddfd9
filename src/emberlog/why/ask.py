"""Questions about a finished run: `Result.why` and `Result.why_not` end here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

from emberlog.diagnostics import ExecutionError, LimitError, UsageError
from emberlog.plan.logical import scans
from emberlog.plan.names import given_part
from emberlog.plan.strata import plans
from emberlog.sql.evaluate import SqlEvaluator
from emberlog.why.asked import check_relation, check_row
from emberlog.why.cone import Cone, Definitions, Derivation, Proof, height_above
from emberlog.why.derivations import Unfolding
from emberlog.why.limits import Shape
from emberlog.why.linear import most_recursive_atoms
from emberlog.why.lookups import Lookups
from emberlog.why.questions import Fact, Questions
from emberlog.why.refusals import Refusals
from emberlog.why.tree import Why, WhyNot
from emberlog.why.wording import Wording

if TYPE_CHECKING:
    from emberlog.executors.base import Executor

Answer = TypeVar("Answer")
FIRST_PART = 5  # the part of the budget after which linear forms of rules are tried: one in so many


class Run(Protocol):
    """What keeps the executor of a finished run open."""

    @property
    def executor(self) -> Executor: ...

    def working(self) -> AbstractContextManager[Executor]: ...


class Asking:
    """Asks about the relations of a run, as long as its executor is open."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._definitions = Definitions(run.executor.program, _relations_of(run.executor))
        self._signatures = run.executor.program.signatures

    @cached_property
    def _known(self) -> set[str]:
        """The predicates that the run evaluated or read."""
        wanted = (self._definitions.needed(name) for name in self._run.executor.wanted)
        return {name for names in wanted for name in names if not name.startswith("goal/")}

    def derivations(self, relation: str, row: object, shape: Shape, budget: int) -> Iterator[Why]:
        """The derivations of a row one after the other: every body that gives it, with the smallest trees of what it
        reads. Those of smallest height come first, as far as that is known."""
        fact = self._fact(relation, row)
        search = self._answer(relation, lambda evaluator: self._search(fact, evaluator, shape, budget))
        while (found := self._answer(relation, lambda _: next(search, None))) is not None:
            yield found

    def why_not(self, relation: str, row: object, width: int) -> WhyNot:
        """Why a row does not hold."""
        fact = self._fact(relation, row)

        def answer(evaluator: SqlEvaluator) -> WhyNot:
            lookups = Lookups(evaluator)
            if self._holds(fact, lookups):
                raise UsageError(
                    f"{self._text(fact)} holds", fix=f'why("{relation}", ...) tells why; the command line has `why`'
                )
            return WhyNot(Refusals(self._definitions, lookups, width).tree(fact))

        return self._answer(relation, answer)

    def _answer(self, relation: str, question: Callable[[SqlEvaluator], Answer]) -> Answer:
        """What a question about a relation and all that it rests on gives."""
        with self._run.working() as executor, executor.clock.step("ask", relation):
            return executor.answer(self._relations(relation), question)

    # --- the row -------------------------------------------------------------------------------------------------

    def _fact(self, relation: str, row: object) -> Fact:
        name = check_relation(relation, self._known)
        return name, check_row(row, self._signatures[name])

    def _relations(self, predicate: str) -> Collection[str]:
        """The relations that hold the rows which a predicate rests on."""
        needed = sorted(self._definitions.needed(predicate))
        given = [name for name in needed if not self._definitions.is_base(name)]
        return [*needed, *(given_part(name) for name in given if self._definitions.is_given_too(name))]

    def _holds(self, fact: Fact, lookups: Lookups) -> bool:
        question = Questions(self._signatures).matching(fact[0], range(len(fact[1])))
        return bool(lookups.answers(question, [fact[1]], 1))

    def _text(self, fact: Fact) -> str:
        return Wording(self._signatures).fact(fact)

    # --- derivations ---------------------------------------------------------------------------------------------

    def _search(self, fact: Fact, evaluator: SqlEvaluator, shape: Shape, budget: int) -> Iterator[Why]:
        lookups = Lookups(evaluator)
        if not self._holds(fact, lookups):
            raise UsageError(
                f"{self._text(fact)} does not hold",
                fix=f'why_not("{fact[0]}", ...) tells why not; the command line has `why --not`',
            )
        return self._trees(fact, lookups, shape, budget)

    def _first(self, fact: Fact, lookups: Lookups, budget: int) -> tuple[Cone, Proof]:
        """Derivations among which there is a tree of a row, if the budget reaches, and the tree. Where rules are not
        linear, a part of the budget goes to all derivations, and only then the rest, if none is found by linear forms
        of the rules."""
        needed = self._definitions.needed(fact[0])
        parts = [part for name, part in self._definitions.component.items() if name in needed]
        forms = range(max(map(most_recursive_atoms, parts), default=0))
        cones = [Cone(self._definitions, lookups, budget)]
        if len(forms) > 1:
            linear = (Cone(self._definitions, lookups, budget, kept) for kept in forms)
            cones = [Cone(self._definitions, lookups, -(-budget // FIRST_PART)), *linear, *cones]
        for cone in cones:
            proof = cone.prove([fact])
            if fact in proof or (cone.is_whole and not cone.is_spent):
                break
        return cone, proof

    def _trees(self, fact: Fact, lookups: Lookups, shape: Shape, budget: int) -> Iterator[Why]:
        cone, proof = self._first(fact, lookups, budget)

        def tree(derivation: Derivation, proof: Proof, above: tuple[Fact, ...] = ()) -> Why:
            root = Unfolding(self._definitions, cone, lookups, shape).tree(fact, derivation, proof, above)
            return Why(root, height_above(derivation, proof.heights), proof.smallest, cone.examined)

        if fact not in proof:
            derivation = self._circular(fact, cone)
            yield tree(derivation, cone.prove(derivation.reads, {fact}), (fact,))
            return
        first = proof.derivation(fact)
        yield tree(first, proof)
        others = [one for one in cone.derivations(fact) if one is not first]
        for derivation in sorted(others, key=lambda one: height_above(one, proof.heights)):
            below = cone.prove(derivation.reads, {fact})
            if all(read in below for read in derivation.reads):
                yield tree(derivation, below)

    def _circular(self, fact: Fact, cone: Cone) -> Derivation:
        """A derivation of a row that has none without itself: its recursion was evaluated by replacing states."""
        if cone.is_spent:
            raise LimitError(
                f"no derivation of {self._text(fact)} was found among {cone.examined:,} bodies",
                fix="give more to look at: budget=1_000_000 (--budget 1000000)",
            )
        found = cone.derivations(fact)
        if not found:
            raise ExecutionError(
                f"no body gives {self._text(fact)} again: a function computes another value here",
                fix='run with evaluator="sql", whose values the question computes in the same way',
            )
        return found[0]


def _relations_of(executor: Executor) -> set[str]:
    """The relations that a run has read or evaluated."""
    strata = executor.plan.strata
    read = {
        scan.relation
        for one in strata
        for relation in one.relations
        for plan in plans(relation)
        for scan in scans(plan)
    }
    return read | executor.wanted | {name for one in strata for name in one.made}
