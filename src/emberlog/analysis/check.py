"""From the syntax tree to the checked program, or to one error with every mistake.

The passes, each in a module of its own: `booleans`, `parameters`, `calls` and `singles` look at the text; `names`
resolves predicates and types; `normalize` makes rules with one head and one conjunction; `strata` finds the recursive
components; `iteration` takes iteration indexes out; `safety` orders bodies; `infer` and `elaborate` type them;
`verdicts` judges aggregates inside recursion. A pass leaves out the rules in which an earlier one found a mistake, so
that one mistake is told once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal as OneOf

from emberlog.analysis.aggregates import aggregates_of, agree_on_counted
from emberlog.analysis.booleans import misread, read_booleans
from emberlog.analysis.calls import check_calls
from emberlog.analysis.definitions import define_first
from emberlog.analysis.draft import Draft, End, Fact, without_copies
from emberlog.analysis.elaborate import elaborate, elaborate_fact, elaborate_goal
from emberlog.analysis.infer import Columns, infer
from emberlog.analysis.iteration import check_ends, check_results, end_of, take_out_indexes
from emberlog.analysis.layout import Layout
from emberlog.analysis.names import Catalog, resolve, step_index
from emberlog.analysis.normalize import fold, normalize
from emberlog.analysis.parameters import missing_parameters, substitute
from emberlog.analysis.plain import written_out
from emberlog.analysis.program import CheckedProgram, Component, CoreRule, Signature
from emberlog.analysis.safety import make_safe
from emberlog.analysis.shallow import name_deep_terms
from emberlog.analysis.signatures import make_signatures
from emberlog.analysis.singles import single_variables
from emberlog.analysis.strata import Part, check_strata, invents, parts
from emberlog.analysis.verdicts import accumulates, examine
from emberlog.diagnostics import Diagnostic, Label, ProgramError, warning
from emberlog.syntax.nodes import Directive, Goal, Program, Until
from emberlog.types import Params, Value


def check(
    program: Program,
    catalog: Catalog | None = None,
    params: Params | None = None,
    *,
    naive: bool = False,
    require_sources: bool = True,
) -> CheckedProgram:
    """The program, checked.

    `catalog` has the registered sources, `params` the values of parameters. `naive` has aggregates inside recursion
    evaluated naively, those that are not known to be right by deltas too. Without `require_sources` a predicate that
    nothing defines is taken for a base relation of unknown types.
    """
    checked = _analyse(program, catalog or {}, params or {}, require_sources, naive)
    refused = [] if naive else [found for part in checked.components for found in _refused(part)]
    if refused:
        raise ProgramError(refused)
    return checked


def check_aggregates(
    program: Program,
    catalog: Catalog | None = None,
    params: Params | None = None,
) -> CheckedProgram:
    """The program with the verdicts on all aggregates inside recursion, refuted ones too. Sources need not be
    registered."""
    return _analyse(program, catalog or {}, params or {}, require_sources=False, naive=False)


class _Mistakes:
    """What was found so far, and the numbers of the items that later passes leave out."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self.broken: set[int] = set()

    def add(self, found: Iterable[Diagnostic], broken: Iterable[int] = ()) -> None:
        self.found.extend(found)
        self.broken.update(broken)

    def add_numbered(self, found: Iterable[tuple[int, Diagnostic]]) -> None:
        for number, diagnostic in found:
            self.add([diagnostic], [number])


def _analyse(program: Program, catalog: Catalog, params: Params, require_sources: bool, naive: bool) -> CheckedProgram:
    def names(relation: str) -> tuple[str, ...] | None:
        columns = catalog.get(relation)
        return None if columns is None else tuple(column.name for column in columns)

    written = written_out(program, names, catalog)
    try:
        return _analyse_spelled(read_booleans(written), catalog, params, require_sources, naive)
    except ProgramError as error:
        words = misread(written, error.diagnostics())
        if not words:
            raise
    return _analyse_spelled(read_booleans(written, words), catalog, params, require_sources, naive)


def _analyse_spelled(
    written: Program, catalog: Catalog, params: Params, require_sources: bool, naive: bool
) -> CheckedProgram:
    mistakes = _Mistakes()
    program = substitute(written, params)
    mistakes.add_numbered(check_calls(program))
    normal = normalize(program, skip=frozenset(mistakes.broken))
    mistakes.add(normal.found, normal.broken)
    mistakes.add_numbered(missing_parameters(program, params))
    scope, found = resolve(program, catalog, require_sources)
    mistakes.add(found, scope.broken)

    drafts = without_copies(normal.drafts)
    written_parts = parts(drafts)
    mistakes.add(check_strata(written_parts))
    mistakes.add(check_ends(written_parts, normal.ends))
    sound_facts = [fact for fact in normal.facts if fact.item not in mistakes.broken]
    sound_parts = parts(draft for draft in drafts if draft.item not in mistakes.broken)
    iterated = take_out_indexes(sound_parts, sound_facts, normal.ends, scope.predicates)
    aggregates, found = aggregates_of(iterated.drafts)
    mistakes.add([*iterated.found, *found])

    # A broken rule that counts rounds would only be told that its index is not bound.
    broken = (d for d in drafts if d.item in mistakes.broken and step_index(d.arguments) is None)
    mistakes.add(mistake for draft in broken for mistake in make_safe(draft)[1])
    safe = [make_safe(draft) for draft in iterated.drafts]
    mistakes.add(mistake for _, unsafe in safe for mistake in unsafe)
    layout = Layout(scope.predicates, iterated.indexed, sound_parts)
    mistakes.add_numbered(check_results((draft for draft, _ in safe), layout))
    whole = [draft for draft, unsafe in safe if not unsafe and draft.item not in mistakes.broken]

    whole_parts = parts(whole)
    columns = infer(whole_parts, iterated.facts, layout, tolerant=bool(mistakes.found) or not require_sources)
    rules, rows, goals, found = _elaborated(program, whole, iterated.facts, columns, layout)
    mistakes.add(found)
    if mistakes.found:
        raise ProgramError(_in_order(mistakes.found))

    signatures = make_signatures(scope, columns, layout, whole, aggregates)
    ends = [end for end in normal.ends if end.predicate in iterated.indexed]
    idle = [_idle(end) for end in normal.ends if end not in ends]
    components = tuple(
        _component(part, rules, signatures, rows, end_of(part.predicates, ends), iterated.indexed, naive)
        for part in whole_parts
    )
    directives = tuple(item for item in program.items if isinstance(item, Directive))
    return CheckedProgram(
        signatures, rows, components, directives, goals, _in_order([*scope.warnings, *idle, *single_variables(written)])
    )


