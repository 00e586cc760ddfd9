"""Which ids can occur in a column at all: facts of one column, without joins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from emberlog.components.compositions import RowsProgram, Side
from emberlog.kernels.rows.relations import StaticRows

Marks: TypeAlias = npt.NDArray[np.bool_]


def columns_of(
    program: RowsProgram, domains: Mapping[str, int], statics: Mapping[str, StaticRows], exits: Mapping[str, StaticRows]
) -> dict[str, Marks]:
    """For each recursive relation, the ids that its second column can have: those that some rule can bring there.

    A row that has them all is complete.
    """
    marks = {
        name: (_marked(pairs.columns(False)[0], sizes[0]), _marked(pairs.columns(False)[1], sizes[1]))
        for given in (statics, exits)
        for name, pairs in given.items()
        for sizes in [tuple(domains[domain] for domain in _domains(program, name))]
    }
    for relation in program.recursive:
        sizes = domains[relation.first], domains[relation.second]
        marks.setdefault(relation.name, (np.zeros(sizes[0], np.bool_), np.zeros(sizes[1], np.bool_)))

    def end(side: Side, place: int) -> Marks:
        return marks[side.relation][place ^ side.flipped]

    changed = True
    while changed:
        changed = False
        for rule in program.rules:
            for own, more in zip(marks[rule.head], (end(rule.left, 0), end(rule.sides()[-1], 1)), strict=True):
                if (more & ~own).any():
                    own |= more
                    changed = True
    return {relation.name: marks[relation.name][1] for relation in program.recursive}


def _domains(program: RowsProgram, name: str) -> tuple[str, str]:
    relation = program.names()[name]
    return relation.first, relation.second


def _marked(ids: npt.NDArray[np.int32], size: int) -> Marks:
    marks = np.zeros(size, np.bool_)
    marks[ids] = True
    return marks
