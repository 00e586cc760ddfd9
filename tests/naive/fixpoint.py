"""Components in order, each to its fixpoint by naive rounds: every round recomputes every predicate from the last."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from emberlog.syntax import nodes
from naive.bodies import EMPTY, Binding, Relation, value_of
from naive.booleans import read_booleans
from naive.heads import EvaluationError, head_cells, rows_of, shape_of
from naive.iteration import Iteration, find_iteration, index_is_read, index_of
from naive.kinds import PLAIN, Columns, enter, infer
from naive.named import by_position
from naive.normal import InvalidProgram, Rule, normalize, predicates
from naive.values import Row, Undefined, compare

NO_PARAMS: Mapping[str, Any] = {}
State = Mapping[str, Relation]
Node = TypeVar("Node")
SIGNS: Mapping[Any, float] = {math.inf: -math.inf, -math.inf: math.inf}


class LimitReached(Exception):
    """The rounds are used up and the fixpoint is not reached."""


def evaluate(
    program: nodes.Program,
    facts: Mapping[str, Iterable[Row]],
    params: Mapping[str, Any] = NO_PARAMS,
    *,
    floats: Collection[tuple[str, int]] | None = None,
    rounds: int = 1000,
    wanted: Collection[str] | None = None,
) -> dict[str, set[Row]]:
    """Every predicate's rows. `floats` are columns (predicate, position) that hold floats though no fact shows it.
    With `wanted` only what these predicates need is evaluated; the others have no rows.

    Raises `EvaluationError` where a rule has no value, `LimitReached` after `rounds` rounds, `InvalidProgram` for one
    that is not stratified or not safe.
    """
    given = {name: {tuple(row) for row in rows} for name, rows in facts.items()}
    given |= {f"${name}": {(value,) for value in values} for name, values in params.items() if isinstance(values, list)}
    program = read_booleans(by_position(program), given)
    normal = normalize(program, params)
    components = [part for part in in_order(normal.rules) if wanted is None or part & needed(wanted, normal.rules)]
    columns = infer(program, normal.rules, given, floats or ())
    solver = Solver(given_rows(given, columns), columns, normal.untils, rounds)
    relations: dict[str, Relation] = {name: Relation(rows) for name, rows in solver.given.items()}
    without = set[str]()
    for component in components:
        iteration = find_iteration(component, normal.rules, normal.untils)
        if iteration is None:
            own = [rule for rule in normal.rules if rule.head.predicate in component]
            relations |= solver.solve(component, own, relations)
        else:
            keep = index_is_read(component, normal.rules)
            without |= set() if keep else component
            relations |= solver.iterate(iteration, relations, keep)
    return {
        name: {row[1:] if name in without else row for row in relations.get(name, EMPTY).rows}
        for name in names_of(program, normal.rules) | set(given)
    }


def needed(wanted: Collection[str], rules: Iterable[Rule]) -> set[str]:
    """The predicates with rules that the wanted ones read, directly or through others, and these."""
    reads: dict[str, set[str]] = {}
    for rule in rules:
        reads.setdefault(rule.head.predicate, set()).update(rule.reads)
    return set(wanted).union(*(reachable(name, reads) for name in wanted))


def names_of(program: nodes.Program, rules: Iterable[Rule]) -> set[str]:
    used = {name for rule in rules for name in (rule.head.predicate, *rule.reads)}
    return used | {item.name for item in program.items if isinstance(item, nodes.Declaration)}


def given_rows(given: Mapping[str, set[Row]], columns: Columns) -> dict[str, frozenset[Row]]:
    def entered(name: str, row: Row) -> Row:
        try:
            return tuple(enter(value, columns.get((name, i), PLAIN)) for i, value in enumerate(row))
        except Undefined as reason:
            raise EvaluationError(f"a fact of {name}", {str(i): v for i, v in enumerate(row)}, str(reason)) from reason

    return {name: frozenset(entered(name, row) for row in rows) for name, rows in given.items()}


def in_order(rules: Sequence[Rule]) -> Iterator[frozenset[str]]:
    """The strongly connected components of the predicates with rules, each after those that it reads."""
    reads: dict[str, set[str]] = {rule.head.predicate: set() for rule in rules}
    for rule in rules:
        reads[rule.head.predicate] |= rule.reads & reads.keys()
    reaches = {name: reachable(name, reads) for name in reads}
    waiting = {frozenset({n} | {m for m in reaches[n] if n in reaches[m]}): None for n in reads}
    for rule in rules:
        for name, positive in predicates(rule.body):
            if not positive and rule.head.predicate in reaches.get(name, ()):
                raise InvalidProgram(f"not stratified: {rule.text}")
    done: set[str] = set()
    while waiting:
        chosen = next(c for c in waiting if all(reads[name] <= done | c for name in c))
        del waiting[chosen]
        done |= chosen
        yield chosen


def reachable(start: Node, reads: Mapping[Node, set[Node]]) -> set[Node]:
    found, stack = set[Node](), [start]
    while stack:
        new = reads.get(stack.pop(), set()) - found
        found |= new
        stack += new
    return found


@dataclass(frozen=True)
class Solver:
    given: Mapping[str, frozenset[Row]]
    columns: Columns
    untils: Mapping[str, nodes.Until]
    rounds: int

    def solve(self, component: frozenset[str], rules: Sequence[Rule], relations: State) -> State:
        """The fixpoint from the empty state, or where the rules' `until` says that the change is small enough."""
        recursive = any(component & rule.reads for rule in rules)

        def after(state: State) -> State:
            return self.consequences(component, [(rule, {}) for rule in rules], {**relations, **state})

        if not recursive:
            return after({})
        return self.repeat(after, {name: EMPTY for name in component}, rules)

    def repeat(self, after: Callable[[State], State], state: State, rules: Sequence[Rule]) -> State:
        for _ in range(self.rounds):
            new = after(state)
            if new == state and feed_themselves(infinite_sums(state, rules), after, state):
                break
            if new == state or self.settled(state, new, rules):
                return new
            state = new
        raise LimitReached(f"{', '.join(sorted(state))} after {self.rounds} rounds")

    def iterate(self, iteration: Iteration, relations: State, keep: bool) -> State:
        """The states of an indexed component, one after the other: all of them, or the last."""
        names, own = iteration.predicates, iteration.start + iteration.step
        state = kept = self.consequences(names, [(rule, {}) for rule in iteration.start], relations)
        for k in range(self.rounds):
            steps: list[tuple[Rule, Binding]] = [(rule, {str(index_of(rule)): k}) for rule in iteration.step]
            new = self.consequences(names, steps, {**relations, **state}, first=False)
            before, now = without_index(state), without_index(new)
            kept = {n: Relation(kept[n].rows | new[n].rows) for n in new} if keep else new
            if before == now or self.settled(before, now, own, indexed=True):
                return kept
            state = new
        raise LimitReached(f"{', '.join(sorted(state))} after {self.rounds} rounds")

    def consequences(
        self,
        names: Iterable[str],
        rules: Sequence[tuple[Rule, Binding]],
        relations: State,
        first: bool = True,
    ) -> State:
        """What the rules, each with the values that it starts from, derive from `relations`."""
        result = {}
        for name in names:
            own = [(rule, start) for rule, start in rules if rule.head.predicate == name]
            starts = {rule.id: start for rule, start in own}
            given = self.given.get(name, frozenset()) if first else frozenset[Row]()
            heads = partial(self.heads, starts=starts, relations=relations)
            result[name] = Relation(rows_of([rule for rule, _ in own], given, heads, self.columns))
        return result

    def heads(self, rule: Rule, starts: Mapping[int, Binding], relations: State) -> Iterable[Any]:
        return head_cells(rule, starts[rule.id], relations, self.columns)

    def settled(self, old: State, new: State, rules: Sequence[Rule], indexed: bool = False) -> bool:
        """The predicates have an `until`, and the change from `old` to `new` satisfies each."""
        asked = {name: self.untils[name] for name in new if name in self.untils}
        for name, until in asked.items():
            place = value_place([rule for rule in rules if rule.head.predicate == name], until.variable) - indexed
            size = change(until.function, old[name].rows, new[name].rows, place)
            if not compare(until.operator, size, value_of(until.bound, {})):
                return False
        return bool(asked)


