"""Syntax tree to program text: `parse(Source("x", show(program))) == program`.

One spelling for each thing: `:-`, `!`, `min(D)`, names of infix words as functions, double quotes.
"""

from __future__ import annotations

import re
from typing import TypeAlias, assert_never

from emberlog.syntax import nodes
from emberlog.syntax.literals import write_string
from emberlog.syntax.vocabulary import AGGREGATES, INFIX, INFIX_WORDS, UNARY

Node: TypeAlias = nodes.Program | nodes.Item | nodes.Attribute | nodes.Formula | nodes.Term

_SIGNS = frozenset(INFIX) - INFIX_WORDS
_LIKE_AGGREGATE = re.compile(rf"(?:{'|'.join(AGGREGATES)})\(")
_LOOSEST, _TIGHTEST = 0, max(INFIX.values()) + 1


def show(node: Node) -> str:
    """The node as text that the parser reads back."""
    match node:
        case nodes.Program():
            return _program(node)
        case (
            nodes.Rule()
            | nodes.Declaration()
            | nodes.TypeDeclaration()
            | nodes.Directive()
            | nodes.Pragma()
            | nodes.Goal()
        ):
            return _item(node)
        case nodes.Attribute():
            return f"{node.name}: {node.type}{_where(node)}"
        case (
            nodes.Variable()
            | nodes.Anonymous()
            | nodes.Constant()
            | nodes.Parameter()
            | nodes.Call()
            | nodes.Aggregate()
            | nodes.Collect()
        ):
            return _term(node)
        case (
            nodes.Atom()
            | nodes.Not()
            | nodes.Comparison()
            | nodes.Test()
            | nodes.Truth()
            | nodes.And()
            | nodes.Or()
            | nodes.Sort()
            | nodes.Limit()
            | nodes.Until()
        ):
            return _formula(node)
    assert_never(node)


# --- items -----------------------------------------------------------------------------------------------------------


def _program(program: nodes.Program) -> str:
    lines = [_item(item) for item in program.items]
    declares = any(isinstance(item, nodes.Declaration) and item.base for item in program.items)
    if program.bigdatalog and not declares:
        lines.insert(0, "database({}).")
    return "".join(line + "\n" for line in lines)


def _item(item: nodes.Item) -> str:
    match item:
        case nodes.Rule():
            return _rule(item)
        case nodes.Declaration():
            return _declaration(item)
        case nodes.TypeDeclaration():
            return f".type {item.name} {'<:' if item.subtype else '='} {' | '.join(item.parents)}"
        case nodes.Directive():
            options = ", ".join(f"{name}={_option(value)}" for name, value in item.options)
            return f".{item.kind} {item.relation}" + (f"({options})" if options else "")
        case nodes.Pragma():
            return f".{item.kind} {item.text}"
        case nodes.Goal():
            return f"?- {_formula(_conjunction(item))}."
    assert_never(item)


def _conjunction(goal: nodes.Goal) -> nodes.Formula:
    """The atom of a goal and its conditions."""
    match goal.rest:
        case None:
            return goal.atom
        case nodes.And(parts):
            return nodes.And((goal.atom, *parts))
        case condition:
            return nodes.And((goal.atom, condition))


def _rule(rule: nodes.Rule) -> str:
    heads = ", ".join(f"{head.predicate}({', '.join(map(_head_argument, head.arguments))})" for head in rule.heads)
    match rule.body:
        case None:
            return f"{heads}."
        case nodes.Or(parts):
            return f"{heads} :- " + ";\n    ".join(_alternative(part) for part in parts) + "."
        case body:
            return f"{heads} :- {_formula(body)}."


def _head_argument(term: nodes.Term) -> str:
    text = _term(term)
    if not isinstance(term, nodes.Aggregate) and _LIKE_AGGREGATE.match(text):
        return f"({text})"  # without brackets, min(x) is an aggregate here
    return text


def _declaration(item: nodes.Declaration) -> str:
    signature = f"{item.name}({', '.join(map(show, item.attributes))})"
    if item.base:
        return f"database({{{signature}}})."
    return " ".join([f".decl {signature}", *item.qualifiers])


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}


def _where(attribute: nodes.Attribute) -> str:
    if not attribute.where:
        return ""
    *low, last = attribute.where
    before = "".join(f"{_term(condition.right)} {_MIRRORED[condition.operator]} " for condition in low)
    return f" where {before}{_formula(last)}"


