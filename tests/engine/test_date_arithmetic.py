"""Arithmetic on dates and timestamps, compared with Python's, in every place and in any time zone of the session."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import emberlog
from engine.places import Place

DATES = [
    date(2024, 2, 29),
    date(1999, 12, 31),
    date(1, 1, 1),
    date(9999, 12, 31),
    date(1969, 12, 31),
    date(2023, 10, 1),
]
MOMENTS = [
    datetime(2024, 3, 31, 2, 30, 0, 123456),  # an hour that Berlin does not have
    datetime(2024, 10, 27, 2, 30),  # and one that it has twice
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(1582, 10, 10, 1, 2, 3),
    datetime(1, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59, 999999),
]
ROWS = {
    "d": pa.table({"d": pa.array(DATES)}),
    "t": pa.table({"t": pa.array(MOMENTS, pa.timestamp("us"))}),
}
ZONE = "spark.sql.session.timeZone"


@pytest.fixture(autouse=True)
def berlin(request: pytest.FixtureRequest) -> Iterator[None]:
    """The time zone of Spark's session, if there is one, has summer time."""
    if "spark" not in request.node.name:
        yield
        return
    session: Any = request.getfixturevalue("spark")
    before = session.conf.get(ZONE)
    session.conf.set(ZONE, "Europe/Berlin")
    yield
    session.conf.set(ZONE, before)


