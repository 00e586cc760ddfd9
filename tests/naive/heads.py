"""From the bindings of bodies to the rows of a predicate: head terms, aggregates, topk, sort and limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from emberlog.syntax import nodes
from naive.aggregates import aggregate, total
from naive.bodies import Binding, Relation, Scope, satisfy, value_of
from naive.kinds import PLAIN, Columns, convert, enter
from naive.normal import Rule, variables
from naive.values import Row, Undefined, Value, add, extremum, is_nan


class EvaluationError(Exception):
    """A rule has no value for a binding that satisfies the rest of its body."""

    def __init__(self, rule: str, binding: Mapping[str, Value], reason: str) -> None:
        shown = ", ".join(f"{name} = {value!r}" for name, value in binding.items() if not name.startswith("#"))
        super().__init__(f"{reason}\nin: {rule}\nwith: {shown}")
        self.rule, self.binding, self.reason = rule, binding, reason


class Part(NamedTuple):
    """What one binding gives to one aggregate. Parts of equal `identity` count once, with the greatest value; None is
    like no other.

    A `plain` part comes from a head without the aggregate: it gives its value.
    """

    value: Value
    identity: tuple[Value, ...] | None = None
    plain: bool = False


Cells: TypeAlias = tuple[Part, ...]
Heads: TypeAlias = Callable[[Rule], Iterable[Cells]]


def shape_of(rules: Iterable[Rule]) -> dict[int, nodes.Aggregate]:
    """The aggregated columns of the predicate that has these rules."""
    return {i: term for rule in rules for i, term in rule.aggregates.items()}


def rows_of(rules: Sequence[Rule], given: Iterable[Row], heads: Heads, columns: Columns) -> frozenset[Row]:
    """The rows of one predicate: given ones, and what `heads` says that its rules contribute."""
    shape = shape_of(rules)
    contributed = [plain_cells(row) for row in given]
    for rule in rules:
        cells = list(heads(rule))
        contributed += first_rows(rule, cells, columns) if rule.sort or rule.limit is not None else cells
    return combine(shape, contributed, columns, rules[0] if rules else None)


def plain_cells(row: Row) -> Cells:
    return tuple(Part(value, plain=True) for value in row)


def head_cells(
    rule: Rule, start: Binding, relations: Mapping[str, Relation], columns: Columns
) -> Iterator[tuple[Part, ...]]:
    """What each binding of the rule's body contributes."""
    scope = Scope(relations, columns, {}).inside(rule.body)
    sort_names = {key.name for key, _ in rule.sort.keys} if rule.sort else set()
    wanted = frozenset(name for term in rule.head.arguments for name in variables(term)) | sort_names
    for found in satisfy(rule.body, start, wanted, scope):
        if found.undefined is not None:
            raise EvaluationError(rule.text, found.binding, found.undefined)
        try:
            cells = [part_of(rule, i, found.binding, columns) for i in range(len(rule.head.arguments))]
        except Undefined as reason:
            raise EvaluationError(rule.text, found.binding, str(reason)) from reason
        # The sort keys travel along behind the row; `first_rows` takes them off.
        keys = [Part(found.binding[key.name]) for key, _ in rule.sort.keys] if rule.sort and not rule.aggregates else []
        yield (*cells, *keys)


def part_of(rule: Rule, i: int, binding: Binding, columns: Columns) -> Part:
    term, column = rule.head.arguments[i], columns.get((rule.head.predicate, i), PLAIN)
    if not isinstance(term, nodes.Aggregate):
        return Part(enter(value_of(term, binding), column), plain=True)
    if term.function.startswith("arg_"):
        return Part(value_of(term.arguments[0], binding), (value_of(term.arguments[1], binding),))
    if term.function in ("min", "max") and len(term.arguments) == 2:
        return Part(convert(value_of(term.arguments[0], binding), column.kind))
    value = value_of(term.arguments[-1], binding)
    if term.function in ("sum", "min", "max", "topk"):
        value = convert(value, column.kind)
    if len(term.arguments) == 1:
        return Part(value)
    return Part(value, (rule.id, value_of(term.arguments[0], binding)))


def combine(
    shape: Mapping[int, nodes.Aggregate], contributed: Iterable[Cells], columns: Columns, rule: Rule | None
) -> frozenset[Row]:
    if not shape or rule is None:
        return frozenset(tuple(part.value for part in cells) for cells in contributed)
    pairs = {i for i, term in shape.items() if term.function in ("min", "max") and len(term.arguments) == 2}
    contributed = [cells for cells in contributed if not any(is_nan(cells[i].value) for i in pairs)]
    for i, term in shape.items():
        if term.function == "top":
            return best_of_groups(i, term, contributed)
        if term.function == "topk":
            return best_rows(i, term, contributed)
    groups: dict[Row, list[Cells]] = {}
    for cells in contributed:
        groups.setdefault(tuple(part.value for i, part in enumerate(cells) if i not in shape), []).append(cells)
    rows = set()
    for group, members in groups.items():
        rest = iter(group)
        try:
            rows.add(
                tuple(
                    enter(
                        combined(shape[i].function, [cells[i] for cells in reaching(shape, i, members)]),
                        columns.get((rule.head.predicate, i), PLAIN),
                    )
                    if i in shape
                    else next(rest)
                    for i in range(len(members[0]))
                )
            )
        except Undefined as reason:
            raise EvaluationError(rule.text, dict(enumerate_names(group)), str(reason)) from reason
    return frozenset(rows)


