"""The iteration index: `rank(i+1, Y, sum[r]) :- rank(i, X, q), ...` counts rounds and holds one state at a time.

A component is an iteration when a rule's head has `i + 1` as its first argument, an atom of the component in the body
has `i` as its first, `i` stands nowhere else, and the component has an aggregate or a termination clause. (Without
either, and where `i` is used as a value, the index is a column like any other: plain recursion says what it means.)
The index is then taken out of the component's rules; elsewhere it stays only if some rule reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from emberlog.analysis.draft import Draft, End, Fact
from emberlog.analysis.layout import Layout
from emberlog.analysis.names import Predicate, step_index
from emberlog.analysis.program import Absent, Gather, Literal, Match, atoms
from emberlog.analysis.strata import Part
from emberlog.analysis.terms import all_variables, term_variables
from emberlog.diagnostics import Diagnostic, Label
from emberlog.source import Span
from emberlog.syntax.nodes import Anonymous, Call, Constant, Term, Until, Variable


@dataclass(frozen=True, slots=True)
class Iterated:
    """The program without its iteration indexes.

    `indexed` says of each predicate of an iteration whether its states are kept, so that the index is its first column.
    """

    drafts: tuple[Draft, ...]
    facts: tuple[Fact, ...]
    indexed: Mapping[str, bool]
    found: tuple[Diagnostic, ...]


def take_out_indexes(
    parts: Iterable[Part], facts: Iterable[Fact], ends: Collection[End], predicates: Mapping[str, Predicate]
) -> Iterated:
    """Finds the iterations and takes their indexes out of the rules."""
    parts, facts = list(parts), list(facts)
    drafts = sorted((draft for part in parts for draft in part.drafts), key=lambda draft: draft.id)
    iterations = [part for part in parts if _is_iteration(part, ends)]
    if not iterations:
        return Iterated(tuple(drafts), tuple(facts), {}, ())
    found = [mistake for part in iterations for mistake in _mistakes(part, facts, predicates)]
    if found:
        wrong = {name for part in iterations for name in part.predicates}
        rest = (draft for draft in drafts if draft.predicate not in wrong)
        return Iterated(tuple(rest), tuple(facts), {}, tuple(found))
    indexed: dict[str, bool] = {}
    for part in iterations:
        inside = {draft.id for draft in part.drafts}
        sizes = {name: predicates[name].arity for name in part.predicates}
        keeps = any(_reads_index(draft, sizes) for draft in drafts if draft.id not in inside)
        indexed |= dict.fromkeys(part.predicates, keeps)
        drafts = [
            _without_index(draft, sizes) if draft.id in inside
            else draft if keeps
            else replace(draft, body=tuple(_stripped(literal, sizes) for literal in draft.body))
            for draft in drafts
        ]  # fmt: skip
    next_id = max(draft.id for draft in drafts) + 1
    starts = [fact for fact in facts if fact.predicate in indexed]
    drafts += [_start(next_id + number, fact) for number, fact in enumerate(starts)]
    rest_of_facts = tuple(fact for fact in facts if fact.predicate not in indexed)
    return Iterated(tuple(drafts), rest_of_facts, indexed, ())


# --- what is an iteration --------------------------------------------------------------------------------------------


def _is_iteration(part: Part, ends: Iterable[End]) -> bool:
    ends_itself = any(end.predicate in part.predicates for end in ends)
    if not part.recursive or not (ends_itself or any(draft.aggregates for draft in part.drafts)):
        return False
    if any(position == 0 for draft in part.drafts for position, _ in draft.aggregates):
        return False
    steps = list(_steps(part))
    return bool(steps) and all(_only_counts(draft, index, part) for draft, index in steps)


def _steps(part: Part) -> Iterator[tuple[Draft, str]]:
    """The rules that go from one round to the next, with the name of their index."""
    for draft in part.drafts:
        index = step_index(draft.arguments)
        if index is not None and _at(draft, index, part):
            yield draft, index


def _own(draft: Draft, members: Collection[str]) -> list[Match]:
    return [literal for literal in draft.body if isinstance(literal, Match) and literal.predicate in members]


def _at(draft: Draft, index: str, part: Part) -> list[Match]:
    """The atoms of the component that read the round `index`."""
    return [atom for atom in _own(draft, part.predicates) if _is_variable(atom.arguments[:1], index)]


def _is_variable(arguments: tuple[Term, ...], name: str) -> bool:
    return bool(arguments) and isinstance(arguments[0], Variable) and arguments[0].name == name


def _only_counts(draft: Draft, index: str, part: Part) -> bool:
    return _occurrences(draft)[index] == 1 + len(_at(draft, index, part))


def _occurrences(draft: Draft) -> Counter[str]:
    counts = Counter(variable.name for argument in draft.arguments for variable in term_variables(argument))
    counts.update(variable.name for literal in draft.body for variable in all_variables(literal))
    counts.update(name for name, _ in draft.order)
    return counts


# --- mistakes --------------------------------------------------------------------------------------------------------


def _mistakes(part: Part, facts: Iterable[Fact], predicates: Mapping[str, Predicate]) -> Iterator[Diagnostic]:
    step, _ = next(_steps(part))
    because = Label(step.head_span, "this rule makes it an iteration")
    for draft in part.drafts:
        wrong = _misfit(draft, part)
        if wrong:
            yield _mistake(draft.predicate, draft.head_span, wrong, because)
    for fact in facts:
        if fact.predicate in part.predicates and fact.arguments[0] != Constant(0):
            yield _mistake(fact.predicate, fact.span, "a fact is a start, with the index 0", because)
    for name in part.predicates:
        if predicates[name].external:
            yield _mistake(name, step.head_span, "an iteration cannot take rows from a source as well", because)


def _misfit(draft: Draft, part: Part) -> str | None:
    """Why this rule of an iteration is neither a start nor a step."""
    index = step_index(draft.arguments)
    own = _own(draft, part.predicates)
    if not own:
        if draft.arguments[:1] == (Constant(0),):
            return None
        if index is not None and _occurrences(draft)[index] == 1:
            return None
        return "a rule that reads no state has the index 0 (a start) or `i+1` (a part of every round)"
    if index is None:
        return "a rule that reads a state has the index `i+1`"
    if len(_at(draft, index, part)) < len(own):
        return f"every atom of the iteration must read the round `{index}`"
    return None


def _mistake(predicate: str, span: Span, why: str, because: Label) -> Diagnostic:
    labels = (Label(span, why),) if because.span is span else (Label(span, why), because)
    help = "every rule of an iteration goes from the round `i` to the round `i+1`, or starts it at 0"
    return Diagnostic("E0305", f"the rules of `{predicate}` do not agree on the iteration index", labels, help)


# --- taking it out ---------------------------------------------------------------------------------------------------


def _without_index(draft: Draft, sizes: Mapping[str, int]) -> Draft:
    return replace(
        draft,
        arguments=draft.arguments[1:],
        body=tuple(_stripped(literal, sizes) for literal in draft.body),
        start=draft.arguments[0] == Constant(0),
    )


def _stripped(literal: Literal, sizes: Mapping[str, int]) -> Literal:
    """The literal without the index of the atoms that are written with it."""
    match literal:
        case Match(predicate, arguments) | Absent(predicate, arguments):
            return replace(literal, arguments=arguments[1:]) if len(arguments) == sizes.get(predicate) else literal
        case Gather(bodies=bodies):
            return replace(literal, bodies=tuple(tuple(_stripped(inner, sizes) for inner in b) for b in bodies))
        case _:
            return literal


def _reads_index(draft: Draft, sizes: Mapping[str, int]) -> bool:
    """Does a rule outside of the iteration use the index of one of its atoms?"""
    counts = _occurrences(draft)
    for atom in atoms(draft.body):
        if len(atom.arguments) == sizes.get(atom.predicate):
            match atom.arguments[0]:
                case Anonymous():
                    continue
                case Variable(name) if counts[name] == 1:
                    continue
                case _:
                    return True
    return False


def _start(id: int, fact: Fact) -> Draft:
    return Draft(id, fact.item, fact.predicate, fact.arguments[1:], (), start=True, span=fact.span, head_span=fact.span)


def check_results(drafts: Iterable[Draft], layout: Layout) -> Iterator[tuple[int, Diagnostic]]:
    """Atoms that are written as if they read the result of an iteration, where there is none; with their items."""
    for draft in drafts:
        for atom in atoms(draft.body):
            given = len(atom.arguments) + layout.shift(draft.predicate, atom.predicate)
            wanted = layout.arity(atom.predicate)
            if given == wanted - 1:
                message = f"`{atom.predicate}` has {wanted} arguments, not {given}"
                help = "the index is an argument here: it is left out only where no rule reads it"
                defined = Label(layout.predicates[atom.predicate].span, f"first used with {wanted}")
                yield draft.item, Diagnostic("E0202", message, (Label(atom.span), defined), help)


# --- termination clauses ---------------------------------------------------------------------------------------------


def check_ends(parts: Iterable[Part], ends: Iterable[End]) -> Iterator[Diagnostic]:
    """A termination clause belongs to a recursion, names one of its variables, and is the only one there."""
    home = {name: part for part in parts for name in part.predicates}
    first: dict[str, Until] = {}
    for end in ends:
        until, part = end.until, home.get(end.predicate)
        if part is None or not part.recursive:
            message = f"`{end.predicate}` has a termination clause, but it is not recursive"
            yield Diagnostic("E0306", message, (Label(until.span),), "remove the clause")
            continue
        if until.variable not in end.variables:
            message = f"the termination clause names `{until.variable}`, which the rule does not have"
            yield Diagnostic("E0217", message, (Label(until.span),), "name the variable of the value that converges")
        if until.function not in ("sum", "max") or until.operator not in ("<", "<="):
            help = "write `{sum[delta r] < 0.001}` or `{max[delta r] < 0.001}`"
            yield Diagnostic("E0217", "a termination clause bounds the change", (Label(until.span),), help)
        earlier = first.setdefault(part.predicates[0], until)
        if earlier is not until and earlier != until:
            labels = (Label(until.span), Label(earlier.span, "the first one"))
            yield Diagnostic("E0217", "a recursion has one termination clause", labels)
        match until.bound:
            case Constant(bool() | str()) | Call() | Variable():
                yield Diagnostic("E0217", "the bound is a number or a parameter", (Label(until.bound.span),))
            case _:
                pass


def end_of(members: Collection[str], ends: Iterable[End]) -> Until | None:
    """The termination clause of a component, its bound a float."""
    for end in ends:
        if end.predicate in members and isinstance(end.until.bound, Constant):
            bound = end.until.bound
            return replace(end.until, bound=Constant(float(bound.value), span=bound.span))
    return None
