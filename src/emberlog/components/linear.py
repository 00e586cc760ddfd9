"""Whether what a rule contributes to a sum is a multiple of the sum that it reads."""

from __future__ import annotations

from collections.abc import Mapping

from emberlog.components.domains import goal_variables, is_float
from emberlog.components.program import Atom, Check, KernelProgram, KernelRule, Kind, Let
from emberlog.syntax.nodes import Call, Term, Variable


def is_multiple(rule: KernelRule, program: KernelProgram) -> bool:
    """Is what the rule gives to a sum a multiple of the one sum that it reads, and tested by nothing?"""
    head = program.table(rule.head)
    assert head is not None and head.value is not None
    if any(isinstance(goal, Check) and not rule.moved.isdisjoint(goal_variables(goal)) for goal in rule.body):
        return False
    degree: dict[str, int] = {}
    for goal in rule.body:
        match goal:
            case Atom(relation, arguments) if (table := program.table(relation)) and table.value is not None:
                value = arguments[table.value]
                if not isinstance(value, Variable) or value.name in degree:
                    return False
                degree[value.name] = 1
            case Let(variable, term):
                found = _degree(term, degree, rule.kinds)
                if found is None:
                    return False
                degree[variable] = found
            case _:
                pass
    return _degree(rule.arguments[head.value], degree, rule.kinds) == 1


def _degree(term: Term, degree: Mapping[str, int], kinds: Mapping[str, Kind]) -> int | None:
    """0 for a term without the value, 1 for a multiple of it, None for anything else."""
    match term:
        case Variable(name):
            return degree.get(name, 0)
        case Call("to_float" | "neg", (inner,)):
            return _degree(inner, degree, kinds)
        case Call("+" | "-" | "*" | "/" as operator, (one, other)):
            left, right = _degree(one, degree, kinds), _degree(other, degree, kinds)
            if left is None or right is None:
                return None
            if operator in ("+", "-"):
                return left if left == right else None
            if operator == "*":
                return left + right if left + right <= 1 else None
            # A division of integers truncates: what is lost depends on the whole.
            exact = left == 0 or is_float(one, kinds)
            return left if right == 0 and exact else None
        case Call(_, arguments):
            return 0 if all(_degree(argument, degree, kinds) == 0 for argument in arguments) else None
        case _:
            return 0


def is_linear(program: KernelProgram) -> bool:
    """Does each rule read one fact of the component? Others need facts that another worker may have."""
    names = {table.name for table in program.tables}
    return all(
        sum(isinstance(goal, Atom) and goal.relation in names for goal in rule.body) == 1 for rule in program.rules
    )
