"""The tables of a component as compiled loops see them: columns of words, keys, values, and room for supports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from emberlog.analysis.program import CoreRule, Signature
from emberlog.kernels.upkeep import layout
from emberlog.maintain.native.encoding import Kind, kind_of
from emberlog.maintain.nests import Signatures, Unsupported
from emberlog.maintain.searches import identity_of
from emberlog.syntax.nodes import Term, Variable

MOST_TABLES = 32


@dataclass(frozen=True, slots=True)
class Shape:
    """A table of a component. `inside` says that its facts are derived there; `value` is then the column of their
    minimum or maximum, and `words` the room for the identity of a support."""

    name: str
    number: int
    signature: Signature
    kinds: tuple[Kind, ...]
    inside: bool
    words: int = 0

    @property
    def width(self) -> int:
        return len(self.kinds)

    @property
    def key(self) -> tuple[int, ...]:
        """The columns that tell rows apart."""
        return tuple(self.signature.groups) if self.inside else tuple(range(self.width))

    @property
    def value(self) -> int | None:
        return next(iter(self.signature.aggregates), None) if self.inside else None

    @property
    def extra(self) -> int:
        """The words of a row after its flags: rank, rule and support."""
        return layout.SUPPORT - 1 + self.words if self.inside else 0

    @property
    def fold(self) -> int:
        """What becomes of two values for one key."""
        if self.value is None:
            return layout.SET
        floats = self.kinds[self.value] == "float"
        if self.signature.aggregates[self.value] == "min":
            return layout.LEAST_FLOAT if floats else layout.LEAST
        return layout.MOST_FLOAT if floats else layout.MOST_OF


def shapes_of(names: Sequence[str], rules: Sequence[CoreRule], signatures: Signatures) -> dict[str, Shape]:
    """The tables that the rules of a component read and derive. Raises `Unsupported` where loops have no words for
    their values."""
    words = max((len(support_of(rule, names, signatures)) for rule in rules), default=0)
    others = sorted({name for rule in rules for name in rule.reads()} - set(names))
    found = {
        name: _shape(number, signatures[name], name in names, words) for number, name in enumerate((*names, *others))
    }
    if len(found) > MOST_TABLES:
        raise Unsupported(f"a recursion over more than {MOST_TABLES} relations")
    return {name: found[name] for name in found}


def _shape(number: int, signature: Signature, inside: bool, words: int) -> Shape:
    kinds = tuple(kind_of(column.type) for column in signature.columns)
    shape = Shape(signature.name, number, signature, kinds, inside, words if inside else 0)
    if not shape.key or len(shape.key) > layout.MOST_COLUMNS:
        raise Unsupported(f"keys of {len(shape.key)} columns")
    if inside and len(signature.aggregates) > 1:
        raise Unsupported("several aggregates in one head")
    if shape.value is not None and kinds[shape.value] == "id":
        raise Unsupported(f"a minimum or maximum of type {signature.columns[shape.value].type}")
    return shape


def support_of(rule: CoreRule, names: Sequence[str], signatures: Signatures) -> tuple[Term, ...]:
    """What tells a derivation of a given fact from others: the identity of the binding, without what the key has."""
    key = {rule.arguments[i] for i in signatures[rule.predicate].groups}
    return tuple(
        term for term in identity_of(rule, names, signatures) if isinstance(term, Variable) and term not in key
    )