def _arguments(atom: nodes.Atom) -> str:
    if not atom.names:
        return _terms(atom.arguments)
    named = zip(map(_column, atom.names), map(_term, atom.arguments), strict=True)
    return ", ".join(f"{name}={term}" for name, term in named)


def _column(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d]\w*", name) else write_string(name)


def _option(value: str | int | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return write_string(value) if isinstance(value, str) else repr(value)


# --- formulas --------------------------------------------------------------------------------------------------------


def _formula(formula: nodes.Formula) -> str:
    match formula:
        case nodes.Atom():
            return f"{formula.predicate}({_arguments(formula)})"
        case nodes.Not():
            return f"!{_negated(formula.formula)}"
        case nodes.Comparison():
            return f"{_term(formula.left)} {formula.operator} {_term(formula.right)}"
        case nodes.Test():
            return _term(formula.call)
        case nodes.Truth():
            return "true" if formula.value else "false"
        case nodes.And():
            return ", ".join(_conjunct(part) for part in formula.parts)
        case nodes.Or():
            return "; ".join(_alternative(part) for part in formula.parts)
        case nodes.Sort():
            keys = ", ".join(f"({key.name}, {'desc' if descends else 'asc'})" for key, descends in formula.keys)
            return f"sort({keys})"
        case nodes.Limit():
            return f"limit({_term(formula.count)})"
        case nodes.Until():
            return f"{{{formula.function}[delta {formula.variable}] {formula.operator} {_term(formula.bound)}}}"
    assert_never(formula)


def _negated(formula: nodes.Formula) -> str:
    text = _formula(formula)
    return f"({text})" if isinstance(formula, nodes.And | nodes.Or | nodes.Comparison) else text


def _conjunct(formula: nodes.Formula) -> str:
    text = _formula(formula)
    return f"({text})" if isinstance(formula, nodes.And | nodes.Or) else text


def _alternative(formula: nodes.Formula) -> str:
    text = _formula(formula)
    return f"({text})" if isinstance(formula, nodes.Or) else text


# --- terms -----------------------------------------------------------------------------------------------------------


def _terms(terms: tuple[nodes.Term, ...]) -> str:
    return ", ".join(map(_term, terms))


def _term(term: nodes.Term, level: int = _LOOSEST) -> str:
    """The term, in brackets if it binds less strongly than `level`."""
    match term:
        case nodes.Variable():
            return term.name
        case nodes.Anonymous():
            return "_"
        case nodes.Constant():
            text = _constant(term)
            return f"({text})" if text.startswith("-") and level > UNARY else text
        case nodes.Parameter():
            return f"${term.name}"
        case nodes.Call():
            text, strength = _call(term)
            return f"({text})" if strength < level else text
        case nodes.Aggregate():
            return _aggregate(term)
        case nodes.Collect():
            return _collect(term)
    assert_never(term)


def _constant(constant: nodes.Constant) -> str:
    match constant.value:
        case bool(value):
            return "true" if value else "false"
        case str(value):
            return write_string(value)
        case value:
            return repr(value) + ("u" if constant.kind == "unsigned" else "")


def _call(call: nodes.Call) -> tuple[str, int]:
    """The call and how strongly it binds."""
    match call.function, call.arguments:
        case "neg", (nodes.Constant() as constant,):
            return f"-({_constant(constant)})", UNARY  # -5 would be a constant
        case "neg", (inner,):
            return f"-{_term(inner, UNARY)}", UNARY
        case "^", (left, right):
            strength = INFIX["^"]
            return f"{_term(left, strength + 1)} ^ {_term(right, strength)}", strength
        case sign, (left, right) if sign in _SIGNS:
            strength = INFIX[sign]
            return f"{_term(left, strength)} {sign} {_term(right, strength + 1)}", strength
        case function, arguments:
            return f"{function}({_terms(arguments)})", _TIGHTEST


def _aggregate(aggregate: nodes.Aggregate) -> str:
    name = f"m{aggregate.function}" if aggregate.monotonic else aggregate.function
    arguments = _terms(aggregate.arguments)
    if len(aggregate.arguments) > 1:
        arguments = f"({arguments})"
    if aggregate.limit is not None:
        arguments = f"{_term(aggregate.limit)}, {arguments}"
    return f"{name}({arguments})"


def _collect(collect: nodes.Collect) -> str:
    words = [collect.function]
    match collect.target:
        case None:
            pass
        case nodes.Variable(name) if name not in INFIX_WORDS:
            words.append(name)
        case target:
            words.append(f"({_term(target)})")
    return " ".join([*words, ":", "{", _formula(collect.body), "}"])
