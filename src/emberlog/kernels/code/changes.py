"""How a sum hands on that another sum, or a group it reads, has changed.

A contribution counts once, with its current value. When the sum that a nest starts from grows by d, a rule whose
value is a multiple of it adds the same multiple of d. Any other rule adds its new value and takes the old one back. A
rule that does not use the value adds something only when the group is new.
"""

from __future__ import annotations

from typing import Literal

from emberlog.components.domains import variables_of
from emberlog.components.linear import is_multiple
from emberlog.components.nests import Nest, read_by
from emberlog.components.program import KernelProgram

Change = Literal["whole", "multiple", "difference", "first"]


def change_of(nest: Nest, program: KernelProgram) -> Change:
    """What a nest gives to the sum in its head each time it runs; `whole` for heads that do not add up."""
    table, head = program.table(nest.table), program.table(nest.rule.head)
    assert table is not None and head is not None
    if head.fold != "sum" or table.fold != "sum":
        return "whole"
    assert head.value is not None
    moving = moving_of(nest, program)
    used = any(not moving.isdisjoint(read_by(step)) for step in (*nest.checks, *nest.steps))
    if not used and moving.isdisjoint(variables_of(nest.rule.arguments[head.value])):
        return "first"
    return "multiple" if is_multiple(nest.rule, program) else "difference"


def moving_of(nest: Nest, program: KernelProgram) -> frozenset[str]:
    """The variables of a nest whose values change while the fact that they come from stays."""
    table = program.table(nest.table)
    assert table is not None
    start = {name for position, name in nest.binds if position == table.value}
    return nest.rule.moved | start