def infinite_sums(state: State, rules: Sequence[Rule]) -> list[tuple[str, Row, Row]]:
    """The rows whose sum is infinite, each with the same row where the sum has the other sign."""
    found = []
    for name, relation in state.items():
        shape = shape_of([rule for rule in rules if rule.head.predicate == name])
        sums = {place for place, term in shape.items() if term.function == "sum"}
        for row in relation.rows:
            infinite = {i for i in sums if row[i] in SIGNS}
            if infinite:
                found.append((name, row, tuple(SIGNS[v] if i in infinite else v for i, v in enumerate(row))))
    return found


def feed_themselves(sums: Sequence[tuple[str, Row, Row]], after: Callable[[State], State], state: State) -> bool:
    """True if one of the infinite sums of a fixpoint follows from itself, along a cycle: it has grown for ever. What
    follows from a sum is what changes with its sign."""
    follows: dict[tuple[str, Row], set[tuple[str, Row]]] = {}
    for name, row, other in sums:
        changed = after({**state, name: Relation(state[name].rows - {row} | {other})})
        follows[name, row] = {(target, one) for target, one, _ in sums if one not in changed[target].rows}
    return any(node in reachable(node, follows) for node in follows)


def without_index(state: State) -> State:
    return {name: Relation(frozenset(row[1:] for row in relation.rows)) for name, relation in state.items()}


def value_place(rules: Sequence[Rule], variable: str) -> int:
    """The column that an `until` watches: the aggregated one, else the one named in it, else the last."""
    shape = shape_of(rules)
    if shape:
        return min(shape)
    arguments = rules[0].head.arguments
    named = [i for i, term in enumerate(arguments) if term == nodes.Variable(variable)]
    return named[0] if named else len(arguments) - 1


def change(function: str, old: Iterable[Row], new: Iterable[Row], place: int) -> float:
    """The norm of the change of a column: the sum, or the greatest, of the absolute differences of the groups."""

    def values(rows: Iterable[Row]) -> dict[Row, Any]:
        return {row[:place] + row[place + 1 :]: row[place] for row in rows}

    before, now = values(old), values(new)
    differences = [abs(now.get(group, 0) - before.get(group, 0)) for group in before.keys() | now.keys()]
    if function not in ("sum", "max"):
        raise ValueError(f"no `until` over {function}")
    return float(sum(differences)) if function == "sum" else float(max(differences, default=0))
