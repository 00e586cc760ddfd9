"""What planning relies on: the promises of `analysis.program`, checked on a whole program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from emberlog.analysis.functions import FUNCTIONS, NARROWING, Family, type_of
from emberlog.analysis.program import (
    Absent,
    Bind,
    CheckedProgram,
    Component,
    CoreRule,
    Filter,
    Gather,
    Literal,
    Match,
    Spread,
)
from emberlog.analysis.terms import names, operands
from emberlog.syntax.nodes import Aggregate, Anonymous, Call, Comparison, Constant, Term, Variable
from emberlog.types import Type


def assert_contract(program: CheckedProgram) -> None:
    """Components in order, variables bound before use, types written out."""
    done: set[str] = set()
    derived = {name for part in program.components for name in part.predicates}
    for part in program.components:
        for rule in part.rules:
            assert rule.predicate in part.predicates
            assert {name for name in rule.reads() if name in derived} <= done | set(part.predicates)
            _Reader(program, part, rule).check()
        assert part.recursive or not any(name in part.predicates for rule in part.rules for name in rule.reads())
        done |= set(part.predicates)
    for name, rows in program.facts.items():
        assert all(len(row) == len(program.signatures[name].columns) for row in rows)


class _Reader:
    """Checks one rule."""

    def __init__(self, program: CheckedProgram, part: Component, rule: CoreRule) -> None:
        self.program = program
        self.part = part
        self.rule = rule

    def check(self) -> None:
        bound = self.body(self.rule.body, set())
        kinds = self.columns(self.rule.predicate)
        aggregates = self.program.signatures[self.rule.predicate].aggregates
        shift = self.shift(self.rule.predicate)
        for position, (argument, kind) in enumerate(zip(self.rule.arguments, kinds, strict=True)):
            assert names([argument]) <= bound
            assert not isinstance(argument, Aggregate) or aggregates[position + shift] == argument.function
            terms = argument.arguments if isinstance(argument, Aggregate) else (argument,)
            for term in terms:
                self.term(term)
            assert type_of(argument, self.rule.types).kind == kind
        assert {name for name, _ in self.rule.order} <= bound

    def shift(self, predicate: str) -> int:
        return 1 if self.part.keeps_states and predicate in self.part.predicates else 0

    def columns(self, predicate: str) -> list[str]:
        signature = self.program.signatures[predicate]
        return [column.type.kind for column in signature.columns[self.shift(predicate) :]]

    def body(self, body: Iterable[Literal], bound: set[str]) -> set[str]:
        for literal in body:
            bound = bound | self.literal(literal, bound)
        return bound

    def literal(self, literal: Literal, bound: set[str]) -> set[str]:
        """The variables that the literal binds."""
        match literal:
            case Match(predicate, arguments):
                assert names(term for term in arguments if not isinstance(term, Variable)) <= bound
                assert not any(isinstance(term, Anonymous) for term in arguments)
                self.arguments(predicate, arguments)
                return names(arguments)
            case Absent(predicate, arguments):
                assert names(arguments) <= bound
                self.arguments(predicate, arguments)
                return set()
            case Filter(condition):
                assert names(operands(condition)) <= bound
                for term in operands(condition):
                    self.term(term)
                if isinstance(condition, Comparison):
                    self.same([condition.left, condition.right])
                return set()
            case Bind(variable, term):
                assert variable not in bound
                assert names([term]) <= bound
                self.term(term)
                assert type_of(term, self.rule.types).kind == self.rule.types[variable].kind
                return {variable}
            case Spread(variable, start, stop, step):
                assert variable not in bound
                assert names([start, stop, step]) <= bound
                self.same([Variable(variable), start, stop, step])
                return {variable}
            case Gather():
                return self.gather(literal, bound)

    def gather(self, gather: Gather, bound: set[str]) -> set[str]:
        assert set(gather.injected) <= bound
        assert not {gather.variable, *gather.witnesses} & bound
        assert not gather.witnesses or gather.function in ("min", "max")
        for body in gather.bodies:
            inside = self.body(body, set(gather.injected))
            assert set(gather.witnesses) <= inside
            assert inside & bound <= set(gather.injected)
            assert gather.target is None or names([gather.target]) <= inside
        result = self.rule.types[gather.variable]
        if gather.target is not None:
            self.term(gather.target)
            assert type_of(Aggregate(gather.function, (gather.target,)), self.rule.types).kind == result.kind
        else:
            assert result.kind == "number"
        return {gather.variable, *gather.witnesses}

    def arguments(self, predicate: str, arguments: tuple[Term, ...]) -> None:
        for term, kind in zip(arguments, self.columns(predicate), strict=True):
            if not isinstance(term, Anonymous):
                self.term(term)
                assert type_of(term, self.rule.types).kind == kind

    def same(self, terms: Iterable[Term]) -> None:
        assert len({type_of(term, self.rule.types).kind for term in terms}) == 1

    def term(self, term: Term) -> None:
        """Every operand is of the type that its function takes."""
        match term:
            case Variable(name):
                assert self.rule.types[name].bits == 64
            case Constant():
                pass
            case Call(function, arguments):
                for argument in arguments:
                    self.term(argument)
                if function not in NARROWING:
                    self.operands(function, arguments, self.rule.types)
            case _:
                raise AssertionError(f"not a term of the core form: {term}")

    def operands(self, function: str, arguments: tuple[Term, ...], types: Mapping[str, Type]) -> None:
        known = FUNCTIONS[function]
        assert known.takes(len(arguments))
        kinds = [type_of(argument, types).kind for argument in arguments]
        if isinstance(known.parameters, tuple):
            wanted = [*known.parameters, *[known.parameters[-1]] * len(kinds)]
            assert all(kind == want.kind for kind, want in zip(kinds, wanted, strict=False))
        elif known.parameters is not Family.ANY:
            assert len(set(kinds)) == 1
