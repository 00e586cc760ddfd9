"""Random sequences of changes to the facts of a case, and what a view must be after each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from hypothesis import strategies as st

import emberlog
from agreement import LIMITS, locally
from emberlog.analysis.check import check
from emberlog.analysis.names import mentioned
from emberlog.diagnostics import EmberlogError
from emberlog.source import Source
from emberlog.syntax.parser import parse
from emberlog.types import Column
from naive.values import Row
from strategies.cases import ERRORS, Case, Outcome, column_type, difference, expected, table, tables

Rows: TypeAlias = Mapping[str, list[Row]]


@dataclass(frozen=True)
class Step:
    """One change: rows that go, and rows that come."""

    delete: Rows
    insert: Rows


@st.composite
def sequences(draw: st.DrawFn, cases: st.SearchStrategy[Case], most: int = 4) -> tuple[Case, list[Step]]:
    """A case, and changes to its facts. New rows are made of the values that columns of their types have."""
    case = draw(cases)
    values: dict[str, list[Any]] = {}
    for name, rows in case.facts.items():
        for row in rows:
            for kind, value in zip(case.columns[name], row, strict=True):
                if repr(value) not in map(repr, values.setdefault(kind, [])):
                    values[kind].append(value)
    steps = []
    used = sorted(set(case.facts) & mentioned(parse(Source("<case>", case.program))))
    for _ in range(draw(st.integers(1, most))):
        delete, insert = dict[str, list[Row]](), dict[str, list[Row]]()
        for name in used:
            kinds = case.columns[name]
            some = draw(st.integers(0, 3))
            if some & 1 and case.facts[name]:
                delete[name] = draw(st.lists(st.sampled_from(case.facts[name]), max_size=3))
            if some & 2 and all(values.get(kind) for kind in kinds):
                new = st.tuples(*(st.sampled_from(values[kind]) for kind in kinds))
                insert[name] = draw(st.lists(new, max_size=3))
        steps.append(Step(delete, insert))
    return case, steps


def after(case: Case, step: Step) -> Case:
    """The case with its facts changed."""
    facts = {}
    for name, rows in case.facts.items():
        gone = {repr(row) for row in step.delete.get(name, [])}
        kept = {repr(row): row for row in rows if repr(row) not in gone}
        facts[name] = list({**kept, **{repr(row): row for row in step.insert.get(name, [])}}.values())
    return replace(case, facts=facts)


def as_tables(case: Case, rows: Rows) -> dict[str, Any]:
    return {name: table(case.columns[name], found) for name, found in rows.items()}


def open_view(engine: emberlog.Engine, case: Case) -> emberlog.View:
    for name, found in tables(case).items():
        engine.register(name, found)
    return engine.maintain(case.program, params=dict(case.params), limits=LIMITS)


def rows_of(view: emberlog.View, case: Case) -> dict[str, list[Row]]:
    return {name: view[name].rows() for name in case.derived}


def assert_is(view: emberlog.View, case: Case, right: Outcome, when: str) -> None:
    assert not isinstance(right, type)
    for name in case.derived:
        told = difference(view[name].rows(), right[name])
        assert not told, f"{when}: {name}: {told}\n{case!r}\n{view.explain()}"


def error_of(work: Any) -> type[EmberlogError] | None:
    """The class of the error that a call ends with."""
    try:
        work()
    except ERRORS as error:
        return next(kind for kind in ERRORS if isinstance(error, kind))
    return None


def assert_maintained(case: Case, steps: list[Step]) -> int:
    """After every change the view is what the reference gives for the changed facts; where that is an error, the change
    fails with it and the view stays. Differences are exact. Returns how many changes were applied."""
    right = outcome_of(case)
    with emberlog.Engine(executor="local", workers=1, warnings="ignore") as engine:
        if isinstance(right, type):
            assert error_of(lambda: open_view(engine, case)) is right, f"{right} is expected\n{case!r}"
            return 0
        view = open_view(engine, case)
        assert_is(view, case, right, "at first")
        for number, step in enumerate(steps):
            case, right = _assert_step(view, case, step, right, f"after change {number} of {steps}")
    return len(steps)


def _assert_step(view: emberlog.View, case: Case, step: Step, right: Outcome, when: str) -> tuple[Case, Outcome]:
    changed = after(case, step)
    wanted = outcome_of(changed)
    before = rows_of(view, case)

    def apply() -> emberlog.Change:
        return view.apply(insert=as_tables(case, step.insert), delete=as_tables(case, step.delete))

    if isinstance(wanted, type):
        assert error_of(apply) is wanted, f"{wanted} is expected {when}\n{changed!r}"
        assert_is(view, case, right, f"the failed change {when}")
        return case, right
    found = apply()
    assert_is(view, changed, wanted, when)
    assert_differences(found, before, rows_of(view, case), when)
    return changed, wanted


def outcome_of(case: Case) -> Outcome:
    """What the reference gives; or the error of a run whose facts break what a proof relies on, of which the reference
    knows nothing."""
    right = expected(case)
    if isinstance(right, type) or not _is_conditional(case):
        return right
    return error_of(lambda: locally(case)) or right


def _is_conditional(case: Case) -> bool:
    """True if the proof of an aggregate relies on the facts."""
    catalog = {
        name: tuple(Column(f"c{i}", column_type(kind)) for i, kind in enumerate(kinds))
        for name, kinds in case.columns.items()
    }
    checked = check(parse(Source("<case>", case.program)), catalog, dict(case.params))
    return any(verdict.assumptions for verdict in checked.verdicts)


def assert_differences(change: emberlog.Change, before: Mapping[str, list[Row]], now: Rows, when: str) -> None:
    for name, rows in now.items():
        old, new = {repr(row): row for row in before[name]}, {repr(row): row for row in rows}
        inserted, deleted = set(map(repr, change[name].inserted)), set(map(repr, change[name].deleted))
        assert inserted == new.keys() - old.keys(), f"{when}: {name} gained {inserted}"
        assert deleted == old.keys() - new.keys(), f"{when}: {name} lost {deleted}"


def each_row(step: Step) -> Iterator[Step]:
    """The rows of a change, one at a time."""
    for name, rows in step.delete.items():
        yield from (Step({name: [row]}, {}) for row in rows)
    for name, rows in step.insert.items():
        yield from (Step({}, {name: [row]}) for row in rows)
