"""Who reads whom: the graph of the predicates, its strongly connected components, and what may not go round in them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from emberlog.analysis.bounded import Recursion, bounded_recursion
from emberlog.analysis.draft import Draft
from emberlog.analysis.graphs import strongly_connected
from emberlog.analysis.program import Absent, Bind, CoreRule, Filter, Gather, Literal, Match, Spread
from emberlog.analysis.terms import walk
from emberlog.diagnostics import Diagnostic, Label
from emberlog.source import Span
from emberlog.syntax.nodes import Call, Formula, Term

How = OneOf["positive", "negated", "gathered"]

# Calls that give one of their arguments, or the same value in another type: they invent nothing.
_HARMLESS = frozenset({"min", "max", "clip", "relu", "to_float", "to_number", "to_unsigned", "to_string",
                       "int8", "int16", "int32", "uint8", "uint16", "uint32", "float32",
                       "contains", "match", "starts_with", "ends_with"})  # fmt: skip


_WHY_NOT = {
    "avg": "parts cannot be put together: avg(avg(1, 2), 6) is 3.75, avg(1, 2, 6) is 3",
    **dict.fromkeys(("topk", "top"), "a better row drives out one that was used already"),
}


@dataclass(frozen=True, slots=True)
class Edge:
    """A rule of `head` reads `body`, at `span`."""

    head: str
    body: str
    how: How
    rule: Draft
    span: Span


def edges(drafts: Iterable[Draft]) -> list[Edge]:
    """Every mention of a predicate in a body, in the order of the rules."""
    return [Edge(draft.predicate, name, how, draft, span) for draft in drafts for name, how, span in _reads(draft.body)]


def _reads(body: Iterable[Literal], inside: bool = False) -> Iterator[tuple[str, How, Span]]:
    for literal in body:
        match literal:
            case Match(predicate):
                yield predicate, "gathered" if inside else "positive", literal.span
            case Absent(predicate):
                yield predicate, "negated", literal.span
            case Gather(bodies=bodies):
                for inner in bodies:
                    yield from _reads(inner, inside=True)
            case Filter() | Bind() | Spread():
                pass


def components(derived: Iterable[str], graph: Iterable[Edge]) -> list[tuple[str, ...]]:
    """The strongly connected components of the derived predicates, each after those that it reads (Tarjan)."""
    order = dict.fromkeys(derived)
    reads: dict[str, dict[str, None]] = {name: {} for name in order}
    for edge in graph:
        if edge.head in order and edge.body in order:
            reads[edge.head][edge.body] = None
    return strongly_connected(reads)


@dataclass(frozen=True, slots=True)
class Part:
    """A component: its predicates, its rules, and the mentions of its own predicates in them."""

    predicates: tuple[str, ...]
    drafts: tuple[Draft, ...]
    inner: tuple[Edge, ...]

    @property
    def recursive(self) -> bool:
        return bool(self.inner)

    @property
    def shape(self) -> OneOf["", "linear", "non-linear", "mutual"]:
        if not self.recursive:
            return ""
        if len(self.predicates) > 1:
            return "mutual"
        counts: dict[int, int] = {}
        for edge in self.inner:
            counts[edge.rule.id] = counts.get(edge.rule.id, 0) + 1
        return "non-linear" if max(counts.values()) > 1 else "linear"


def parts(drafts: Iterable[Draft]) -> list[Part]:
    """The components of the predicates that have rules, each after those that it reads."""
    rules: dict[str, list[Draft]] = {}
    for draft in drafts:
        rules.setdefault(draft.predicate, []).append(draft)
    graph = edges(draft for group in rules.values() for draft in group)
    order = components(rules, graph)
    home = {name: number for number, members in enumerate(order) for name in members}
    inner: dict[int, list[Edge]] = {}
    for edge in graph:
        if home.get(edge.body) == home[edge.head]:
            inner.setdefault(home[edge.head], []).append(edge)
    return [
        Part(
            members,
            tuple(sorted((d for name in members for d in rules[name]), key=lambda draft: draft.id)),
            tuple(inner.get(number, ())),
        )
        for number, members in enumerate(order)
    ]


def check_strata(found: Iterable[Part]) -> Iterator[Diagnostic]:
    """What may not go through recursion: negation, aggregates that are not monotonic, sort and limit."""
    for part in found:
        if part.recursive:
            yield from _check_edges(part)
            yield from _check_heads(part)


def _check_edges(part: Part) -> Iterator[Diagnostic]:
    for edge in part.inner:
        if edge.how == "positive":
            continue
        cycle = show_cycle(part, edge)
        head = Label(edge.rule.head_span, f"`{edge.head}` depends on it")
        if edge.how == "negated":
            message = f"negation through recursion: {cycle}"
            help = "a negated predicate must be complete before it is read: take the negation out of the cycle"
            yield Diagnostic("E0301", message, (Label(edge.span, "negated here"), head), help)
        else:
            message = f"an aggregate over a body through recursion: {cycle}"
            help = "what is aggregated must be complete first; min, max, sum and count may recur in a head"
            yield Diagnostic("E0302", message, (Label(edge.span, "aggregated here"), head), help)


def _check_heads(part: Part) -> Iterator[Diagnostic]:
    first = {edge.head: edge for edge in reversed(part.inner)}
    columns: dict[str, dict[int, Span]] = {}
    for draft in part.drafts:
        edge = first[draft.predicate]
        back = Label(edge.span, "the recursion")
        for position, aggregate in draft.aggregates:
            spots = columns.setdefault(draft.predicate, {})
            if aggregate.function in _WHY_NOT and position not in spots:
                message = f"`{aggregate.function}` through recursion: {show_cycle(part, edge)}"
                why = _WHY_NOT[aggregate.function]
                help = f"{why}; inside recursion only min, max, sum, count and countd may stand"
                yield Diagnostic("E0302", message, (Label(aggregate.span, "not monotonic"), back), help)
            spots.setdefault(position, aggregate.span)
        if draft.order or draft.limit is not None:
            message = f"sort or limit through recursion: {show_cycle(part, edge)}"
            help = "sort the finished relation in a rule of its own"
            yield Diagnostic("E0303", message, (Label(draft.head_span, "sorted or limited"), back), help)
    for name, spots in columns.items():
        if len(spots) > 1:
            message = f"the recursive predicate `{name}` has {len(spots)} aggregated columns"
            labels = tuple(Label(span, "aggregated") for span in spots.values())
            yield Diagnostic("E0304", message, labels, "one aggregate a predicate inside recursion")


def show_cycle(part: Part, edge: Edge) -> str:
    """The shortest cycle through `edge`, as `p -> q -> p`: each reads the next."""
    reads: dict[str, list[str]] = {}
    for other in part.inner:
        reads.setdefault(other.head, []).append(other.body)
    before: dict[str, str | None] = {edge.body: None}
    queue = deque([edge.body])
    while edge.head not in before:
        name = queue.popleft()
        for following in reads.get(name, ()):
            if following not in before:
                before[following] = name
                queue.append(following)
    way: list[str] = []
    step: str | None = edge.head
    while step is not None:
        way.append(step)
        step = before[step]
    return " -> ".join((edge.head, *reversed(way)))


def invents(rules: Sequence[CoreRule], members: Iterable[str]) -> bool:
    """True if a recursive rule computes values and nothing bounds them, so that the domain may be infinite."""
    inside = frozenset(members)
    inner = [rule for rule in rules if any(name in inside for name in rule.reads())]
    if any(isinstance(literal, Spread) for rule in inner for literal in rule.body):
        return True
    computed = [(rule, terms) for rule in inner if (terms := _computed(rule))]
    recursion = bounded_recursion(rules, inside) if computed else Recursion(inside)
    return not all(recursion.bounds(rule, terms) for rule, terms in computed)


def _computed(rule: CoreRule) -> list[Term]:
    """The terms of a rule that make values which need not be there before."""
    terms = (*rule.arguments, *(literal.term for literal in rule.body if isinstance(literal, Bind)))
    return [term for term in terms if any(map(_computes, walk(term)))]


def _computes(node: Term | Formula) -> bool:
    return isinstance(node, Call) and node.function not in _HARMLESS
