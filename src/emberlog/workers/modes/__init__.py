"""The modes of coordination, and how they are spelled: `bsp`, `ssp:3`, `ssp:3:2`, `adaptive:tau=0.01,beta=64`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from emberlog.diagnostics import UsageError, did_you_mean
from emberlog.workers.modes.aap import AAP
from emberlog.workers.modes.adaptive import Adaptive
from emberlog.workers.modes.asynchronous import Asynchronous
from emberlog.workers.modes.auto import Auto
from emberlog.workers.modes.base import Coordination
from emberlog.workers.modes.bsp import BSP
from emberlog.workers.modes.dws import DWS
from emberlog.workers.modes.ssp import SSP

MODES: dict[str, Callable[[], Coordination]] = {
    "bsp": BSP,
    "ssp": SSP,
    "async": Asynchronous,
    "dws": DWS,
    "aap": AAP,
    "adaptive": Adaptive,
    "auto": BSP,  # to begin with
}

__all__ = ["MODES", "Auto", "Coordination", "mode_of"]


def mode_of(text: str) -> Coordination:
    """A mode from its spelling: a name, and its parameters as numbers in order or by name. Raises UsageError."""
    if not isinstance(text, str):
        raise UsageError(f"coordination is the name of a mode, not {text!r}", fix=f"one of {', '.join(MODES)}")
    name, *given = text.split(":")
    if name not in MODES:
        raise UsageError(
            f"there is no coordination {name!r}", fix=did_you_mean(name, MODES) or f"one of {', '.join(MODES)}"
        )
    mode = MODES[name]()
    names: list[str] = [entry.name for entry in fields(mode) if entry.name[0] != "_"] if is_dataclass(mode) else []
    found: dict[str, Any] = {}
    for word in (word for one in given for word in one.split(",")):
        parameter, equals, value = word.rpartition("=")
        parameter = parameter if equals else next((name for name in names if name not in found), "")
        if parameter not in names:
            listed = ", ".join(names) or "none"
            raise UsageError(f"coordination {text!r}: no parameter takes {word!r}", fix=f"{name} has: {listed}")
        found[parameter] = _number(text, value, type(getattr(mode, parameter)), parameter in mode.positive)
    if name == "ssp" and (found.get("staleness"), found.get("batch", 1)) == (0, 1):
        return BSP()  # no staleness and one iteration a message are rounds with a barrier
    return replace(mode, **found) if found else mode  # type: ignore[type-var]


def _number(text: str, value: str, kind: type, positive: bool) -> Any:
    """A parameter of a mode: a positive number, or zero where that has a meaning."""
    try:
        number = kind(value)
    except ValueError:
        number = -1
    if not 0 <= number < 1e18 or (positive and not number):
        least = "above 0" if positive else "of at least 0"
        raise UsageError(f"coordination {text!r}: {value!r} is not a number {least}", fix='such as "ssp:3:2"')
    return number
