"""What a user may ask for about the way of evaluation, for comparison; the defaults are what is fastest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from emberlog.analysis.program import CheckedProgram
from emberlog.diagnostics import UsageError, did_you_mean
from emberlog.workers.modes import mode_of
from emberlog.workers.simulated import Costs
from emberlog.workers.straggle import Straggle

Storage = Literal["auto", "hash", "rows", "loops", "columns"]

ALLOWED: dict[str, tuple[object, ...]] = {
    "storage": ("auto", "hash", "rows", "loops", "columns"),
    "join": ("auto", "broadcast", "shuffle"),
    "decompose": (True, False),
    "exchange": (True, False),
    "ordered": (True, False),
    "strata": ("auto", "sql"),
}


@dataclass(frozen=True)
class Wishes:
    """`decompose=False` ignores pivots. `exchange=True` makes workers own facts and swap what they find in each round.
    `storage="hash"` keeps every table hashed, `"rows"` asks for rows of sets, `"loops"` for loops over single facts,
    `"columns"` for the interpreter, however much it is.
    `ordered=False` takes up values in the order in which they come, not small ones (of sums: large changes) first.
    `strata="sql"` leaves strata without recursion to statements.
    `partition` gives the argument (from 0) by which a recursive predicate is divided among workers, in place of what
    the analysis finds. `join` makes Spark SQL broadcast the smaller side of joins, or shuffle both, where it would
    choose by itself. `coordination` makes workers share components out and keep in step in a mode of `workers.modes`;
    `straggle` disturbs them, as `workers.straggle` reads it. `simulate` runs them one after the other under a simulated
    clock, with the costs of `workers.simulated.Costs` or others.
    """

    decompose: bool = True
    exchange: bool = False
    storage: Storage = "auto"
    ordered: bool = True
    partition: Mapping[str, int] | None = None
    strata: Literal["auto", "sql"] = "auto"
    join: Literal["auto", "broadcast", "shuffle"] = "auto"
    coordination: str | None = None
    straggle: str | None = None
    simulate: str | None = None

    @property
    def swaps(self) -> bool:
        """True if workers swap facts. To divide a predicate by an argument of one's choice means that, unless it is a
        pivot."""
        return self.exchange or self.partition is not None

    @property
    def continues(self) -> bool:
        """True if loops may evaluate strata without recursion: nobody asks for a way in which pivots are not by
        themselves."""
        apart = self.decompose and not self.swaps and self.coordination is None
        return apart and self.strata == "auto" and self.storage not in ("rows", "columns")

    @staticmethod
    def of(options: Mapping[str, Any]) -> Wishes:
        """The wishes among the options of a run. Raises UsageError for those that there are none of."""
        known = {entry.name for entry in fields(Wishes)}
        for name, value in options.items():
            if name not in known:
                hint = did_you_mean(name, known)
                raise UsageError(f"there is no option `{name}`", fix=hint or f"options are {', '.join(sorted(known))}")
            allowed = ALLOWED.get(name)
            if allowed is not None and value not in allowed:
                raise UsageError(f"{name} is one of {', '.join(map(str, allowed))}, not {value!r}")
        made = Wishes(**options)
        made._check_coordination()
        alone = made.coordination is None
        if alone and made.storage == "columns" and (made.swaps or not made.decompose):
            raise UsageError(
                'storage="columns" is one worker that interprets: exchange, partition and decompose say nothing to it',
                fix='leave them out, or use storage="loops"',
            )
        return made

    def _check_coordination(self) -> None:
        """Raises where the mode is none, or goes with something that asks for another way."""
        if self.coordination is not None:
            mode_of(self.coordination)
            if self.exchange or self.storage in ("hash", "rows"):
                raise UsageError(
                    "coordination is workers that own parts, as columns or loops: exchange and other storages say "
                    "nothing to it",
                    fix="leave them out, or leave out coordination",
                )
        if self.straggle is not None:
            Straggle.of(self.straggle)
        if self.simulate is not None:
            Costs.parse(self.simulate)
        if self.coordination is None and (self.straggle is not None or self.simulate is not None):
            raise UsageError("straggle and simulate are for workers that coordinate", fix='add coordination="bsp"')

    def check(self, program: CheckedProgram) -> None:
        """Raises where `partition` is not of arguments by which recursive predicates can be divided."""
        if self.partition is None:
            return
        if not isinstance(self.partition, Mapping):
            raise UsageError(f"partition gives an argument for each predicate, not {self.partition!r}", fix='{"tc": 0}')
        signatures = program.signatures
        recursive = sorted(name for part in program.components if part.recursive for name in part.predicates)
        for name, spot in self.partition.items():
            if name not in signatures:
                raise UsageError(f"partition: there is no `{name}`", fix=did_you_mean(name, signatures))
            if name not in recursive:
                there = ", ".join(f"`{other}`" for other in recursive)
                raise UsageError(
                    f"partition: `{name}` is not recursive, and workers share out recursive predicates only",
                    fix=f"these are recursive: {there}" if there else "leave partition out: this program has none",
                )
            arity = len(signatures[name].columns)
            if not isinstance(spot, int) or isinstance(spot, bool) or not 0 <= spot < arity:
                raise UsageError(f"partition: `{name}` has {arity} arguments, counted from 0, and none is {spot!r}")
            if spot in signatures[name].aggregates:
                groups = ", ".join(map(str, signatures[name].groups))
                raise UsageError(
                    f"partition: argument {spot} of `{name}` is aggregated, so its facts cannot be divided by it",
                    fix=f"divide by a group: {groups}" if groups else "leave it out: it has no groups",
                )
