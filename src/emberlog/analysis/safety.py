"""Safety: an order of the literals in which each variable is bound before it is used.

The written order is kept where it can be. An equation binds the variable on one side as soon as the other side is
bound. A `Gather` comes when all the variables that it shares with the rest of the rule are bound (`injected`); only
when nothing else can go on does a min or max bind the others from inside (`witnesses`), if no other one could. A
variable that occurs only inside of one `Gather` is its own: equal names in two of them are told apart here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from emberlog.analysis.draft import Draft, Names
from emberlog.analysis.program import Absent, Bind, Filter, Gather, Literal, Match, Spread
from emberlog.analysis.terms import (
    all_variables,
    gathered_variables,
    literal_terms,
    names,
    operands,
    rename,
    rename_term,
    term_variables,
)
from emberlog.analysis.unbound import Use, Where, explain, roots
from emberlog.diagnostics import Diagnostic
from emberlog.syntax.nodes import Call, Comparison, Term, Variable


def make_safe(draft: Draft) -> tuple[Draft, list[Diagnostic]]:
    """The draft with its literals in order, and a diagnostic for each variable that nothing binds."""
    outside = names(draft.arguments) | {name for name, _ in draft.order}
    taken = Names(outside | {v.name for literal in draft.body for v in all_variables(literal)})
    order = _Order(taken, ())
    order.place(_tell_apart(draft.body, outside, taken, set()))
    head = [Use("head", v, draft.head_span) for argument in draft.arguments for v in term_variables(argument)]
    head += [Use("head", Variable(name, span=draft.head_span), draft.head_span) for name, _ in draft.order]
    found: list[Diagnostic] = []
    while True:
        uses = [*order.stuck, *head]
        missing = roots(uses, order.bound)
        found.extend(explain(name, uses) for name in missing)
        if not missing:
            return replace(draft, body=tuple(order.literals)), found
        # Go on as if they were bound: what depends on them is no mistake of its own.
        order.bound |= set(missing)
        order.place(order.waiting)


# --- names -----------------------------------------------------------------------------------------------------------


def _tell_apart(body: Iterable[Literal], outside: set[str], taken: Names, owned: set[str]) -> list[Literal]:
    """The body in which no two aggregates own a variable of the same name; `owned` are the names owned so far.

    Each `Gather` gets as `injected`, for now, all the variables that it shares with what is around it.
    """
    body = list(body)
    visible = outside | _direct(body)
    return [_with_own_names(lit, visible, taken, owned) if isinstance(lit, Gather) else lit for lit in body]


def _with_own_names(gather: Gather, visible: set[str], taken: Names, owned: set[str]) -> Gather:
    aimed = set() if gather.target is None else names([gather.target])
    own = (aimed | _direct(literal for body in gather.bodies for literal in body)) - visible
    clashes = {name: taken.fresh(name) for name in sorted(own & owned)}
    owned |= own | set(clashes.values())
    target = None if gather.target is None else rename_term(gather.target, clashes)
    aimed = {clashes.get(name, name) for name in aimed}
    bodies = tuple(
        tuple(_tell_apart([rename(literal, clashes) for literal in body], visible | aimed, taken, owned))
        for body in gather.bodies
    )
    shared = dict.fromkeys(v.name for v in gathered_variables(gather) if v.name in visible)
    return replace(gather, target=target, bodies=bodies, injected=tuple(shared))


def _direct(body: Iterable[Literal]) -> set[str]:
    """The variables of a body that do not stand inside of its aggregates."""
    return {name for literal in body for name in names(literal_terms(literal))}


# --- order -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ready:
    """What a waiting literal becomes when its turn has come, and the variables that it binds."""

    literals: tuple[Literal, ...]
    binds: Iterable[str] = ()


class _Order:
    """Places literals one after another. What cannot be placed is in `waiting`, and what it needs in `stuck`."""

    def __init__(self, taken: Names, bound: Iterable[str]) -> None:
        self._taken = taken
        self._computed: set[int] = set()  # the equations that were arguments of an atom, by identity
        self._inner: list[Use] = []
        self.bound = set(bound)
        self.literals: list[Literal] = []
        self.waiting: list[Literal] = []
        self.stuck: list[Use] = []

    def place(self, body: Iterable[Literal]) -> None:
        """Places what can be placed of these literals after those that are placed already."""
        self.waiting = list(body)
        while self._place_first(self._ready) or self._split_first_atom() or self._place_first(self._witnessed):
            pass
        waiting = [use for literal in self.waiting for use in self._uses(literal)]
        self.stuck = [*self._inner, *waiting]

    def _place_first(self, attempt: Callable[[Literal], _Ready | None]) -> bool:
        for position, literal in enumerate(self.waiting):
            ready = attempt(literal)
            if ready is not None:
                del self.waiting[position]
                self.literals.extend(ready.literals)
                self.bound.update(ready.binds)
                return True
        return False

    def _ready(self, literal: Literal) -> _Ready | None:
        match literal:
            case Match(_, arguments):
                computed = [argument for argument in arguments if not isinstance(argument, Variable)]
                return _Ready((literal,), names(arguments)) if self._are_bound(computed) else None
            case Absent(_, arguments):
                return _Ready((literal,)) if self._are_bound(arguments) else None
            case Filter(condition):
                if self._are_bound(operands(condition)):
                    return _Ready((literal,))
                return self._equation(condition) if isinstance(condition, Comparison) else None
            case Spread(_, start, stop, step):
                return self._source(literal) if self._are_bound((start, stop, step)) else None
            case Gather(injected=shared):
                return self._gather(literal, ()) if self.bound.issuperset(shared) else None
            case Bind(variable, term):
                return _Ready((literal,), (variable,)) if self._are_bound((term,)) else None
            case _:
                assert_never(literal)

    def _are_bound(self, terms: Iterable[Term]) -> bool:
        return names(terms) <= self.bound

    def _equation(self, condition: Comparison) -> _Ready | None:
        if condition.operator != "=":
            return None
        for side, other in ((condition.left, condition.right), (condition.right, condition.left)):
            if isinstance(side, Variable) and side.name not in self.bound and self._are_bound((other,)):
                return _Ready((Bind(side.name, other, condition.span),), (side.name,))
        return None

    def _source(self, literal: Spread | Gather, witnesses: Iterable[str] = ()) -> _Ready:
        """A literal that gives its variable values. A variable that has one already is compared instead."""
        if literal.variable not in self.bound:
            return _Ready((literal,), (literal.variable, *witnesses))
        result = Variable(self._taken.fresh(), span=literal.span)
        same = Comparison("=", Variable(literal.variable, span=literal.span), result, span=literal.span)
        return _Ready((replace(literal, variable=result.name), Filter(same)), (result.name, *witnesses))

    # --- computed arguments ---

    def _split_first_atom(self) -> bool:
        """Takes the computed arguments out of the first atom that waits: `p(X, X+1)` becomes `p(X, Y), Y = X+1`."""
        for position, literal in enumerate(self.waiting):
            if isinstance(literal, Match):
                self.waiting[position : position + 1] = self._split(literal)
                return True
        return False

    def _split(self, atom: Match) -> Iterator[Literal]:
        equations = []
        arguments: list[Term] = []
        for argument in atom.arguments:
            if isinstance(argument, Call) and not self._are_bound((argument,)):
                result = Variable(self._taken.fresh(), span=argument.span)
                equations.append(Comparison("=", result, argument, span=argument.span))
                arguments.append(result)
            else:
                arguments.append(argument)
        self._computed |= {id(equation) for equation in equations}
        yield replace(atom, arguments=tuple(arguments))
        yield from (Filter(equation) for equation in equations)

    # --- aggregates ---

    def _witnessed(self, literal: Literal) -> _Ready | None:
        """A min or max that binds, from inside, the variables that nothing outside binds."""
        if not isinstance(literal, Gather) or literal.function not in ("min", "max"):
            return None
        witnesses = [name for name in literal.injected if name not in self.bound]
        if literal.variable in witnesses or any(self._has_rival(literal, name) for name in witnesses):
            return None
        return self._gather(literal, witnesses)

    def _has_rival(self, gather: Gather, name: str) -> bool:
        """True if a variable could take its value from this aggregate and from another one: which one it is must not
        depend on how the rule is spelled."""
        others = (lit for lit in self.waiting if isinstance(lit, Gather) and lit is not gather)
        return self._can_witness(gather, name) and any(self._can_witness(other, name) for other in others)

    def _can_witness(self, gather: Gather, name: str) -> bool:
        if gather.function not in ("min", "max") or name not in gather.injected or name == gather.variable:
            return False
        inside = [_Order(self._taken, (other for other in gather.injected if other != name)) for _ in gather.bodies]
        for order, body in zip(inside, gather.bodies, strict=True):
            order.place(body)
        return all(name in order.bound for order in inside)

    def _gather(self, gather: Gather, witnesses: Iterable[str]) -> _Ready | None:
        witnesses = tuple(witnesses)
        injected = tuple(name for name in gather.injected if name not in witnesses)
        aimed = () if gather.target is None else tuple(_needs("aggregate", (gather.target,)))
        bodies: list[tuple[Literal, ...]] = []
        unbound: list[Use] = []
        for body in gather.bodies:
            inner = _Order(self._taken, injected)
            inner.place(body)
            if not inner.bound.issuperset(witnesses):
                return None
            unbound.extend(use for use in (*inner.stuck, *aimed) if use.variable.name not in inner.bound)
            bodies.append(tuple(inner.literals))
        self._inner.extend(unbound)
        done = replace(gather, bodies=tuple(bodies), injected=injected, witnesses=witnesses)
        return self._source(done, witnesses)

    def _uses(self, literal: Literal) -> Iterator[Use]:
        match literal:
            case Match(_, arguments):
                yield from _needs("computed", (a for a in arguments if not isinstance(a, Variable)))
            case Absent(_, arguments):
                yield from _needs("negation", arguments)
            case Filter(Comparison("=", left, right) as equation):
                where: Where = "computed" if id(equation) in self._computed else "comparison"
                for side in (left, right):
                    yield from (replace(use, binds=side is use.variable) for use in _needs(where, (side,)))
            case Filter(condition):
                yield from _needs("comparison", operands(condition))
            case Spread(variable, start, stop, step):
                yield Use("comparison", Variable(variable, span=literal.span), literal.span, binds=True)
                yield from _needs("comparison", (start, stop, step))
            case Gather(variable, injected=shared):
                result = Variable(variable, span=literal.span)
                yield Use("aggregate", result, literal.span, binds=variable not in shared)
                inside = {v.name: v for v in reversed(list(gathered_variables(literal)))}
                for name in shared:
                    yield from _needs("aggregates" if self._has_rival(literal, name) else "aggregate", (inside[name],))
            case Bind(variable, term):
                yield from _needs("comparison", (term,))
            case _:
                assert_never(literal)


def _needs(where: Where, terms: Iterable[Term]) -> Iterator[Use]:
    return (Use(where, variable, variable.span) for term in terms for variable in term_variables(term))
