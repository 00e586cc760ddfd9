"""A nest as the text of a generator function of Python. The text depends on the shape of the rule alone.

Names in it are generated; constants and relations are arguments, so that equal shapes share one compiled function. For
`tc(X,Y) <- tc(X,Z), arc(Z,Y)`, from new rows of `tc`:

    def nest(rows, f0):
        for v0, v1 in rows:
            for _, v2 in f0(v1, ()):
                yield (v0, v2)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, assert_never

from emberlog.analysis.functions import type_of
from emberlog.callables import PythonFunction
from emberlog.maintain import functions
from emberlog.maintain.functions import constant_value, function_for
from emberlog.maintain.nests import Check, Each, Lack, Let, Look, Nest, Step, Unsupported
from emberlog.syntax.nodes import Aggregate, Anonymous, Call, Collect, Comparison, Constant, Parameter, Term, Variable

INDENT = "    "


class Text:
    """The text of a nest while it is written, with the names that stand in it."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.constants: list[Any] = []
        self.globals: dict[str, Callable[..., Any]] = {"steps": functions.steps}
        self._variables: dict[str, str] = {}

    def variable(self, name: str) -> str:
        return self._variables.setdefault(name, f"v{len(self._variables)}")

    def term(self, term: Term) -> str:
        """The expression that computes a term."""
        match term:
            case Variable(name):
                return self.variable(name)
            case Constant():
                self.constants.append(constant_value(term))
                return f"c{len(self.constants) - 1}"
            case Call(_, arguments, given=PythonFunction() as given):
                name = f"given_{given.number}"
                kinds = [type_of(argument, self.nest.types) for argument in arguments]
                self.globals[name] = functions.given_function(given, tuple(kinds))
                return f"{name}({', '.join(map(self.term, arguments))})"
            case Call(function, arguments):
                types = tuple(type_of(argument, self.nest.types) for argument in arguments)
                found = function_for(function, types, type_of(term, self.nest.types))
                if found is None:
                    raise Unsupported(f"the function `{function}`")
                name, self.globals[found[0]] = found
                return f"{name}({', '.join(map(self.term, arguments))})"
            case Aggregate(_, arguments):
                return self.term(arguments[-1])
            case Anonymous() | Parameter() | Collect():
                raise AssertionError(f"{term} in a checked rule")
            case _:
                assert_never(term)

    def row(self, terms: Sequence[Term]) -> str:
        """The expression for a tuple of terms."""
        return f"({''.join(f'{self.term(term)}, ' for term in terms)})"

    def key(self, step: Look | Lack) -> str:
        """The expression for the key of a look-up: the row itself, one value, or a tuple of some."""
        whole = len(step.columns) == step.width
        return self.term(step.key[0]) if len(step.key) == 1 and not whole else self.row(step.key)

    def condition(self, check: Check) -> str:
        """The expression for what must not be: the negated condition."""
        match check.condition:
            case Comparison(operator, left, right):
                negated = operator.startswith("!") and operator != "!="
                plain = {"=": "=="}.get(operator, operator.removeprefix("!") if negated else operator)
                compared = f"{self.term(left)} {plain} {self.term(right)}"
                return compared if negated else f"not {compared}"
            case test:
                return f"not {self.term(test.call)}"

    def targets(self, step: Look) -> str:
        """What a row of a relation is unpacked into."""
        binds = dict(step.binds)
        equal = {column for column, _ in step.equal}
        return "".join(
            f"{self.variable(binds[i])}, " if i in binds else f"w{i}, " if i in equal else "_, "
            for i in range(step.width)
        )


