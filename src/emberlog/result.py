"""What a run returns, and what keeps its relations alive."""

from __future__ import annotations

import atexit
import json
import re
import secrets
import shutil
import weakref
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import count
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, overload
from typing import Literal as OneOf

from emberlog.data.paths import make_folder
from emberlog.deadline import shielded
from emberlog.diagnostics import UsageError, cannot_write, did_you_mean
from emberlog.memory import COPIES, NOISE, Budget
from emberlog.relation import Relation
from emberlog.stats import Stats
from emberlog.stopping import Stop
from emberlog.types import Column
from emberlog.why.limits import BUDGET, DEPTH, WIDTH, Shape, at_least

if TYPE_CHECKING:
    import pyarrow as pa

    from emberlog.executors.base import Executor
    from emberlog.why.ask import Asking
    from emberlog.why.tree import Why, WhyNot


MANIFEST = "relations.json"


class LiveRun:
    """An executor and its scratch folder, until they are closed or nobody holds them any more.

    `session` is the user's own Spark session: it outlives the engine.
    """

    def __init__(self, executor: Executor, scratch: Path, session: Any = None) -> None:
        self._executor = executor
        self._scratch = scratch
        self.session = session
        self._abandoned = weakref.finalize(self, _abandon, executor, scratch)
        self._abandoned.atexit = False
        _LIVE.add(self)

    @property
    def executor(self) -> Executor:
        if not self._abandoned.alive:
            raise UsageError(
                "the engine is closed, and the rows of this relation went with it",
                fix="read or write relations before the engine closes, or run with persist=PATH",
            )
        return self._executor

    @property
    def is_open(self) -> bool:
        return bool(self._abandoned.alive)

    @contextmanager
    def working(self) -> Iterator[Executor]:
        """The executor, for something that `engine.cancel()` ends."""
        executor = self.executor
        with executor.options.stop.working():
            yield executor

    def close(self) -> None:
        if self._abandoned.detach() is not None:
            _release(self._executor, self._scratch)


def _release(executor: Executor, scratch: Path) -> None:
    try:
        executor.close()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _abandon(executor: Executor, scratch: Path) -> None:
    """Releases a run that nobody holds any more.

    The garbage collector may call this in the middle of anything, a call to Spark among it, which does not bear another
    one from the same thread: so another thread does it. Python waits for that thread before it ends; one that it
    killed inside DuckDB would take the process with it.
    """
    try:
        Thread(target=_release, args=(executor, scratch)).start()
    except RuntimeError:  # no new threads while Python ends
        _release(executor, scratch)


_LIVE: weakref.WeakSet[LiveRun] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """What the user did not close leaves no files behind either."""
    for run in list(_LIVE):
        with suppress(Exception):
            run.close()


class RunHolder:
    """The rows of a relation in the executor that computed it."""

    def __init__(self, run: LiveRun, relation: str) -> None:
        self._run = run
        self._relation = relation

    @contextmanager
    def step(self, name: str) -> Iterator[Executor]:
        """The executor, whose clock runs for a step meanwhile: reading a result is part of what a run takes."""
        with self._run.working() as executor, executor.clock.step(name, self._relation):
            yield executor

    def count(self) -> int:
        with self.step("count") as executor:
            return executor.count(self._relation)

    def fetch(self) -> pa.Table:
        with self.step("fetch") as executor:
            return executor.fetch(self._relation)

    def head(self, count: int) -> pa.Table:
        with self.step("fetch") as executor:
            return executor.head(self._relation, count)

    def check_room(self, what: str, each: int) -> None:
        self._run.executor.check_room(self._relation, what, each)

    def is_large(self) -> bool:
        return self._run.executor.is_large(self._relation)

    def reader(self) -> pa.RecordBatchReader:
        return self._run.executor.reader(self._relation)

    def frame(self, session: Any = None) -> Any:
        with self.step("make a frame of") as executor:
            return executor.frame(self._relation, session)

    def write_parquet(self, path: Path, names: list[str]) -> None:
        with self.step("write") as executor:
            executor.write_parquet(self._relation, path, names)


class NullaryHolder:
    """A relation without columns that outlives the engine: no file is needed to know if it holds."""

    def __init__(self, holds: bool, session: Any) -> None:
        self._holds = holds
        self._session = session

    def count(self) -> int:
        return int(self._holds)

    def fetch(self) -> pa.Table:
        from emberlog.data.load import dummy_table

        return dummy_table(self._holds)

    def head(self, count: int) -> pa.Table:
        return self.fetch().slice(0, count)

    def check_room(self, what: str, each: int) -> None:
        return

    def is_large(self) -> bool:
        return False

    def reader(self) -> pa.RecordBatchReader:
        return self.fetch().to_reader()

    def frame(self, session: Any = None) -> Any:
        from emberlog.executors.session import usable_session
        from emberlog.sql.spark import to_frame

        return to_frame(usable_session(session or self._session), self.fetch())

    def write_parquet(self, path: Path, names: list[str]) -> None:
        raise AssertionError("Parquet has no rows without columns")

    def step(self, name: str) -> AbstractContextManager[object]:
        return nullcontext()


