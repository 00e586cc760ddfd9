"""Arguments by name, by the columns that a program declares."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from emberlog.syntax import nodes


def by_position(program: nodes.Program) -> nodes.Program:
    """The program with `_` for each column that an atom does not name."""
    columns = {
        item.name: [attribute.name for attribute in item.attributes]
        for item in program.items
        if isinstance(item, nodes.Declaration)
    }

    def changed(node: Any) -> Any:
        if isinstance(node, tuple):
            return tuple(map(changed, node))
        if not is_dataclass(node) or isinstance(node, type):
            return node
        rebuilt: Any = replace(
            node, **{f.name: changed(getattr(node, f.name)) for f in fields(node) if f.name != "span"}
        )
        if isinstance(rebuilt, nodes.Atom) and rebuilt.names:
            given = dict(zip(rebuilt.names, rebuilt.arguments, strict=True))
            return nodes.Atom(
                rebuilt.predicate, tuple(given.get(name, nodes.Anonymous()) for name in columns[rebuilt.predicate])
            )
        return rebuilt

    has_names = any(getattr(node, "names", ()) for item in program.items for node in inside(item))
    return replace(program, items=changed(program.items)) if has_names else program


def inside(node: Any) -> list[Any]:
    """The node and all nodes below it."""
    if isinstance(node, tuple):
        return [found for part in node for found in inside(part)]
    if not is_dataclass(node):
        return []
    below = [found for f in fields(node) if f.name != "span" for found in inside(getattr(node, f.name))]
    return [node, *below]
