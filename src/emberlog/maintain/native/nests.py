"""A nest as the text of a compiled function, which writes what it derives into a buffer.

The text depends on the shape of the rule alone: tables and indexes have numbers, constants are arguments. For
`sssp(Y, min(D)) <- sssp(X, C), warc(X, Y, W), D = C + W`, from a fact of `sssp` (table 0; `warc` is table 1):

    def nest0(control, buffer, probe, mask, r, v0, v1, t0, t1, x0):
        n = 0
        fail = 0
        probe[0, 0] = v0
        l1, h1 = block_of(t1, x0, probe, 0)
        for i1 in range(l1, h1):
            s1 = np.int64(t1[1][i1])
            if t1[0][s1, 3] & mask:
                v2 = t1[0][s1, 1]
                ...
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, assert_never

from emberlog.analysis.functions import NARROWING, constant_type
from emberlog.kernels.code.arithmetic import Arithmetic
from emberlog.kernels.code.source import Writer
from emberlog.kernels.upkeep.layout import NAN, NEW, NO_BUFFER, RANK, RULE, SUPPORT
from emberlog.maintain.functions import constant_value
from emberlog.maintain.native.encoding import Kind, kind_of
from emberlog.maintain.native.shapes import Shape
from emberlog.maintain.nests import Check, Each, Lack, Let, Look, Nest, Step, Unsupported
from emberlog.syntax.nodes import Aggregate, Call, Comparison, Constant, Term, Variable
from emberlog.types import Type

INTEGER = frozenset({"+", "-", "*", "/", "%", "neg", "abs", "relu", "clip", "min", "max", "to_number", "to_float"})
FLOATING = frozenset({"+", "-", "*", "/", "neg", "abs", "sqrt", "relu", "clip", "min", "max", "to_float"})
Start = Literal["row", "fact", "head", "nothing"]


@dataclass
class Arguments:
    """What all functions of a text take besides their own arguments: the indexes and constants that they use, in the
    order in which they were met."""

    indexes: dict[tuple[str, tuple[int, ...]], str] = field(default_factory=dict)
    constants: dict[tuple[Type, Any], str] = field(default_factory=dict)

    def index(self, table: str, columns: tuple[int, ...]) -> str:
        return self.indexes.setdefault((table, columns), f"x{len(self.indexes)}")

    def constant(self, type_: Type, value: Any) -> str:
        return self.constants.setdefault((type_, value), f"c{len(self.constants)}")

    @staticmethod
    def dtype(type_: Type) -> str:
        return "float64" if kind_of(type_) == "float" else "int64"


@dataclass(frozen=True)
class NestText:
    """The function of a nest: its name, its text, and what a call of it ends with. It starts from a row of a relation,
    a fact (whose rank is given), a head (whose derivations are looked for) or from nothing."""

    name: str
    text: str
    start: Start
    given: tuple[int, ...]  # the columns of the row that the function starts from
    head: Shape
    rest: tuple[str, ...]

    def call(self, row: str, kinds: Sequence[Kind], mask: str, *more: str) -> str:
        """A call for the row of this name (an expression with a place for the column)."""
        values = [loaded(row.format(column), kinds[column]) for column in self.given]
        return f"{self.name}({', '.join(('control', 'buffer', 'probe', mask, *more, *values, *self.rest))})"


def loaded(word: str, kind: Kind) -> str:
    """The value of a word."""
    return f"np.int64({word}).view(np.float64)" if kind == "float" else word


def stored(value: str, kind: Kind) -> str:
    """The word of a value."""
    return f"np.float64({value}).view(np.int64)" if kind == "float" else value


class NestWriter:
    """Writes the function of one nest."""

    def __init__(self, name: str, nest: Nest, shapes: Mapping[str, Shape], arguments: Arguments) -> None:
        self._name = name
        self._nest = nest
        self._shapes = shapes
        self._arguments = arguments
        self._out = Writer()
        self._env: dict[str, str] = {}
        self._kinds: dict[str, Kind] = {}
        self._tables: set[str] = set()
        self._ranks: list[str] = []
        self._used: dict[str, None] = {}

    def write(self, start: Start, source: Shape | None, columns: Sequence[int], head: Shape, rule: int) -> NestText:
        """The function that starts from values for some columns of a table, in the order of the nest's inputs."""
        assert len(columns) == len(self._nest.inputs)
        for column, name in zip(columns, self._nest.inputs, strict=True):
            assert source is not None
            self._bind(name, source.kinds[column])
        inputs = [self._env[name] for name in self._nest.inputs]
        if start == "fact":
            self._ranks.append("r")
        with ExitStack() as loops:
            for step in self._nest.steps:
                loops.enter_context(self._step(step))
            self._emit(head, rule, start == "head")
        own = {"row": [], "fact": ["r"], "head": ["most", "wanted"], "nothing": []}[start]
        rest = (*sorted(self._tables), *self._used)
        parameters = ", ".join(["control", "buffer", "probe", "mask", *own, *inputs, *rest])
        body = ["    n = 0", "    fail = 0", *self._out.lines, "    if fail:", "        control[FAIL] = fail"]
        text = "\n".join([f"@inner\ndef {self._name}({parameters}):", *body, "    return n"])
        return NestText(self._name, text, start, tuple(columns), head, rest)

    # --- steps ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _step(self, step: Step) -> Iterator[None]:
        match step:
            case Look():
                with self._look(step):
                    yield
            case Lack():
                with self._out.block(f"if not {self._exists(step)}:"):
                    yield
            case Let(variable, term):
                value, kind = self._term(term)
                name = self._bind(variable, kind)
                self._out.line(f"{name} = {value}")
                yield
            case Check(condition):
                if not isinstance(condition, Comparison):
                    raise Unsupported("a test in a recursion")
                with self._out.block(f"if {self._comparison(condition)}:"):
                    yield
            case Each():
                raise Unsupported("a range in a recursion")
            case _:
                assert_never(step)

    @contextmanager
    def _look(self, step: Look) -> Iterator[None]:
        """The rows of a table that have the values of a key."""
        shape = self._shapes[step.relation]
        table, out = self._table(shape), self._out
        number = out.fresh("")
        slot, columns = f"s{number}", step.columns
        beyond = [column for column in columns if column not in shape.key]
        with ExitStack() as loops:
            self._probe(step)
            if set(shape.key) <= set(columns):
                out.line(f"{slot} = find_row({table}, probe, 0)")
                loops.enter_context(out.block(f"if {slot} >= 0 and {self._is_there(shape, slot)}:"))
                for column in beyond:
                    loops.enter_context(out.block(f"if {table}[0][{slot}, {column}] == probe[0, {column}]:"))
            elif beyond:
                raise Unsupported("facts that are looked up by a minimum or maximum")
            else:
                self._rows(step, shape, slot, f"{number}", loops)
            for column, name in step.binds:
                variable = self._bind(name, shape.kinds[column])
                out.line(f"{variable} = {loaded(f'{table}[0][{slot}, {column}]', shape.kinds[column])}")
            for column, name in step.equal:
                value = loaded(f"{table}[0][{slot}, {column}]", shape.kinds[column])
                loops.enter_context(out.block(f"if {value} == {self._env[name]}:"))
            if shape.inside:
                self._ranks.append(f"{table}[0][{slot}, {shape.width + RANK}]")
            yield

    def _rows(self, step: Look, shape: Shape, slot: str, number: str, loops: ExitStack) -> None:
        """The loop over the rows of a key, or over all of them."""
        table, out = self._table(shape), self._out
        if step.columns:
            base = self._index(shape, step.columns)
            out.line(f"l{number}, h{number} = block_of({table}, {base}, probe, 0)")
            loops.enter_context(out.block(f"for i{number} in range(l{number}, h{number}):"))
            out.line(f"{slot} = np.int64({table}[1][i{number}])")
        else:
            loops.enter_context(out.block(f"for {slot} in range({table}[3][USED]):"))
        loops.enter_context(out.block(f"if {self._is_there(shape, slot)}:"))

    def _exists(self, step: Lack) -> str:
        """The condition that a row has the values of a key."""
        shape = self._shapes[step.relation]
        table = self._table(shape)
        if not step.columns or shape.value is not None:
            raise Unsupported("a negated atom without a key")
        self._probe(step)
        if len(step.columns) < shape.width:
            return f"has_any({table}, {self._index(shape, step.columns)}, probe, 0, mask)"
        slot = self._out.fresh("s")
        self._out.line(f"{slot} = find_row({table}, probe, 0)")
        return f"({slot} >= 0 and {self._is_there(shape, slot)})"

    def _is_there(self, shape: Shape, slot: str) -> str:
        mask = str(NEW) if shape.inside else "mask"
        return f"{self._table(shape)}[0][{slot}, {shape.width}] & {mask}"

    def _probe(self, step: Look | Lack) -> None:
        """Writes a key to where it is looked up from."""
        kinds = self._shapes[step.relation].kinds
        for column, term in zip(step.columns, step.key, strict=True):
            value, _ = self._term(term)
            self._out.line(f"probe[0, {column}] = {stored(value, kinds[column])}")

    def _table(self, shape: Shape) -> str:
        self._tables.add(f"t{shape.number}")
        return f"t{shape.number}"

    def _index(self, shape: Shape, columns: tuple[int, ...]) -> str:
        return self._use(self._arguments.index(shape.name, columns))

    def _use(self, name: str) -> str:
        self._used[name] = None
        return name

    def _bind(self, name: str, kind: Kind) -> str:
        self._kinds[name] = kind
        return self._env.setdefault(name, f"v{len(self._env)}")

    # --- terms ---------------------------------------------------------------------------------------------------

    def _term(self, term: Term) -> tuple[str, Kind]:
        """The expression of a term, and what its values are."""
        match term:
            case Variable(name):
                return self._env[name], self._kinds[name]
            case Constant():
                type_ = constant_type(term)
                return self._use(self._arguments.constant(type_, constant_value(term))), kind_of(type_)
            case Call():
                return self._call(term)
            case Aggregate(_, arguments):
                return self._term(arguments[-1])
            case _:
                raise AssertionError(f"{term} in a checked rule")

    def _call(self, term: Call) -> tuple[str, Kind]:
        operands = {self._term_kind(argument) for argument in term.arguments}
        if operands == {"int"}:
            narrow = term.function in NARROWING and NARROWING[term.function].kind == "number"
            known, kind = term.function in INTEGER or narrow, "float" if term.function == "to_float" else "int"
        else:
            known, kind = operands == {"float"} and term.function in FLOATING, "float"
        if not known:
            raise Unsupported(f"`{term.function}` of such values")
        value = Arithmetic(self._out).call(
            term, lambda inner: self._term(inner)[0], lambda inner: self._term_kind(inner) == "float"
        )
        name = self._out.fresh("y")
        if kind == "int":
            self._out.line(f"{name} = np.int64({value})")
            return name, "int"
        self._out.line(f"{name} = {value} + 0.0")  # there is no negative zero
        self._out.line(f"if {name} != {name}:")
        self._out.line(f"    fail = {NAN}")
        return name, "float"

    def _term_kind(self, term: Term) -> Kind:
        match term:
            case Variable(name):
                return self._kinds[name]
            case Constant():
                return kind_of(constant_type(term))
            case Call("to_float"):
                return "float"
            case Call(_, arguments):
                return self._term_kind(arguments[0])
            case Aggregate(_, arguments):
                return self._term_kind(arguments[-1])
            case _:
                raise AssertionError(f"{term} in a checked rule")

    def _comparison(self, comparison: Comparison) -> str:
        (left, kind), (right, other) = self._term(comparison.left), self._term(comparison.right)
        operator = comparison.operator
        if kind != other or (kind == "id" and operator not in ("=", "!=")):
            raise Unsupported(f"`{operator}` of such values")
        if operator.startswith("!") and operator != "!=":
            return f"not ({left} {operator[1:]} {right})"
        return f"{left} {'==' if operator == '=' else operator} {right}"

    # --- what is derived -----------------------------------------------------------------------------------------

    def _emit(self, head: Shape, rule: int, search: bool) -> None:
        """Writes the derived fact into the buffer: its columns, rank, rule and support."""
        out, (key, value, identity) = self._out, self._nest.outputs
        spots = (*head.signature.groups, *([] if head.value is None else [head.value]))
        words = {
            spot: stored(self._term(term)[0], head.kinds[spot])
            for spot, term in zip(spots, (*key, *value), strict=True)
        }
        words[head.width + RANK] = self._rank()
        words[head.width + RULE] = str(rule)
        support = [stored(*self._term(term)) for term in identity]
        support += ["0"] * (head.words - len(support))
        words |= {head.width + SUPPORT + i: word for i, word in enumerate(support)}
        if not search:
            self._add(words)
            return
        value_word = "wanted" if head.value is None else words[head.value]
        with out.block("if most < 0:"):
            self._add(words)
        with out.block(f"elif {words[head.width + RANK]} <= most and {value_word} == wanted:"):
            for spot, word in words.items():
                out.line(f"buffer[0, {spot}] = {word}")
            out.line("return 1")

    def _add(self, words: Mapping[int, str]) -> None:
        out = self._out
        with out.block("if n == buffer.shape[0]:"):
            out.line(f"control[FAIL] = {NO_BUFFER}")
            out.line("return 0")
        for spot, word in words.items():
            out.line(f"buffer[n, {spot}] = {word}")
        out.line("n += 1")

    def _rank(self) -> str:
        """A rank above that of all facts of the component in the body."""
        if not self._ranks:
            return "0"
        found = self._ranks[0]
        for rank in self._ranks[1:]:
            found = f"max({found}, {rank})"
        return f"{found} + 1"
