"""`%load_ext emberlog`: the magics `%%datalog` and `%datalog` of IPython, which is not loaded here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from emberlog.diagnostics import EmberlogError, UsageError, did_you_mean
from emberlog.engine import Engine
from emberlog.notebook.session import Session
from emberlog.result import Result
from emberlog.stats import Stats
from emberlog.syntax.printer import show

VALUES = {"--executor": "spark or local", "--engine": "the name of an engine", "-o": "a name"}
FLAGS = ("--stats", "--check", "--explain", "--rules", "--reset")

HELP = """Rules, which join those of earlier cells; shows what they derive, or what `.output` and `?-` ask for.

    %%datalog [options]          a cell of rules
    %datalog [options] TEXT      rules or goals on one line: %datalog ?- tc(1, Y).

    --executor spark|local       begin a new session on this executor
    --engine NAME                begin a new session over an engine of the notebook
    -o NAME                      give the result this name, too
    --stats                      show what the run took
    --check                      show the verdicts on aggregates in recursion; run nothing
    --explain                    show how the cell would be evaluated; run nothing
    --rules                      show the rules of all cells
    --reset                      forget all rules and results
"""


@dataclass(frozen=True)
class Shown:
    """What a cell shows: a relation or a result, with what the run took."""

    found: Any
    stats: Stats

    def _repr_html_(self) -> str:
        return f"{self.found._repr_html_()}{self.stats._repr_html_()}"

    def __repr__(self) -> str:
        return f"{self.found!r}\n{self.stats}"


def read_options(line: str) -> tuple[dict[str, str], str]:
    """The options at the start of a line, and the rest of it. Raises UsageError."""
    options: dict[str, str] = {}
    rest = line.strip()
    while match := re.match(r"(--?\w+)(?:\s+|$)", rest):
        name, rest = match[1], rest[match.end() :]
        if name in FLAGS:
            options[name] = ""
        elif name in VALUES:
            value = re.match(r"(\S+)\s*", rest)
            if value is None:
                raise UsageError(f"{name} wants {VALUES[name]}")
            options[name], rest = value[1], rest[value.end() :]
        else:
            raise UsageError(f"there is no option {name}", fix=did_you_mean(name, (*FLAGS, *VALUES)) or "see %datalog?")
    return options, rest


class Magic:
    """The magic over one session of rules; `shell` is IPython's."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.session: Session | None = None

    def datalog(self, line: str, cell: str | None = None) -> Any:
        try:
            options, rest = read_options(line)
            if cell is not None and rest:
                raise UsageError(f"the rules stand in the lines below, not here: {rest}")
            return self._do(options, rest if cell is None else cell)
        except EmberlogError as error:
            told = [str(error)]
            # IPython shows this in place of the lines of Python that lead here.
            error._render_traceback_ = lambda: told  # type: ignore[attr-defined]
            raise

    def _do(self, options: dict[str, str], text: str) -> Any:
        session, names = self._session(options), self.shell.user_ns
        if "--rules" in options:
            print(show(session.program))
        if "--check" in options or "--explain" in options:
            program, params = session.prepare(text, names)
            engine = session.engine
            return engine.check(program, params) if "--check" in options else engine.explain(program, params)
        result = session.run(text, names) if text.strip() else None
        if result is None:
            return None
        found = _one(result)
        if "-o" in options:
            names[options["-o"]] = found
        return Shown(found, result.stats) if "--stats" in options else found

    def _session(self, options: dict[str, str]) -> Session:
        """The session, or a new one where the line asks for it."""
        if "--engine" in options:
            engine = self.shell.user_ns.get(options["--engine"])
            if not isinstance(engine, Engine):
                raise UsageError(f"`{options['--engine']}` is no engine of this notebook")
            self.session = Session(engine)
        elif "--executor" in options:
            self.session = Session(Engine(executor=options["--executor"]))
        elif "--reset" in options and self.session is not None:
            self.session = Session(self.session.engine)
        if self.session is None:
            self.session = Session(Engine())
        return self.session


def _one(result: Result) -> Any:
    """The relation or answer of a result that has one, else the result."""
    every = [*(result[name] for name in result), *result.goals]
    return every[0] if len(every) == 1 else result


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext emberlog`."""
    magic = Magic(shell)

    def datalog(line: str, cell: str | None = None) -> Any:
        return magic.datalog(line, cell)

    datalog.__doc__ = HELP
    shell.register_magic_function(datalog, "line_cell", "datalog")
