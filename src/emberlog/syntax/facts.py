"""Facts of plain literals, such as `edge(1, 2).`, read in one step.

Programs carry facts by the hundred thousand; taking each as one token and building its nodes here makes reading them
three times as fast as going through the grammar. A fact with anything else in it goes through the grammar.
"""

from __future__ import annotations

import re

from emberlog.source import Source, Span
from emberlog.syntax import nodes

# At most 18 digits: always in range. No escapes: the text between the quotes is the value.
_LITERAL = r"""-?[0-9]{1,18}+(?:\.[0-9]+)?(?![\w.^]) | "[^"\\\n\ud800-\udfff]*+" | '[^'\\\n\ud800-\udfff]*+'"""
PLAIN_FACT = rf"(?!_\()[^\W\d]\w*+\([ \t]*+(?:{_LITERAL})(?:[ \t]*+,[ \t]*+(?:{_LITERAL}))*[ \t]*+\)[ \t]*+\."
"""A verbose regular expression for such a fact, with its `.`."""

_LITERALS = re.compile(_LITERAL, re.VERBOSE)


def read_fact(source: Source, text: str, start: int) -> nodes.Rule:
    """The fact `text`, which PLAIN_FACT matched at `start` of `source`."""
    opening = text.index("(")
    constants = tuple(
        [
            nodes.Constant(_value(match[0]), span=Span(source, start + match.start(), start + match.end()))
            for match in _LITERALS.finditer(text, opening)
        ]
    )
    closing = text.rindex(")") + 1
    atom = nodes.Atom(text[:opening], constants, span=Span(source, start, start + closing))
    return nodes.Rule((atom,), None, span=Span(source, start, start + len(text)))


def _value(text: str) -> int | float | str:
    if text[0] in "\"'":
        return text[1:-1]
    return float(text) + 0.0 if "." in text else int(text)  # no value is -0.0
