"""`emberlog repl`: rules and facts typed in, goals answered at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from emberlog.diagnostics import EmberlogError, UsageError, render

if TYPE_CHECKING:
    from emberlog.engine import Engine

HELP = """\
p(X, Y) <- q(X, Z), r(Z, Y).     a rule or a fact is added; it ends with a dot, and may have several lines
?- p(1, Y).                      a goal is answered from what is asked for, not from the whole relation
:table NAME PATH                 a file or folder as a relation (csv, tsv, facts, parquet)
:load FILE                       the rules of a file
:list                            the program so far
:drop NAME                       the rules and facts of a predicate go
:why p(1, 2).   :not p(2, 1).    why a row holds, or why it does not
:explain        :check           how the program would be evaluated; proofs of its aggregates
:help           :quit"""


MOST_SHOWN = 20  # rows of an answer


class Repl:
    """The program that was typed in so far, and what is asked of it. A line with a mistake changes nothing."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.items: list[str] = []
        self._typed: list[str] = []  # the lines of a rule that is not complete
        self._commands: dict[str, Callable[[str], Iterator[str]]] = {
            "table": self._table,
            "load": self._load,
            "list": lambda _: iter(self.items),
            "drop": self._drop,
            "why": lambda text: self._why(text, absent=False),
            "not": lambda text: self._why(text, absent=True),
            "explain": lambda _: iter([str(self.engine.explain(self.program))]),
            "check": self._check,
            "help": lambda _: iter([HELP]),
        }

    @property
    def program(self) -> str:
        return "\n".join(self.items)

    @property
    def waits(self) -> bool:
        """True if a rule was begun and has no end yet."""
        return bool(self._typed)

    def read(self, line: str) -> Iterator[str]:
        """Does what a line says, and tells what came of it."""
        text = line.strip()
        if not self._typed and text.startswith(":"):
            name, _, rest = text[1:].partition(" ")
            if name not in self._commands:
                raise UsageError(f"there is no command :{name}", fix=":help lists all of them")
            yield from self._commands[name](rest.strip())
            return
        if text or self._typed:
            self._typed.append(line)
        if text.endswith("."):
            typed, self._typed = "\n".join(self._typed), []
            yield from self._answer(typed) if typed.lstrip().startswith("?-") else self._add(typed)

    def forget(self) -> None:
        """Drops a rule that is not complete."""
        self._typed = []

    # --- rules and goals -------------------------------------------------------------------------------------------

    def _add(self, text: str) -> Iterator[str]:
        from emberlog.source import Source
        from emberlog.syntax.parser import parse
        from emberlog.syntax.printer import show

        items = [show(item) for item in parse(Source("<typed>", text)).items]
        self.engine.explain("\n".join([*self.items, *items]))  # tells mistakes
        self.items += items
        return iter(())

    def _answer(self, text: str) -> Iterator[str]:
        goal = text.strip().removeprefix("?-").strip().removesuffix(".")
        begun = monotonic()
        answer = self.engine.query(goal, program=self.program)
        rows, count = answer.head(MOST_SHOWN), answer.count()
        yield from ("\t".join(map(str, row)) for row in rows)
        more = f", the first {len(rows)} are shown" if count > len(rows) else ""
        yield f"{count:,} row{'' if count == 1 else 's'} in {monotonic() - begun:.3f} s{more}"

    def _why(self, text: str, absent: bool) -> Iterator[str]:
        from emberlog.cli.why import answers
        from emberlog.why.limits import BUDGET, DEPTH, WIDTH

        limits = {"depth": DEPTH, "width": WIDTH, "budget": BUDGET}
        result = self.engine.run(self.program)
        yield from map(str, answers(result, text.removesuffix("."), absent, 1, limits))

    # --- commands --------------------------------------------------------------------------------------------------

    def _table(self, words: str) -> Iterator[str]:
        name, _, path = words.partition(" ")
        if not path:
            raise UsageError(":table needs a name and a path", fix=":table arc data/arc.csv")
        self.engine.register(name, path.strip())
        return iter(())

    def _load(self, path: str) -> Iterator[str]:
        from emberlog.engine import read_program

        return self._add(read_program(path).text)

    def _drop(self, name: str) -> Iterator[str]:
        kept = [item for item in self.items if not item.startswith((f"{name}(", f".decl {name}("))]
        if len(kept) == len(self.items):
            raise UsageError(f"the program has no rules of `{name}`", fix=":list shows it")
        self.items = kept
        return iter(())

    def _check(self, _: str) -> Iterator[str]:
        found = self.engine.check(self.program)
        yield from map(str, found)
        if not found:
            yield "no aggregate stands in a recursion"


def repl(
    program: Annotated[Path | None, typer.Argument(help="A program to begin with.")] = None,
    facts: Annotated[Path | None, typer.Option("-F", "--facts", help="Folder with a file for each relation.")] = None,
    executor: Annotated[str, typer.Option(help="Where: local or spark.")] = "local",
) -> None:
    """Type rules and ask goals; :help lists what else there is. Reads a script from standard input, too."""
    from emberlog.engine import Engine

    asks = sys.stdin.isatty()
    if asks:
        import readline  # noqa: F401 - `input` has a history and an editor then

        print("rules and facts end with a dot, goals are ?- p(1, X).  :help tells more, :quit ends")
    with Engine(executor=executor) as engine:
        session = Repl(engine)
        for path in sorted(facts.iterdir()) if facts is not None else ():
            engine.register(path.stem, path)
        if program is not None:
            _tell(session, f":load {program}", asks)
        for line in _lines(session, asks):
            if line.strip() in (":quit", ":q"):
                return
            _tell(session, line, asks)


def _lines(session: Repl, asks: bool) -> Iterator[str]:
    """The lines that are typed, or those of standard input. Ctrl-C drops what was typed, Ctrl-D ends."""
    if not asks:
        yield from sys.stdin
        return
    while True:
        try:
            yield input("  ... " if session.waits else "ember> ")
        except KeyboardInterrupt:
            session.forget()
            print()
        except EOFError:
            print()
            return


def _tell(session: Repl, line: str, asks: bool) -> None:
    """Prints what a line gives; a mistake ends a script, and is shown to somebody who types."""
    try:
        for text in session.read(line):
            print(text, flush=asks)
    except EmberlogError as error:
        if not asks:
            raise
        for diagnostic in error.diagnostics():
            print(render(diagnostic), file=sys.stderr)
