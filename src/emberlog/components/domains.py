"""Which columns and variables of a component hold the same values, and which of them are computed with.

A class of columns that are only matched, copied and compared is a domain: its values become ids, in their order. A
class in which something is computed keeps its numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

from emberlog.analysis.functions import constant_type
from emberlog.analysis.program import Signature
from emberlog.components.program import Atom, Check, Domain, Goal, Id, KernelRule, Kind, Let, Missing
from emberlog.syntax.nodes import Call, Constant, Term, Variable
from emberlog.types import Type

Node = Hashable  # ("column", relation, position) or ("variable", rule, name)


class Classes:
    """A union-find over columns and variables, with what is known of each class."""

    def __init__(self) -> None:
        self.parent: dict[Node, Node] = {}
        self.computed: set[Node] = set()
        self.constants: dict[Node, dict[object, None]] = {}

    def find(self, node: Node) -> Node:
        path = []
        while (up := self.parent.setdefault(node, node)) != node:
            path.append(node)
            node = up
        for below in path:
            self.parent[below] = node
        return node

    def join(self, one: Node, other: Node) -> None:
        one, other = self.find(one), self.find(other)
        if one != other:
            self.parent[other] = one
            if other in self.computed:
                self.computed.add(one)
            self.constants.setdefault(one, {}).update(self.constants.pop(other, {}))

    def compute(self, node: Node) -> None:
        self.computed.add(self.find(node))

    def constant(self, node: Node, value: object) -> None:
        self.constants.setdefault(self.find(node), {})[value] = None


def column(relation: str, position: int) -> Node:
    return ("column", relation, position)


class Reader:
    """Reads rules into classes."""

    def __init__(self, signatures: Mapping[str, Signature]) -> None:
        self.signatures = signatures
        self.classes = Classes()

    def read(self, rule: KernelRule, summed: Mapping[str, int]) -> None:
        """`summed` has the position of the value of each table that adds up."""
        for goal in rule.body:
            match goal:
                case Atom(relation, arguments) | Missing(relation, arguments):
                    for position, argument in enumerate(arguments):
                        if argument is not None:
                            self._same(rule, column(relation, position), argument)
                case Let(variable, term):
                    self._same(rule, ("variable", rule.id, variable), term)
                case Check(condition):
                    self._compared(rule, condition.left, condition.right)
        for position, argument in enumerate(rule.arguments):
            self._same(rule, column(rule.head, position), argument)
        for relation, position in summed.items():
            self.classes.compute(column(relation, position))

    def _same(self, rule: KernelRule, node: Node, term: Term) -> None:
        match term:
            case Variable(name):
                self.classes.join(node, ("variable", rule.id, name))
            case Constant():
                self.classes.constant(node, _value(term))
            case _:
                self.classes.compute(node)
                self._computed(rule, term)

    def _computed(self, rule: KernelRule, term: Term) -> None:
        match term:
            case Variable(name):
                self.classes.compute(("variable", rule.id, name))
            case Call(_, arguments):
                for argument in arguments:
                    self._computed(rule, argument)
            case _:
                pass

    def _compared(self, rule: KernelRule, left: Term, right: Term) -> None:
        for one, other in ((left, right), (right, left)):
            match one:
                case Variable(name):
                    self._same(rule, ("variable", rule.id, name), other)
                case Call():
                    self._computed(rule, one)
                case _:
                    pass


def _value(constant: Constant) -> object:
    """A constant as a dictionary key: 1, 1.0 and true are different values."""
    return (constant_type(constant), constant.value)


class Kinds:
    """The kind of every column and variable, and the domains."""

    def __init__(
        self, classes: Classes, columns: Iterable[tuple[str, int, Type]], variables: Iterable[tuple[int, str, Type]]
    ) -> None:
        self.classes = classes
        self.numbers: dict[Node, int] = {}
        members: dict[Node, list[tuple[str, int]]] = {}
        types: dict[Node, Type] = {}
        for relation, position, type in columns:
            root = classes.find(column(relation, position))
            members.setdefault(root, []).append((relation, position))
            types[root] = type.wide
        for rule, name, type in variables:
            root = classes.find(("variable", rule, name))
            members.setdefault(root, [])
            types.setdefault(root, type.wide)
        self.types = types
        domains: list[Domain] = []
        for root in members:
            if root not in classes.computed and types[root].kind != "float":
                self.numbers[root] = len(domains)
                constants = tuple(value[1] for value in classes.constants.get(root, {}))  # type: ignore[index]
                domains.append(Domain(types[root], tuple(members[root]), constants))
        self.domains = tuple(domains)

    def of(self, node: Node) -> Kind | None:
        """The kind of a column or variable; None where the kernels have none for its type."""
        root = self.classes.find(node)
        if root in self.numbers:
            return Id(self.numbers[root])
        match self.types[root].kind:
            case "number" | "unsigned":
                return "int"
            case "float":
                return "float"
            case _:
                return None


def variables_of(term: Term) -> Iterator[str]:
    match term:
        case Variable(name):
            yield name
        case Call(_, arguments):
            for argument in arguments:
                yield from variables_of(argument)
        case _:
            return


def goal_variables(goal: Goal) -> Iterator[str]:
    match goal:
        case Atom(_, arguments) | Missing(_, arguments):
            for argument in arguments:
                if argument is not None:
                    yield from variables_of(argument)
        case Check(condition):
            yield from variables_of(condition.left)
            yield from variables_of(condition.right)
        case Let(variable, term):
            yield variable
            yield from variables_of(term)


def is_float(term: Term, kinds: Mapping[str, Kind]) -> bool:
    """Is the value of a term of numbers a float?"""
    match term:
        case Variable(name):
            return kinds[name] == "float"
        case Constant(value):
            return isinstance(value, float)
        case Call(function, arguments):
            return function in ("to_float", "exp", "log", "sqrt", "tanh") or is_float(arguments[0], kinds)
        case _:
            raise AssertionError(f"{term} cannot stand in a loop")


def kind_of(term: Term, kinds: Mapping[str, Kind]) -> Kind | None:
    """The kind of a term; None for a constant, which is of the kind that it is compared with."""
    match term:
        case Variable(name):
            return kinds[name]
        case Call():
            return "float" if is_float(term, kinds) else "int"
        case _:
            return None
