"""The choice for each stratum: who evaluates it and in which way, by how many, what is kept of its rows, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from emberlog.choose.above import Continued, continued_components
from emberlog.choose.ways import Inputs, Way, choose_way, interprets
from emberlog.choose.wishes import Wishes
from emberlog.components.linear import is_linear
from emberlog.components.lower import lower
from emberlog.components.program import Ineligible, KernelProgram
from emberlog.components.shares import WorkerPlan, plan_workers, small_statics
from emberlog.diagnostics import UsageError
from emberlog.plan.partials import Decision, Split, decide
from emberlog.plan.strata import ProgramPlan, Stratum
from emberlog.thresholds import SMALL_ROWS
from emberlog.workers.modes import mode_of

Evaluator = Literal["sql", "columns", "interpreter", "trial", "loops", "workers"]
Chosen = Mapping[tuple[str, ...], "Choice"]  # by the names of a stratum's relations


@dataclass(frozen=True)
class Setting:
    """What a run is asked for, and what it has: `workers` are threads of the local executor, tasks on Spark (None as
    long as nobody has looked). Of the relations that are `asked` for, the `rows` of some are."""

    executor: Literal["local", "spark"]
    evaluator: Literal["auto", "sql", "kernel"] = "auto"
    wishes: Wishes = field(default_factory=Wishes)
    workers: int | None = None
    asked: frozenset[str] = frozenset()
    rows: frozenset[str] = frozenset()
    interprets: bool = True  # the interpreter may be used where nobody asked for it


@dataclass(frozen=True)
class Choice:
    """How a stratum is evaluated.

    `sql` is by statements, `columns` by operators over Arrow's columns (what only loops read, while it is small),
    `interpreter` and `loops` by the kernels, `workers` by those that share it out and coordinate. A `trial` is by
    statements as long as that is short, then by loops. `why` says why this evaluator. `program` is the component as
    kernels read it, where they can. `continued` are strata above it that its loops go on with; of such a stratum,
    `continues` has the names of the component, and the rest is how it is evaluated if the loops do not get there.
    """

    evaluator: Evaluator
    why: str
    setting: Setting
    program: KernelProgram | None = None
    kept: Decision | None = None
    inputs: Inputs | None = None
    uncoordinated: str = ""  # where workers were to coordinate: why they do not share it out
    continued: Continued | None = None
    continues: tuple[str, ...] = ()
    driver: str = ""  # of a stratum without recursion: the relation whose rows loops go through

    @property
    def whole(self) -> KernelProgram | None:
        """The component with what its loops go on with."""
        return self.program if self.continued is None else self.continued.program

    @cached_property
    def way(self) -> Way | None:
        """How the loops would go about it."""
        if self.whole is None:
            return None
        return choose_way(self.whole, self.setting.wishes, self.setting.workers or 2, self.inputs)

    @property
    def worker_plan(self) -> WorkerPlan | None:
        """How workers that coordinate share it out; None where they do not."""
        if self.evaluator != "workers" or self.program is None:
            return None
        small = () if self.inputs is None else small_statics(self.inputs.rows)
        plan = plan_workers(self.program, self.setting.wishes.partition, small)
        return plan if isinstance(plan, WorkerPlan) else None

    @property
    def by_kernels(self) -> bool:
        return self.program is not None and self.evaluator != "sql"

    @property
    def is_shared(self) -> bool:
        """True if several processes may share the component out: they need not talk, or are to and can."""
        if self.evaluator == "workers":
            return True
        if self.program is None or self.way is None or self.program.mode != "delta":
            return False
        return self.way.pivoted or (self.setting.wishes.swaps and is_linear(self.program))

    @property
    def shares(self) -> int:
        """How many tasks of Spark share the component out."""
        return self.setting.workers or 1 if self.is_shared else 1

    def split(self, stratum: Stratum) -> Split:
        """By which columns the rows of each relation are divided among processes; `()` where one has all."""
        alone = self.setting.executor == "local" or self.setting.workers == 1 or not self.is_shared
        if alone or self.way is None:
            return dict.fromkeys(stratum.names, ())
        if self.evaluator == "workers":
            return dict.fromkeys(stratum.names, None)
        return {name: self.way.pivots.get(name) or None for name in stratum.names}

    def together(self, stratum: Stratum) -> Stratum:
        """The component and what its loops go on with, as one."""
        if self.continued is None:
            return stratum
        above = (relation for other in self.continued.strata for relation in other.relations)
        return replace(stratum, relations=(*stratum.relations, *above))

    def __str__(self) -> str:
        if self.continues:
            below = ", ".join(self.continues)
            return f"kernel: the loops of {below} go on with it, pivot by pivot; where they do not, {self._alone}"
        return self._alone

    @property
    def _alone(self) -> str:
        match self.evaluator:
            case "sql":
                return f"sql: {self.why}" if self.why else "sql"
            case "columns":
                return f"sql, or over columns while it is small and simple: {self.why}"
            case "interpreter" if self.inputs is None:
                return f"kernel: {self._loops}; interpreted over columns while it is small"
            case "interpreter":
                return f"kernel: interpreted over columns ({self.why}); with more rows {self._loops}"
            case "trial":
                return f"kernel: {self._loops}; sql while it is small"
            case "loops" if self.driver:
                return f"kernel: one pass over the rows of {self.driver}, pivot by pivot: {self.why}"
            case "loops":
                return f"kernel: {self._loops}"
            case "workers":
                return f"kernel: {self.setting.workers or 'several'} workers that share it out, {self.why}"

    @property
    def _loops(self) -> str:
        """The way of the loops in words."""
        assert self.way is not None
        return f"none: {self.way.unfit}" if self.way.unfit else str(self.way)


def choose(plan: ProgramPlan, setting: Setting) -> dict[tuple[str, ...], Choice]:
    """A choice for every stratum, from the program and what is asked for. Raises UsageError where the kernels are to
    evaluate what they cannot."""
    lowered = {stratum.names: lower(stratum, plan) for stratum in plan.strata if stratum.evaluation != "once"}
    found = {names: _of_component(names, program, setting) for names, program in lowered.items()}
    if setting.wishes.coordination is not None:
        found = _coordinated(found, lowered)
    for stratum in plan.strata:
        if stratum.evaluation == "once":
            found[stratum.names] = _computed_once(stratum, plan, setting, found)
    found = _continued(plan, setting, found)
    for stratum in plan.strata:
        if found[stratum.names].by_kernels:
            found[stratum.names] = keeping(found[stratum.names], stratum, plan, setting.rows)
    return found


def _continued(plan: ProgramPlan, setting: Setting, found: Chosen) -> dict[tuple[str, ...], Choice]:
    """The choices in which loops go on with strata above."""
    if not setting.wishes.continues:
        return dict(found)
    by_loops = {
        names: choice.program
        for names, choice in found.items()
        if choice.program is not None and choice.program.mode == "delta" and choice.evaluator != "workers"
    }
    more = continued_components(plan, by_loops, setting.wishes)
    above = {stratum.names: names for names, continued in more.items() for stratum in continued.strata}
    return {
        names: replace(choice, continued=more.get(names), continues=above.get(names, ()))
        for names, choice in found.items()
    }


def _coordinated(
    found: Mapping[tuple[str, ...], Choice], lowered: Mapping[tuple[str, ...], KernelProgram | Ineligible]
) -> dict[tuple[str, ...], Choice]:
    """The choices, each with why workers do not coordinate there. Raises UsageError if they do so nowhere."""
    noted = {
        names: choice
        if choice.evaluator == "workers"
        else replace(choice, uncoordinated=_obstacle(lowered[names], choice.setting))
        for names, choice in found.items()
    }
    if all(choice.uncoordinated for choice in noted.values()):
        told = "; ".join(f"{', '.join(names)}: {choice.uncoordinated}" for names, choice in noted.items())
        raise UsageError(f"coordination has no effect: {told or 'there is no recursion'}", fix="leave it out")
    return noted


def _obstacle(program: KernelProgram | Ineligible, setting: Setting) -> str:
    """Why workers cannot share a component out; it is the evaluator that was forced if they could."""
    planned = _shared_out(program, setting) if isinstance(program, KernelProgram) else program
    return planned.reason if isinstance(planned, Ineligible) else "the evaluator was forced"


def _shared_out(program: KernelProgram, setting: Setting) -> WorkerPlan | Ineligible:
    """How workers share a component out under the mode that is wished; a mode needs what the proofs license."""
    wishes = setting.wishes
    assert wishes.coordination is not None
    stepped = wishes.coordination == "auto" or mode_of(wishes.coordination).stepped
    if program.mode == "replace" and not stepped:
        return Ineligible("no proof allows its aggregate to hand on changes, so that only rounds (bsp) evaluate it")
    return plan_workers(program, wishes.partition)


def with_setting(choice: Choice, stratum: Stratum, plan: ProgramPlan, setting: Setting) -> Choice:
    """The choice for a stratum where another executor evaluates it, or other workers do."""
    placed = replace(choice, setting=setting)
    # What threads of one process keep does not depend on how many they are.
    same = not choice.by_kernels or choice.setting.executor == setting.executor == "local"
    return placed if same else keeping(placed, stratum, plan, setting.rows)


def keeping(choice: Choice, stratum: Stratum, plan: ProgramPlan, rows: frozenset[str]) -> Choice:
    """The choice for a component with what is kept of its relations, where these `rows` are asked for."""
    only_counts = choice.setting.executor == "local"
    whole = choice.together(stratum)
    return replace(choice, kept=decide(whole, plan, rows, choice.split(whole), only_counts=only_counts))


def apart(choice: Choice, stratum: Stratum, plan: ProgramPlan, rows: frozenset[str]) -> Choice:
    """The choice for a component without what its loops might go on with."""
    return keeping(replace(choice, continued=None), stratum, plan, rows)


def refine(choice: Choice, inputs: Inputs) -> Choice:
    """The choice with what is known of the inputs of its stratum."""
    known, total = replace(choice, inputs=inputs), inputs.total
    few, many = f"its inputs have {total:,} rows", f"its inputs have more than {SMALL_ROWS:,} rows"
    match choice.evaluator:
        case "interpreter":
            assert choice.program is not None
            if interprets(choice.program, choice.setting.wishes, inputs):
                return replace(known, why=few)
            return replace(known, evaluator="loops", why=many)
        case "trial" if total > SMALL_ROWS:
            return replace(known, evaluator="loops", why=many)
        case _:
            return known


def _of_component(names: tuple[str, ...], program: KernelProgram | Ineligible, setting: Setting) -> Choice:
    if setting.evaluator == "sql":
        return Choice("sql", "the evaluator was forced", setting)
    if isinstance(program, Ineligible):
        if setting.evaluator == "kernel":
            raise refusal(names, program.reason)
        return Choice("sql", program.reason, setting)
    wishes = setting.wishes
    if wishes.coordination is not None and isinstance(_shared_out(program, setting), WorkerPlan):
        return Choice("workers", wishes.coordination, setting, program)
    if interprets(program, wishes) and (setting.interprets or wishes.storage == "columns"):
        return Choice("interpreter", "small", setting, program)
    if setting.evaluator == "kernel":
        return Choice("loops", "the evaluator was forced", setting, program)
    return Choice("trial", "", setting, program)


def _computed_once(stratum: Stratum, plan: ProgramPlan, setting: Setting, found: Chosen) -> Choice:
    if setting.evaluator == "sql":
        return Choice("sql", "", setting)
    readers = [reader for name in stratum.names for reader in plan.readers.get(name, ())]
    if not setting.asked.isdisjoint(stratum.names) or not readers:
        return Choice("sql", "", setting)
    if all(reader.evaluation != "once" and found[reader.names].by_kernels for reader in readers):
        return Choice("columns", "only kernels read it", setting)
    return Choice("sql", "", setting)


def refusal(names: tuple[str, ...], reason: str) -> UsageError:
    """The error for a forced evaluator that cannot evaluate this."""
    told = ", ".join(f"`{name}`" for name in names)
    return UsageError(f"the kernels cannot evaluate {told}: {reason}", fix='use evaluator="auto" or "sql"')
