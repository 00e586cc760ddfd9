"""Components with an iteration index: `rank(i+1, Y, sum[r]) :- rank(i, X, q), ...`.

The relations keep the index as their first column while other rules run: with all states if one of these rules uses the
index, else with the last one only, and then the index is taken from the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from emberlog.syntax import nodes
from naive.normal import Body, Gather, Rule, mentions, variables


@dataclass(frozen=True)
class Iteration:
    """An indexed component: the rules of the first state, and those that make a state from the one before."""

    predicates: frozenset[str]
    start: tuple[Rule, ...]
    step: tuple[Rule, ...]


def find_iteration(
    component: Collection[str], rules: Sequence[Rule], untils: Mapping[str, nodes.Until]
) -> Iteration | None:
    """The component as an iteration; None if its first column is a column like any other."""
    own = [rule for rule in rules if rule.head.predicate in component]
    steps = tuple(rule for rule in own if index_of(rule) is not None)
    recursive = any(set(component) & rule.reads for rule in steps)
    ends = any(rule.aggregates for rule in own) or any(name in untils for name in component)
    if not recursive or not ends or not all(only_counts(rule, component) for rule in steps):
        return None
    return Iteration(frozenset(component), tuple(rule for rule in own if rule not in steps), steps)


def index_of(rule: Rule) -> str | None:
    """The `i` of a head that begins with `i + 1`."""
    match rule.head.arguments[:1]:
        case (nodes.Call("+", (nodes.Variable(name), nodes.Constant(1)) | (nodes.Constant(1), nodes.Variable(name))),):
            return name
        case _:
            return None


def only_counts(rule: Rule, component: Collection[str]) -> bool:
    """The index stands first in the head and in every atom of the component, and nowhere else."""
    index = index_of(rule)
    own = [literal for literal in rule.body if isinstance(literal, nodes.Atom) and literal.predicate in component]
    first = all(atom.arguments[:1] == (nodes.Variable(str(index)),) for atom in own)
    return index is not None and first and occurrences(rule)[index] == 1 + len(own)


def index_is_read(component: Collection[str], rules: Sequence[Rule]) -> bool:
    """A rule outside of the component uses the index: not `_`, and no variable that occurs only there."""
    outside = (rule for rule in rules if rule.head.predicate not in component)
    return any(is_used(atom.arguments[0], rule) for rule in outside for atom in atoms(rule.body, component))


def is_used(term: nodes.Term, rule: Rule) -> bool:
    match term:
        case nodes.Anonymous():
            return False
        case nodes.Variable(name):
            return occurrences(rule)[name] > 1
        case _:
            return True


def occurrences(rule: Rule) -> Counter[str]:
    counts = Counter(name for term in rule.head.arguments for name in variables(term))
    counts.update(name for literal in rule.body for name in mentions(literal))
    return counts


def atoms(body: Body, names: Collection[str]) -> Iterator[nodes.Atom]:
    """The atoms of the predicates `names`, negated and aggregated ones too."""
    for literal in body:
        match literal:
            case nodes.Atom(name) | nodes.Not(nodes.Atom(name)) if name in names:
                atom = literal.formula if isinstance(literal, nodes.Not) else literal
                assert isinstance(atom, nodes.Atom)
                yield atom
            case Gather():
                for alternative in literal.alternatives:
                    yield from atoms(alternative, names)
            case _:
                pass
