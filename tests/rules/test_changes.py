"""Delta rules add up to the change of the head, and rules seen from their head find every body: on random rules and
relations, compared with the rule evaluated as a whole, before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from emberlog.analysis.program import Absent, Bind, CoreRule, Filter, Gather, Literal, Match
from emberlog.rules.changes import DeltaRule, Place, Sign, delta_rules
from emberlog.rules.heads import head_rule, value
from emberlog.syntax.nodes import Anonymous, Call, Comparison, Constant, Term, Variable
from planned import planned

Row: TypeAlias = tuple[int, ...]
Rows: TypeAlias = frozenset[Row]
Binding: TypeAlias = Mapping[str, int]
SIGNS: tuple[Sign, ...] = ("+", "-")
UNBOUND: Binding = MappingProxyType({})
ARITIES = {"a": 2, "b": 2, "c": 1, "d": 3}
BASES = "".join(
    f".decl {n}({', '.join(f'{n}{i}: number' for i in range(k))})\n.input {n}\n" for n, k in ARITIES.items()
)

SIGNATURES = planned(f"{BASES}p(X, Y) <- a(X, Y).")[1].signatures


# --- random rules and relations --------------------------------------------------------------------------------------


@st.composite
def rules(draw: st.DrawFn, aggregates: bool = False) -> CoreRule:
    """A rule over the bases: positive atoms, then conditions, negated atoms and, if asked for, a body aggregate."""
    variables = st.sampled_from(["X", "Y", "Z"])
    names = st.sampled_from(sorted(ARITIES))

    def atom(*arguments: str) -> str:
        name = draw(names)
        return f"{name}({', '.join(draw(st.sampled_from(arguments)) for _ in range(ARITIES[name]))})"

    positive = [atom("X", "Y", "Z", "X", "Y", "1", "_") for _ in range(draw(st.integers(1, 3)))]
    used = sorted({letter for text in positive for letter in text if letter in "XYZ"})
    if not used:
        positive.append("c(X)")
        used = ["X"]
    others = [f"!{atom(*used, '_', '_', '2')}" for _ in range(draw(st.integers(0, 2)))]
    if draw(st.booleans()):
        others.append(f"{draw(st.sampled_from(used))} {draw(st.sampled_from(['<', '!=', '>=']))} {draw(variables)}")
        others = [other for other in others if not {letter for letter in other if letter in "XYZ"} - {*used}]
    if aggregates:
        inner = [atom(*used, "W", "_") for _ in range(draw(st.integers(1, 2)))]
        inner.append("!" + atom(*used, "_"))
        others.append(f"A = count : {{ {', '.join(inner)} }}")
    head = draw(st.sampled_from(["X", "X + 1", "5"])) if "X" in used else used[0]
    _, checked, _ = planned(f"{BASES}p({head}, {used[-1]}) <- {', '.join([*positive, *others])}.")
    (rule,) = (rule for component in checked.components for rule in component.rules)
    return rule


def relations(least: int) -> st.SearchStrategy[dict[str, Rows]]:
    row = st.integers(0, 2)
    return st.fixed_dictionaries(
        {name: st.frozensets(st.tuples(*[row] * arity), min_size=least, max_size=8) for name, arity in ARITIES.items()}
    )


# --- rules evaluated as they stand -----------------------------------------------------------------------------------


def bindings(
    body: Sequence[Literal], read: Callable[[Place], Rows], at: Place = (), given: Binding = UNBOUND
) -> list[Binding]:
    """Every binding of a body, where the atom at a place reads what `read` says."""
    found = [given]
    for index, literal in enumerate(body):
        found = [after for before in found for after in _extended(literal, before, read, (*at, index))]
    return found


def _extended(literal: Literal, bound: Binding, read: Callable[[Place], Rows], at: Place) -> Iterator[Binding]:
    match literal:
        case Match(_, arguments):
            yield from (more for row in read(at) if (more := _matched(arguments, row, bound)) is not None)
        case Absent(_, arguments):
            if all(_matched(arguments, row, bound) is None for row in read(at)):
                yield bound
        case Filter(Comparison(operator, left, right)):
            one, other = _term(left, bound), _term(right, bound)
            if {"<": one < other, "!=": one != other, ">=": one >= other, "=": one == other}[operator]:
                yield bound
        case Bind(variable, term):
            yield {**bound, variable: _term(term, bound)}
        case Gather(variable, "count", None, (inner,)):
            yield {**bound, variable: len(bindings(inner, read, (*at, 0), bound))}
        case _:
            raise AssertionError(literal)


def _matched(arguments: Sequence[Term], row: Row, bound: Binding) -> Binding | None:
    known = dict(bound)
    for argument, found in zip(arguments, row, strict=True):
        match argument:
            case Anonymous():
                continue
            case Variable(name) if name not in known:
                known[name] = found
            case _ if _term(argument, known) != found:
                return None
    return known


def _term(term: Term, bound: Binding) -> int:
    match term:
        case Variable(name):
            return bound[name]
        case Constant(found) if isinstance(found, int):
            return found
        case Call("+", (left, right)):
            return _term(left, bound) + _term(right, bound)
        case _:
            raise AssertionError(term)


def reading(rule: CoreRule, state: Mapping[str, Rows]) -> Callable[[Place], Rows]:
    def read(place: Place) -> Rows:
        literals: Sequence[Literal] = rule.body
        for index, number in zip(place[::2], (*place[1::2], None), strict=True):
            literal = literals[index]
            if number is not None:
                assert isinstance(literal, Gather)
                literals = literal.bodies[number]
        assert isinstance(literal, Match | Absent)
        return state[literal.predicate]

    return read


def seen_from(delta: DeltaRule, old: Mapping[str, Rows], new: Mapping[str, Rows]) -> list[Binding]:
    """The bindings of a delta rule."""
    carrier, states = delta.carrier, dict(delta.reads)
    name = carrier.predicate
    changed = new[name] - old[name] if delta.sign == "+" else old[name] - new[name]
    olds, news = reading(delta.rule, old), reading(delta.rule, new)

    def read(place: Place) -> Rows:
        if place == delta.at:
            return changed
        return olds(place) if states[place] == "old" else news(place)

    body = list(delta.rule.body)
    if len(delta.at) > 1 or isinstance(carrier, Match):
        return bindings(body, read)
    body[delta.at[0]] = Match(name, carrier.arguments)
    found = [dict(one) for one in {tuple(sorted(binding.items())) for binding in bindings(body, read)}]
    if not delta.needs_first:
        return [*found]
    rest = old[name] if delta.sign == "+" else new[name]
    return [one for one in found if all(_matched(carrier.arguments, row, one) is None for row in rest)]


def counted(found: list[Binding]) -> Counter[tuple[tuple[str, int], ...]]:
    return Counter(tuple(sorted(binding.items())) for binding in found)


# --- the properties --------------------------------------------------------------------------------------------------


@settings(max_examples=500)
@given(rules(), relations(2), relations(0))
def test_delta_rules_add_up_to_the_change(rule: CoreRule, old: dict[str, Rows], new: dict[str, Rows]) -> None:
    """Each binding that comes, or goes, is met exactly once more often than it is taken back."""
    total: Counter[tuple[tuple[str, int], ...]] = Counter()
    for sign in SIGNS:
        for delta in delta_rules(rule, ARITIES, SIGNATURES, sign):
            met = counted(seen_from(delta, old, new))
            (total.update if delta.effect == "+" else total.subtract)(met)
    before, after = (counted(bindings(rule.body, reading(rule, state))) for state in (old, new))
    after.subtract(before)
    assert {k: n for k, n in total.items() if n} == {k: n for k, n in after.items() if n}


@given(rules(), relations(0), relations(0))
def test_reading_new_everywhere_misses_no_insertion(
    rule: CoreRule, old: dict[str, Rows], more: dict[str, Rows]
) -> None:
    positive = {name for name in ARITIES if all(isinstance(lit, Match) for lit in rule.body if _reads(lit, name))}
    new = {name: rows | more[name] if name in positive else rows for name, rows in old.items()}
    met = {
        one
        for delta in delta_rules(rule, positive, SIGNATURES)
        for one in counted(bindings(rule.body, _new_but_one(delta, old, new)))
    }
    before, after = (counted(bindings(rule.body, reading(rule, state))) for state in (old, new))
    assert after.keys() - before.keys() <= met <= after.keys()
    assert all(
        state == "new" for delta in delta_rules(rule, positive, SIGNATURES) for _, state in delta.reading_new().reads
    )


def _new_but_one(delta: DeltaRule, old: Mapping[str, Rows], new: Mapping[str, Rows]) -> Callable[[Place], Rows]:
    whole = reading(delta.rule, new)
    name = delta.carrier.predicate
    return lambda place: new[name] - old[name] if place == delta.at else whole(place)


def _reads(literal: Literal, name: str) -> bool:
    return isinstance(literal, Match | Absent) and literal.predicate == name


@given(rules(aggregates=True), relations(1), relations(0))
def test_groups_of_a_body_aggregate_that_change_are_met(
    rule: CoreRule, old: dict[str, Rows], new: dict[str, Rows]
) -> None:
    """An aggregate whose value differs is met from an atom inside it that changed, for the same outer binding."""
    ((spot, gather),) = ((i, lit) for i, lit in enumerate(rule.body) if isinstance(lit, Gather))
    before, after = reading(rule, old), reading(rule, new)
    for outer in bindings(rule.body[:spot], after):
        values = [len(bindings(gather.bodies[0], read, (spot, 0), outer)) for read in (before, after)]
        if values[0] != values[1]:
            assert any(_meets_group(delta, spot, gather, outer, old, new) for delta in _inside(rule, spot))


def _inside(rule: CoreRule, spot: int) -> list[DeltaRule]:
    found = [d for sign in SIGNS for d in delta_rules(rule, ARITIES, SIGNATURES, sign)]
    assert all((delta.effect == "regroup") == (len(delta.at) > 1) for delta in found)
    return [delta for delta in found if delta.at[0] == spot]


def _meets_group(
    delta: DeltaRule,
    spot: int,
    gather: Gather,
    outer: Binding,
    old: Mapping[str, Rows],
    new: Mapping[str, Rows],
) -> bool:
    states, name = dict(delta.reads), delta.carrier.predicate
    changed = new[name] - old[name] if delta.sign == "+" else old[name] - new[name]
    olds, news = reading(delta.rule, old), reading(delta.rule, new)
    inner = list(gather.bodies[0])
    inner[delta.at[2]] = Match(name, delta.carrier.arguments)

    def read(place: Place) -> Rows:
        if place == delta.at:
            return changed
        return olds(place) if states[place] == "old" else news(place)

    return bool(bindings(inner, read, (spot, 0), outer))


@given(rules(), relations(1))
def test_a_rule_seen_from_its_head_finds_every_body(rule: CoreRule, state: dict[str, Rows]) -> None:
    whole = bindings(rule.body, reading(rule, state))
    heads = {tuple(_term(argument, one) for argument in rule.arguments) for one in whole}
    turned = head_rule(rule, frozenset())
    by_name = CoreRule(rule.id, rule.predicate, rule.arguments, turned.body, rule.types)
    for head in heads | {(9, 9)}:
        known = {name: head[spot] for spot, name in turned.given} | {value(i): v for i, v in enumerate(head)}
        found = bindings(turned.body, reading(by_name, state), (), known)
        own = [{k: v for k, v in one.items() if not k.startswith("#")} for one in found]
        wanted = [one for one in whole if tuple(_term(argument, one) for argument in rule.arguments) == head]
        assert counted([*own]) == counted(wanted)
