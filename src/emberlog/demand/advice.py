"""What a program says about its own evaluation: `magic` and `no_magic` after declarations, and pragmas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from emberlog.syntax.nodes import Declaration, Pragma, Program

_QUOTED = re.compile(r'"([^"]*)"')
_EVERY = "*"


@dataclass(frozen=True, slots=True)
class Advice:
    """The predicates that are to be restricted wherever something is known of their columns, and those that are to be
    evaluated whole. `*` among them stands for all."""

    restricted: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()

    def wants(self, predicate: str) -> bool:
        """True if the predicate is to be restricted."""
        return not self.restricted.isdisjoint((predicate, _EVERY))

    def refuses(self, predicate: str) -> bool:
        """True if the predicate is to be evaluated whole. What names it goes before what names all."""
        return predicate in self.whole or (_EVERY in self.whole and predicate not in self.restricted)


def advice_of(program: Program) -> Advice:
    """The advice in a program: `.decl p(..) magic`, `.pragma "magic-transform" "p,q"`, and their opposites."""
    qualified = [item for item in program.items if isinstance(item, Declaration)]
    return Advice(
        frozenset((*_named(program, "magic-transform"), *(d.name for d in qualified if "magic" in d.qualifiers))),
        frozenset(
            (*_named(program, "magic-transform-exclude"), *(d.name for d in qualified if "no_magic" in d.qualifiers))
        ),
    )


def _named(program: Program, pragma: str) -> Iterator[str]:
    """The relations that pragmas of one name list; all where one lists none."""
    for item in program.items:
        if isinstance(item, Pragma) and item.kind == "pragma":
            name, *values = _QUOTED.findall(item.text)
            if name == pragma:
                yield from (part.strip() for part in ",".join(values or [_EVERY]).split(","))
