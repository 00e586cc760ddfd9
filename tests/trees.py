"""Trees checked without the product's evaluators: rules are applied to the rows of a tree by the reference.

A positive atom `p` of a rule reads `p__low`, the rows that it may rest on; negated atoms and aggregates read `p`, all
rows; the head is `p__new`. So one application of a rule is a program without recursion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import naive
from emberlog.source import Source
from emberlog.syntax import nodes
from emberlog.syntax.parser import parse
from emberlog.why.tree import Node, Why, walk
from naive.values import Row, Value
from strategies.cases import near, same_rows

Rows = Mapping[str, Iterable[Row]]
READS = ("given", "rule", "total", "repeat", "cut")  # the kinds of nodes that stand for an atom
BEST = ("min", "max", "topk")


def check(why: Why, given: Rows, final: Rows) -> None:
    """Each node follows from its children by its rule, leaves are given rows, nothing rests on itself."""
    unfolded = {key(node): node for _, node in walk(why.root) if node.kind == "rule"}
    for _, node in walk(why.root):
        match node.kind:
            case "given" if not node.note.startswith("contributes"):
                assert whole(node, given) is not None, node
            case "rule":
                check_rule(node, final)
            case "repeat":
                assert key(node) in unfolded, node
            case "total":
                check_total(node)
            case "absence":
                assert node.relation in node.text
            case _:
                pass
    check_order(why.root)
    assert height(why.root, unfolded) == why.height


def key(node: Node) -> tuple[str, tuple[Value, ...]]:
    assert node.values is not None
    return node.relation, node.values


def whole(node: Node, rows: Rows) -> Row | None:
    """The row of a node among these; columns that the run did not read are None in the node."""
    values = key(node)[1]
    same = (row for row in rows.get(node.relation, ()) if all(v in (None, r) for v, r in zip(values, row, strict=True)))
    return next(same, None)


def check_rule(node: Node, final: Rows) -> None:
    """The rule gives the row, if its positive atoms read nothing but the children."""
    low: dict[str, list[Row]] = {}
    for child in node.children:
        if child.kind in READS:
            row = whole(child, final)
            assert row is not None, child
            low.setdefault(child.relation, []).append(row)
    (rule,) = parse(Source("<rule>", node.rule)).items
    assert isinstance(rule, nodes.Rule)
    found = applied([rule], low, final)[node.relation]
    assert any(same_rows([key(node)[1]], [row]) for row in found), (node.rule, node.values, low, found)


def check_total(node: Node) -> None:
    """Sums and counts with all their contributions: these come to the value."""
    parts = [child for child in node.children if child.kind in ("contribution", "given")]
    complete = not any(child.kind == "rest" for child in node.children)
    function = node.note.removeprefix("the ").partition(" of ")[0]
    if complete and function == "count" and all(child.kind == "contribution" for child in parts):
        assert len(parts) in key(node)[1], node
    if complete and function == "sum" and all(child.kind == "contribution" for child in parts):
        total = sum(float(child.text.partition(" for ")[0]) for child in parts)
        assert any(near(total, value) for value in key(node)[1]), node


def check_order(root: Node) -> None:
    """No row stands below itself, also where a row is named a second time."""
    below: dict[object, set[object]] = {}
    for _, node in walk(root):
        if node.kind in ("rule", "total"):
            reads = {key(child) for child in node.children if child.kind in READS and node.kind == "rule"}
            below.setdefault(key(node), set()).update(reads)
    done: set[object] = set()
    for start in below:
        path: list[tuple[object, Iterator[object]]] = [(start, iter(below[start]))] if start not in done else []
        on_path = {start}
        while path:
            fact, others = path[-1]
            other = next(others, None)
            if other is None:
                path.pop()
                on_path.discard(fact)
                done.add(fact)
            elif other not in done:
                assert other not in on_path, f"{other} rests on itself"
                on_path.add(other)
                path.append((other, iter(below.get(other, ()))))


def height(node: Node, unfolded: Mapping[Any, Node]) -> int:
    """The height of a tree; rows that are named a second time have that of their first place."""
    match node.kind:
        case "given":
            return 0
        case "rule":
            return 1 + max((height(child, unfolded) for child in node.children if child.kind in READS), default=0)
        case "repeat":
            return height(unfolded[key(node)], unfolded)
        case _:
            return 1


# --- rules, applied once ---------------------------------------------------------------------------------------------


def applied(
    rules: Iterable[nodes.Rule], low: Rows, final: Rows, params: Mapping[str, Value] | None = None
) -> dict[str, set[Row]]:
    """The rows that one application of rules gives, by predicate."""
    program = nodes.Program(tuple(map(once, rules)))
    facts = {
        **{name: list(rows) for name, rows in final.items()},
        **{f"{name}__low": list(r) for name, r in low.items()},
    }
    floats = {
        (name + suffix, place)
        for relations in (final, low)
        for name, rows in relations.items()
        for row in rows
        for place, value in enumerate(row)
        if isinstance(value, float)
        for suffix in ("", "__low", "__new")
    }
    found = naive.evaluate(program, facts, params or {}, floats=floats)
    return {name.removesuffix("__new"): rows for name, rows in found.items() if name.endswith("__new")}


def once(rule: nodes.Rule) -> nodes.Rule:
    heads = tuple(replace(head, predicate=f"{head.predicate}__new") for head in rule.heads)
    return replace(rule, heads=heads, body=None if rule.body is None else lowered(rule.body))


def lowered(formula: nodes.Formula) -> nodes.Formula:
    match formula:
        case nodes.Atom(predicate):
            return replace(formula, predicate=f"{predicate}__low")
        case nodes.And(parts) | nodes.Or(parts):
            return replace(formula, parts=tuple(map(lowered, parts)))
        case _:
            return formula


def smallest_heights(
    text: str, given: Rows, final: Rows, params: Mapping[str, Value] | None = None
) -> dict[tuple[str, Row], int]:
    """The height of the smallest tree of each row, by rounds: a round applies all rules to what the last one had."""
    rules = [item for item in parse(Source("<program>", text)).items if isinstance(item, nodes.Rule)]
    rules = [rule for rule in rules if rule.body is not None]
    totals = {head.predicate for rule in rules for head in rule.heads if is_total(head)}
    heights = {(name, row): 0 for name, rows in given.items() for row in rows if name not in totals}
    heights |= {(name, row): 1 for name in totals for row in final[name]}
    plain = [replace(rule, heads=tuple(map(without_best, rule.heads))) for rule in rules]
    plain = [rule for rule in plain if all(head.predicate not in totals for head in rule.heads)]
    for round in count(1):
        low: dict[str, list[Row]] = {}
        for (name, row), height in heights.items():
            if height < round:
                low.setdefault(name, []).append(row)
        new = applied(plain, low, final, params)
        added = {(n, row) for n, rows in new.items() for row in rows if row in final[n]} - heights.keys()
        if not added and round > 1:
            break
        heights |= dict.fromkeys(added, round)
    return heights


def is_total(head: nodes.Atom) -> bool:
    found = [term for term in head.arguments if isinstance(term, nodes.Aggregate)]
    return len(found) > 1 or any(term.function not in BEST for term in found)


def without_best(head: nodes.Atom) -> nodes.Atom:
    """The head with what goes into its minimum or maximum: rows that are no rows of the result are left out later."""
    terms = (term.arguments[-1] if isinstance(term, nodes.Aggregate) else term for term in head.arguments)
    return replace(head, arguments=tuple(terms))
