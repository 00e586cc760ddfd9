"""The words of the language that the parser and the printer must agree on."""

from __future__ import annotations

COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})

# How strongly each infix operator binds; all group to the left but `^`.
INFIX = {
    "lor": 1, "land": 2, "bor": 3, "bxor": 4, "band": 5, "bshl": 6, "bshr": 6,
    "+": 7, "-": 7, "*": 8, "/": 8, "%": 8, "mod": 8, "^": 10,
}  # fmt: skip
UNARY = 9
"""How strongly the unary minus, `bnot` and `lnot` bind: `-2 ^ 2` is `-(2 ^ 2)`."""
INFIX_WORDS = frozenset(word for word in INFIX if word.isalpha())
PREFIX_WORDS = frozenset({"bnot", "lnot"})

# Aggregates of heads: the written name, and the canonical one with whether it is a monotonic form.
AGGREGATES = {
    "min": ("min", False), "max": ("max", False), "sum": ("sum", False), "count": ("count", False),
    "countd": ("countd", False), "avg": ("avg", False), "mean": ("avg", False), "topk": ("topk", False),
    "top": ("top", False),
    "arg_min": ("arg_min", False), "arg_max": ("arg_max", False),
    "mmin": ("min", True), "mmax": ("max", True), "msum": ("sum", True), "mcount": ("count", True),
}  # fmt: skip

# Aggregates over a body of their own: the written name and the canonical one.
COLLECTORS = {"count": "count", "sum": "sum", "min": "min", "max": "max", "avg": "avg", "mean": "avg"}

# Goals that say of a relation that only its extreme rows count, and the aggregate that says the same in a head.
EXTREMA = {"is_min": "min", "is_max": "max"}

TESTS = frozenset({"contains", "match", "starts_with", "ends_with"})
"""Functions that stand as goals."""

DELTAS = ("delta", "Δ", "δ", "∆")
"""What marks a change in `{sum[delta r] < 0.001}`."""

RELATION_DIRECTIVES = frozenset({"input", "output", "printsize", "limitsize"})
DIRECTIVES = RELATION_DIRECTIVES | {"decl", "type", "symbol_type", "number_type", "pragma", "plan"}
QUALIFIERS = frozenset({
    "inline", "no_inline", "brie", "btree", "btree_delete", "eqrel", "magic", "no_magic", "overridable",
    "input", "output", "printsize", "choice",
})  # fmt: skip
