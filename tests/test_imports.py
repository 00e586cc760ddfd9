"""The layout of the package, kept by tests: imports point one way, and `import emberlog` stays cheap."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import emberlog

PACKAGE = Path(__file__).parent.parent / "src" / "emberlog"

GROUND = frozenset({"source", "diagnostics", "types", "callables", "tables", "deep"})
MEASURING = frozenset({"stats", "memory"})
PLANNING = GROUND | {"syntax", "analysis", "rules", "demand", "plan", "components", "choose", "thresholds", "workers"}
STOPPING = frozenset({"causes", "stopping", "sessions"})
RUNNING = (
    PLANNING | STOPPING | MEASURING | {"clock", "deadline", "progress", "store", "sql", "data", "kernels", "executors"}
)
PUBLIC = RUNNING | {"notices", "asked", "compiled", "explain", "relation", "answer", "why", "result", "engine"}

# What each part of the package may import. A part is a module or folder directly under `emberlog`.
ALLOWED: dict[str, frozenset[str]] = {
    "loading": frozenset(),
    "source": frozenset(),
    "types": frozenset(),
    "patterns": frozenset(),
    "tables": frozenset(),
    "deep": frozenset(),
    "diagnostics": frozenset({"source"}),
    "callables": frozenset({"diagnostics", "types"}),
    "clock": frozenset(),
    "causes": frozenset(),
    "stopping": frozenset({"diagnostics"}),
    "sessions": frozenset({"causes", "diagnostics", "stopping"}),
    "deadline": frozenset({"diagnostics", "stopping"}),
    "workers": frozenset({"diagnostics"}),
    "stats": frozenset({"tables", "source", "diagnostics", "clock", "stopping", "deadline", "workers"}),
    "memory": frozenset({"diagnostics"}),
    "notices": frozenset({"diagnostics"}),
    "progress": frozenset({"diagnostics", "stats"}),
    "generate": GROUND,
    "syntax": GROUND,
    "analysis": GROUND | {"patterns", "syntax"},
    "rules": GROUND | {"syntax", "analysis"},
    "schedule": GROUND,
    "demand": GROUND | {"syntax", "analysis", "rules"},
    "thresholds": frozenset(),
    "plan": GROUND | {"syntax", "analysis", "rules"},
    "components": GROUND | {"syntax", "analysis", "rules", "plan", "thresholds"},
    "choose": GROUND | {"syntax", "analysis", "rules", "plan", "components", "thresholds", "workers"},
    "asked": PLANNING,
    "compiled": PLANNING | {"asked"},
    "explain": PLANNING | MEASURING | {"asked", "compiled"},
    "data": GROUND | {"syntax", "causes", "stopping", "deadline"},
    "store": PLANNING | {"data"},
    "sql": PLANNING | STOPPING | MEASURING | {"patterns", "store"},
    "kernels": PLANNING | STOPPING | MEASURING | {"clock", "data", "deadline", "store"},
    "executors": RUNNING | {"compiled"},
    "relation": GROUND | {"data"},
    "answer": GROUND | {"relation", "stats"},
    "why": RUNNING | {"explain"},
    "result": RUNNING | {"relation", "why"},
    "maintain": RUNNING | {"asked", "compiled", "explain", "relation", "result", "schedule", "why"},
    "views": PUBLIC | {"maintain", "schedule"},
    "engine": PUBLIC | {"maintain", "schedule", "views"},
    "notebook": PUBLIC,
    "cli": PUBLIC | {"generate", "loading", "maintain", "schedule"},
}

# Slow to import, or not everybody's: loaded only where they are used.
HEAVY = ("duckdb", "numba", "pandas", "polars", "pyspark", "z3")


def parts() -> list[str]:
    found = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in PACKAGE.rglob("*.py")}
    return sorted(found - {"__init__", "__main__"})


def imported_parts(path: Path) -> Iterator[tuple[str, int]]:
    """The parts of `emberlog` that the module at `path` imports, at any depth, with the line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module="emberlog", names=names, level=0):
                modules = [f"emberlog.{alias.name}" for alias in names]
            case ast.ImportFrom(module=str(module), level=0):
                modules = [module]
            case ast.ImportFrom():
                raise AssertionError(f"{path}:{node.lineno}: write imports of our own modules in full")
            case _:
                continue
        for module in modules:
            package, _, rest = module.partition(".")
            if package == "emberlog" and rest:
                yield rest.partition(".")[0], node.lineno


def files_of(part: str) -> list[Path]:
    folder = PACKAGE / part
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


@pytest.mark.parametrize("part", parts())
def test_imports_point_one_way(part: str) -> None:
    assert part in ALLOWED, f"say in ALLOWED what `{part}` may import"
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports emberlog.{other}"
        for path in files_of(part)
        for other, line in imported_parts(path)
        if other != part and other not in ALLOWED[part]
    ]
    assert not wrong, "\n".join(wrong)


def loaded(code: str, modules: set[str]) -> list[str]:
    """Those of the modules that a process has loaded after some code."""
    environment = {key: value for key, value in os.environ.items() if key != "EMBERLOG_JIT"}
    environment["PYTHONPATH"] = str(PACKAGE.parent)
    code = f"import sys, emberlog\n{code}\nprint(*sorted({modules!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.split()


def test_import_emberlog_loads_nothing_heavy() -> None:
    assert loaded("", set(HEAVY)) == []


def test_public_names_are_loaded_when_they_are_used() -> None:
    assert loaded("", {"emberlog.diagnostics", "emberlog.engine", "typing"}) == []
    assert loaded("emberlog.UsageError", {"emberlog.diagnostics", "emberlog.engine"}) == ["emberlog.diagnostics"]
    assert set(emberlog.__all__) == {*emberlog._MODULE_OF, "__version__"} <= set(dir(emberlog))
    assert all(getattr(emberlog, name).__name__ == name for name in emberlog._MODULE_OF)
    assert not hasattr(emberlog, "Enigne")


@pytest.mark.parametrize("evaluator", ["auto", "kernel"])
def test_small_work_loads_no_compiler(evaluator: str) -> None:
    code = f"""
with emberlog.Engine(executor="local", memory="1GB") as engine:
    engine.register("arc", [(i, i + 1) for i in range(100)])
    result = engine.run("tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), arc(Z, Y).", evaluator={evaluator!r})
    assert len(result["tc"].rows()) == 5050
"""
    assert loaded(code, {"numba", "pandas", "pyspark", "scipy", "sqlglot", "zmq"}) == []


@pytest.mark.parametrize("evaluator", ["auto", "kernel"])
def test_small_work_with_simple_exit_rules_loads_no_database(evaluator: str) -> None:
    code = f"""
with emberlog.Engine(executor="local", memory="1GB") as engine:
    engine.register("arc", [(i, i + 1) for i in range(100)])
    result = engine.run(
        "reach(Y) <- Y = 90. reach(Y) <- reach(X), arc(X, Y)."
        "far(X, Y) <- arc(X, Z), arc(Z, Y), X < 50. far(X, Y) <- far(X, Z), arc(Z, Y).",
        evaluator={evaluator!r},
    )
    assert (result["reach"].count(), result["far"].count()) == (11, sum(100 - x - 1 for x in range(50)))
"""
    assert loaded(code, {"duckdb", "numba", "pandas", "sqlglot"}) == []
