"""Which equations define a variable, where values may be missing.

In `b(N, Y), a(X), N = 10 / X` the written order lets `b` bind `N`, and the equation is a condition. Written the other
way round `N` is computed, and for `X = 0` it has no value, so that `b(N, Y)` says nothing. A rule must mean the same
however it is spelled:

- Variables that an equation makes equal (`V = N`) are one variable.
- An equation *defines* its variable if literals without that variable give values to all that it needs; ranges and body
  aggregates are equations as well. Where definitions go in a circle, those of the circle are conditions.
- A variable that one definition leaves without a value has none: all of them are computed, and compared where each has
  a value, before atoms are asked that mention the variable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from emberlog.analysis.functions import MISSING, UNLESS, may_lack, type_of
from emberlog.analysis.graphs import strongly_connected
from emberlog.analysis.program import Bind, CoreRule, Filter, Gather, Literal, Match, Spread
from emberlog.analysis.terms import all_variables, gives, literal_terms, names, needs, rename, rename_term
from emberlog.syntax.nodes import Call, Comparison, Term, Variable
from emberlog.types import Type

Types = Mapping[str, Type]
Body = tuple[Literal, ...]


def define_first(rule: CoreRule) -> CoreRule:
    """The rule in which every equation that may have no value and can define a variable does."""
    types = dict(rule.types)
    if not _lacking(rule.body, types):
        return rule
    merged = _merged(rule.body, frozenset(), types)
    body = _defined(tuple(_renamed(rule.body, merged, types)), frozenset(), types)
    arguments = tuple(rename_term(argument, merged) for argument in rule.arguments)
    order = tuple((merged.get(name, name), descends) for name, descends in rule.order)
    return replace(rule, arguments=arguments, body=body, order=order, types=types)


def _defined(body: Body, bound: frozenset[str], types: dict[str, Type]) -> Body:
    computed: dict[str, Term] = {}
    body = tuple(part for literal in body for part in _named(_inside(literal, types), types, computed))
    body, definitions = _defining(body, bound, types)
    lacking = _missing_variables(body, definitions, types)
    definitions = {name: at for name, at in definitions.items() if name in lacking or _several(body, at)}
    return tuple(_put_back(_ordered(_spelled(body, definitions, types), bound, lacking, types), computed))


def _several(body: Body, indexes: tuple[int, ...]) -> bool:
    """True if there are several definitions and not all are equations, of which one would be a condition."""
    return len(indexes) > 1 and any(isinstance(body[index], Spread | Gather) for index in indexes)


def _inside(literal: Literal, types: dict[str, Type]) -> Literal:
    if not isinstance(literal, Gather):
        return literal
    bound = frozenset(literal.injected)
    bodies: list[Body] = []
    target = literal.target
    for body in literal.bodies:
        merged = {} if len(literal.bodies) > 1 else _merged(body, bound | {*literal.witnesses}, types)
        target = target if target is None else rename_term(target, merged)
        bodies.append(_defined(tuple(_renamed(body, merged, types)), bound, types))
    return replace(literal, bodies=tuple(bodies), target=target)


def _named(literal: Literal, types: dict[str, Type], computed: dict[str, Term]) -> Iterator[Literal]:
    """The literal, with variables for the computed arguments of an atom, and equations that define these."""
    if not isinstance(literal, Match):
        yield literal
        return
    arguments = list(literal.arguments)
    for spot, argument in enumerate(arguments):
        if isinstance(argument, Call):
            name = f"{literal.predicate}.{spot}/{len(types)}"
            types[name] = type_of(argument, types)
            computed[name], arguments[spot] = argument, Variable(name)
            yield Bind(name, argument)
    yield replace(literal, arguments=tuple(arguments))


def _put_back(body: Iterable[Literal], computed: Mapping[str, Term]) -> Iterator[Literal]:
    """The literals with the computed arguments of atoms in their places again, where an equation defines them."""
    defined: dict[str, Term] = {}
    for literal in body:
        if isinstance(literal, Match):
            terms = (defined.get(term.name, term) if isinstance(term, Variable) else term for term in literal.arguments)
            yield replace(literal, arguments=tuple(terms))
        elif isinstance(literal, Bind) and literal.variable in computed:
            defined[literal.variable] = computed[literal.variable]
        else:
            yield literal


# --- variables that are equal ----------------------------------------------------------------------------------------


def _merged(body: Iterable[Literal], kept: Collection[str], types: Types) -> dict[str, str]:
    """New names for variables that an equation makes equal to another; those of `kept` keep theirs."""
    found: dict[str, str] = {}

    def name(old: str) -> str:
        while old in found:
            old = found[old]
        return old

    for literal in body:
        for variable, term in _equations(literal) if isinstance(literal, Bind | Filter) else ():
            if isinstance(term, Variable) and types[variable] == types[term.name]:
                one, other = name(variable), name(term.name)
                if one != other and not {one, other} <= {*kept}:
                    gone, stays = (one, other) if other in kept else (other, one)
                    found[gone] = stays
    return {old: name(old) for old in found}


def _renamed(body: Iterable[Literal], merged: Mapping[str, str], types: dict[str, Type]) -> Iterator[Literal]:
    """The literals with other names for variables, without equations that say nothing then. A range or aggregate that
    needs its own variable is compared with it."""
    for literal in body:
        new = rename(literal, merged) if merged else literal
        match new:
            case Spread(variable) | Gather(variable) if variable in needs(new):
                yield from _apart(new, types)
            case Bind(variable, Variable(name)) if variable == name:
                continue
            case Filter(Comparison("=", Variable(one), Variable(other))) if one == other and merged:
                continue
            case _:
                yield new


def _apart(literal: Literal, types: dict[str, Type]) -> tuple[Literal, Literal]:
    """A range or aggregate with a variable of its own, and the condition that it equals the one that it had."""
    assert isinstance(literal, Spread | Gather)
    name = f"{literal.variable}'{len(types)}"
    types[name] = types[literal.variable]
    return replace(literal, variable=name), Filter(Comparison("=", Variable(literal.variable), Variable(name)))


# --- definitions -----------------------------------------------------------------------------------------------------

# For each variable that has some: the literals that define it, by their index in the body.
Definitions = dict[str, tuple[int, ...]]


def _defining(body: Body, bound: frozenset[str], types: dict[str, Type]) -> tuple[Body, Definitions]:
    """The definitions of each variable; in the body, ranges and aggregates that define nothing are set apart."""
    conditions: set[Literal] = set()  # equations that define nothing
    apart: set[str] = set()
    while True:
        found = _candidates(body, bound, conditions)
        conditions |= _in_circles(body, found)
        definitions = {
            name: kept for name in found if (kept := tuple(i for i in found[name] if body[i] not in conditions))
        }
        if loose := _loose(body, definitions):
            made = {index: _apart(body[index], types) for index in loose}
            body = tuple(part for i, literal in enumerate(body) for part in made.get(i, (literal,)))
            conditions |= {condition for _, condition in made.values()}
            apart |= {name for literal, _ in made.values() for name in gives(literal)}
        elif stuck := definitions.keys() - _settled(body, bound, definitions) - apart:
            conditions |= {body[index] for name in stuck for index in definitions[name]}
        else:
            return body, definitions


def _candidates(body: Body, bound: frozenset[str], conditions: Collection[Literal]) -> Definitions:
    """The equations that define each variable, if none of them go in a circle."""
    candidates: dict[str, list[int]] = {}
    early: set[tuple[str, int]] = set()  # what stands before all that mentions the variable: no need to look further
    known, mentioned = set(bound), set(bound)
    for index, literal in enumerate(body):
        for variable, _ in () if literal in conditions else _equations(literal):
            candidates.setdefault(variable, []).append(index)
            if variable not in mentioned and _needed(literal, variable) <= known:
                early.add((variable, index))
        named = {variable.name for variable in all_variables(literal)}
        mentioned |= named
        known |= named if isinstance(literal, Match) else set(gives(literal))
    found: Definitions = {}
    for variable, indexes in candidates.items():
        if variable not in bound:
            late = any((variable, index) not in early for index in indexes)
            reached = _reached(body, variable, bound) if late else known
            found[variable] = tuple(
                i for i in indexes if (variable, i) in early or _needed(body[i], variable) <= reached
            )
    return {variable: indexes for variable, indexes in found.items() if indexes}


def _in_circles(body: Body, definitions: Definitions) -> set[Literal]:
    """The definitions that need, directly or through others, the variable that they define."""
    graph = {
        variable: [name for i in indexes for name in _needed(body[i], variable) if name in definitions]
        for variable, indexes in definitions.items()
    }
    circle = {name: number for number, part in enumerate(strongly_connected(graph)) for name in part}
    return {
        body[index]
        for variable, indexes in definitions.items()
        for index in indexes
        if circle[variable] in map(circle.get, _needed(body[index], variable))
    }


def _loose(body: Body, definitions: Definitions) -> set[int]:
    """The ranges and aggregates that do not define their variable."""
    return {
        index
        for index, literal in enumerate(body)
        if isinstance(literal, Spread | Gather) and index not in definitions.get(literal.variable, ())
    }


def _settled(body: Body, bound: Iterable[str], definitions: Definitions) -> set[str]:
    """The variables that get values where atoms wait for the definitions of variables that they mention."""
    needed = {
        variable: {name for i in indexes for name in _needed(body[i], variable)}
        for variable, indexes in definitions.items()
    }
    settled, before = set(bound), -1
    while len(settled) > before:
        before = len(settled)
        for literal in body:
            if isinstance(literal, Match):
                mentioned = names(literal.arguments)
                if needs(literal) | (mentioned & definitions.keys()) <= settled:
                    settled |= mentioned
                continue
            for variable, _ in _equations(literal):
                wanted = needed[variable] if variable in definitions else _needed(literal, variable)
                if wanted <= settled:
                    settled.add(variable)
            if needs(literal) <= settled:
                settled |= set(gives(literal)) - definitions.keys()
    return settled


def _missing_variables(body: Body, definitions: Definitions, types: Types) -> set[str]:
    """The variables that may have no value, because one of their definitions may have none."""
    found: set[str] = set()
    before = -1
    while len(found) > before:
        before = len(found)
        for variable, indexes in definitions.items():
            if any(_may_be_missing(body[i], variable, types, found) for i in indexes):
                found.add(variable)
    return found


def _may_be_missing(literal: Literal, variable: str, types: Types, lacking: Collection[str]) -> bool:
    """True if a definition of the variable may give it no value."""
    match literal:
        case Spread(_, start, stop, step):
            return any(may_lack(term, types, lacking) for term in (start, stop, step))
        case Gather():
            return _gather_may_lack(literal, types, lacking)
        case _:
            return any(may_lack(term, types, lacking) for name, term in _equations(literal) if name == variable)


def _lacking(body: Iterable[Literal], types: Types) -> bool:
    """True if some term of the body may have no value."""
    return any(
        _gather_may_lack(literal, types, ())
        if isinstance(literal, Gather)
        else any(may_lack(term, types, ()) for term in literal_terms(literal))
        for literal in body
    )


def _gather_may_lack(gather: Gather, types: Types, lacking: Collection[str]) -> bool:
    if not set(lacking).isdisjoint(gather.injected):
        return True
    if gather.target is not None and may_lack(gather.target, types, lacking):
        return True
    overflows = gather.function == "sum" and gather.target is not None and type_of(gather.target, types).kind != "float"
    return overflows or any(_lacking(body, types) for body in gather.bodies)


def _equations(literal: Literal) -> Iterator[tuple[str, Term]]:
    """The variables that a literal equates with something else, and the term that they equal. A range or an aggregate
    has no term for that: the variable itself stands for it."""
    match literal:
        case Filter(Comparison("=", left, right)):
            for side, other in ((left, right), (right, left)):
                if isinstance(side, Variable) and side.name not in names((other,)):
                    yield side.name, other
        case Bind(variable, term):
            if variable not in names((term,)):
                yield variable, term
            if isinstance(term, Variable):
                yield term.name, Variable(variable)
        case Spread(variable) if variable not in needs(literal):
            yield variable, Variable(variable)
        case Gather(variable, injected=injected) if variable not in injected:
            yield variable, Variable(variable)
        case _:
            return


def _needed(literal: Literal, variable: str) -> set[str]:
    """What an equation of the variable needs values of."""
    if isinstance(literal, Spread | Gather):
        return needs(literal)
    return {name for own, term in _equations(literal) if own == variable for name in names((term,))}


def _reached(body: Iterable[Literal], without: str, bound: Iterable[str]) -> set[str]:
    """The variables that get values from the literals that do not mention the variable `without`."""
    others = [literal for literal in body if all(variable.name != without for variable in all_variables(literal))]
    found, before = set(bound), -1
    while len(found) > before:
        before = len(found)
        for literal in others:
            match literal:
                case Match(_, arguments):
                    found |= names(arguments)
                case Gather(variable, witnesses=witnesses):
                    found |= {variable, *witnesses}
                case _:
                    found |= {name for name, _ in _equations(literal) if _needed(literal, name) <= found}
    return found


# --- the body anew ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Equation:
    """An equation that defines nothing: a condition, or what gives a variable its value if nothing else does."""

    literal: Bind | Filter


def _spelled(body: Body, definitions: Definitions, types: dict[str, Type]) -> list[Literal | _Equation]:
    """The literals, definitions as such and all other equations as conditions."""
    defining = {i: variable for variable, indexes in definitions.items() for i in indexes}
    several = {variable: indexes for variable, indexes in definitions.items() if len(indexes) > 1}
    made: list[Literal | _Equation] = []
    for index, literal in enumerate(body):
        variable = defining.get(index)
        if variable is None:
            made.append(_Equation(literal) if isinstance(literal, Bind | Filter) else literal)
            continue
        name = _part(variable, index) if variable in several else variable
        types[name] = types[variable]
        made.append(_definition(literal, variable, name))
    for variable, indexes in several.items():
        made += list(_together(variable, indexes, body, made, types))
    return made


def _definition(literal: Literal, variable: str, name: str) -> Literal:
    """A literal that defines a variable, with another name for it."""
    if isinstance(literal, Spread | Gather):
        return replace(literal, variable=name)
    term = next(term for own, term in _equations(literal) if own == variable)
    return Bind(name, term, literal.condition.span if isinstance(literal, Filter) else literal.span)


def _part(variable: str, index: int) -> str:
    """The value that one of several definitions gives a variable."""
    return f"{variable}/{index}"


def _together(
    variable: str, indexes: tuple[int, ...], body: Body, made: list[Literal | _Equation], types: dict[str, Type]
) -> Iterator[Literal | _Equation]:
    """The variable from the values of its definitions: none if one has none; else they must be the same.

    A range, and a minimum of nothing, give no row at all. They are not asked where a computed value is missing.
    """
    computed = [i for i in indexes if not isinstance(body[i], Spread | Gather)]
    computed += [i for i in indexes if isinstance(lit := body[i], Gather) and lit.function in ("count", "sum")]
    signals = [(i, Variable(_part(variable, i))) for i in computed]
    for i in indexes:
        if isinstance(literal := made[i], Spread):
            for number, term in enumerate((literal.start, literal.stop, literal.step)):
                name = f"{_part(variable, i)}.{number}"
                types[name] = types[variable]
                yield Bind(name, term)
                signals.append((i, Variable(name)))
    for i in indexes:
        literal, others = made[i], tuple(signal for spot, signal in signals if spot != i)
        if others and i not in computed and isinstance(literal, Spread):
            made[i] = replace(literal, start=Call(UNLESS, (literal.start, Call(MISSING, others))))
        elif others and i not in computed and isinstance(literal, Gather):
            made[i] = replace(literal, injected=(*literal.injected, *(signal.name for signal in others)))
    first, *later = [*computed, *(i for i in indexes if i not in computed)]
    parts = tuple(Variable(_part(variable, i)) for i in later)
    yield Bind(variable, Call(UNLESS, (Variable(_part(variable, first)), Call(MISSING, parts))))
    for part in parts:
        yield Filter(Comparison("=", Variable(variable), part))


def _ordered(
    body: Iterable[Literal | _Equation], bound: Iterable[str], lacking: Collection[str], types: Types
) -> Iterator[Literal]:
    """The literals in their order, but each after what gives values to its variables, and those that mention a variable
    whose value may be missing after its definition."""
    waiting, known = list(body), set(bound)
    while waiting:
        turns = ((one, _ready(one, known, lacking, types, last)) for last in (False, True) for one in waiting)
        taken, literal = next((one, ready) for one, ready in turns if ready is not None)
        waiting = [one for one in waiting if one is not taken]
        known |= names(literal_terms(literal)) | set(gives(literal))
        yield literal


def _ready(
    one: Literal | _Equation, known: set[str], lacking: Collection[str], types: Types, last: bool
) -> Literal | None:
    """The literal if its turn can come. At `last` an equation that may have no value gives a variable its value."""
    if not isinstance(one, _Equation):
        waits = isinstance(one, Match) and any(n in lacking and n not in known for n in names(one.arguments))
        return None if waits or not needs(one) <= known else one
    literal = one.literal
    if names(literal_terms(literal)) <= known:
        return _as_condition(literal)
    for variable, term in _equations(literal):
        free = variable not in known and variable not in lacking and names((term,)) <= known
        if free and (last or not may_lack(term, types, lacking)):
            return literal if isinstance(literal, Bind) and literal.variable == variable else Bind(variable, term)
    return None


def _as_condition(literal: Bind | Filter) -> Filter:
    if isinstance(literal, Filter):
        return literal
    return Filter(Comparison("=", Variable(literal.variable, span=literal.span), literal.term, span=literal.span))
