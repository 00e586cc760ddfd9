"""The slow truth about programs of rows: naive rounds over Python sets and dictionaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np

from emberlog.components.compositions import Composition, RowsProgram, Side

Number: TypeAlias = int | float
Facts: TypeAlias = dict[tuple[int, int], Number]
"""Pairs with their values; sets have the value 0."""


def evaluate(
    program: RowsProgram, statics: Mapping[str, list[tuple[Number, ...]]], exits: Mapping[str, list[tuple[Number, ...]]]
) -> dict[str, Facts]:
    """All facts of the recursive relations. Static relations may have several values for a pair."""
    better = {relation.name: (max if relation.kind == "max" else min) for relation in program.recursive}
    facts: dict[str, Facts] = {relation.name: {} for relation in program.recursive}

    def offer(name: str, pair: tuple[int, int], value: Number) -> bool:
        old = facts[name].get(pair)
        new = value if old is None else better[name](old, value)
        facts[name][pair] = new
        return new != old

    for name, rows in exits.items():
        for x, y, *rest in rows:
            offer(name, (int(x), int(y)), rest[0] if rest else 0)

    def read(side: Side) -> list[tuple[int, int, Number]]:
        if side.relation in facts:
            rows = [(x, y, value) for (x, y), value in facts[side.relation].items()]
        else:
            rows = [(int(x), int(y), rest[0] if rest else 0) for x, y, *rest in statics[side.relation]]
        return [(y, x, value) for x, y, value in rows] if side.flipped else rows

    changed = True
    while changed:
        changed = False
        for rule in program.rules:
            for x, y, value in list(derive(rule, read)):
                if not (rule.irreflexive and x == y):
                    changed |= offer(rule.head, (x, y), value if rule.value is not None else 0)
    return facts


def derive(rule: Composition, read: object) -> Iterator[tuple[int, int, Number]]:
    assert callable(read)
    left = read(rule.left)
    if rule.right is None:
        yield from left
        return
    by_z: dict[int, list[tuple[int, Number]]] = {}
    for z, y, b in read(rule.right):
        by_z.setdefault(z, []).append((y, b))
    for x, z, a in left:
        for y, b in by_z.get(z, ()):
            yield x, y, made(rule.value, a, b)


def made(operator: str | None, a: Number, b: Number) -> Number:
    match operator:
        case "left" | None:
            return a
        case "right":
            return b
        case "+":
            return a + b
        case "*":
            return a * b
        case "min":
            return min(a, b)
        case _:
            return max(a, b)


def columns(rows: list[tuple[Number, ...]], valued: bool, dtype: type = np.int64) -> tuple[np.ndarray, ...]:
    """Rows as arrays."""
    pairs = [np.array([row[i] for row in rows], np.int64) for i in (0, 1)]
    return (*pairs, np.array([row[2] for row in rows], dtype)) if valued else tuple(pairs)
