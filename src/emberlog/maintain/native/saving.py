"""What the loops keep of facts, as the tables that `recursion.py` saves: either method goes on from them.

For each rule a table of the facts that it supports: key, value, rank and identity of the support.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from emberlog.analysis.program import CoreRule
from emberlog.kernels.upkeep.layout import NEW, OLD, RANK, RULE, SUPPORT
from emberlog.maintain.kept import Tables
from emberlog.maintain.native.encoding import Encoding, Words
from emberlog.maintain.native.shapes import Shape, support_of
from emberlog.maintain.nests import Signatures
from emberlog.maintain.searches import identity_of, identity_types
from emberlog.types import NUMBER, Type


@dataclass(frozen=True)
class RuleLayout:
    """Where the words of a rule's table stand in the rows of its head, by the columns of the table."""

    name: str
    number: int
    head: Shape
    places: tuple[int, ...]
    types: tuple[Type, ...]


def layouts(
    names: Sequence[str], rules: Sequence[CoreRule], shapes: Sequence[Shape], signatures: Signatures
) -> list[RuleLayout]:
    by_name = {shape.name: shape for shape in shapes}
    return [_layout(number, rule, names, by_name[rule.predicate], signatures) for number, rule in enumerate(rules)]


def _layout(number: int, rule: CoreRule, names: Sequence[str], head: Shape, signatures: Signatures) -> RuleLayout:
    signature = signatures[rule.predicate]
    columns = (*signature.groups, *signature.aggregates)
    support = support_of(rule, names, signatures)
    identity = [
        head.width + SUPPORT + support.index(term)
        if term in support
        else next(i for i in signature.groups if rule.arguments[i] == term)
        for term in identity_of(rule, names, signatures)
    ]
    types = (*(signature.columns[i].type for i in columns), NUMBER, *identity_types(rule, names, signatures))
    return RuleLayout(f"supports{number}", number, head, (*columns, head.width + RANK, *identity), types)


def save_facts(layout: RuleLayout, rows: Words, encoding: Encoding) -> pa.Table:
    """The table of a rule, from the rows of its head."""
    mine = rows[rows[:, layout.head.width + RULE] == layout.number]
    arrays = [
        encoding.array(mine[:, place].copy(), type_) for place, type_ in zip(layout.places, layout.types, strict=True)
    ]
    return pa.Table.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))])


def load_facts(layouts: Sequence[RuleLayout], head: Shape, tables: Tables, encoding: Encoding) -> Words:
    """The rows of a head, from the tables of its rules."""
    parts = [np.zeros((0, head.width + 1 + head.extra), np.int64)]
    for layout in layouts:
        if layout.head is head:
            found = tables[layout.name]
            rows = np.zeros((found.num_rows, head.width + 1 + head.extra), np.int64)
            for i, (place, type_) in enumerate(zip(layout.places, layout.types, strict=True)):
                rows[:, place] = encoding.words(found.column(i), type_)
            rows[:, head.width] = NEW | OLD
            rows[:, head.width + RULE] = layout.number
            parts.append(rows)
    return np.concatenate(parts)