class ParquetHolder:
    """The rows of a relation in a Parquet file or folder that outlives the engine."""

    def __init__(self, path: Path, session: Any) -> None:
        self._path = path
        self._session = session

    def count(self) -> int:
        return int(self._dataset().count_rows())

    def _dataset(self) -> Any:
        import pyarrow.dataset

        return pyarrow.dataset.dataset(self._path, format="parquet")

    def fetch(self) -> pa.Table:
        return _numbered(self._dataset().to_table())

    def head(self, count: int) -> pa.Table:
        import duckdb

        from emberlog.sql.duck import first_rows

        with duckdb.connect(":memory:") as connection:
            connection.register("stored", self._dataset())
            return _numbered(connection.sql(first_rows("stored", count)).to_arrow_table())

    def check_room(self, what: str, each: int) -> None:
        rows = self.count()
        needed = rows * (_row_bytes(self._dataset().schema) + each)
        Budget.of(None).check(needed, f"{self._path} ({rows:,} rows) as {what}")

    def is_large(self) -> bool:
        """Memory is looked at when it is needed: no run, and no budget of one, is behind these rows any more."""
        needed = COPIES * self.count() * _row_bytes(self._dataset().schema)
        return needed > max(Budget.of(None).total, NOISE)

    def reader(self) -> pa.RecordBatchReader:
        return self._dataset().scanner(batch_size=1 << 17).to_reader()

    def frame(self, session: Any = None) -> Any:
        from emberlog.executors.session import usable_session

        # Else `[1]` in the path would be a pattern.
        reader = usable_session(session or self._session).read.option("__globPaths__", "false")
        frame = reader.parquet(str(self._path.absolute()))
        return frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))

    def write_parquet(self, path: Path, names: list[str]) -> None:
        from emberlog.data.write import write_pieces, write_table

        columns = _columns_of(self._dataset().schema, names)
        if self.is_large():
            write_pieces(path, self.reader(), columns)
        else:
            write_table(path, self.fetch().rename_columns(names), columns)

    def step(self, name: str) -> AbstractContextManager[object]:
        return nullcontext()


