"""Answers as lines of text and as JSON."""

from __future__ import annotations

import json
from typing import Any

from emberlog.deep import Deep, run_deep
from emberlog.diagnostics import UsageError
from emberlog.why.tree import Answer, Node, Why

MARKS = {"holds": "✓ ", "fails": "✗ "}


def label(node: Node) -> str:
    """What a node is called on its line."""
    match node.kind:
        case "missing":
            return f"{node.text} does not hold"
        case "contribution":
            return node.text
        case _:
            return MARKS.get(node.kind, "") + node.text


def remarks(node: Node) -> str:
    """What is said behind it: the rule that gives it, and the note."""
    rule = node.rule if node.kind in ("rule", "contribution") else ""
    parts = (f"by {rule}" if rule else "", f"({node.place})" if node.place else "", node.note)
    return "  ".join(part for part in parts if part)


def text(answer: Answer) -> str:
    """The tree as lines, children below their parents."""
    lines: list[str] = []
    waiting: list[tuple[Node, str, str]] = [(answer.root, "", "")]
    while waiting:
        node, first, indent = waiting.pop()
        told = remarks(node)
        lines.append(f"{first}{label(node)}" + (f"    {told}" if told else ""))
        below = [
            (child, indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  "))
            for child in node.children
            for last in [child is node.children[-1]]
        ]
        waiting.extend(reversed(below))
    return "\n".join([*lines, *([answer.remark] if answer.remark else [])])


def as_json(answer: Answer) -> str:
    """The tree as an object of JSON."""
    found: dict[str, Any] = {"question": answer.title, "tree": run_deep(_object(answer.root))}
    if isinstance(answer, Why):
        found |= {"height": answer.height, "smallest": answer.smallest, "examined": answer.examined}
    try:
        return json.dumps(found, indent=2, ensure_ascii=False, default=str)
    except RecursionError:
        raise UsageError("the tree is too deep for JSON", fix="unfold less of it: depth=100") from None


def _object(node: Node) -> Deep[dict[str, Any]]:
    """A node as an object, without what it does not have."""
    children = []
    for child in node.children:
        children.append((yield _object(child)))
    fields = {
        "kind": node.kind,
        "text": node.text,
        "note": node.note,
        "relation": node.relation,
        "values": None if node.values is None else list(node.values),
        "rule": node.rule,
        "place": node.place,
        "children": children,
    }
    return {name: value for name, value in fields.items() if value not in ("", None) and (value or name == "values")}
