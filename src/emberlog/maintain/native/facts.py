"""Recursive sets, minima and maxima by compiled loops: the method of `recursion.py` over columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from emberlog.analysis.program import Absent, CoreRule, Match
from emberlog.deadline import shielded
from emberlog.kernels.upkeep import layout
from emberlog.kernels.upkeep.layout import AT, EDIT, FAIL, FALLEN, HEAPED, LIMIT, PHASE, STAGE, TOP, TOUCHED, WORK
from emberlog.maintain.carriers import Relations
from emberlog.maintain.functions import Missing
from emberlog.maintain.kept import Tables
from emberlog.maintain.native.driver import Change, Texts, source_of
from emberlog.maintain.native.encoding import Encoding, Words
from emberlog.maintain.native.nests import Arguments, NestText, NestWriter
from emberlog.maintain.native.saving import layouts, load_facts, save_facts
from emberlog.maintain.native.shapes import Shape, shapes_of, support_of
from emberlog.maintain.nests import Signatures, Unsupported, carried_columns, change_nest, head_nest
from emberlog.maintain.recursion import CYCLE_REASON, NAN_REASON, Improper, deep_reason
from emberlog.maintain.store import Relation
from emberlog.rules.changes import atoms_of
from emberlog.rules.heads import head_rule, value
from emberlog.syntax.nodes import Aggregate, Term

if TYPE_CHECKING:  # they load the compiler, which views of few rows do without
    from emberlog.kernels.upkeep.table import Table
    from emberlog.maintain.native.place import Columns

ITEMS = 1 << 18  # that a call of the loops takes up at most: then time limits are looked at
FIRST_ROOM = 1 << 10


def texts_of(names: Sequence[str], rules: Sequence[CoreRule], signatures: Signatures) -> Texts:
    """The loops of a component. Raises `Unsupported` for rules that they do not follow."""
    shapes = shapes_of(names, rules, signatures)
    arguments = Arguments()
    nests = _Nests(names, shapes, signatures, arguments)
    for number, rule in enumerate(rules):
        nests.add(number, rule)
    return Texts(
        tuple(shapes.values()), nests.constants, nests.exits, nests.changes, nests.follow, nests.searches, arguments
    )


class _Nests:
    """Collects the functions of the rules of a component."""

    def __init__(
        self, names: Sequence[str], shapes: Mapping[str, Shape], signatures: Signatures, arguments: Arguments
    ) -> None:
        self._names = names
        self._shapes = shapes
        self._signatures = signatures
        self._arguments = arguments
        self._count = 0
        self.constants: list[NestText] = []
        self.exits: list[Change] = []
        self.changes: list[Change] = []
        self.follow: list[tuple[Shape, NestText]] = []
        self.searches: list[NestText] = []

    def add(self, number: int, rule: CoreRule) -> None:
        """The rule from each of its atoms, from its head and, if it is an exit, from all rows."""
        signatures, head = self._signatures, self._shapes[rule.predicate]
        outputs = (
            tuple(rule.arguments[i] for i in signatures[rule.predicate].groups),
            tuple(rule.arguments[i] for i in signatures[rule.predicate].aggregates),
            support_of(rule, self._names, signatures),
        )
        first: Change | None = None
        for place, atom in atoms_of(rule.body):
            if len(place) > 1:
                raise Unsupported("an aggregate in a body")
            nest = change_nest(rule, place[0], outputs, signatures)
            source, columns = self._shapes[atom.predicate], carried_columns(atom)
            start = self._writer(nest)
            if source.inside:
                self.follow.append((source, start.write("fact", source, columns, head, number)))
                continue
            change = self._change(atom, source, columns, start.write("row", source, columns, head, number))
            self.changes.append(change)
            if first is None and isinstance(atom, Match):
                first = change
        if frozenset(self._names).isdisjoint(rule.reads()):
            if first is None:
                whole = change_nest(rule, None, outputs, signatures)
                self.constants.append(self._writer(whole).write("nothing", None, (), head, number))
            else:
                self.exits.append(first)
        self._search(number, rule, outputs, head)

    def _writer(self, nest: Any) -> NestWriter:
        self._count += 1
        return NestWriter(f"nest{self._count}", nest, self._shapes, self._arguments)

    def _change(self, atom: Match | Absent, source: Shape, columns: tuple[int, ...], nest: NestText) -> Change:
        partial = isinstance(atom, Absent) and len(columns) < source.width
        if partial and not columns:
            raise Unsupported("a negated atom without a key")
        key = self._arguments.index(source.name, columns) if partial else None
        return Change(source, isinstance(atom, Absent), key, nest)

    def _search(self, number: int, rule: CoreRule, outputs: tuple[tuple[Term, ...], ...], head: Shape) -> None:
        signature = self._signatures[rule.predicate]
        arguments = tuple(
            Aggregate("min", (argument,)) if i in signature.aggregates else argument
            for i, argument in enumerate(rule.arguments)
        )
        seen = head_rule(replace(rule, arguments=arguments), self._names)
        given = dict(seen.given)
        inputs = tuple(given.get(position, value(position)) for position in signature.groups)
        nest = head_nest(rule, inputs, seen.body, outputs, self._signatures, self._names)
        self.searches.append(self._writer(nest).write("head", head, signature.groups, head, number))


class NativeFacts:
    """A recursive component of sets, minima and maxima in columns."""

    kept = "a derivation of each fact, and its rank, in columns"

    def __init__(
        self,
        names: Sequence[str],
        rules: Sequence[CoreRule],
        relations: Relations,
        signatures: Signatures,
        encoding: Encoding,
        most_rank: int | None = None,
    ) -> None:
        self._texts = texts_of(names, rules, signatures)
        self._layouts = layouts(names, rules, self._texts.shapes, signatures)
        self._relations = relations
        self.encoding = encoding
        self._most = -1 if most_rank is None else most_rank
        self._tables: list[Table] = []
        self._places: list[Columns] = []
        width = max(shape.width + 1 + shape.extra for shape in self._texts.shapes)
        self._control: Words = np.zeros(layout.CONTROL, np.int64)
        self._buffer: Words = np.zeros((FIRST_ROOM, width), np.int64)
        self._probe: Words = np.zeros((1, width), np.int64)
        self._heap: Words = np.zeros((FIRST_ROOM, 3), np.int64)
        self._fallen: Words = np.zeros(FIRST_ROOM, np.int64)
        self._edits: Words = np.zeros((0, width), np.int64)
        self._marks: Words = np.zeros((0, 3), np.int64)

    @property
    def inputs(self) -> list[Relation]:
        """The relations that the loops read."""
        return [self._relations[shape.name] for shape in self._texts.shapes if not shape.inside]

    @property
    def is_ready(self) -> bool:
        """True if loops can read all inputs: those in places are sets of rows, not minima or maxima whose values change
        there."""
        places = (relation.place for relation in self.inputs)
        return all(place is None or not place.has_values for place in places)

    @property
    def is_current(self) -> bool:
        """True if all relations are where the loops left them."""
        found = zip(self._texts.shapes, self._places, strict=True)
        return all(self._relations[shape.name].place is place for shape, place in found)

    # --- changes -------------------------------------------------------------------------------------------------

    def start(self) -> int:
        """Derives all facts from all rows of the inputs."""
        self._prepare()
        self._control[TOP] = 0
        touched = self._follow(layout.STARTING)
        for shape, place in zip(self._texts.shapes, self._places, strict=True):
            if shape.inside:
                self._relations[shape.name].move(place, holds_all=False)
        return touched

    def _prepare(self) -> None:
        """Makes the tables and indexes that the loops need, with the rows of the inputs in them, and compiles."""
        from emberlog.kernels.cache import compiled

        self._places = [self._place(shape) for shape in self._texts.shapes]
        self._tables = [place.table for place in self._places]
        arguments = self._texts.arguments
        by_name = {shape.name: place.table for shape, place in zip(self._texts.shapes, self._places, strict=True)}
        bases = [by_name[name].index(columns) for name, columns in arguments.indexes]
        constants = [self._constant(type_, value) for type_, value in arguments.constants]
        self._scalars = (*bases, *constants)
        self._function = compiled(source_of(self._texts))

    def _place(self, shape: Shape) -> Columns:
        """The rows of a relation in columns: those of an input, or a table for the facts."""
        from emberlog.kernels.upkeep.table import Table
        from emberlog.maintain.native.place import Columns

        relation, columns = self._relations[shape.name], shape.signature.columns
        if shape.inside:
            return Columns(columns, self.encoding, Table(shape.width, shape.key, shape.extra))
        place = relation.place
        if place is None:
            place = Columns.of_rows(columns, self.encoding, relation.rows)
            relation.move(place, holds_all=True)
        assert isinstance(place, Columns)
        return place

    def _constant(self, type_: Any, constant: Any) -> Any:
        word = self.encoding.word(constant, type_)
        return np.float64(constant) if Arguments.dtype(type_) == "float64" else np.int64(word)

    def update(self) -> int:
        """Follows a change of the inputs; returns how many facts were looked at."""
        if not self.is_current:
            raise Improper(NAN_REASON)  # which is why an input leaves its place
        touched = self._follow(layout.LOSING)
        for shape in self._texts.shapes:
            if shape.inside:
                self._relations[shape.name].follow()
        return touched

    # --- saving --------------------------------------------------------------------------------------------------

    def save(self) -> Tables:
        """For each rule the facts that it supports: key, value, rank and identity of the support."""
        rows = {shape.name: table.snapshot()["rows"] for shape, table in self._inside()}
        return {found.name: save_facts(found, rows[found.head.name], self.encoding) for found in self._layouts}

    def load(self, tables: Tables) -> None:
        """Goes on from what `save` gave, when the relations have their rows."""
        self._prepare()
        top = 0
        for shape, place in zip(self._texts.shapes, self._places, strict=True):
            if shape.inside:
                rows = load_facts(self._layouts, shape, tables, self.encoding)
                place.table.restore({"rows": rows})
                top = max(top, int(rows[:, shape.width + layout.RANK].max(initial=0)))
                self._relations[shape.name].move(place, holds_all=True)
        self._control[TOP] = top

    # --- sequences of changes ------------------------------------------------------------------------------------

    @property
    def touched(self) -> int:
        """How many facts the last change, or sequence of changes, looked at."""
        return int(self._control[TOUCHED])

    def number(self, relation: str) -> int | None:
        """The number of the table of an input."""
        found = (shape.number for shape in self._texts.shapes if shape.name == relation and not shape.inside)
        return next(found, None)

    def room_for_edits(self, count: int) -> tuple[Words, Words]:
        """Arrays for the rows of a sequence of changes, and for what each of them is: the number of its change, that
        of its table, and a sign."""
        return np.zeros((count, self._probe.shape[1]), np.int64), np.zeros((count, 3), np.int64)

    def run_each(self, edits: Words, marks: Words) -> int | None:
        """Applies and commits the changes of a sequence, one after another. Returns the number of the first one that
        the loops cannot follow, which is not applied, nor are those after it; None if they followed all."""
        for shape in self._texts.shapes:
            self._relations[shape.name].forget_rows()
        self._edits, self._marks = edits, marks
        self._begin(layout.EDITING, layout.EACH)
        self._control[layout.STOP] = len(edits)
        try:
            self._run()
        except BaseException as error:
            for table in self._tables:
                table.undo()
            if isinstance(error, Missing | Improper):
                return int(marks[self._control[EDIT] - 1, 0])
            raise
        return None

    # --- loops ---------------------------------------------------------------------------------------------------

    def _follow(self, phase: int) -> int:
        """Runs the loops from a phase to the end of the change."""
        self._begin(phase, layout.ONE_CHANGE)
        facts = sum(len(table) for _, table in self._inside())
        self._control[LIMIT] = self._control[TOP] + 1 + facts
        self._run()
        return int(self._control[TOUCHED])

    def _begin(self, phase: int, mode: int) -> None:
        control = self._control
        control[PHASE], control[layout.MODE], control[layout.MOST] = phase, mode, self._most
        for place in (STAGE, AT, HEAPED, FALLEN, FAIL, TOUCHED, EDIT):
            control[place] = 0

    def _inside(self) -> Iterable[tuple[Shape, Table]]:
        found = zip(self._texts.shapes, self._tables, strict=True)
        return [(shape, table) for shape, table in found if shape.inside]

    def _run(self) -> None:
        """Runs the loops until they are done; makes room as they ask."""
        while True:
            with shielded():
                self._control[WORK] = ITEMS
                arrays = [array for table in self._tables for array in table.arrays]
                code = int(
                    self._function(
                        self._control,
                        self._buffer,
                        self._probe,
                        self._heap,
                        self._fallen,
                        self._edits,
                        self._marks,
                        *arrays,
                        *self._scalars,
                    )
                )
                self._control[FAIL] = 0
                self._make_room(code)
            match code:
                case layout.DONE:
                    return
                case layout.MISSING:
                    raise Missing
                case layout.NAN:
                    raise Improper(NAN_REASON)
                case layout.CYCLE:
                    raise Improper(CYCLE_REASON)
                case layout.DEEP:
                    raise Improper(deep_reason(self._most))

    def _make_room(self, code: int) -> None:
        match code:
            case layout.NO_BUFFER:
                self._buffer = np.zeros((2 * len(self._buffer), self._buffer.shape[1]), np.int64)
            case layout.NO_HEAP:
                self._heap = np.concatenate([self._heap, np.zeros_like(self._heap)])
            case layout.NO_FALLEN:
                self._fallen = np.concatenate([self._fallen, np.zeros_like(self._fallen)])
            case _ if code >= layout.NO_ROOM:
                self._tables[code - layout.NO_ROOM].grow()
