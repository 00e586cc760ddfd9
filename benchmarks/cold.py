"""How long a program that was never seen takes to its first answer, and what compiling costs.

Everything runs in fresh processes whose caches are empty folders, on the `local` executor.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.harness import environment, root

# Ten shapes; `{k}` tells the copies of a shape apart: rules of one shape differ in names and constants only.
SHAPES = (
    "a{k}(X, Y) <- arc(X, Y). a{k}(X, Y) <- a{k}(X, Z), arc(Z, Y).",
    "b{k}(X, Y) <- arc(X, Y), X < 3{k}. b{k}(X, Y) <- b{k}(X, Z), b{k}(Z, Y).",
    "c{k}(X, Y) <- arc(P, X), arc(P, Y), X != Y. c{k}(X, Y) <- arc(A, X), c{k}(A, B), arc(B, Y).",
    "d{k}(Y) <- Y = {k}. d{k}(Y) <- d{k}(X), arc(X, Y).",
    "e{k}(X, min<X>) <- arc(X, _). e{k}(Y, min<V>) <- e{k}(X, V), arc(X, Y).",
    "f{k}(Y, min<D>) <- Y = {k}, D = 0. f{k}(Y, min<D>) <- f{k}(X, C), warc(X, Y, W), D = C + W.",
    "g{k}(X, max<W>) <- warc(X, _, W). g{k}(X, max<V>) <- arc(X, Y), g{k}(Y, V).",
    "h{k}(X) <- arc({k}, X). h{k}(Y) <- h{k}(X), arc(X, Y), !arc(Y, X).",
    "i{k}(X, Y) <- arc(X, Y), Y > X. i{k}(X, Y) <- i{k}(X, Z), arc(Z, Y), Y > Z.",
    "j{k}(X, Y, min<W>) <- warc(X, Y, W), X < 2{k}. j{k}(X, Y, min<D>) <- j{k}(X, Z, C), warc(Z, Y, W), D = C + W.",
)
COPIES = 3

CHILD = """
import json, sys
from time import perf_counter
start = perf_counter()
import emberlog
given = json.load(sys.stdin)
engine = emberlog.Engine(executor="local", workers=1)
for name, rows in given["facts"].items():
    engine.register(name, [tuple(row) for row in rows])
result = engine.run(given["text"], evaluator=given["evaluator"])
counts = {name: result[name].count() for name in result}
print(json.dumps({"seconds": perf_counter() - start, "counts": counts}))
"""


def run(out: Path, evaluator: str, say: Callable[[str], None], nodes: int = 200) -> list[Path]:
    """Writes `cold.json`: seconds of the first and the second start of a small program, evaluated as the planner likes,
    of thirty rules by `evaluator`, and of the same where everything is compiled, however small; and how many functions
    each start compiled."""
    small = _facts(50, 100)
    tiny = "tc(X, Y) <- arc(X, Y). tc(X, Y) <- tc(X, Z), arc(Z, Y)."
    many = "\n".join(shape.format(k=k) for shape in SHAPES for k in range(COPIES))
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, text, facts, how, more in (
            ("small", tiny, small, "auto", {}),
            ("thirty", many, _facts(nodes, 2 * nodes), evaluator, {}),
            ("thirty compiled", many, _facts(nodes, 2 * nodes), evaluator, {"EMBERLOG_JIT": "always"}),
        ):
            caches, known = Path(scratch) / name, 0
            for start in ("first", "second"):
                taken = _child(text, facts, how, caches, more)
                made = sum(1 for _ in caches.rglob("*.nbc"))
                taken["compiled"], known = made - known, made
                figures[f"{name}, {start} start"] = taken
                say(
                    f"{name}, {start} start: {taken['seconds']:.2f} s in Python, {taken['process']:.2f} s in all, "
                    f"{taken['compiled']} functions compiled"
                )
    first, second = (figures[f"thirty compiled, {start} start"]["seconds"] for start in ("first", "second"))
    figures["compiling thirty"] = first - second
    say(f"compiling thirty rules of {len(SHAPES)} shapes: {first - second:.2f} s")
    out.mkdir(parents=True, exist_ok=True)
    path = out / "cold.json"
    path.write_text(json.dumps(figures, indent=2), encoding="utf-8")
    return [path]


def _facts(nodes: int, edges: int) -> dict[str, list[list[int]]]:
    """A few edges out of every node, none of them far, so that closures stay small."""
    arc = [[i // (edges // nodes), (i // (edges // nodes) + 1 + (7 * i) % 11) % nodes] for i in range(edges)]
    arc = [list(pair) for pair in {tuple(pair) for pair in arc if pair[0] < pair[1]}]
    return {"arc": arc, "warc": [[x, y, (x * 31 + y) % 100] for x, y in arc]}


def _child(
    text: str, facts: dict[str, list[list[int]]], evaluator: str, caches: Path, more: dict[str, str]
) -> dict[str, Any]:
    """Runs a program in a process whose caches are in a folder of their own."""
    read = {name: rows for name, rows in facts.items() if f"{name}(" in text.replace("warc(", "w(") or name in text}
    homes = {name: str(caches) for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "EMBERLOG_CACHE")}
    start = perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps({"text": text, "facts": read, "evaluator": evaluator}),
        capture_output=True,
        text=True,
        cwd=root(),
        env={**environment(), **homes, **more},
    )
    process = perf_counter() - start
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "the process failed")
    return {**json.loads(done.stdout), "process": process}