def _elaborated(
    program: Program, drafts: Iterable[Draft], facts: Iterable[Fact], columns: Columns, layout: Layout
) -> tuple[dict[int, CoreRule], dict[str, tuple[tuple[Value, ...], ...]], tuple[Goal, ...], list[Diagnostic]]:
    """Rules, facts and goals with every conversion written out, and the type conflicts in them."""
    rules: dict[int, CoreRule] = {}
    rows: dict[str, dict[tuple[Value, ...], None]] = {}
    goals: list[Goal] = []
    found: list[Diagnostic] = []
    for draft in drafts:
        rule, mistakes = elaborate(draft, columns)
        rules[draft.id] = rule if mistakes else name_deep_terms(define_first(rule))
        found += mistakes
    if not found:
        rules, found = agree_on_counted(rules)
    for fact in facts:
        values, mistakes = elaborate_fact(fact, columns)
        rows.setdefault(fact.predicate, {})[values] = None
        found += mistakes
    for item in program.items:
        if isinstance(item, Goal) and item.atom.predicate in layout.predicates:
            goal, mistakes = _goal(item, columns, layout)
            goals.append(goal)
            found += mistakes
    return rules, {name: tuple(values) for name, values in rows.items()}, tuple(goals), found


def _goal(goal: Goal, columns: Columns, layout: Layout) -> tuple[Goal, list[Diagnostic]]:
    atom = replace(goal.atom, arguments=tuple(fold(argument) for argument in goal.atom.arguments))
    given, wanted = len(atom.arguments), layout.arity(atom.predicate)
    if given != wanted:
        message = f"`{atom.predicate}` has {wanted} column{'' if wanted == 1 else 's'}, not {given}"
        defined = layout.predicates[atom.predicate].span
        return goal, [Diagnostic("E0202", message, (Label(atom.span), Label(defined, "defined here")))]
    return elaborate_goal(replace(goal, atom=atom), columns)


def _component(
    part: Part,
    rules: Mapping[int, CoreRule],
    signatures: Mapping[str, Signature],
    facts: Mapping[str, tuple[tuple[Value, ...], ...]],
    until: Until | None,
    indexed: Mapping[str, bool],
    naive: bool,
) -> Component:
    own = tuple(rules[draft.id] for draft in part.drafts)
    if not part.recursive:
        return Component(part.predicates, own, False, "", "once")
    new_values = invents(own, part.predicates)
    judged = examine(part.predicates, own, signatures, facts, until, new_values)
    is_indexed = part.predicates[0] in indexed
    keeps_states = is_indexed and indexed[part.predicates[0]]
    by_deltas = not is_indexed and not judged.spills and all(verdict.holds for verdict in judged.verdicts)
    evaluation: OneOf["delta", "naive", "accumulate"] = "delta" if by_deltas else "naive"
    if naive and judged.verdicts:
        evaluation = "naive"
    elif is_indexed and not keeps_states and accumulates(part.predicates, own, signatures, judged):
        evaluation = "accumulate"
    return Component(
        part.predicates,
        own,
        True,
        part.shape,
        evaluation,
        judged.verdicts,
        is_indexed,
        keeps_states,
        until,
        new_values,
    )


def _refused(component: Component) -> Iterable[Diagnostic]:
    """The aggregates that may not be evaluated: not known to be right, and without an iteration index."""
    for verdict in component.verdicts:
        if verdict.holds or component.indexed:
            continue
        refuted = verdict.status == "refuted"
        how = "is wrong" if refuted else "is not known to be right"
        message = f"`{verdict.aggregate}` of `{verdict.predicate}` {how} inside recursion: {verdict.reason}"
        example = f"counter-example: {verdict.counterexample}" if verdict.counterexample else "no proof was found"
        help = f"{example}; an iteration index (`p(i+1, ..) :- p(i, ..)`) or naive=True evaluates it round by round"
        yield Diagnostic("E0505" if refuted else "E0506", message, (Label(verdict.span),), help)


def _idle(end: End) -> Diagnostic:
    message = (
        f"the termination clause of `{end.predicate}` has no effect: without an iteration index a recursion goes on to "
        "its fixpoint"
    )
    return warning("W0204", message, [Label(end.until.span)])


def _in_order(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Each diagnostic once, in the order of the text."""
    unique = dict.fromkeys(found)
    return tuple(sorted(unique, key=lambda diagnostic: diagnostic.span.start if diagnostic.span else -1))
