"""Emberlog: Datalog for Spark.

import emberlog

with emberlog.Engine(executor="local") as engine:
    engine.register("arc", [(1, 2), (2, 3)])
    result = engine.run("tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y).")
    print(result["tc"].rows())
"""

from emberlog.analysis.program import Verdict
from emberlog.diagnostics import (
    CancelledError,
    DataError,
    EmberlogError,
    EmberlogWarning,
    ExecutionError,
    InternalError,
    LimitError,
    ProgramError,
    UsageError,
)
from emberlog.engine import Engine
from emberlog.progress import ProgressEvent
from emberlog.relation import Relation
from emberlog.result import Result
from emberlog.stats import Limits, Stats

__version__ = "0.1.0"

__all__ = [
    "CancelledError",
    "DataError",
    "EmberlogError",
    "EmberlogWarning",
    "Engine",
    "ExecutionError",
    "InternalError",
    "LimitError",
    "Limits",
    "ProgramError",
    "ProgressEvent",
    "Relation",
    "Result",
    "Stats",
    "UsageError",
    "Verdict",
    "__version__",
]
