"""The slow truth: the whole language, evaluated on the syntax tree with plain sets.

Nothing here knows how the product analyses, plans or runs a program; what both share is the tree. `evaluate` goes

    booleans (what `True` means) -> normal (rules with one head and one conjunction) -> kinds (where integers become
    floats) -> fixpoint (components, rounds; iteration for indexed ones) -> bodies (bindings) -> heads (rows, with
    aggregates)

and `values` has the functions. The order of goals, rules and rows has no influence on the answer.
"""

from __future__ import annotations

from naive.fixpoint import LimitReached, evaluate
from naive.heads import EvaluationError
from naive.normal import InvalidProgram

__all__ = ["EvaluationError", "InvalidProgram", "LimitReached", "evaluate"]
