"""Rules as compositions of binary relations, for evaluation row by row.

A rule whose atoms make a path from one head variable to the other, each variable in between in two atoms, is a chain
of compositions. It is cut into pairs, from a recursive atom outwards and statics first, so that what is found twice
is dropped before it is joined with the rest. What lies between two cuts is a relation of its own.

A composition whose left side is static or-s whole rows of the right side; one whose left side is recursive goes through
single facts. So each relation is stored the way round that gives more of the former.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from emberlog.components.compositions import Composition, Operator, RowRelation, RowsProgram, Side, StaticRelation
from emberlog.components.program import Atom, Check, Id, KernelProgram, KernelRule, Let
from emberlog.syntax.nodes import Call, Variable

OPERATORS: dict[str, Operator] = {"+": "+", "*": "*", "min": "min", "max": "max"}
MOST_TURNED = 6  # relations; so many can be stored either way before trying all ways takes long


@dataclass(frozen=True, slots=True)
class Composed:
    """A component as compositions. `turned` are the relations that are stored with their columns swapped."""

    program: RowsProgram
    turned: frozenset[str]


class _NoPath(Exception):
    """A rule is no chain of compositions."""


def compose(program: KernelProgram) -> Composed | None:
    """The component as compositions, None if it is none."""
    if program.mode != "delta":
        return None
    try:
        found = _Composer(program).program()
    except _NoPath:
        return None
    turned = _best_way(found)
    return Composed(_turn(found, turned), turned)


class _Composer:
    def __init__(self, program: KernelProgram) -> None:
        self.source = program
        self.made: list[RowRelation] = []

    def program(self) -> RowsProgram:
        recursive = [self._relation(table.name) for table in self.source.tables]
        rules = [rule for source in self.source.rules for rule in self._rules(source)]
        statics = tuple(self._static(static.name) for static in self.source.statics)
        return RowsProgram((*recursive, *self.made), statics, tuple(rules))

    def _relation(self, name: str) -> RowRelation:
        table = self.source.table(name)
        assert table is not None
        if table.fold == "sum" or len(table.keys) != 2 or table.keys != (0, 1):
            raise _NoPath
        first, second = (self._domain(name, spot) for spot in table.keys)
        if table.value is None:
            return RowRelation(name, first, second)
        kind = table.kinds[table.value]
        if kind not in ("int", "float"):
            raise _NoPath
        return RowRelation(name, first, second, table.fold, kind)

    def _static(self, name: str) -> StaticRelation:
        kinds = self.source.static(name).kinds
        if len(kinds) not in (2, 3) or (len(kinds) == 3 and isinstance(kinds[2], Id)):
            raise _NoPath
        valued = len(kinds) == 3 and kinds[2] != "unread"
        return StaticRelation(name, self._domain(name, 0), self._domain(name, 1), valued)

    def _domain(self, name: str, spot: int) -> str:
        kind = self.source.kinds(name)[spot]
        if not isinstance(kind, Id):
            raise _NoPath
        return str(kind.domain)

    # --- one rule ------------------------------------------------------------------------------------------------

    def _rules(self, rule: KernelRule) -> Iterator[Composition]:
        start, end = (argument for argument in rule.arguments[:2])
        if not isinstance(start, Variable) or not isinstance(end, Variable) or start == end:
            raise _NoPath
        path = self._path(rule, start.name, end.name)
        irreflexive = self._checks(rule, start.name, end.name)
        if len(rule.arguments) == 3:
            yield self._valued(rule, path, irreflexive)
            return
        if any(isinstance(goal, Let) for goal in rule.body):
            raise _NoPath
        yield from self._chain(rule, path, irreflexive)

    def _path(self, rule: KernelRule, start: str, end: str) -> list[Side]:
        """The atoms as sides of a path from the first head variable to the second."""
        atoms = [goal for goal in rule.body if isinstance(goal, Atom)]
        if any(not isinstance(goal, Atom | Check | Let) for goal in rule.body):
            raise _NoPath
        ends = []
        for atom in atoms:
            if len(atom.arguments) < 2:
                raise _NoPath
            one, other = atom.arguments[:2]
            if not isinstance(one, Variable) or not isinstance(other, Variable) or one == other:
                raise _NoPath
            ends.append((one.name, other.name))
        sides, at, left = [], start, list(range(len(atoms)))
        while left:
            here = [i for i in left if at in ends[i]]
            if len(here) != 1:
                raise _NoPath
            spot = here[0]
            near, far = ends[spot]
            sides.append(Side(atoms[spot].relation, flipped=at == far))
            at = near if at == far else far
            if at == end and len(left) > 1:
                raise _NoPath
            left.remove(spot)
        if at != end:
            raise _NoPath
        return sides

    def _checks(self, rule: KernelRule, start: str, end: str) -> bool:
        checks = [goal.condition for goal in rule.body if isinstance(goal, Check)]
        for check in checks:
            if check.operator != "!=" or {check.left, check.right} != {Variable(start), Variable(end)}:
                raise _NoPath
        return bool(checks)

    def _valued(self, rule: KernelRule, path: list[Side], irreflexive: bool) -> Composition:
        """A rule with a value: two atoms at most, and one operation."""
        values: dict[str, str] = {}
        for goal in rule.body:
            if isinstance(goal, Atom) and len(goal.arguments) == 3 and isinstance(goal.arguments[2], Variable):
                values[goal.arguments[2].name] = goal.relation
        lets = [goal for goal in rule.body if isinstance(goal, Let)]
        term = rule.arguments[2]
        if len(lets) == 1 and term == Variable(lets[0].variable):
            term = lets[0].term
        elif lets:
            raise _NoPath
        atoms = [goal for goal in rule.body if isinstance(goal, Atom)]
        order = [next(a for a in atoms if _is_side(a, side, path, rule)) for side in path]
        names = [
            a.arguments[2].name if len(a.arguments) == 3 and isinstance(a.arguments[2], Variable) else None
            for a in order
        ]
        if len(path) > 2 or len(set(names) - {None}) != len([n for n in names if n]):
            raise _NoPath
        match term:
            case Variable(name) if name in names:
                return Composition(
                    rule.head, path[0], _second(path), irreflexive, "left" if names[0] == name else "right"
                )
            case Call(function, (Variable(one), Variable(other))) if function in OPERATORS and len(path) == 2:
                if {one, other} == set(names):
                    return Composition(rule.head, path[0], path[1], irreflexive, OPERATORS[function])
        raise _NoPath

    def _chain(self, rule: KernelRule, path: list[Side], irreflexive: bool) -> Iterator[Composition]:
        """The compositions of a path, from a recursive side outwards."""
        inside = {table.name for table in self.source.tables}
        sides = list(path)
        if len(sides) == 1:
            yield Composition(rule.head, sides[0], None, irreflexive)
            return
        at = next(i for i, side in enumerate(sides) if side.relation in inside)
        while len(sides) > 2:
            right_static = at + 1 < len(sides) and sides[at + 1].relation not in inside
            left_static = at > 0 and sides[at - 1].relation not in inside
            if right_static or (not left_static and at + 1 < len(sides)):
                pair = (sides[at], sides[at + 1])
                spot = at
            else:
                pair = (sides[at - 1], sides[at])
                spot = at - 1
            name = f"{rule.head}/{rule.id}.{len(sides)}"
            self.made.append(RowRelation(name, self._end(pair[0], 0), self._end(pair[1], 1)))
            yield Composition(name, pair[0], pair[1])
            sides[spot : spot + 2] = [Side(name)]
            inside.add(name)
            at = spot
        yield Composition(rule.head, sides[0], sides[1], irreflexive)

    def _end(self, side: Side, which: int) -> str:
        """The domain at the left (0) or right (1) end of a side."""
        spot = which if not side.flipped else 1 - which
        made = next((relation for relation in self.made if relation.name == side.relation), None)
        if made is not None:
            return (made.first, made.second)[spot]
        return self._domain(side.relation, spot)


def _second(path: list[Side]) -> Side | None:
    return path[1] if len(path) == 2 else None


def _is_side(atom: Atom, side: Side, path: list[Side], rule: KernelRule) -> bool:
    """Is this the atom of a side? With two atoms of one relation the first on the path has the first head variable."""
    if atom.relation != side.relation:
        return False
    start = rule.arguments[0]
    holds = atom.arguments[1 if side.flipped else 0] == start
    return holds if side is path[0] else not holds or len(path) == 1


# --- orientation -----------------------------------------------------------------------------------------------------


def _best_way(program: RowsProgram) -> frozenset[str]:
    """The relations to store with swapped columns: what gives the most whole rows."""
    names = [relation.name for relation in program.recursive]
    if len(names) > MOST_TURNED:
        return frozenset()
    ways = (
        frozenset(n for n, turned in zip(names, way, strict=True) if turned)
        for way in product((0, 1), repeat=len(names))
    )
    return min(ways, key=lambda turned: (_cost(_turn(program, turned)), len(turned)))


def _cost(program: RowsProgram) -> int:
    """How many rules go through single facts, and how many read a relation against the way it is stored."""
    inside = {relation.name for relation in program.recursive}
    cost = 0
    for rule in program.rules:
        if rule.right is not None and rule.left.relation in inside and rule.right.relation not in inside:
            cost += 2
        cost += 2 * sum(side.flipped and side.relation in inside for side in rule.sides())
    return cost


def _turn(program: RowsProgram, turned: frozenset[str]) -> RowsProgram:
    """The program in which these relations have their columns swapped."""

    def side(old: Side) -> Side:
        return replace(old, flipped=not old.flipped) if old.relation in turned else old

    def rule(old: Composition) -> Composition:
        left, right = side(old.left), None if old.right is None else side(old.right)
        if old.head not in turned:
            return replace(old, left=left, right=right)
        if right is None:
            return replace(old, left=replace(left, flipped=not left.flipped))
        value = {"left": "right", "right": "left"}.get(old.value or "", old.value)
        return replace(
            old,
            left=replace(right, flipped=not right.flipped),
            right=replace(left, flipped=not left.flipped),
            value=value,  # type: ignore[arg-type]
        )

    relations = tuple(replace(r, first=r.second, second=r.first) if r.name in turned else r for r in program.recursive)
    return replace(program, recursive=relations, rules=tuple(rule(old) for old in program.rules))
