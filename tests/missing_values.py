"""Rules with values that may be missing, and what they give: a set of rows, or None for an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

Row: TypeAlias = tuple[Any, ...]

LARGE = 2**63 - 1

FACTS: dict[str, list[Row]] = {
    "a": [("x",), ("5",)],
    "z": [(0,), (2,)],
    "b": [(3, 0), (5, 1)],
    "c": [(7,)],
    "l": [(1,), (LARGE,)],
    "f": [(-1.0,), (4.0,)],
    "none": [],
    "none2": [],
    "o": [(0,)],
    "w": [(2,)],
    "k": [(1,)],
    "five": [(5,)],
    "pair": [(3, 0)],
    "nine": [(9, 9)],
    "three": [(3, 5)],
    "u": [(5, LARGE), (1, 5), (0, 0), (2, LARGE)],
    "v2": [(LARGE, LARGE), (1, 0), (5, 5), (0, LARGE), (1, 5), (0, 0), (5, 0), (0, 5)],
    "few": [(0,), (1,), (2,)],
    "twice": [(0, 1), (2, 2)],
}

DECLARED = ".decl none(x: number)\n.decl none2(x: number, y: number)\n"

# Rules with a place for their literals, these, and the answer in whatever order they stand.
ORDERS: list[tuple[str, tuple[str, ...], set[Row] | None]] = [
    # One definition of n has no value, whatever the others are.
    *(
        ("p() :- %s.", ("o(x)", "w(v)", other, "n = 10 / x", "n > 100"), None)
        for other in (
            "n = 10 / v",
            "n = v + 1",
            "n = 77",
            "n = range(0, 3)",
            "n = count : {w(_)}",
            "n = max q : {w(q)}",
            "n = max q : {none(q)}",
        )
    ),
    ("p() :- %s.", ("w(v)", "n = 5 / v", "n = sum y : {l(y)}", "n > 100"), None),
    ("p() :- %s.", ("w(v)", "n = 10 / v", "n = v + 3", "n = range(0, 9)"), {()}),
    ("p() :- %s.", ("w(v)", "n = 10 / v", "n = v + 4"), set()),
    # Variables that are equal are one variable.
    ("p() :- %s.", ("o(x)", "w(v)", "v = n", "n = 10 / x", "c(v)"), None),
    ("p() :- %s.", ("o(v)", "v = m", "n = 10 / m", "none2(m, n)"), None),
    ("p() :- %s.", ("o(x)", "m = n", "n = 10 / x", "m = 5", "m > 100"), None),
    ("p(n) :- %s.", ("w(v)", "v = m", "m = n", "n > 1"), {(2,)}),
    ("p(q) :- q = count : {%s}.", ("o(x)", "w(v)", "v = n", "n = 10 / x", "c(v)"), None),
    ("p(q) :- w(v), q = count : {%s}.", ("o(x)", "v = n", "n = 10 / x", "c(x)"), {(0,)}),
    ("p() :- %s.", ("o(x)", "n = x % x", "x = n", "pair(n, v)"), set()),
    ("p() :- %s.", ("o(x)", "n = x % x", "x = n", "pair(v, n)"), None),
    # What is dropped binds nothing; another atom may.
    ("p() :- %s.", ("o(x)", "w(v)", "pair(10 / x, y)", "nine(10 / v, y)"), set()),
    ("p() :- %s.", ("o(x)", "w(v)", "pair(10 / x, y)", "nine(v + 1, y)"), set()),
    ("p() :- %s.", ("o(x)", "w(v)", "pair(10 / x, y)", "nine(10 / v, y)", "y > 100"), set()),
    ("p() :- %s.", ("o(x)", "w(v)", "pair(10 / x, y)", "three(v + 1, y)", "y > 100"), set()),
    ("p() :- %s.", ("o(x)", "w(v)", "pair(10 / x, y)", "three(v + 1, y)", "y > 3"), None),
    ("p() :- %s.", ("o(x)", "pair(10 / x, y)", "three(10 / x, y)", "y > 100"), None),
    ("p(q) :- q = count : {%s}.", ("o(x)", "w(v)", "pair(10 / x, y)", "nine(10 / v, y)"), {(0,)}),
    # What is computed from a missing value is missing before an atom is asked.
    ("p() :- %s.", ("o(x)", "k(y)", "n = 10 / x", "m = y + n", "none(m)"), None),
    ("p() :- %s.", ("o(x)", "k(m)", "n = 10 / x", "m = n + 1", "m > 100"), None),
    ("p() :- %s.", ("n = sum y : {l(y)}", "none(n)"), None),
    ("p() :- %s.", ("o(x)", "k(y)", "y = count : {none2(_, n)}", "n = 10 / x", "y > 100"), None),
    ("p(count<10 / x>) :- %s.", ("o(x)", "w(_)"), None),
    ("p(count<10 / x>) :- %s.", ("w(x)", "k(_)"), {(1,)}),
    # Two aggregates of one variable are compared.
    (
        "p() :- %s.",
        ("n = count : {k(q)}", "y = count : {k(q), q = x}", "l(x)", "n = y", "y = y + x"),
        set(),
    ),
    ("p(x) :- %s.", ("y = count : {k(_)}", "y = count : {k(q), q = x}", "l(x)", "z = x - 1", "z > -1"), {(1,)}),
    # Definitions in a circle are conditions.
    ("p() :- %s.", ("o(x)", "five(y)", "x = y + 1", "y = 10 / x"), set()),
    ("p() :- %s.", ("o(x)", "five(y)", "x = y - 5", "y = 10 / x"), None),
    ("p() :- %s.", ("w(x)", "five(y)", "x = y - 3", "y = 10 / x"), {()}),
    ("p(x) :- %s.", ("u(x % x, y)", "x = n - 1", "v2(x + y, n)", "v2(x, _)"), set()),
    ("p() :- %s.", ("twice(y, _)", "w(x)", "x = count : {few(q), q = 10 / y}", "y = sum q : {few(q), q = x}"), set()),
]


def in_orders(literals: Sequence[str]) -> list[tuple[str, ...]]:
    """The literals as they are, backwards, and from the middle on."""
    middle = len(literals) // 2
    return list(dict.fromkeys((tuple(literals), tuple(literals[::-1]), (*literals[middle:], *literals[:middle]))))


PLAIN: list[tuple[str, set[Row] | None]] = [
    ("p(x) :- a(x), n = to_number(x), n > 0.", None),
    ("p(x) :- a(x), to_number(x) > 0.", None),
    ('p(x) :- a(x), n = to_number(x), n > 0, k = x, k != "x".', {("5",)}),
    ("p(x) :- a(x), n = to_number(x).", None),
    ("p(x) :- a(x), n = to_number(x), m = n, m > 0.", None),
    ('p(x) :- a(x), n = to_number(x), m = n + 1, x = "5", m > 0.', {("5",)}),
    ("p(n) :- z(x), x != 0, n = 10 / x.", {(5,)}),
    ("p(n) :- n = 10 / x, z(x), 0 != x.", {(5,)}),
    # What a missing variable stands in is dropped, atoms too, wherever they stand.
    ("p(y) :- z(x), n = 10 / x, b(n, y), c(y).", None),
    ("p(y) :- b(n, y), c(y), z(x), n = 10 / x.", None),
    ("p(y) :- z(x), n = 10 / x, b(n, y), none(y).", set()),
    ("p(y) :- z(x), n = 10 / x, b(n, y), y > 100.", None),  # nothing else binds y
    ("p(x) :- z(x), n = 10 / x, !b(n, _).", None),
    ("p(x) :- z(x), !b(10 / x, _), none(x).", set()),
    ("p(x) :- z(x), b(10 / x, _).", None),
    ("p(x) :- z(x), b(10 / x, _), x > 0.", {(2,)}),
    ("p(x) :- z(x), n = 10 / x, n = 5, n != 5.", None),  # n has no value where x = 0, whatever else is said of it
    ("p(x) :- z(x), n = 10 / x, n = 5, n != 5, x > 0.", set()),
    ("p(x) :- z(x), n = 5, n = 10 / x, n != 5.", None),
    ("p(x) :- z(x), n = 5, n = 10 / x, n != 5, x > 0.", set()),
    ("p(x) :- z(x), c(y), n = y, 10 / x = n, n < 0.", None),
    ("p(x) :- z(x), n = 10 / x, c(y), m = 5 / (y - 1), n = m, m > 3.", None),  # n and m are one variable
    # An atom that alone binds what an equation needs has a say: here n has a value.
    ("p(n) :- b(n, x), n = 10 / x, n > 5.", set()),
    ("p(n) :- b(n, x), n = 10 / x, n > 0.", None),
    # Aggregates: of values that are missing, over bindings that do not exist, not used, one in the other.
    ("p(s) :- s = sum y : {l(y)}, s > 0.", None),
    ("p(s) :- s = sum y : {l(y), y < 2}, s > 0.", {(1,)}),
    ("p(x) :- z(x), x > 100, s = sum y : {l(y)}.", set()),
    ("p(x) :- z(x), s = sum y : {l(y)}, x > 100.", set()),
    ("p(x) :- z(x), s = sum y : {l(y)}.", None),
    ("p(x) :- z(x), s = sum y : {l(y)}, s > 0, x > 100.", set()),
    ("p(k) :- k = count : {z(_), s = sum y : {l(y)}}.", None),
    ("p(k) :- k = count : {none(_), s = sum y : {l(y)}}.", {(0,)}),
    ("p(x) :- z(x), k = count : {b(_, y), y < 10 / x}.", None),
    ("p(x) :- z(x), n = 10 / x, k = count : {b(_, n)}, x > 0.", {(2,)}),
    ("p(x) :- z(x), n = 10 / x, k = count : {b(_, n)}, k > 5.", None),
    ("p(k) :- k = count : {z(x), n = 10 / x, n > 100}.", None),
    ("p(k) :- k = max n : {z(x), n = 10 / x, x > 0}.", {(5,)}),
    ("p(x) :- z(x), x = range(0, 10 / x).", None),
    ("p(y) :- z(x), y = range(0, 3, x), x > 0.", {(0,), (2,)}),
    ("p(y) :- l(x), y = x + 1, y > 0.", None),
    ("p(x) :- w(x), x > 100, -(-9223372036854775808) > x.", set()),
    ("p(x) :- w(x), -(-9223372036854775808) > x.", None),
    ("p(y) :- f(x), y = sqrt(x), y >= 0.", None),
    ("p(min<y>) :- f(x), y = x / 0.0.", None),
    ("p(x, max<y>) :- f(x), y = x / 0.0.", None),
    ("p(min<sqrt(-1.0)>) :- f(_).", None),
    ("p(max<y>) :- y = log(0.0).", None),
    ("p(y) :- y = max z : {f(x), z = x / 0.0}.", None),
    ("p(min<y>) :- f(x), x > 100.0, y = x / 0.0.", set()),
    ("p(x) :- z(x), !(b(_, y), y < 10 / x).", None),
    # A sum that stands beside another aggregate is computed for that one's groups, too.
    ("p(x, s) :- z(x), s = sum y : {l(y), y > x}, k = count : {b(x, _)}.", None),
    ("p(x, s) :- z(x), s = sum y : {l(y), y > x}, k = sum y : {b(_, y), y > x}, m = sum y : {l(y), y > x}.", None),
    ("p(x, s) :- z(x), s = sum y : {l(y), y > x}, k = count : {b(x, _)}, x = 2.", {(2, LARGE)}),
    ("p(s) :- z(x), s = sum y : {l(y)}, k = max y : {z(y), y >= x}. q(s) :- z(x), s = sum y : {l(y)}.", None),
    # Matched in the atoms of a recursion, which has no row yet where the value is missing.
    ("p(y) :- none(y). p(y) :- z(x), n = 10 / x, p(n), y = x.", None),
    ("p(y) :- none(y). p(y) :- z(x), p(10 / x), y = x.", None),
    ("p(y) :- none(y). p(y) :- z(x), x > 0, p(10 / x), y = x.", set()),
    ("p(y) :- c(y). p(y) :- p(x), y = x - 1, y > 5.", {(7,), (6,)}),
    ("p(y) :- l(y). p(y) :- p(x), y = x + 1, b(y, _).", None),
    ("p(y) :- l(y). p(y) :- p(x), x < 9, y = x + 2, b(y, _).", {(1,), (3,), (5,), (LARGE,)}),
    # Joins, negations and other aggregates that drop the binding come first, however an engine orders them.
    ("p(x) :- z(x), n = 10 / x, c(x).", set()),
    ("p(x) :- z(x), n = 10 / x, !z(x).", set()),
    ("p(x) :- z(x), s = sum y : {l(y)}, k = count : {c(_)}, k > 3, s > 3.", set()),
    ("p(x) :- z(x), k = count : {z(_)}, c(k).", set()),  # a sum or count that an atom mentions is no zero
]
MISSING = PLAIN + [(rule % ", ".join(order), answer) for rule, parts, answer in ORDERS for order in in_orders(parts)]
