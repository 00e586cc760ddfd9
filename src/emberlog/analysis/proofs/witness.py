"""Facts that break a property, found by Z3 and confirmed by evaluating the rules on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, count

from emberlog.analysis.program import CoreRule
from emberlog.analysis.proofs.bounds import Needs
from emberlog.analysis.proofs.formulas import Z3, Encoder
from emberlog.analysis.proofs.properties import Property, constraints
from emberlog.analysis.proofs.prover import Model, solve
from emberlog.analysis.proofs.replay import NoValue, Relations, Row, derive, same, settle, value_of
from emberlog.analysis.proofs.steps import Setting, Step
from emberlog.analysis.terms import literal_terms, term_variables, walk
from emberlog.syntax.nodes import Constant, Variable
from emberlog.types import Type, Value

MOST = 9  # the largest number of a counter-example, where that is enough
PAPER = ((-1, 2), (1, -2))  # partial sums that show that a bend is not linear
Fact = tuple[str, Row]


@dataclass(frozen=True)
class Witness:
    """Facts, and a sentence that says what aggregating first and aggregating last make of them."""

    facts: tuple[Fact, ...]
    text: str


def find_witness(query: Property, setting: Setting, known: Needs, model: Model) -> Witness | None:
    """A counter-example that was evaluated; None if none of those that were tried shows a difference."""
    taken = set(_constants(setting))
    for found in chain(_small_models(query, known), [model]):
        # What the solution does not care about is unlike the constants of the rules, so that no other rule comes in.
        numbers = (number for number in count(1) if number not in taken)
        for facts in _instances(query, found, numbers):
            if facts is not None:
                text = _replayed(query.step, facts, setting)
                if text is not None:
                    return Witness(facts, text)
    return None


def _constants(setting: Setting) -> Iterator[Value]:
    """The constants of the rules."""
    for rule in setting.rules:
        terms = (*rule.arguments, *(term for literal in rule.body for term in literal_terms(literal)))
        yield from (node.value for term in terms for node in walk(term) if isinstance(node, Constant))


# --- numbers ---------------------------------------------------------------------------------------------------------


def _small_models(query: Property, known: Needs) -> Iterator[Model]:
    """Solutions in small whole numbers, simple ones first; they have the rows of the group under `#1` and `#2`."""
    encoder = Encoder(query.step.types, small=True)
    formulas = constraints(query, encoder, known)
    first, second = query.state(encoder)
    formulas += [first != second, *encoder.range(MOST)]
    if query.kind == "value" and not query.picks:  # for the prover the conditions do not matter, for the rule they do
        formulas += [query.applies(encoder, point) for point in (first, second, first + second)]
    for hint in _hints(query, encoder, first, second):
        solved = solve([*formulas, *hint], {**encoder.symbols(), "#1": first, "#2": second})
        if solved.status == "sat":
            yield solved.values


def _hints(query: Property, encoder: Encoder, first: Z3, second: Z3) -> Iterator[list[Z3]]:
    parts = {f"{query.symbol}'1", f"{query.symbol}'2"}
    others = [
        symbol for name, symbol in encoder.symbols().items() if name not in parts and symbol.sort().name() != "Bool"
    ]
    ones = [symbol == 1 for symbol in others]
    if not query.picks and query.kind == "value":
        yield [first == PAPER[0][0], second == PAPER[0][1], *ones]
    if first.sort().name() != "Bool":
        yield [first >= 0, second >= 0, second <= 1, *ones]
        yield [first >= 0, second >= 0, *ones]
    yield ones
    yield [symbol >= 0 for symbol in others]
    yield []


# --- facts -----------------------------------------------------------------------------------------------------------


def _instances(query: Property, model: Model, numbers: Iterator[int]) -> Iterator[tuple[Fact, ...] | None]:
    """The facts of a solution; first those with a second group beside it, where the paper's numbers are met."""
    if "#1" in model:
        pair = (model["#1"], model["#2"])
    else:
        x, y = model.get(f"{query.symbol}'1"), model.get(f"{query.symbol}'2")
        if x is None or y is None:
            return
        pair = (x, Fraction(y - x)) if query.kind == "guard" and not query.picks else (x, y)
    first = _assigned(query, model, {}, numbers)
    if first is None:
        return
    facts = _facts(query, first, pair)
    if facts is not None and pair == PAPER[0]:
        kept = {v.name for column in query.step.columns for v in term_variables(column)}
        shared = {name: value for name, value in first.items() if name in kept}
        second = _assigned(query, model, shared, numbers)
        beside = None if second is None else _facts(query, second, (Fraction(PAPER[1][0]), Fraction(PAPER[1][1])))
        if beside is not None:
            yield _in_order((*facts, *beside))
    yield None if facts is None else _in_order(facts)


