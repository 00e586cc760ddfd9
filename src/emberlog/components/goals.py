"""Literals and terms of rules as loops read them: goals over variables, where a `Let` binds what is computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from emberlog.analysis.functions import NARROWING, type_of
from emberlog.analysis.program import Absent, Bind, CoreRule, Filter, Gather, Literal, Match, Spread
from emberlog.components.domains import goal_variables, variables_of
from emberlog.components.program import Atom, Check, Goal, KernelRule, Let, Missing
from emberlog.syntax.nodes import Anonymous, Call, Comparison, Term, Test, Variable
from emberlog.types import Type

FUNCTIONS = frozenset(
    {"+", "-", "*", "/", "%", "neg", "abs", "relu", "clip", "min", "max", "exp", "log", "sqrt", "tanh", "to_float"}
)
# Of integers alone: the loops check that the value stays what it is.
CHECKS = frozenset({"to_number", "to_unsigned", *(name for name, type in NARROWING.items() if type.is_integer)})


class Unfit(Exception):
    """A rule has something that the kernels do not know."""


def without_unread(rule: KernelRule) -> KernelRule:
    """The rule in which columns whose variable stands nowhere else are not read."""
    names = Counter(name for goal in rule.body for name in goal_variables(goal))
    names.update(name for argument in rule.arguments for name in variables_of(argument))
    names.update(() if rule.contributor is None else variables_of(rule.contributor))

    def argument(term: Term | None) -> Term | None:
        return None if isinstance(term, Variable) and names[term.name] == 1 else term

    body = tuple(
        replace(goal, arguments=tuple(argument(term) for term in goal.arguments)) if isinstance(goal, Atom) else goal
        for goal in rule.body
    )
    return replace(rule, body=body)


def types_of(rule: CoreRule) -> dict[str, Type]:
    """The variables of a rule, those of computed arguments too."""
    made = {
        made_name(number, spot): type_of(argument, rule.types)
        for number, literal in enumerate(rule.body)
        if isinstance(literal, Match | Absent)
        for spot, argument in enumerate(literal.arguments)
        if isinstance(argument, Call)
    }
    return {**rule.types, **made}


def made_name(number: int, spot: int) -> str:
    return f"#{number}.{spot}"


def goals_of(rule: CoreRule, number: int, literal: Literal) -> Iterator[Goal]:
    match literal:
        case Match(predicate, arguments) | Absent(predicate, arguments):
            plain: list[Term | None] = []
            for spot, argument in enumerate(arguments):
                match argument:
                    case Anonymous():
                        plain.append(None)
                    case Call():
                        yield Let(made_name(number, spot), lower_term(argument, rule.types))
                        plain.append(Variable(made_name(number, spot)))
                    case _:
                        plain.append(argument)
            kind = Atom if isinstance(literal, Match) else Missing
            yield kind(predicate, tuple(plain))
        case Filter(Test()):
            raise Unfit("a rule tests text")
        case Filter(condition):
            assert isinstance(condition, Comparison)
            if len({type_of(side, rule.types).kind == "decimal" for side in (condition.left, condition.right)}) > 1:
                raise Unfit("it compares decimals with numbers")
            left, right = lower_term(condition.left, rule.types), lower_term(condition.right, rule.types)
            yield Check(replace(condition, left=left, right=right))
        case Bind(variable, term):
            yield Let(variable, lower_term(term, rule.types))
        case Spread():
            raise Unfit("a rule has a range")
        case Gather():
            raise Unfit("a recursive rule has an aggregate in its body")


def lower_term(term: Term, types: Mapping[str, Type]) -> Term:
    """The term in what the loops compute; raises for a function that they do not have.

    They hold unsigned numbers as signed ones, so that a difference may be below zero: it is checked then.
    """
    match term:
        case Call(function, arguments):
            if function not in FUNCTIONS | CHECKS:
                narrows = function in NARROWING
                raise Unfit(f"a value is narrowed to {function}" if narrows else f"it calls `{function}`")
            for argument in arguments:
                type = type_of(argument, types)
                if not (type.is_integer if function in CHECKS else type.is_numeric):
                    raise Unfit(f"it computes with values of type {type} (`{function}`)")
            lowered = replace(term, arguments=tuple(lower_term(argument, types) for argument in arguments))
            natural = function in ("-", "neg") and type_of(term, types).kind == "unsigned"
            return Call("to_unsigned", (lowered,), span=term.span) if natural else lowered
        case _:
            return term
