"""Paths that callers and programs name: refused if no file can have them, and kept inside a folder if the program that
names them is not trusted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeAlias

from emberlog.diagnostics import DataError, UsageError
from emberlog.syntax.nodes import Directive

Files: TypeAlias = Literal["anywhere", "confined"]  # where a program's `.input`s and `.output`s may be


def path_of(value: str | Path, what: str) -> Path:
    """A path that a caller gave. `what` is what it is for. Raises UsageError if no file can have it."""
    if not isinstance(value, str | os.PathLike):
        raise UsageError(f"{what} is a path, not {value!r}")
    problem = _impossible(os.fspath(value))
    if problem is not None:
        raise UsageError(f"{what} {os.fspath(value)!r}: {problem}")
    return Path(value)


def make_folder(folder: Path, what: str) -> None:
    """Makes a folder that a caller named, where there is none. Raises UsageError if that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{what} {str(folder)!r} cannot be a folder: {error.strerror or error}") from error


def path_of_directive(directive: Directive, folder: Path | None, name: str, files: Files) -> Path:
    """The path of a file that a directive names, relative to a folder. With `files="confined"` it has no link on its
    way. Raises DataError at the directive if no file can have it, or a program that is confined may not name it."""
    problem = _impossible(name)
    if problem is not None:
        raise DataError(f"`{_text(directive)}`: {name!r}: {problem}", span=directive.span)
    if files == "anywhere":
        return (folder or Path()) / name
    return _inside(directive, folder, name)


def check_kind(directive: Directive, kind: str, files: Files) -> None:
    """Raises DataError if a program that is confined asks for rows that are in no file."""
    if files == "confined" and kind in ("table", "jdbc"):
        raise _outside(directive, f"IO={kind} is not a file", "register the relation with the engine")


def check_output(directive: Directive, path: Path, files: Files) -> None:
    """Raises DataError if a program that is confined would write to something that is no plain file."""
    if files == "confined" and (path.is_symlink() or (path.exists() and not path.is_file())):
        raise _outside(directive, f"{path.name} is there and is not a plain file", "remove it first")


def _inside(directive: Directive, folder: Path | None, name: str) -> Path:
    side, option = ("read from", "facts_dir") if directive.kind == "input" else ("write to", "output_dir")
    if folder is None:
        raise _outside(directive, f"there is no folder to {side}", f"give {option}, or register the relation")
    plain = Path(name)
    help = f"name a file below the folder to {side}, as in {directive.relation}.csv"
    if plain.is_absolute() or ".." in plain.parts or "://" in name:
        raise _outside(directive, f"{name!r} is not a plain name of a file in the folder to {side}", help)
    if any(char in name for char in "*?[]{}\\"):
        raise _outside(directive, f"{name!r} may stand for several files", help)
    root = folder.resolve()
    # Only folders may be links, and only to what is inside: the file itself is opened under the name that was checked.
    try:
        path = (root / plain).parent.resolve() / plain.name
        inside = path.resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # Python before 3.13 tells of links in a circle by the latter
        raise _outside(directive, f"the links of {name!r} lead nowhere", help) from None
    if not inside:
        raise _outside(directive, f"{name!r} leads out of its folder by a link", help)
    if path.is_dir():
        entries = [Path(place) / entry for place, folders, found in os.walk(path) for entry in (*folders, *found)]
        odd = next((entry for entry in entries if entry.is_symlink() or not (entry.is_file() or entry.is_dir())), None)
        if odd is not None:
            raise _outside(directive, f"{odd.relative_to(root)} is not a plain file", "remove it")
    elif path.exists() and not path.is_file():
        raise _outside(directive, f"{name!r} is not a plain file", help)
    return path


def _outside(directive: Directive, problem: str, help: str) -> DataError:
    return DataError(f"`{_text(directive)}`: {problem}, and this program is confined", span=directive.span, fix=help)


def _text(directive: Directive) -> str:
    return f".{directive.kind} {directive.relation}"


def _impossible(text: str) -> str | None:
    """Why no file can have this name; None if one can."""
    if "\0" in text:
        return "the name of a file cannot hold the character NUL"
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return "the name of a file cannot hold half a character"
    return None