def start(unit: str, moment: Any) -> Any:
    """The start of a unit, counted in days."""
    day = moment.date() if isinstance(moment, datetime) else moment
    first = {
        "day": day,
        "week": day - timedelta(days=min(day.weekday(), (day - date.min).days)),
        "month": date(day.year, day.month, 1),
        "quarter": date(day.year, (day.month + 2) // 3 * 3 - 2, 1),
        "year": date(day.year, 1, 1),
    }[unit]
    return datetime(first.year, first.month, first.day) if isinstance(moment, datetime) else first


def test_parts_and_differences(place: Place) -> None:
    result = place.run(
        """
        p(D, year(D), month(D), day(D), D - "2024-01-01") <- d(D).
        q(year(T), month(T), day(T), hour(T), minute(T), second(T), T - "2024-01-01 00:00:00", to_date(T)) <- t(T).
        s(D, to_timestamp(D)) <- d(D).
        """,
        ROWS,
    )
    assert set(result["p"].rows()) == {(d, d.year, d.month, d.day, (d - date(2024, 1, 1)).days) for d in DATES}
    assert set(result["q"].rows()) == {
        (*t.timetuple()[:6], (t - datetime(2024, 1, 1)) // timedelta.resolution, t.date()) for t in MOMENTS
    }
    assert set(result["s"].rows()) == {(d, datetime(d.year, d.month, d.day)) for d in DATES}


def test_shifts(place: Place) -> None:
    result = place.run(
        """
        p(D, D + 1, D - 60, 5 + D) <- d(D), year(D) > 1, year(D) < 9999.
        q(T + hours(1), T - minutes(90), T + 1, T - days(400) + seconds(2)) <- t(T), year(T) > 2, year(T) < 9999.
        """,
        ROWS,
    )
    one = timedelta(days=1)
    days = [d for d in DATES if 1 < d.year < 9999]
    assert set(result["p"].rows()) == {(d, d + one, d - 60 * one, d + 5 * one) for d in days}
    assert set(result["q"].rows()) == {
        (t + one / 24, t - one / 16, t + timedelta.resolution, t - 400 * one + timedelta(seconds=2))
        for t in MOMENTS
        if 2 < t.year < 9999
    }


def test_units(place: Place) -> None:
    units = ("year", "quarter", "month", "week", "day")
    rules = [f'{u}_d(D, date_trunc("{u}", D)) <- d(D). {u}_t(T, date_trunc("{u}", T)) <- t(T).' for u in units]
    rules += [f'{u}(T, date_trunc("{u}", T)) <- t(T).' for u in ("hour", "minute", "second")]
    result = place.run("\n".join(rules), ROWS)
    for unit in units:
        assert set(result[f"{unit}_d"].rows()) == {(d, start(unit, d)) for d in DATES}
        assert set(result[f"{unit}_t"].rows()) == {(t, start(unit, t)) for t in MOMENTS}
    assert set(result["hour"].rows()) == {(t, t.replace(minute=0, second=0, microsecond=0)) for t in MOMENTS}
    assert set(result["minute"].rows()) == {(t, t.replace(second=0, microsecond=0)) for t in MOMENTS}
    assert set(result["second"].rows()) == {(t, t.replace(microsecond=0)) for t in MOMENTS}


@pytest.mark.spark_sample(6)
@pytest.mark.parametrize(("rule", "message"), [
    ("q(D + 3000000) <- d(D).", "outside of the years 1 to 9999"),
    ("q(D - 1) <- d(D), year(D) = 1.", "outside of the years 1 to 9999"),
    ("q(D + 9223372036854775807) <- d(D).", "outside of the years 1 to 9999"),
    ("q(T + 9223372036854775807) <- t(T).", "outside of the years 1 to 9999"),
    ("q(T - -9223372036854775808) <- t(T), year(T) = 2024.", "outside of the years 1 to 9999"),
    ("q(days(1000000000)) <- d(_).", "does not fit in 64 bits"),
    ('s("2024-02-30"). q(to_date(S)) <- s(S).', "is no date"),
    ('s(" 2024-02-03"). q(to_date(S)) <- s(S).', "is no date"),
    ('s("2024-02-03 25:00"). q(to_timestamp(S)) <- s(S).', "is no date"),
])  # fmt: skip
def test_what_is_no_date_is_an_error(place: Place, rule: str, message: str) -> None:
    with pytest.raises(emberlog.DataError, match=message):
        place.run(rule, ROWS)["q"].rows()


def test_texts_become_moments(place: Place) -> None:
    text = """
    s("2024-02-29"). s("0001-01-01"). m("2024-02-29T23:59:59.5"). m("2024-02-29 01:02").
    p(to_date(S)) <- s(S). q(to_timestamp(S)) <- m(S).
    """
    result = place.run(text)
    assert set(result["p"].rows()) == {(date(2024, 2, 29),), (date(1, 1, 1),)}
    assert set(result["q"].rows()) == {(datetime(2024, 2, 29, 23, 59, 59, 500000),), (datetime(2024, 2, 29, 1, 2),)}


@pytest.mark.parametrize(("rule", "message"), [
    ("q(D + D) <- d(D).", "has no meaning"), ("q(D * 2) <- d(D).", "has no meaning"),
    ("q(D - T) <- d(D), t(T).", "has no meaning"), ("q(D + 1.5) <- d(D).", "has no meaning"),
    ("q(hour(D)) <- d(D).", "takes a timestamp"), ("q(year(1)) <- d(_).", "takes dates"),
    ('q(date_trunc("hour", D)) <- d(D).', "a date has no hour"), ('q(date_trunc("eon", D)) <- d(D).', "takes a unit"),
    ("q(to_date(5)) <- d(_).", "takes texts, dates or timestamps"), ('q(D - "x") <- d(D).', "is not a date"),
])  # fmt: skip
def test_mistakes(local: Place, rule: str, message: str) -> None:
    with pytest.raises(emberlog.ProgramError, match=message):
        local.run(rule, ROWS)


def test_the_earliest_day_along_a_chain(place: Place) -> None:
    text = """
    ready(T, min<D>) <- begins(T, D).
    ready(T, min<D>) <- ready(S, C), before(S, T, N), D = C + N.
    """
    sources = {
        "begins": pa.table({"t": ["a"], "d": [date(2024, 2, 28)]}),
        "before": [("a", "b", 1), ("b", "c", 30), ("a", "c", 2)],
    }
    engine = place.engine(sources)
    assert [verdict.status for verdict in engine.check(text)] == ["proved"]
    found = dict(engine.run(text, placement=place.placement)["ready"].rows())
    assert found == {"a": date(2024, 2, 28), "b": date(2024, 2, 29), "c": date(2024, 3, 1)}


def test_views_follow_dates(local: Place) -> None:
    engine = local.engine({"d": pa.table({"d": [date(2024, 2, 28)]})})
    view = engine.maintain('next(D + 1, year(D)) <- d(D). last(max<D>) <- d(D). age(N) <- d(D), N = D - "2024-01-01".')
    change = view.apply(insert={"d": [(date(2024, 2, 29),)]})
    assert change["next"].inserted == {(date(2024, 3, 1), 2024)}
    assert sorted(view["age"].rows()) == [(58,), (59,)]
    with pytest.raises(emberlog.DataError, match="outside of the years"):
        view.apply(insert={"d": [(date(9999, 12, 31),)]})
    assert view["last"].rows() == [(date(2024, 2, 29),)]
