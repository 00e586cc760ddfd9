"""How each stratum is evaluated, where it runs and why, and what moves between tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from emberlog.analysis.program import CheckedProgram
from emberlog.choose.strata import Choice, refine
from emberlog.choose.ways import Inputs
from emberlog.compiled import Compiled
from emberlog.diagnostics import counted
from emberlog.plan.entries import no_entry
from emberlog.plan.logical import scans
from emberlog.plan.names import given_part, stateless
from emberlog.plan.rounds import PhysicalStratum, physical_stratum
from emberlog.plan.sizes import most_rows
from emberlog.plan.strata import ProgramPlan, Stratum, plans
from emberlog.stats import MOST_ROUNDS, default_rounds
from emberlog.syntax.printer import show
from emberlog.thresholds import SMALL_RESULT, SMALL_SOURCE


@dataclass(frozen=True, slots=True)
class StratumReport:
    """One stratum, in words. `reads` are the relations of other strata and sources that it reads."""

    number: int
    stratum: Stratum
    choice: Choice
    physical: PhysicalStratum | None  # of what statements evaluate
    reads: tuple[str, ...]
    evaluation: str
    evaluator: str
    kept: str  # what the kernels do with the rows where they make them, if it is more than to keep them
    where: str
    exchanges: str
    limits: str
    note: str  # what is wrong with it, as far as that is known without a run
    title: str

    def rows(self) -> list[tuple[str, str]]:
        """What to tell, as (heading, text)."""
        return [
            ("reads", ", ".join(self.reads) or "nothing"),
            ("evaluation", self.evaluation),
            ("evaluator", self.evaluator),
            *([("rows", self.kept)] if self.kept else []),
            ("runs", self.where),
            ("exchanges", self.exchanges),
            ("limits", self.limits),
            *([("note", self.note)] if self.note else []),
        ]


def report_strata(
    compiled: Compiled, goals: Mapping[str, str], rows: Mapping[str, int], placement: str
) -> list[StratumReport]:
    """Every stratum of the plan, in the order of evaluation; `goals` has the texts of goals by their predicates, `rows`
    the numbers of rows of the sources, as far as they are known."""
    checked, plan = compiled.checked, compiled.plan
    barren = no_entry(plan, {name for name, count in rows.items() if not count})
    origins: dict[str, frozenset[str]] = {}
    known = most_rows(plan, rows)
    found = []
    for number, stratum in enumerate(plan.strata, 1):
        reads = stratum_reads(stratum)
        behind = frozenset[str]().union(*(origins.get(name, _origin(checked, name)) for name in reads))
        origins |= dict.fromkeys(stratum.names, behind) | {stateless(name): behind for name in stratum.names}
        choice = _refined(compiled.choices[stratum.names], known)
        executor = choice.setting.executor
        physical = None if choice.by_kernels else physical_stratum(stratum, plan, distributed=executor == "spark")
        found.append(
            StratumReport(
                number,
                stratum,
                choice,
                physical,
                reads,
                _evaluation(stratum),
                str(choice),
                "" if choice.kept is None else choice.kept.text,
                _where(choice, sorted(behind), rows, placement),
                _exchanges(choice, physical),
                _limits(stratum),
                barren.get(stratum.names, ""),
                _title(stratum, goals),
            )
        )
    return found


def _refined(choice: Choice, known: Mapping[str, int]) -> Choice:
    """The choice, with the rows of its inputs where all of them are known."""
    if choice.program is None or not all(static.name in known for static in choice.program.statics):
        return choice
    return refine(choice, Inputs({static.name: known[static.name] for static in choice.program.statics}))


def _title(stratum: Stratum, goals: Mapping[str, str]) -> str:
    names = ", ".join(stateless(name) for name in stratum.names)
    if stratum.auxiliary:
        return f"{names} (shared by several rules)"
    return goals.get(names, names)


def stratum_reads(stratum: Stratum) -> tuple[str, ...]:
    """The relations outside of the stratum that it reads, in the order of its plans."""
    read = (scan.relation for relation in stratum.relations for plan in plans(relation) for scan in scans(plan))
    return tuple(name for name in dict.fromkeys(read) if name not in stratum.names)


def _origin(checked: CheckedProgram, relation: str) -> frozenset[str]:
    """The source behind a relation that no stratum computes; a few facts of the program are always at hand."""
    name = relation if relation in checked.signatures else relation.removesuffix(given_part(""))
    facts = len(checked.facts.get(name, ()))
    only_facts = facts and not checked.signatures[name].external
    return frozenset() if only_facts and facts <= SMALL_SOURCE else frozenset({name})


def _evaluation(stratum: Stratum) -> str:
    licences = "; ".join(dict.fromkeys(verdict.theorem for verdict in stratum.verdicts if verdict.theorem))
    match stratum.evaluation:
        case "once":
            return "once"
        case "delta":
            licensed = f" (licensed by {licences})" if licences else ""
            return f"semi-naive: each round derives from the rows of the last one, until there are none{licensed}"
        case "accumulate":
            licensed = f"licensed by {licences}"
            return f"accumulates: sums hand on what they change by, until {_end(stratum)} ({licensed})"
        case "naive":
            why = _why_naive(stratum)
            return f"naive: each round computes a new state from the last one, until {_end(stratum)}; {why}"
        case _:
            assert_never(stratum.evaluation)


def _why_naive(stratum: Stratum) -> str:
    if stratum.indexed:
        return "its rules have an iteration index"
    plain = [relation.name for relation in stratum.relations if not relation.signature.aggregates]
    if plain and all(verdict.holds for verdict in stratum.verdicts):
        return f"by deltas {_and(plain)} would keep rows that follow from values which better ones have replaced"
    return "deltas are not known to be right for it"


def _end(stratum: Stratum) -> str:
    return "nothing changes" if stratum.until is None else f"{show(stratum.until)[1:-1]}, or nothing changes"


def _where(choice: Choice, sources: Sequence[str], rows: Mapping[str, int], placement: str) -> str:
    if choice.evaluator == "workers":
        return "facts go to the workers that own them, and copies to those that join them"
    if choice.setting.executor == "local":
        return "in this process"
    if placement != "auto":
        return f"{'in the driver' if placement == 'local' else 'on Spark'}: placement was forced"
    if not sources:
        return "in the driver: it reads nothing but facts of the program"
    if all(name in rows and rows[name] <= SMALL_SOURCE for name in sources):
        told = " and ".join(counted(rows[name], "row") for name in sources)
        return f"in the driver: {_and(sources)} {'has' if len(sources) == 1 else 'have'} {told}"
    verb = "has" if len(sources) == 1 else "have"
    each = "" if len(sources) == 1 else " each"
    unless = ", unless it takes less time to fetch them" if choice.by_kernels else ""
    return f"in the driver if {_and(sources)} {verb} at most {SMALL_SOURCE:,} rows{each}, else on Spark{unless}"


def _exchanges(choice: Choice, physical: PhysicalStratum | None) -> str:
    if choice.setting.executor == "local":
        return "none: everything is in one process"
    if physical is None:
        return _exchanges_of_loops(choice)
    if physical.recursive:
        return f"on Spark {physical.exchanges_once} to start, {physical.exchanges_a_round} a round; in the driver none"
    return f"on Spark {physical.exchanges_once}; in the driver none"


def _exchanges_of_loops(choice: Choice) -> str:
    assert choice.way is not None
    if choice.is_shared and choice.way.pivoted:
        return "on Spark its inputs go to every task once, which share out the pivots; none in rounds"
    if choice.is_shared:
        return "on Spark its inputs go to every task once, and new facts to their owners each round"
    return "on Spark its inputs go to one task once; none in rounds"


def _limits(stratum: Stratum) -> str:
    if stratum.evaluation == "once":
        return "none"
    iterated = stratum.evaluation in ("naive", "accumulate")
    grows = stratum.invents or iterated or any(r.state == "total" for r in stratum.relations)
    if not grows:
        return "none: no rule computes values without a bound, so the rounds come to an end"
    first, more = default_rounds(0), default_rounds(1) - default_rounds(0)
    if stratum.evaluation == "delta" and all(relation.state == "set" for relation in stratum.relations):
        return f"{MOST_ROUNDS:,} rounds, unless the run is given limits"
    return f"{first:,} rounds and {more} more for each fact, unless the run is given limits"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def notes(executor: str) -> list[str]:
    """What holds for all strata."""
    evaluator = (
        "The sql evaluator takes any rule and any type; the kernels take recursion over numbers and ids, and what is "
        "computed above it by the same pivot."
    )
    if executor == "local":
        return [evaluator]
    return [
        evaluator,
        "Where a stratum runs is decided when the sources are counted, at the start of a run; placement= forces it. "
        f"What grows beyond {SMALL_RESULT:,} rows in the driver moves to Spark.",
        "Exchanges are those that hash joins and aggregates over unpartitioned tables need. Spark's adaptive execution "
        "may replace the exchange of a small input by a broadcast, and use one exchange twice.",
    ]


def producers(plan: ProgramPlan) -> Mapping[str, int]:
    """The stratum, by its index, that computes each relation."""
    return {stateless(name): index for index, stratum in enumerate(plan.strata) for name in stratum.names}