def _in_order(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Each fact once; those of one relation stand together."""
    unique = list(dict.fromkeys(facts))
    names = list(dict.fromkeys(name for name, _ in unique))
    return tuple(sorted(unique, key=lambda fact: names.index(fact[0])))


def _assigned(
    query: Property, model: Model, shared: Mapping[str, Value], numbers: Iterator[int]
) -> dict[str, Value] | None:
    """A value for each symbol but the one in question: the solution's, or one of its own where that does not care."""
    step, varied = query.step, query.symbol
    found: dict[str, Value] = {}
    for name, type in step.types.items():
        if name in shared or name == varied:
            found[name] = shared.get(name, False)
            continue
        value = _typed(model[name], type) if name in model else _fresh(type, next(numbers))
        if value is None:
            return None
        found[name] = value
    return found


def _typed(value: Fraction | bool, type: Type) -> Value | None:
    match type.kind:
        case "bool":
            return bool(value)
        case "float":
            return float(value)
        case "number" | "unsigned":
            return int(value)
        case "symbol":
            return chr(ord("m") + int(value)) if -13 < value < 13 else None
        case _:
            return None


def _fresh(type: Type, number: int) -> Value | None:
    match type.kind:
        case "symbol":
            return chr(ord("a") + (number - 1) % 26) * (1 + (number - 1) // 26)
        case "bool":
            return True
        case "float":
            return float(number)
        case "number" | "unsigned":
            return number
        case _:
            return None


def _facts(
    query: Property, assigned: Mapping[str, Value], pair: tuple[Fraction | bool, Fraction | bool]
) -> tuple[Fact, ...] | None:
    """The rows that the step reads, that of the value in question twice: with each part."""
    step, found = query.step, list[Fact]()
    parts = [_typed(part, step.types[query.symbol]) for part in pair]
    try:
        for row in (*step.rows, *step.rivals):
            for part in parts if Variable(query.symbol) in row.cells else [None]:
                values = assigned if part is None else {**assigned, query.symbol: part}
                found.append((row.relation, tuple(value_of(cell, values) for cell in row.cells)))
    except NoValue:
        return None
    return None if None in parts else tuple(found)


# --- evaluating ------------------------------------------------------------------------------------------------------


def _replayed(step: Step, facts: Sequence[Fact], setting: Setting) -> str | None:
    """What aggregating first and aggregating last give, if that differs."""
    whole: dict[str, list[Row]] = {}
    for name, row in facts:
        whole.setdefault(name, []).append(row)
    settled = {
        name: settle(rows, *setting.spots[name]) if name in setting.spots else rows for name, rows in whole.items()
    }
    first, last = (_derived(step, relations, setting) for relations in (settled, whole))
    spot = setting.spots.get(step.head)
    shown = ", ".join(f"{name}({', '.join(show_value(value) for value in row)})" for name, row in facts)
    for group in dict.fromkeys((*first, *last)):
        a, b = first.get(group), last.get(group)
        if a is None or b is None or not same(a, b):
            texts = [
                "nothing" if value is None
                else show_value(value) if spot is not None
                else f"{step.head}({', '.join(map(show_value, group))})"
                for value in (a, b)
            ]  # fmt: skip
            return f"with {shown}: aggregating first gives {texts[0]}, aggregating last gives {texts[1]}"
    return None


def _derived(step: Step, relations: Relations, setting: Setting) -> dict[Row, Value]:
    """The rows of the step's head: groups with their values; whole rows with True for a plain predicate."""
    known = dict(relations)
    for name in step.chain:
        known[name] = [*known.get(name, ()), *derive(_rules(setting, name), known, None)]
    spot = setting.spots.get(step.head)
    rows = derive(_rules(setting, step.head), known, spot)
    if spot is None:
        return dict.fromkeys(rows, True)
    return {(*row[: spot[0]], *row[spot[0] + 1 :]): row[spot[0]] for row in rows}


def _rules(setting: Setting, predicate: str) -> list[CoreRule]:
    return [rule for rule in setting.rules if rule.predicate == predicate and not rule.start]


def show_value(value: Value) -> str:
    """A value as it stands in a fact; a whole float without its point."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return f'"{value}"' if isinstance(value, str) else str(value)
