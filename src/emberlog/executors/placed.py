"""The inputs of workers of which each gets its share, and what they tell of their work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from emberlog.components.shares import WorkerPlan
from emberlog.kernels.cluster.inputs import By, Input, Placement
from emberlog.workers.stats import Coordinated, Lane


def placed_inputs(plan: WorkerPlan, inputs: Mapping[str, Input]) -> dict[str, Input]:
    """Sends rows to the owner of their place in the plan.

    A static that is read in several places goes to each of them. One whose columns must be unique for sums to be right
    goes once more, to where rows meet that are the same in these.
    """
    program, found = plan.program, {}
    for name, columns in plan.statics.items():
        source = plan.sources[name]
        given = inputs[f"static/{source}"]
        placement: Placement = "each" if columns is None else By(program.read_places(source, columns))
        found[f"static/{name}"] = replace(given, placement=placement)
    for table in program.tables:
        home = By(program.read_places(table.name, plan.homes[table.name]))
        # What an iteration begins with, and what each of its rounds has; else the rows of exit rules.
        for key in (f"start/{table.name}", f"exit/{table.name}"):
            if key in inputs:
                found[key] = replace(inputs[key], placement=home)
    for number, (name, columns) in enumerate(program.unique):
        given = inputs[f"static/{name}"]
        integers = (place for place in program.read_places(name, columns) if given.kinds[place] == "int64")
        found[f"unique/{number}"] = replace(given, placement=By(tuple(integers)))
    return found


def coordinated(mode: str, reports: Sequence[Mapping[str, Any]]) -> Coordinated:
    """What workers that coordinate did, from their reports in the order of ranks."""
    lanes = [Lane.of(report["lane"]) for report in reports]
    return Coordinated(mode, lanes, max(report["seconds"] for report in reports), reports[0]["why"])