def reaching(shape: Mapping[int, nodes.Aggregate], i: int, members: Sequence[Cells]) -> Sequence[Cells]:
    """The members of a group that a column aggregates: of a witness those whose value, before it, is the best."""
    if shape[i].function != "witness":
        return members
    best = combined(shape[i - 1].function, [cells[i - 1] for cells in members])
    return [cells for cells in members if cells[i - 1].value == best]


def enumerate_names(group: Row) -> Iterator[tuple[str, Value]]:
    for i, value in enumerate(group):
        yield f"group {i}", value


def combined(function: str, parts: Iterable[Part]) -> Value:
    """The aggregate of the parts of one group (at least one)."""
    if function.startswith("arg_"):
        return best_witness(function.removeprefix("arg_"), list(parts))
    identified: dict[tuple[Value, ...], Value] = {}
    own, plain = [], []
    for part in parts:
        if part.plain:
            plain.append(part.value)
        elif part.identity is None:
            own.append(part.value)
        else:
            identified[part.identity] = extremum(max, [identified.get(part.identity, part.value), part.value])
    own += identified.values()
    if function in ("count", "countd"):
        counted = aggregate(function, own)
        assert counted is not None
        return add(counted, total(plain))
    value = aggregate(function, own + plain)
    assert value is not None
    return value


def best_witness(function: str, parts: Sequence[Part]) -> Value:
    """The least of the identities that have the best value."""
    best = aggregate(function, [part.value for part in parts])
    found = aggregate("min", [part.identity[0] for part in parts if part.identity and part.value == best])
    assert found is not None
    return found


# --- orders ----------------------------------------------------------------------------------------------------------


def ascending(value: Any) -> tuple[bool, Any]:
    """The key that sorts values, NaN last."""
    return (True, 0) if is_nan(value) else (False, value)


def row_order(row: Row) -> list[tuple[bool, Any]]:
    return [ascending(value) for value in row]


def best_rows(place: int, term: nodes.Aggregate, contributed: Iterable[Cells]) -> frozenset[Row]:
    """topk: the first rows by the value, descending, then by the other columns, ascending."""
    assert term.limit is not None
    rows = sorted({tuple(part.value for part in cells) for cells in contributed}, key=row_order)
    rows = [row for row in rows if not is_nan(row[place])]
    rows.sort(key=lambda row: ascending(row[place]), reverse=True)
    return frozenset(rows[: limit_of(term.limit)])


def best_of_groups(place: int, term: nodes.Aggregate, contributed: Iterable[Cells]) -> frozenset[Row]:
    """top: for each group the first rows by the value, descending, then by the column behind it, ascending."""
    groups: dict[Row, list[Cells]] = {}
    for cells in contributed:
        rest = (part.value for i, part in enumerate(cells) if i not in (place, place + 1))
        groups.setdefault(tuple(rest), []).append(cells)
    return frozenset(row for members in groups.values() for row in best_rows(place, term, members))


def first_rows(rule: Rule, contributed: Iterable[Cells], columns: Columns) -> list[Cells]:
    """The rule's own result, sorted and cut: sort keys first, then the columns of the row."""
    width = len(rule.head.arguments)
    if rule.aggregates:
        rows = combine(rule.aggregates, contributed, columns, rule)
        keyed = [(row, sort_keys(rule, row)) for row in rows]
    else:
        cells = [tuple(part.value for part in parts) for parts in contributed]
        keyed = [(row[:width], row[width:]) for row in cells]
    keyed.sort(key=lambda pair: row_order(pair[0]))
    for i, (_, descends) in reversed(list(enumerate(rule.sort.keys if rule.sort else ()))):
        keyed.sort(key=lambda pair: ascending(pair[1][i]), reverse=descends)
    distinct = list(dict.fromkeys(row for row, _ in keyed))
    return [plain_cells(row) for row in distinct[: None if rule.limit is None else limit_of(rule.limit)]]


def sort_keys(rule: Rule, row: Row) -> Row:
    """The values of the sort keys in a row of a rule with aggregates: columns that are, or aggregate, the variable."""
    names = [next(iter(variables(term)), None) for term in rule.head.arguments]
    return tuple(row[names.index(key.name)] for key, _ in rule.sort.keys) if rule.sort else ()


def limit_of(term: nodes.Term) -> int:
    value = value_of(term, {})
    assert isinstance(value, int)
    return value
