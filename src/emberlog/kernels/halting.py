"""How loops that run are told to end: by a flag that another thread sets and that they read on their way.

What was found until then is of no use. The time limit of a run and `engine.cancel()` end loops so, however long one of
their rounds takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from emberlog.kernels.cache import COMPILES


@dataclass(frozen=True)
class Halt:
    """The flag of one evaluation; `explain` raises the reason why it was set."""

    explain: Callable[[], None] = lambda: None
    flag: np.ndarray[Any, Any] = field(default_factory=lambda: np.zeros(1, np.uint8))

    def set(self) -> None:
        self.flag[0] = 1

    def check(self) -> None:
        """Raises if loops were told to end: their tables hold only some of the facts then."""
        if self.flag[0]:
            self.explain()


def is_set(flag: Any) -> Any:
    """True if the flag was set, by whichever thread, since it was last read."""
    return flag[0] != 0


if COMPILES:
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    def _instruction(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held = context.make_array(signature.args[0])(context, builder, arguments[0])
        # An atomic access: the compiler would read another one once, before the loop.
        found = builder.load_atomic(held.data, "monotonic", 1)
        return builder.icmp_unsigned("!=", found, ir.IntType(8)(0))

    def _typed(_: Any, flag: Any) -> Any:
        return types.boolean(flag), _instruction

    is_set = intrinsic(_typed)  # type: ignore[assignment]
