"""Tables of Spark's catalog, visible whole or not at all."""

from __future__ import annotations

import secrets
from typing import Any

from emberlog.causes import cause_of
from emberlog.data.folders import Mode
from emberlog.diagnostics import EmberlogError, ExecutionError, UsageError


def save_frame(frame: Any, name: str, mode: Mode) -> None:
    """The rows of a frame as a table. What is to be replaced stays until all of them are written."""
    session = frame.sparkSession
    try:
        exists = session.catalog.tableExists(name)
        if exists and mode == "error":
            raise UsageError(f"the table `{name}` is there already", fix='mode="overwrite" or mode="append"')
        if exists and mode == "append":
            frame.write.mode("append").saveAsTable(name)
            return
        parts, token = _parts(name), secrets.token_hex(8)
        target, scratch, old = (
            _quoted([*parts[:-1], f"{parts[-1]}{end}"]) for end in ("", f"_{token}", f"_{token}_old")
        )
        try:
            frame.write.saveAsTable(scratch)
            _take_place(session, scratch, target, old if exists else None)
        finally:
            session.sql(f"DROP TABLE IF EXISTS {scratch}")
    except EmberlogError:
        raise
    except Exception as error:  # Spark's own, of many classes
        raise ExecutionError(f"cannot write the table `{name}`: {cause_of(error)}") from error


def _take_place(session: Any, scratch: str, target: str, old: str | None) -> None:
    """Gives a table the name of another one, which is dropped last and has its name back if that fails."""
    if old is not None:
        session.sql(f"ALTER TABLE {target} RENAME TO {old}")
    try:
        session.sql(f"ALTER TABLE {scratch} RENAME TO {target}")
    except BaseException:
        if old is not None:
            session.sql(f"ALTER TABLE {old} RENAME TO {target}")
        raise
    if old is not None:
        session.sql(f"DROP TABLE {old}")


def _parts(name: str) -> list[str]:
    """The names of a catalog and a database, where they are given, and of a table."""
    from sqlglot import exp

    return [part.name for part in exp.to_table(name, dialect="spark").parts]


def _quoted(parts: list[str]) -> str:
    """A name of SQL, in quotes: nothing in it is read as anything else."""
    from sqlglot import exp

    return ".".join(exp.to_identifier(part, quoted=True).sql(dialect="spark") for part in parts)
