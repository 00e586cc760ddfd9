"""Which columns of lower strata must not be negative, so that a value of a recursion is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from emberlog.analysis.influence import constant_value
from emberlog.analysis.program import Bind, CoreRule, Gather, Match, Obligation, Signature
from emberlog.syntax.nodes import Aggregate, Call, Term, Variable
from emberlog.types import Value

Spot = tuple[str, int]


class Signs:
    """Traces values of a component back to columns of lower strata."""

    def __init__(
        self,
        rules: Iterable[CoreRule],
        members: frozenset[str],
        signatures: Mapping[str, Signature],
        facts: Mapping[str, tuple[tuple[Value, ...], ...]],
    ) -> None:
        self._rules = list(rules)
        self._members = members
        self._signatures = signatures
        self._facts = facts

    def of_term(self, term: Term, rule: CoreRule) -> tuple[Obligation, ...] | None:
        """What makes `term` at least 0 in `rule`; () if it always is, None if that cannot be told."""
        return self._term(term, rule, set())

    def of_contributions(self, predicate: str, position: int) -> tuple[Obligation, ...] | None:
        """What makes every value that goes into a column of the component at least 0."""
        return self._own_column((predicate, position), set())

    def _all(self, terms: Iterable[Term], rule: CoreRule, seen: set[Spot]) -> tuple[Obligation, ...] | None:
        parts = [self._term(term, rule, seen) for term in terms]
        known = [part for part in parts if part is not None]
        return tuple(dict.fromkeys(o for part in known for o in part)) if len(known) == len(parts) else None

    def _term(self, term: Term, rule: CoreRule, seen: set[Spot]) -> tuple[Obligation, ...] | None:
        number = constant_value(term)
        if number is not None:
            return () if number >= 0 else None
        match term:
            case Variable(name):
                return self._variable(name, rule, seen)
            case Aggregate("count" | "countd"):
                return ()
            case Aggregate(_, arguments):
                return self._term(arguments[-1], rule, seen)
            case Call("+" | "*" | "/" | "min" | "tanh", arguments):
                return self._all(arguments, rule, seen)
            case Call("relu" | "exp" | "abs" | "sqrt" | "strlen" | "ord" | "to_unsigned"):
                return ()
            case Call("to_float" | "to_number" | "int8" | "int16" | "int32" | "float32" | "^", arguments):
                return self._term(arguments[0], rule, seen)
            case Call("clip", (_, low, _)):
                return self._term(low, rule, seen)
            case Call("max", arguments):
                parts = [self._term(argument, rule, set(seen)) for argument in arguments]
                return min((part for part in parts if part is not None), key=len, default=None)
            case _:
                return None

    def _variable(self, name: str, rule: CoreRule, seen: set[Spot]) -> tuple[Obligation, ...] | None:
        if rule.types[name].kind == "unsigned":
            return ()
        for literal in rule.body:
            match literal:
                case Bind(variable, term) if variable == name:
                    return self._term(term, rule, seen)
                case Gather(variable, "count") if variable == name:
                    return ()
                case Match(predicate, arguments):
                    for position, argument in enumerate(arguments):
                        if isinstance(argument, Variable) and argument.name == name:
                            return self._column((predicate, position), name, seen)
                case _:
                    pass
        return None

    def _column(self, spot: Spot, name: str, seen: set[Spot]) -> tuple[Obligation, ...] | None:
        predicate, position = spot
        if predicate in self._members:
            return self._own_column(spot, seen)
        signature = self._signatures[predicate]
        if signature.aggregates.get(position) in ("count", "countd"):
            return ()
        return (Obligation(predicate, position, 0, f"{name} >= 0"),)

    def _own_column(self, spot: Spot, seen: set[Spot]) -> tuple[Obligation, ...] | None:
        """A column of the component: by induction, if all the rules that fill it keep it at least 0."""
        predicate, position = spot
        if spot in seen:
            return ()
        seen.add(spot)
        facts = (row[position] for row in self._facts.get(predicate, ()))
        if self._signatures[predicate].external or any(isinstance(v, str) or v < 0 for v in facts):
            return None
        parts: list[Obligation] = []
        for rule in self._rules:
            if rule.predicate == predicate:
                part = self._term(rule.arguments[position], rule, seen)
                if part is None:
                    return None
                parts.extend(part)
        return tuple(dict.fromkeys(parts))
