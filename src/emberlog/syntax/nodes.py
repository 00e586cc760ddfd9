"""The syntax tree: what was written, as frozen values.

Every node knows its `span`; spans take no part in equality, so `parse(show(program)) == program`.
Three closed families: terms (what stands in an argument), formulas (what stands in a body) and items (what
stands at the top level).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from emberlog.callables import PythonFunction
from emberlog.source import NOWHERE, Span


def _span() -> Span:
    return field(default=NOWHERE, compare=False, repr=False, kw_only=True)


# --- terms -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Anonymous:
    """`_`: a variable of its own at each place."""

    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal. The Python type of `value` is its kind: bool, int, float or str.

    `kind` is "unsigned" for `5u`, else "". A date, timestamp or decimal is its text, with that word as `kind`: types of
    columns tell that a text is one, and parameters may be.
    """

    value: bool | int | float | str
    kind: str = ""
    span: Span = _span()

    def __eq__(self, other: object) -> bool:
        # 1, 1.0 and True are equal in Python and three different constants here; 0.0 and -0.0 are told apart too.
        return isinstance(other, Constant) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[type, str, str]:
        return type(self.value), repr(self.value), self.kind


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$NAME`: a constant that the caller gives."""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator applied to terms.

    Operators are calls too: `+ - * / % ^` with two arguments, `neg` for the unary minus. `given` is the function of
    Python that the name stands for, if the caller gave one.
    """

    function: str
    arguments: tuple[Term, ...]
    span: Span = _span()
    given: PythonFunction | None = field(default=None, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate in a rule's head: `min<D>`, `count(_)`, `sum<(K,V)>`, `min<(V,X)>`, `topk(10, Z)`, `top(3, (V,X))`.

    `function` is canonical: min max sum count countd avg topk top arg_min arg_max (`mean` is avg; the m-forms are their
    plain names, with `monotonic` set). `arguments` is one term, (key, value) for `sum<(K,V)>`, or a value and its
    witness; `limit` is the k of topk and top. A checked program has no witnesses: that of `top` is the next column.
    """

    function: str
    arguments: tuple[Term, ...]
    limit: Term | None = None
    monotonic: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Collect:
    """Souffle's aggregate over a body of its own: `min z : { p(x, z) }`. `target` is None for count."""

    function: str
    target: Term | None
    body: Formula
    span: Span = _span()


Term: TypeAlias = Variable | Anonymous | Constant | Parameter | Call | Aggregate | Collect

# --- formulas --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Atom:
    """`p(X, 1)`. With arguments by name, `p(customer=X)`, `names` has the column of each; a checked program has no such
    atoms."""

    predicate: str
    arguments: tuple[Term, ...]
    names: tuple[str, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Not:
    formula: Formula
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Comparison:
    """`operator` is one of = != < <= > >=; in a checked program also !< !<= !> !>= of floats, which hold for NaN."""

    operator: str
    left: Term
    right: Term
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Test:
    """A boolean function as a goal: `contains(S, T)`, `match(P, S)`."""

    call: Call
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Truth:
    """`true` or `false` as a goal."""

    value: bool
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Formula, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Formula, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Sort:
    """`sort((Z, desc), (X, asc))`: the order of the rule's result. Each key is a variable and whether it descends."""

    keys: tuple[tuple[Variable, bool], ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Limit:
    """`limit(10)`: how many rows of the rule's result are kept."""

    count: Term
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Until:
    """`{sum[delta r] < 0.001}`: when the iteration may end."""

    function: str
    variable: str
    operator: str
    bound: Term
    span: Span = _span()


Formula: TypeAlias = Atom | Not | Comparison | Test | Truth | And | Or | Sort | Limit | Until

# --- items -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rule:
    """`heads <- body`. A fact has the body None. Bodies after one another (`a :- b; :- c.`) are one Or.

    `named` are the variables of goals that the heads say now: `is_min((X), D)`.
    """

    heads: tuple[Atom, ...]
    body: Formula | None
    named: frozenset[str] = field(default=frozenset(), compare=False, repr=False, kw_only=True)
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Attribute:
    """`w: float`, or `w: float where w >= 0`. A condition has the attribute on its left and a number on its right;
    `0 <= w <= 1` is two of them."""

    name: str
    type: str
    where: tuple[Comparison, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Declaration:
    """`.decl p(x: number, y: symbol) inline`, or an entry of `database({...})`."""

    name: str
    attributes: tuple[Attribute, ...]
    qualifiers: tuple[str, ...] = ()
    base: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """`.type T <: symbol` (one parent, `subtype`) or `.type T = A | B`."""

    name: str
    parents: tuple[str, ...]
    subtype: bool
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Directive:
    """`.input R(IO=file, filename="x")`. `kind` is input, output, printsize or limitsize; one Directive a relation."""

    kind: str
    relation: str
    options: tuple[tuple[str, str | int | float | bool], ...] = ()
    span: Span = _span()

    def option(self, name: str, default: str | None = None) -> str | None:
        """The option `name` as text, whatever the case of its name."""
        for key, value in self.options:
            if key.lower() == name.lower():
                return str(value).lower() if isinstance(value, bool) else str(value)
        return default


@dataclass(frozen=True, slots=True)
class Pragma:
    """`.pragma` and `.plan`: read, kept for printing, without effect on the answer."""

    kind: str
    text: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Goal:
    """`?- p(0, Y).`, or `?- p(X, Y), wanted(X).`: the rows of `atom` for which `rest` can be satisfied."""

    atom: Atom
    rest: Formula | None = None
    span: Span = _span()


Item: TypeAlias = Rule | Declaration | TypeDeclaration | Directive | Pragma | Goal


@dataclass(frozen=True, slots=True)
class Program:
    """`bigdatalog` is set when the program has a `database({...})`: lower-case names are then symbol constants."""

    items: tuple[Item, ...]
    bigdatalog: bool = False
    span: Span = _span()
