"""Which columns and variables hold floats or unsigned numbers, and the conversion of values that enter them.

Values carry their types (see `values`), so all that must be known beforehand is where an integer has to become
something else: `p(1)` is `p(1.0)` when another rule, a declaration or a fact makes the column a float one. Kinds are
ordered "" < "unsigned" < "decimal" < "float"; where several meet, the greatest wins. Everything that is not a number is
"". Decimals are what facts show, and what is computed from them.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from emberlog.syntax import nodes
from naive.normal import Body, Computed, Gather, Rule, Spread, mentions
from naive.values import Row, Undefined, Unsigned, Value, canonical, moment, to_float, to_unsigned

SEEN: Mapping[type, str] = {float: "float", Unsigned: "unsigned", Decimal: "decimal"}
ORDER = ("", "unsigned", "decimal", "float")
FLOAT_FUNCTIONS = frozenset({"exp", "log", "sqrt", "tanh", "to_float"})
PLAIN_FUNCTIONS = frozenset(
    {"ord", "strlen", "to_number", "land", "lor", "lnot", "cat", "substr", "to_string", "contains", "match"}
    | {"starts_with", "ends_with", "lower", "upper", "trim", "replace", "split", "lpad", "regexp_extract", "concat_ws"}
    | {"to_date", "to_timestamp", "year", "month", "day", "hour", "minute", "second", "date_trunc"}
    | {"days", "hours", "minutes", "seconds"}
)
NAMES = {
    "number": ("", 64),
    "int": ("", 64),
    "integer": ("", 64),
    "long": ("", 64),
    "unsigned": ("unsigned", 64),
    "float": ("float", 64),
    "double": ("float", 64),
    "datetime": ("moment", 64),
    "timestamp": ("moment", 64),
} | {f"{name}{bits}": (kind, bits) for name, kind in (("int", ""), ("uint", "unsigned"), ("float", "float"))
     for bits in (8, 16, 32, 64)}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """`declared` columns keep their kind whatever the rules put there; `bits` narrows them."""

    kind: str = ""
    bits: int = 64
    declared: bool = False


PLAIN = Column()
Columns = Mapping[tuple[str, int], Column]


def most(kinds: Iterable[str]) -> str:
    return max(kinds, key=ORDER.index, default="")


def convert(value: Value, kind: str) -> Value:
    """An integer as a value of `kind`; other values as they are, floats in their one form."""
    if isinstance(value, float):
        return canonical(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if kind == "float":
            return to_float(value)
        if kind == "unsigned":
            return to_unsigned(value)
        if kind == "decimal":
            return Decimal(value)
    if kind == "moment" and isinstance(value, str | date):
        return moment(value)
    return value


def enter(value: Value, column: Column) -> Value:
    """The value as the column holds it; `Undefined` if it does not fit."""
    value = convert(value, column.kind)
    if column.bits == 64 or isinstance(value, bool | str):
        return value
    if isinstance(value, float):
        return float(struct.unpack("f", struct.pack("f", value))[0])
    low = 0 if column.kind == "unsigned" else -(2 ** (column.bits - 1))
    high = low + 2**column.bits
    if isinstance(value, int) and not low <= value < high:
        raise Undefined(f"{value} does not fit {column.bits} bits")
    return value


# --- inference -------------------------------------------------------------------------------------------------------


def infer(
    program: nodes.Program,
    rules: Iterable[Rule],
    facts: Mapping[str, Collection[Row]],
    floats: Collection[tuple[str, int]],
) -> dict[tuple[str, int], Column]:
    """The columns that are not plain: declared, seen in facts, or made by rules (until nothing changes)."""
    columns = declared(program) | {place: Column("float", declared=True) for place in floats}
    for predicate, rows in facts.items():
        for row in rows:
            for i, value in enumerate(row):
                widen(columns, (predicate, i), SEEN.get(type(value), ""))
    rules = tuple(rules)
    changed = True
    while changed:
        changed = False
        for rule in rules:
            kinds = variable_kinds(rule.body, columns)
            for i, term in enumerate(rule.head.arguments):
                changed |= widen(columns, (rule.head.predicate, i), kind_of(term, kinds))
    return columns


def declared(program: nodes.Program) -> dict[tuple[str, int], Column]:
    parents = {item.name: item.parents for item in program.items if isinstance(item, nodes.TypeDeclaration)}

    def resolve(name: str) -> Column:
        while name in parents:
            name = parents[name][0]  # the types of a union have one kind
        kind, bits = NAMES.get(name.lower(), ("", 64))
        return Column(kind, bits, declared=True)

    return {
        (item.name, i): resolve(attribute.type)
        for item in program.items
        if isinstance(item, nodes.Declaration)
        for i, attribute in enumerate(item.attributes)
    }


def widen(columns: dict[tuple[str, int], Column], place: tuple[str, int], kind: str) -> bool:
    old = columns.get(place, PLAIN)
    if old.declared or ORDER.index(kind) <= ORDER.index(old.kind):
        return False
    columns[place] = Column(kind)
    return True


def variable_kinds(body: Body, columns: Columns, outer: Mapping[str, str] | None = None) -> dict[str, str]:
    """The kinds of the variables of a body; `outer` are those of the body around it.

    A variable of an atom is what the atom's column is; only the others are what they are equated with.
    """
    kinds = dict(outer or {})
    matched = {name for literal in body if isinstance(literal, nodes.Atom) for name in mentions(literal)}
    # A variable that only two aggregates of the body mention is two variables, and none of the body.
    inside = Counter(name for literal in body if isinstance(literal, Gather) for name in literal.mentioned)
    direct = {name for literal in body if not isinstance(literal, Gather) for name in mentions(literal)}
    before: dict[str, str] | None = None
    while kinds != before:
        before = dict(kinds)
        for literal in body:
            for name, kind in evidence(literal, kinds, columns):
                if (name in direct or inside[name] < 2) and (name not in matched or isinstance(literal, nodes.Atom)):
                    kinds[name] = most((kinds.get(name, ""), kind))
    return kinds


def evidence(literal: object, kinds: dict[str, str], columns: Columns) -> list[tuple[str, str]]:
    """What one literal says about variables, given what is known of them."""
    match literal:
        case nodes.Atom(predicate, arguments):
            known = ((a, columns.get((predicate, i), PLAIN).kind) for i, a in enumerate(arguments))
            return [(a.name, kind) for a, kind in known if isinstance(a, nodes.Variable) and kind in ORDER]
        case nodes.Comparison("=", left, right):
            sides = ((left, right), (right, left))
            return [(a.name, kind_of(b, kinds)) for a, b in sides if isinstance(a, nodes.Variable)]
        case Computed(name, term):
            return [(name, kind_of(term, kinds))]
        case Spread(name, arguments):
            return [(name, most(kind_of(argument, kinds) for argument in arguments))]
        case Gather(name, function, target, alternatives):
            inner: dict[str, str] = {}
            for body in alternatives:
                inner |= variable_kinds(body, columns, {**kinds, **inner})
            result = "" if target is None or function == "count" else kind_of(target, inner)
            mean = function in ("avg", "mean") and result != "decimal"
            return [*inner.items(), (name, "float" if mean else result)]
        case _:
            return []


def kind_of(term: nodes.Term, kinds: Mapping[str, str]) -> str:
    match term:
        case nodes.Variable(name):
            return kinds.get(name, "")
        case nodes.Constant(value, kind):
            return "float" if isinstance(value, float) else kind
        case nodes.Call(function) | nodes.Aggregate(function) if function in FLOAT_FUNCTIONS:
            return "float"
        case nodes.Call("to_unsigned"):
            return "unsigned"
        case nodes.Call("to_decimal"):
            return "decimal"
        case nodes.Call("+" | "-" | "*", arguments):
            own = [kind_of(argument, kinds) for argument in arguments]
            if "decimal" not in own:
                return most(own)
            floats = [k == "float" and not isinstance(a, nodes.Constant) for a, k in zip(arguments, own, strict=True)]
            return "float" if any(floats) else "decimal"
        case nodes.Aggregate("avg", arguments):
            return "decimal" if kind_of(arguments[-1], kinds) == "decimal" else "float"
        case nodes.Call(function) | nodes.Aggregate(function) if function in PLAIN_FUNCTIONS | {"count", "countd"}:
            return ""
        case nodes.Call("bshl" | "bshr", (shifted, _)):
            return kind_of(shifted, kinds)
        case nodes.Aggregate(_, arguments):
            return kind_of(arguments[-1], kinds)
        case nodes.Call(_, arguments):
            return most(kind_of(argument, kinds) for argument in arguments)
        case _:
            return ""
