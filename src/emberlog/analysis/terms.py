"""Walks over terms, formulas and literals: what stands in them, and how to rebuild them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import assert_never

from emberlog.analysis.program import Absent, Bind, Filter, Gather, Literal, Match, Spread
from emberlog.syntax.nodes import (
    Aggregate,
    And,
    Anonymous,
    Atom,
    Call,
    Collect,
    Comparison,
    Constant,
    Formula,
    Limit,
    Not,
    Or,
    Parameter,
    Rule,
    Sort,
    Term,
    Test,
    Truth,
    Until,
    Variable,
)

LEAVES = (Variable, Anonymous, Constant, Parameter, Truth)  # nodes that have nothing below them


def is_ground(rule: Rule) -> bool:
    """Is this a fact of constants? A program may have very many: they need no walk."""
    return rule.body is None and all(isinstance(arg, Constant) for head in rule.heads for arg in head.arguments)


def walk(node: Term | Formula) -> Iterator[Term | Formula]:
    """The node and everything below it, the bodies of `Collect` too, parents first."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, LEAVES):
            waiting.extend(reversed(children(node)))


def children(node: Term | Formula) -> tuple[Term | Formula, ...]:
    """What stands directly below a node."""
    match node:
        case And(parts) | Or(parts):
            return parts
        case Call(_, arguments) | Atom(_, arguments):
            return arguments
        case Variable() | Anonymous() | Constant() | Parameter() | Truth():
            return ()
        case Aggregate(_, arguments, limit):
            return arguments if limit is None else (*arguments, limit)
        case Collect(_, target, body):
            return (body,) if target is None else (target, body)
        case Not(formula):
            return (formula,)
        case Comparison(_, left, right):
            return (left, right)
        case Test(call):
            return (call,)
        case Sort(keys):
            return tuple(key for key, _ in keys)
        case Limit(count):
            return (count,)
        case Until(bound=bound):
            return (bound,)
        case _:
            assert_never(node)


def _same(atom: Atom) -> Atom:
    return atom


def map_term(term: Term, change: Callable[[Term], Term], change_atom: Callable[[Atom], Atom] = _same) -> Term:
    """The term with `change` applied to every term in it, innermost first, bodies of `Collect` included, and
    `change_atom` to every atom of these."""

    def inside(terms: Iterable[Term]) -> tuple[Term, ...]:
        return tuple(map_term(inner, change, change_atom) for inner in terms)

    match term:
        case Variable() | Anonymous() | Constant() | Parameter():
            return change(term)
        case Call(_, arguments):
            return change(replace(term, arguments=inside(arguments)))
        case Aggregate(_, arguments, limit):
            return change(replace(term, arguments=inside(arguments), limit=limit and inside((limit,))[0]))
        case Collect(_, target, body):
            aim = target and inside((target,))[0]
            return change(replace(term, target=aim, body=map_formula(body, change, change_atom)))
        case _:
            assert_never(term)


def map_formula(
    formula: Formula, change: Callable[[Term], Term], change_atom: Callable[[Atom], Atom] = _same
) -> Formula:
    """The formula with `change` applied to every term in it, and `change_atom` to every atom."""

    def term(inner: Term) -> Term:
        return map_term(inner, change, change_atom)

    match formula:
        case Atom(_, arguments):
            return change_atom(replace(formula, arguments=tuple(map(term, arguments))))
        case Not(inner):
            return replace(formula, formula=map_formula(inner, change, change_atom))
        case Comparison(_, left, right):
            return replace(formula, left=term(left), right=term(right))
        case Test(call):
            changed = term(call)
            return replace(formula, call=changed) if isinstance(changed, Call) else formula
        case And(parts) | Or(parts):
            return replace(formula, parts=tuple(map_formula(part, change, change_atom) for part in parts))
        case Limit(count):
            return replace(formula, count=term(count))
        case Until(bound=bound):
            return replace(formula, bound=term(bound))
        case Truth() | Sort():
            return formula
        case _:
            assert_never(formula)


# --- literals --------------------------------------------------------------------------------------------------------


def term_variables(term: Term) -> Iterator[Variable]:
    """The variables of a term without `Collect`, in order, with repetitions."""
    match term:
        case Variable():
            yield term
        case Call(_, arguments) | Aggregate(_, arguments):
            for argument in arguments:
                yield from term_variables(argument)
        case Anonymous() | Constant() | Parameter() | Collect():
            return
        case _:
            assert_never(term)


