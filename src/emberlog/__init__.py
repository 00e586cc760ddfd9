"""Emberlog: Datalog for Spark.

import emberlog

with emberlog.Engine(executor="local") as engine:
    engine.register("arc", [(1, 2), (2, 3)])
    result = engine.run("tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y).")
    print(result["tc"].rows())
"""

TYPE_CHECKING = False  # not from `typing`: Ctrl-C is handled only after this module is loaded, which is to be soon
if TYPE_CHECKING:
    from emberlog.analysis.program import Verdict
    from emberlog.answer import Answer
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
    from emberlog.maintain.report import Change
    from emberlog.maintain.view import View
    from emberlog.progress import ProgressEvent
    from emberlog.relation import Relation
    from emberlog.result import Result
    from emberlog.stats import Limits, Stats

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "CancelledError",
    "Change",
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
    "View",
    "__version__",
]

_MODULES = {
    "emberlog.analysis.program": ("Verdict",),
    "emberlog.answer": ("Answer",),
    "emberlog.diagnostics": (
        "CancelledError",
        "DataError",
        "EmberlogError",
        "EmberlogWarning",
        "ExecutionError",
        "InternalError",
        "LimitError",
        "ProgramError",
        "UsageError",
    ),
    "emberlog.engine": ("Engine",),
    "emberlog.maintain.report": ("Change",),
    "emberlog.maintain.view": ("View",),
    "emberlog.progress": ("ProgressEvent",),
    "emberlog.relation": ("Relation",),
    "emberlog.result": ("Result",),
    "emberlog.stats": ("Limits", "Stats"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def load_ipython_extension(shell: object) -> None:
    """Called by `%load_ext emberlog` in IPython and Jupyter."""
    from emberlog.notebook.magic import load_ipython_extension

    load_ipython_extension(shell)


if not TYPE_CHECKING:  # a type checker is to know the names, and that there are no others

    def __getattr__(name: str) -> object:
        """Loads a public name when it is first used."""
        from importlib import import_module

        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value = getattr(import_module(_MODULE_OF[name]), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
