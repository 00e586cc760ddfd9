"""Why Spark failed, in one line. Its own text begins with what the driver called, and the cause stands deep inside."""

from __future__ import annotations

import re

# How a traceback of Python ends: with the first line after it that is not indented.
TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t]+.*\n|\n)*(\S.*)")
CAUSED_BY = re.compile(r"^[ \t]*Caused by: (\S.*)", re.MULTILINE)
RAISED = re.compile(r"^[ \t]*(?:: )?([\w.$]*(?:Error|Exception)\b.*: .*)", re.MULTILINE)
# What a line of Java has before and after the message: classes, and a number from the standard of SQL.
AROUND = re.compile(r"^(?:(?:[a-z]\w*\.)+[\w$.]+: )+|\s*SQLSTATE: \w{5};?\s*$")

CANCELLED = re.compile(r"SPARK_JOB_CANCELLED|\bJob \d+ cancelled|OPERATION_CANCELED|OPERATION_ABANDONED")


def cause_of(error: BaseException) -> str:
    """The cause's own message: the last line of a Python traceback, else the deepest cause that Java names, else the
    first line."""
    text = text_of(error)
    for pattern in (TRACEBACK, CAUSED_BY, RAISED):
        if found := [AROUND.sub("", line.strip()) for line in pattern.findall(text) if _says(line)]:
            return _whole(found)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return AROUND.sub("", lines[0]) if lines else type(error).__name__


def _whole(causes: list[str]) -> str:
    """The deepest of several causes, as the outermost of those tells it that have all of its text and more."""
    told = causes[-1]
    for cause in reversed(causes):
        if told not in cause:
            break
        told = cause
    return told


def _says(line: str) -> bool:
    """True if a line is more than the name of a class."""
    return ": " in line.strip()


def text_of(error: BaseException) -> str:
    """All that is known of an error: what it says, and what Java said."""
    trace = getattr(error, "_stackTrace", None) or getattr(error, "_server_stacktrace", None)
    return f"{error}\n{trace}" if isinstance(trace, str) else str(error)


def is_cancellation(error: BaseException) -> bool:
    """True if a job failed because somebody cancelled it."""
    return CANCELLED.search(text_of(error)) is not None