def names(terms: Iterable[Term]) -> set[str]:
    """The names of the variables in these terms."""
    return {variable.name for term in terms for variable in term_variables(term)}


def operands(condition: Comparison | Test) -> tuple[Term, ...]:
    """The terms of a condition."""
    return (condition.left, condition.right) if isinstance(condition, Comparison) else condition.call.arguments


def literal_terms(literal: Literal) -> tuple[Term, ...]:
    """The terms that stand in a literal itself: what it binds comes as a variable; a `Gather` shows its result only."""
    match literal:
        case Match(_, arguments) | Absent(_, arguments):
            return arguments
        case Filter(condition):
            return operands(condition)
        case Bind(variable, term):
            return (Variable(variable, span=literal.span), term)
        case Spread(variable, start, stop, step):
            return (Variable(variable, span=literal.span), start, stop, step)
        case Gather(variable):
            return (Variable(variable, span=literal.span),)
        case _:
            assert_never(literal)


def all_variables(literal: Literal) -> Iterator[Variable]:
    """Every variable of a literal, those inside a `Gather` too."""
    for term in literal_terms(literal):
        yield from term_variables(term)
    if isinstance(literal, Gather):
        yield from gathered_variables(literal)


def gathered_variables(gather: Gather) -> Iterator[Variable]:
    """Every variable inside a `Gather`: its target's and its bodies'."""
    if gather.target is not None:
        yield from term_variables(gather.target)
    for body in gather.bodies:
        for literal in body:
            yield from all_variables(literal)


def gives(literal: Literal) -> tuple[str, ...]:
    """The variables that a literal, which is no atom, gives values to."""
    match literal:
        case Bind(variable) | Spread(variable):
            return (variable,)
        case Gather(variable, witnesses=witnesses):
            return (variable, *witnesses)
        case _:
            return ()


def needs(literal: Literal) -> set[str]:
    """The variables that must have values before a literal is evaluated."""
    match literal:
        case Match(_, arguments):
            return names(argument for argument in arguments if not isinstance(argument, Variable))
        case Absent(_, arguments):
            return names(arguments)
        case Filter(condition):
            return names(operands(condition))
        case Bind(_, term):
            return names((term,))
        case Spread(_, start, stop, step):
            return names((start, stop, step))
        case Gather():
            return set(literal.injected)


def rename_term(term: Term, names: Mapping[str, str]) -> Term:
    """The term with variables renamed."""

    def change(inner: Term) -> Term:
        return replace(inner, name=names.get(inner.name, inner.name)) if isinstance(inner, Variable) else inner

    return map_term(term, change)


def rename(literal: Literal, names: Mapping[str, str]) -> Literal:
    """The literal with variables renamed, those inside a `Gather` too."""

    def change(term: Term) -> Term:
        return rename_term(term, names)

    match literal:
        case Match(_, arguments) | Absent(_, arguments):
            return replace(literal, arguments=tuple(change(a) for a in arguments))
        case Filter(condition):
            return Filter(map_condition(condition, change))
        case Bind(variable, term):
            return replace(literal, variable=names.get(variable, variable), term=change(term))
        case Spread(variable, start, stop, step):
            return Spread(names.get(variable, variable), change(start), change(stop), change(step), literal.span)
        case Gather(variable, target=target, bodies=bodies):
            return replace(
                literal,
                variable=names.get(variable, variable),
                injected=tuple(dict.fromkeys(names.get(name, name) for name in literal.injected)),
                witnesses=tuple(dict.fromkeys(names.get(name, name) for name in literal.witnesses)),
                target=None if target is None else change(target),
                bodies=tuple(tuple(rename(inner, names) for inner in body) for body in bodies),
            )
        case _:
            assert_never(literal)


def map_condition(condition: Comparison | Test, change: Callable[[Term], Term]) -> Comparison | Test:
    """The condition with each of its operands changed."""
    return with_operands(condition, map(change, operands(condition)))


def with_operands(condition: Comparison | Test, terms: Iterable[Term]) -> Comparison | Test:
    """The condition with other operands."""
    if isinstance(condition, Comparison):
        left, right = terms
        return replace(condition, left=left, right=right)
    return replace(condition, call=replace(condition.call, arguments=tuple(terms)))
