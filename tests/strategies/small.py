"""Single rules of a few goals over numbers, many of which have no value: equations in chains and in circles, several of
one variable, keys that are computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from hypothesis import strategies as st

from naive.values import Row
from strategies.cases import Case

NUMBERS = (0, 1, 2, 5, 2**63 - 1)
COLUMNS = {"a": ("number",), "b": ("number",), "c": ("number", "number"), "d": ("number", "number")}
SURE = ("{}", "{} band 3", "min({}, {})", "2", "5")
UNSURE = ("10 / {}", "{} + 1", "{} - 1", "{} + {}", "{} % {}", "{} / {}")


class Rule:
    """A rule under construction: its goals, and the variables that they give values to."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.goals: list[str] = []
        self.known: list[str] = []

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def term(self) -> str:
        """A term over known variables; three of four may have no value."""
        form = self.pick(*(SURE if self.draw(st.integers(1, 4)) == 4 else UNSURE))
        return form.format(*(self.pick(*self.known) for _ in range(form.count("{}"))))

    def key(self) -> str:
        return self.pick(self.pick(*self.known), self.term())

    def bound(self, name: str) -> str:
        """A goal that gives a value to the variable, which may have one already."""
        kind = self.pick("atom", "atom", "equation", "equation", "chain", "keyed", "keyed", "aggregate", "range")
        if kind == "atom" or not self.known:
            return self.pick(f"{self.pick('a', 'b')}({name})", f"{self.pick('c', 'd')}({name}, _)")
        match kind:
            case "equation":
                return self.pick("{} = {}", "{1} = {0}").format(name, self.term())
            case "chain":
                return f"{name} = {self.pick(*self.known)}"
            case "keyed":
                return f"{self.pick('c', 'd')}({self.key()}, {name})"
            case "aggregate":
                inside = self.pick("a(q)", "c(q, {})", "c(q, {}), q != 0", "a(q), d({}, q)", "a(q), q = {}")
                return f"{name} = {self.pick('count', 'sum q', 'max q')} : {{{inside.format(self.key())}}}"
            case _:
                return f"{name} = range({self.pick('0', '1')}, {self.pick('2', '10 / ' + self.pick(*self.known))})"

    def condition(self) -> str:
        left, right = self.term(), self.pick(self.term(), "1", "100")
        absent = f"!{self.pick('c', 'd')}({self.key()}, {self.pick('_', *self.known)})"
        return self.pick(f"{left} {self.pick('=', '!=', '<', '>')} {right}", absent)


def rows_of(width: int) -> st.SearchStrategy[list[Row]]:
    """None in one of four relations; the keys of others often meet."""
    rows = st.lists(st.tuples(*(st.sampled_from(NUMBERS) for _ in range(width))), max_size=4 * width, unique=True)
    return st.one_of(st.just([]), *(rows.filter(bool) for _ in range(3)))


@st.composite
def small_programs(draw: st.DrawFn) -> Case:
    """One rule of three to seven goals over four small relations of numbers."""
    facts: dict[str, list[Row]] = {name: draw(rows_of(len(types))) for name, types in COLUMNS.items()}
    rule = Rule(draw)
    for name in ("x", "y", "n", "m")[: draw(st.integers(2, 4))]:
        rule.goals.append(rule.bound(name))
        rule.known.append(name)
    for _ in range(draw(st.integers(1, 3))):
        rule.goals.append(rule.pick(rule.bound(rule.pick(*rule.known)), rule.condition()))
    head = rule.pick("p()", f"p({rule.pick(*rule.known)})", f"p(count<{rule.term()}>)", f"p({rule.term()})")
    goals = draw(st.permutations(rule.goals))
    return Case(f"{head} :- {', '.join(goals)}.", facts, COLUMNS, ("p",))


# --- orders ----------------------------------------------------------------------------------------------------------


def in_other_orders(case: Case, random: Random, most: int) -> Iterator[Case]:
    """The same program, with the goals of each rule in other orders."""
    for _ in range(most):
        lines = [shuffled(line, random) for line in case.program.splitlines()]
        yield replace(case, program="\n".join(lines))


def shuffled(rule: str, random: Random) -> str:
    """The text of a rule (one on a line) with its goals in another order, those of its aggregates too."""
    arrow = next((arrow for arrow in (" :- ", " <- ") if arrow in rule), None)
    if arrow is None:
        return rule
    head, body = rule.removesuffix(".").split(arrow, 1)
    return f"{head}{arrow}{reordered(body, random)}."


def reordered(goals: str, random: Random) -> str:
    parts = [inside_too(part, random) for part in split(goals)]
    random.shuffle(parts)
    return ", ".join(parts)


def inside_too(goal: str, random: Random) -> str:
    """A goal with the goals of its aggregate in another order."""
    if not goal.endswith("}"):
        return goal
    begin, inner = goal.removesuffix("}").split("{", 1)
    return f"{begin}{{ {reordered(inner.strip(), random)} }}"


def split(goals: str) -> list[str]:
    """The goals that commas separate, outside of brackets and of texts."""
    found, depth, quoted = [""], 0, False
    for character in goals:
        quoted ^= character == '"'
        depth += 0 if quoted else (character in "({[") - (character in ")}]")
        if character == "," and depth == 0 and not quoted:
            found.append("")
        else:
            found[-1] += character
    return [goal.strip() for goal in found]