def _lines(text: Text) -> Iterator[tuple[int, str]]:
    """The lines of the function's body, each with its depth."""
    nest, depth = text.nest, 2
    inputs = "".join(f"{text.variable(name)}, " for name in nest.inputs)
    yield 1, f"for {inputs or '_'} in rows:"
    relation = 0
    for step in nest.steps:
        for more, line in _step_lines(text, step, relation):
            yield depth, line
            depth += more
        relation += isinstance(step, Look | Lack)
    outputs = [text.row(output) for output in nest.outputs]
    if nest.ranked is not None:
        outputs.append(_rank(text))
    yield depth, f"yield {outputs[0] if len(outputs) == 1 else '(' + ', '.join(outputs) + ')'}"


def _step_lines(text: Text, step: Step, relation: int) -> Iterator[tuple[int, str]]:
    """The lines of a step, each with the number of loops that it opens."""
    match step:
        case Look() | Lack():
            yield from _reading(text, step, f"f{relation}")
        case Let(variable, term):
            value = text.term(term)
            yield 0, f"{text.variable(variable)} = {value}"
        case Each(variable, start, stop, step_):
            bounds = ", ".join(map(text.term, (start, stop, step_)))
            if type_of(start, text.nest.types).kind == "float":
                raise Unsupported("a range of floats")
            yield 1, f"for {text.variable(variable)} in steps({bounds}):"
        case Check():
            yield 0, f"if {text.condition(step)}: continue"
        case _:
            assert_never(step)


def _reading(text: Text, step: Look | Lack, found: str) -> Iterator[tuple[int, str]]:
    """The lines of a look-up. A key with a NaN finds nothing."""
    key, whole = text.key(step), len(step.columns) == step.width
    exists = f"{key} in {found}" if whole else f"{found}({key}, ())"
    floats = [text.term(term) for term, is_float in zip(step.key, step.floats, strict=True) if is_float]
    equal = " and ".join(f"{value} == {value}" for value in floats)
    match step:
        case Lack():
            yield 0, f"if {equal + ' and ' if equal else ''}{exists}: continue"
            return
        case Look() if equal:
            yield 0, f"if not ({equal}): continue"
    if not step.binds:
        yield 0, f"if not {exists}: continue"
        return
    yield 1, f"for {text.targets(step)} in {found}({key}, ()):"
    for column, name in step.equal:
        yield 0, f"if not w{column} == {text.variable(name)}: continue"


def _rank(text: Text) -> str:
    """The expression for a rank above that of all facts of the component in the body."""
    assert text.nest.ranked is not None
    ranks = [f"k{i}[{text.row(fact.key)}][1]" for i, fact in enumerate(text.nest.ranked)]
    if not ranks:
        return "0"
    return f"{ranks[0] if len(ranks) == 1 else 'max(' + ', '.join(ranks) + ')'} + 1"


class Loops:
    """A nest that can be run. `constants` are its last arguments."""

    def __init__(self, nest: Nest) -> None:
        text = Text(nest)
        lines = [INDENT * depth + line for depth, line in _lines(text)]
        readers = [f"f{i}" for i in range(len(nest.looks))]
        ranks = [f"k{i}" for i in range(len(nest.ranked or ()))]
        constants = [f"c{i}" for i in range(len(text.constants))]
        head = f"def nest(rows, {', '.join([*readers, *ranks, *constants])}):"
        self.nest = nest
        self.text = "\n".join([head, *lines])
        self.constants = tuple(text.constants)
        self._function = _function(self.text, tuple(text.globals.items()))

    def run(self, rows: Any, *found: Any) -> Iterator[Any]:
        """What follows from these rows. `found` are the readers of the nest's look-ups, and the ranks of its facts."""
        result: Iterator[Any] = self._function(rows, *found, *self.constants)
        return result


@lru_cache(maxsize=4096)
def _function(text: str, names: tuple[tuple[str, Callable[..., Any]], ...]) -> Callable[..., Iterator[Any]]:
    scope: dict[str, Any] = {"__builtins__": {"max": max}, **dict(names)}
    exec(compile(text, "<nest>", "exec"), scope)
    function: Callable[..., Iterator[Any]] = scope["nest"]
    return function