class Result:
    """The relations of a run, by name; `goals` are the answers of its `?-` goals, in order."""

    def __init__(
        self,
        relations: dict[str, Relation],
        goals: list[Relation],
        stats: Stats,
        warnings: list[str],
        run: LiveRun,
    ) -> None:
        self._relations = relations
        self._run = run  # keeps the rows alive as long as the result
        self.goals = goals
        self.stats = stats
        self.warnings = warnings

    def __getitem__(self, name: str) -> Relation:
        if name not in self._relations:
            hint = did_you_mean(name, self._relations)
            raise UsageError(f"there is no relation `{name}` in this result", fix=hint or f"there are: {self._names()}")
        return self._relations[name]

    def _names(self) -> str:
        return ", ".join(sorted(self._relations)) or "none"

    def __contains__(self, name: object) -> bool:
        return name in self._relations

    def __iter__(self) -> Iterator[str]:
        return iter(self._relations)

    def __len__(self) -> int:
        return len(self._relations)

    def keys(self) -> list[str]:
        return list(self._relations)

    def __repr__(self) -> str:
        return f"<Result of {self._names()}>"

    def _repr_html_(self) -> str:
        return "".join(relation._repr_html_() for relation in (*self._relations.values(), *self.goals))

    # --- questions -----------------------------------------------------------------------------------------------

    @overload
    def why(
        self,
        relation: str,
        row: object,
        *,
        all: OneOf[False] = ...,
        depth: int = ...,
        width: int = ...,
        budget: int = ...,
    ) -> Why: ...

    @overload
    def why(
        self,
        relation: str,
        row: object,
        *,
        all: OneOf[True],
        depth: int = ...,
        width: int = ...,
        budget: int = ...,
    ) -> Iterator[Why]: ...

    def why(
        self,
        relation: str,
        row: object,
        *,
        all: bool = False,
        depth: int = DEPTH,
        width: int = WIDTH,
        budget: int = BUDGET,
    ) -> Why | Iterator[Why]:
        """Why a row holds: a derivation of smallest height, found backwards in the relations of this run. With `all`
        one derivation after the other, for each body that gives the row. `depth` and `width` are how many levels, and
        how many contributions of a total, are unfolded; `budget` is how many bodies are looked at."""
        shape = Shape(at_least("depth", depth, 0), at_least("width", width, 1))
        found = self._asking().derivations(relation, row, shape, at_least("budget", budget, 1))
        return found if all else next(found)

    def why_not(self, relation: str, row: object, *, width: int = WIDTH) -> WhyNot:
        """Why a row does not hold: for each rule how far its body can be satisfied, the first literal that fails, and
        the nearest rows, at most `width` of them."""
        return self._asking().why_not(relation, row, at_least("width", width, 1))

    def _asking(self) -> Asking:
        from emberlog.why.ask import Asking

        if not self._run.is_open:
            raise UsageError(
                "nobody can be asked any more: the run of this result is closed",
                fix="ask before the engine is closed, of a run without persist=",
            )
        return Asking(self._run)

    # --- files ---------------------------------------------------------------------------------------------------

    def persist(self, folder: Path, stop: Stop) -> None:
        """Moves every relation to Parquet in a folder, `tc` to `tc.parquet`; they can be read after the engine is
        closed.

        `relations.json` has the file of each relation: the names of two files differ in more than case, and begin with
        a letter or a digit, so that some of them are not the relation's. It is written last: a folder without it is
        not a whole result. Until all files are written, they stand in a folder of their own: a result that was there
        before stays if `stop` ends this one.
        """
        make_folder(folder, "persist")
        aside = folder / f"{secrets.token_hex(8)}.part"
        try:
            aside.mkdir()
            listed: dict[str, Any] = {"relations": {}, "goals": []}
            names = file_names([*self._relations, *(f"goal{i}/{goal.name}" for i, goal in enumerate(self.goals))])
            relations, goals = dict(self._relations), list(self.goals)
            for name, relation in self._relations.items():
                relations[name], listed["relations"][name] = self._moved(relation, aside, folder / names[name])
            for number, goal in enumerate(self.goals):
                goals[number], entry = self._moved(goal, aside, folder / names[f"goal{number}/{goal.name}"])
                listed["goals"].append({"predicate": goal.name, **entry})
            (aside / MANIFEST).write_text(json.dumps(listed, indent=2), encoding="utf-8")
            stop.check()
            with shielded():
                _take_place(aside, folder)
        except OSError as error:
            raise cannot_write(folder, error) from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        self._relations, self.goals = relations, goals
        self._run.close()

    def _moved(self, relation: Relation, aside: Path, path: Path) -> tuple[Relation, dict[str, Any]]:
        """The relation with its rows in a file, which is written aside, and what the list of relations says of it."""
        columns = [[column.name, str(column.type)] for column in relation.schema]
        if not columns:
            moved = Relation(relation.name, (), NullaryHolder(bool(relation), self._run.session))
            return moved, {"columns": columns, "rows": len(moved)}
        relation.write(aside / path.name)
        moved = Relation(relation.name, relation.schema, ParquetHolder(path, self._run.session))
        rows = ParquetHolder(aside / path.name, self._run.session).count()
        return moved, {"file": path.name, "columns": columns, "rows": rows}


def _take_place(aside: Path, folder: Path) -> None:
    """Moves files to their folder, in place of those of an earlier result. The list goes first and comes last: what
    is there in between is no whole result."""
    (folder / MANIFEST).unlink(missing_ok=True)
    for path in [path for path in aside.iterdir() if path.name != MANIFEST]:
        target = folder / path.name
        if target.is_symlink() or target.exists():  # a file, or a folder, which is what Spark writes
            target.rename(aside / f"{secrets.token_hex(8)}.old")
        path.rename(target)
    (aside / MANIFEST).replace(folder / MANIFEST)


def file_names(relations: Iterable[str]) -> dict[str, str]:
    """A name of a Parquet file for each relation: its own, where file systems and readers of Parquet can bear it.

    Other characters than letters, digits, `_` and `-` become `_`; readers skip files whose names begin with `_`, so `r`
    comes before it; of names that are equal but for their case, all but the first get a number.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    # Names that can stand as they are come first, and of these the small letters.
    for relation in sorted(set(relations), key=lambda name: (_plain(name) != name, name.swapcase())):
        plain = _plain(relation)
        free = (f"{plain}_{number}" if number else plain for number in count())
        name = next(name for name in free if name.casefold() not in taken)
        taken.add(name.casefold())
        found[relation] = f"{name}.parquet"
    return found


def _plain(relation: str) -> str:
    text = re.sub(r"[^A-Za-z0-9_-]", "_", relation)[:100]
    return text if text[:1].isalnum() else f"r{text}"


def _numbered(table: pa.Table) -> pa.Table:
    """The table with columns `c0`, `c1`, .."""
    from emberlog.data.arrow import field_names

    return table.rename_columns(field_names(table.num_columns))


def _row_bytes(schema: pa.Schema) -> int:
    from emberlog.data.arrow import row_bytes

    return row_bytes(_columns_of(schema, schema.names))


def _columns_of(schema: pa.Schema, names: list[str]) -> tuple[Column, ...]:
    from emberlog.data.arrow import type_of_arrow

    types = [type_of_arrow(field.type) for field in schema]
    return tuple(Column(name, type) for name, type in zip(names, types, strict=True) if type is not None)
