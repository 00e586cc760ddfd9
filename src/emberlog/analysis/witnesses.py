"""Extrema with a witness, `sp(Y, min<(D, X)>) <- ..`, as plain ones.

The values alone have a relation of their own, which is as recursive as the program is; the witnesses are those of the
bindings that reach a finished value. Their least one is an aggregate like others:

    sp/least(Y, min<D>) <- sp/least(X, C), arc(X, Y, W), D = C + W.
    sp(Y, D, min<X>)    <- sp/least(Y, D), sp/least(X, C), arc(X, Y, W), D = C + W.

Atoms that do not look at the witness read the values alone. So a witness takes no part in the recursion of its values,
and what is proved of `min<D>` is proved of it. A witness that the rules hand on (`sp(X, C, F)`, `min<(D, F)>`) is a
minimum in a recursion of its own. `p(G, arg_min<(V, X)>)` is the witness of such a relation without its value; that of
`p(G, top(3, (V, X)))` is a plain column behind the value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace

from emberlog.analysis.names import step_index
from emberlog.analysis.signatures import column_names
from emberlog.analysis.terms import map_formula, map_term, walk
from emberlog.analysis.typenames import TypeNames
from emberlog.diagnostics import Diagnostic, Label, ProgramError
from emberlog.syntax.nodes import (
    Aggregate,
    And,
    Anonymous,
    Atom,
    Comparison,
    Constant,
    Declaration,
    Directive,
    Formula,
    Item,
    Program,
    Rule,
    Term,
    Variable,
)

SUFFIXES = {"min": "/least", "max": "/greatest"}
_ARGUMENTS = {"arg_min": "min", "arg_max": "max"}


@dataclass(frozen=True, slots=True)
class _Extremum:
    """A predicate with the least or greatest value in the column `place`, and its witness in the next one."""

    predicate: str
    function: str  # min or max
    place: int
    width: int  # columns, with both
    aggregate: Aggregate

    @property
    def values(self) -> str:
        """The predicate that has the values alone."""
        return self.predicate + SUFFIXES[self.function]


def with_plain_extrema(program: Program, given: Container[str]) -> Program:
    """The program without witnesses of extrema; `given` are the relations that have rows of a source. Raises
    ProgramError for witnesses that have no such form."""
    mistakes = [mistake for rule in _rules(program) for head in rule.heads for mistake in _check_top(head)]
    mistakes += _check_arguments(program)
    if mistakes:
        raise ProgramError(mistakes)
    items = (made for item in program.items for made in _without_arguments(_with_plain_top(item)))
    program = replace(program, items=tuple(items))
    return _with_plain_extrema(program, _extrema(program), given)


def _with_plain_extrema(program: Program, extrema: dict[str, _Extremum], given: Container[str]) -> Program:
    if not extrema:
        return program
    checked = {name: list(_check(one, program, given)) for name, one in extrema.items()}
    mistakes = [mistake for found in checked.values() for mistake in found]
    extrema = {name: one for name, one in extrema.items() if not checked[name]}
    items: list[Item] = []
    for item in program.items:
        match item:
            case Rule():
                rules = [_reading_values(rule, extrema) for rule in _split(item, extrema)]
                mistakes += [mistake for rule in rules for mistake in _check_values(rule, extrema)]
                items += rules
            case Declaration(name) if name in extrema:
                items += (item, _of_values(item, extrema[name]))
            case _:
                items.append(item)
    if mistakes:
        raise ProgramError(mistakes)
    return replace(program, items=tuple(items))


# --- top and arg_min -------------------------------------------------------------------------------------------------


def _without_arguments(item: Item) -> Iterator[Item]:
    """`p(G, arg_min<(V, X)>) <- ..` as `p/arg_min(G, min<(V, X)>) <- ..` and `p(G, X) <- p/arg_min(G, _, X).`"""
    if not isinstance(item, Rule) or not any(isinstance(a, Aggregate) for head in item.heads for a in head.arguments):
        yield item
        return
    for head in item.heads:
        spots = [i for i, a in enumerate(head.arguments) if isinstance(a, Aggregate) and a.function in _ARGUMENTS]
        rule = replace(item, heads=(head,)) if len(item.heads) > 1 else item
        if len(spots) != 1:
            yield rule
            continue
        place = spots[0]
        aggregate = head.arguments[place]
        assert isinstance(aggregate, Aggregate)
        inner = f"{head.predicate}/{aggregate.function}"
        pair = replace(aggregate, function=_ARGUMENTS[aggregate.function])
        before, after = head.arguments[:place], head.arguments[place + 1 :]
        yield replace(rule, heads=(replace(head, predicate=inner, arguments=(*before, pair, *after)),))
        names = column_names(head.arguments, len(head.arguments))
        columns = [Variable(name, span=head.span) for name in names]
        read: tuple[Term, ...] = (*columns[:place], Anonymous(span=head.span), *columns[place:])
        copied = replace(head, arguments=tuple(columns))
        yield Rule((copied,), replace(head, predicate=inner, arguments=read), span=rule.span)


def _with_plain_top(item: Item) -> Item:
    """`p(G, top(3, (V, X)))` with X in a column of its own."""
    if not isinstance(item, Rule) or not any(_has_top(head) for head in item.heads):
        return item
    heads = (
        replace(head, arguments=tuple(column for argument in head.arguments for column in _top_columns(argument)))
        for head in item.heads
    )
    return replace(item, heads=tuple(heads))


def _has_top(head: Atom) -> bool:
    return any(isinstance(argument, Aggregate) and argument.function == "top" for argument in head.arguments)


def _top_columns(argument: Term) -> tuple[Term, ...]:
    match argument:
        case Aggregate("top", (value, witness)):
            return replace(argument, arguments=(value,)), witness
        case _:
            return (argument,)


def _check_top(head: Atom) -> Iterator[Diagnostic]:
    aggregates = [term for term in head.arguments if isinstance(term, Aggregate)]
    for one in aggregates:
        if one.function == "top" and len(aggregates) > 1:
            help = "give the other aggregates a predicate of their own"
            yield _mistake("`top` stands alone in its head", Label(head.span), help)


# --- extrema ---------------------------------------------------------------------------------------------------------


def _check_arguments(program: Program) -> Iterator[Diagnostic]:
    """A predicate with `arg_min` has it in all its rules: another head has no value that would compare."""
    heads = [head for rule in _rules(program) for head in rule.heads]
    first: dict[str, tuple[int, Aggregate]] = {}
    for head in heads:
        for place, term in enumerate(head.arguments):
            if isinstance(term, Aggregate) and term.function in _ARGUMENTS:
                first.setdefault(head.predicate, (place, term))
    for head in heads:
        if head.predicate in first:
            place, one = first[head.predicate]
            other = head.arguments[place] if place < len(head.arguments) else None
            if not isinstance(other, Aggregate) or other.function != one.function:
                labels = (Label(head.span), Label(one.span, "here it is another"))
                help = f"all rules of `{head.predicate}` need `{one.function}`: other rows have no value to compare"
                yield Diagnostic("E0212", f"different aggregates in one column of `{head.predicate}`", labels, help)


def _is_pair(term: Term) -> bool:
    return isinstance(term, Aggregate) and term.function in SUFFIXES and len(term.arguments) == 2


def _extrema(program: Program) -> dict[str, _Extremum]:
    """The predicates with a witness, as the first of their rules that has one says."""
    found: dict[str, _Extremum] = {}
    for rule in _rules(program):
        for head in rule.heads:
            for place, term in enumerate(head.arguments):
                if isinstance(term, Aggregate) and _is_pair(term):
                    one = _Extremum(head.predicate, term.function, place, len(head.arguments) + 1, term)
                    found.setdefault(head.predicate, one)
    return found


def _rules(program: Program) -> Iterator[Rule]:
    return (item for item in program.items if isinstance(item, Rule))


# --- mistakes --------------------------------------------------------------------------------------------------------


def _check(one: _Extremum, program: Program, given: Container[str]) -> Iterator[Diagnostic]:
    name, span = one.predicate, one.aggregate.span
    inputs = {item.relation for item in program.items if isinstance(item, Directive) and item.kind == "input"}
    if name in given or name in inputs:
        help = f"give the source another name, and let a rule of `{name}` read it"
        yield _mistake(f"`{name}` has rows of a source: they have no witness", Label(span), help)
    for head in (head for rule in _rules(program) for head in rule.heads if head.predicate == name):
        yield from _check_head(one, head)
    types = TypeNames(program)
    for item in program.items:
        if isinstance(item, Declaration) and item.name == name and len(item.attributes) == one.width:
            attribute = item.attributes[one.place]
            type, _ = types.resolve(attribute.type, attribute.span)
            if type is not None and type.kind == "float" and type.bits == 32:
                help = "declare it as float"
                yield _mistake("a rounded value does not tell its witness", Label(attribute.span), help)


def _check_head(one: _Extremum, head: Atom) -> Iterator[Diagnostic]:
    aggregates = [term for term in head.arguments if isinstance(term, Aggregate)]
    if step_index(head.arguments) is not None:
        help = "take the witness in a rule of its own, from the result of the iteration"
        yield _mistake("an iteration has no witnesses", Label(head.span), help)
    elif len(aggregates) > 1:
        help = "give the other aggregates a predicate of their own"
        yield _mistake("an aggregate with a witness stands alone in its head", Label(head.span), help)
    elif aggregates and (not _is_pair(aggregates[0]) or aggregates[0].function != one.function):
        labels = (Label(aggregates[0].span), Label(one.aggregate.span, "here it is another"))
        help = "all rules of a predicate have the same aggregate, or none"
        yield Diagnostic("E0212", f"different aggregates in one column of `{one.predicate}`", labels, help)
    elif aggregates and head.arguments[one.place] is not aggregates[0]:
        labels = (Label(aggregates[0].span), Label(one.aggregate.span, "here in another column"))
        yield Diagnostic("E0212", f"the aggregate of `{one.predicate}` is in two columns", labels)
    elif not aggregates and len(head.arguments) != one.width:
        labels = (Label(head.span), Label(one.aggregate.span, "a value and its witness: two columns"))
        message = f"`{one.predicate}` has {one.width} columns, not {len(head.arguments)}"
        yield Diagnostic("E0202", message, labels)


def _check_values(rule: Rule, extrema: dict[str, _Extremum]) -> Iterator[Diagnostic]:
    """The rules of the values may not look at their own witnesses."""
    own = next((one for one in extrema.values() if rule.heads[0].predicate == one.values), None)
    if own is None or rule.body is None:
        return
    for node in walk(rule.body):
        if isinstance(node, Atom) and node.predicate == own.predicate and len(node.arguments) == own.width:
            label = Label(node.arguments[own.place + 1].span, "used beside the witness of the head")
            help = "inside its recursion a witness can be handed on as it is, or be `_`"
            yield _mistake(f"the witness of `{own.predicate}` would decide about its value", label, help)


def _mistake(message: str, label: Label, help: str) -> Diagnostic:
    return Diagnostic("E0223", message, (label,), help)


# --- the rules -------------------------------------------------------------------------------------------------------


def _split(rule: Rule, extrema: dict[str, _Extremum]) -> Iterator[Rule]:
    """A rule for each head, and for a head with a witness two: one of its values, one of its witnesses."""
    if not any(head.predicate in extrema for head in rule.heads):
        yield rule
        return
    times = _times(rule)
    for number, head in enumerate(rule.heads):
        # What a variable that stands once is told of is told once.
        named = rule.named | {name for name, count in times.items() if count > 1 or number > 0}
        one = extrema.get(head.predicate)
        if one is None:
            yield replace(rule, heads=(head,), named=named)
            continue
        yield replace(rule, heads=(_values_head(head, one, rule.body is None),), named=named)
        yield _witness_rule(replace(rule, named=rule.named | set(times)), head, one)


def _times(rule: Rule) -> Counter[str]:
    roots: Iterable[Atom | Formula] = rule.heads if rule.body is None else (*rule.heads, rule.body)
    return Counter(node.name for root in roots for node in walk(root) if isinstance(node, Variable))


def _parts(head: Atom, one: _Extremum) -> tuple[tuple[Term, ...], Term, Term, tuple[Term, ...]]:
    """The columns before value and witness, these, and the columns after them."""
    place, arguments = one.place, head.arguments
    match arguments[place]:
        case Aggregate(_, (value, witness)):
            return arguments[:place], value, witness, arguments[place + 1 :]
        case value:
            return arguments[:place], value, arguments[place + 1], arguments[place + 2 :]


def _values_head(head: Atom, one: _Extremum, is_fact: bool) -> Atom:
    before, value, _, after = _parts(head, one)
    if not is_fact:
        value = replace(one.aggregate, arguments=(value,), span=head.arguments[one.place].span)
    return replace(head, predicate=one.values, arguments=(*before, value, *after))


def _witness_rule(rule: Rule, head: Atom, one: _Extremum) -> Rule:
    before, value, witness, after = _parts(head, one)
    goals: list[Formula] = []
    if not isinstance(value, Variable | Constant):
        computed = Variable("?value", span=value.span)
        goals.append(Comparison("=", computed, value, span=value.span))
        value = computed
    reached = replace(head, predicate=one.values, arguments=(*before, value, *after))
    least = Aggregate("min", (witness,), span=witness.span)
    match rule.body:
        case None:
            rest: tuple[Formula, ...] = ()
        case And(parts):
            rest = parts
        case body:
            rest = (body,)
    body = And((reached, *goals, *rest), span=rule.span)
    return replace(rule, heads=(replace(head, arguments=(*before, value, least, *after)),), body=body)


def _reading_values(rule: Rule, extrema: dict[str, _Extremum]) -> Rule:
    """The rule with the values alone for every atom that does not look at the witness."""
    if rule.body is None:
        return rule
    times = _times(rule)

    def change(atom: Atom) -> Atom:
        one = extrema.get(atom.predicate)
        if one is None or len(atom.arguments) != one.width:
            return atom
        match atom.arguments[one.place + 1]:
            case Anonymous():
                is_read = False
            case Variable(name):
                is_read = times[name] > 1
            case _:
                is_read = True
        if is_read:
            return atom
        kept = (*atom.arguments[: one.place + 1], *atom.arguments[one.place + 2 :])
        return replace(atom, predicate=one.values, arguments=kept)

    def same(term: Term) -> Term:
        return term

    heads = tuple(
        replace(head, arguments=tuple(map_term(argument, same, change) for argument in head.arguments))
        for head in rule.heads
    )
    return replace(rule, heads=heads, body=map_formula(rule.body, same, change))


def _of_values(declaration: Declaration, one: _Extremum) -> Declaration:
    kept = (*declaration.attributes[: one.place + 1], *declaration.attributes[one.place + 2 :])
    return replace(declaration, name=one.values, attributes=kept, qualifiers=())
