from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pixivflow.selection.days import JST, day_of, resolve_day, today, window
from protocol.specs import Filters


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


HALF_PAST_MIDNIGHT = at("2026-01-02T00:30:00+09:00")


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("TODAY", date(2026, 1, 2)),
        ("YESTERDAY", date(2026, 1, 1)),
        ("LAST_N_DAYS:1", date(2026, 1, 2)),
        ("LAST_N_DAYS:2", date(2026, 1, 1)),
        ("LAST_N_DAYS:3", date(2025, 12, 31)),
        ("2024-02-29", date(2024, 2, 29)),
    ],
)
def test_a_day_is_resolved_in_jst_although_utc_is_still_the_day_before(text, day):
    assert resolve_day(text, HALF_PAST_MIDNIGHT) == day


@pytest.mark.parametrize(
    ("instant", "day"),
    [
        ("2026-01-01T14:59:59.999+00:00", date(2026, 1, 1)),
        ("2026-01-01T15:00:00+00:00", date(2026, 1, 2)),
        ("2026-01-02T14:59:59.999+00:00", date(2026, 1, 2)),
        ("2026-01-02T15:00:00+00:00", date(2026, 1, 3)),
    ],
)
def test_the_day_turns_at_midnight_jst(instant, day):
    assert today(at(instant)) == day


@pytest.mark.parametrize(
    "text",
    [
        "",
        "today",
        "TOMORROW",
        "2026-1-2",
        "20260102",
        "2026-W01-1",
        "2026-02-30",
        "２０２６-01-02",
        "2026-01-02\n",
        "LAST_N_DAYS",
        "LAST_N_DAYS:0",
        "LAST_N_DAYS:-1",
        "LAST_N_DAYS:٣",
        "LAST_N_DAYS:999999999999",
    ],
)
def test_any_other_text_is_refused_and_named(text):
    with pytest.raises(ValueError, match=r"day") as caught:
        resolve_day(text, HALF_PAST_MIDNIGHT)
    assert repr(text) in str(caught.value)


def test_a_time_without_a_zone_is_jst_already():
    assert day_of(datetime(2026, 1, 2, 0, 30)) == date(2026, 1, 2)  # noqa: DTZ001 the case at hand


def test_a_time_in_utc_is_carried_over_to_jst():
    assert day_of(datetime(2026, 1, 1, 15, 30, tzinfo=UTC)) == date(2026, 1, 2)


def test_a_window_without_bounds_is_open():
    assert window(Filters(), HALF_PAST_MIDNIGHT) == (None, None)


def test_a_window_has_its_bounds_at_the_same_instant():
    filters = Filters(since="LAST_N_DAYS:2", until="TODAY")
    assert window(filters, HALF_PAST_MIDNIGHT) == (date(2026, 1, 1), date(2026, 1, 2))


@given(st.datetimes(datetime(2008, 1, 1), datetime(2100, 1, 1)), st.integers(1, 3000))  # noqa: DTZ001 made UTC below
def test_the_last_n_days_are_n_days_that_end_today(moment, n):
    now_ms = round(moment.replace(tzinfo=UTC).timestamp()) * 1000
    first, last = window(Filters(since=f"LAST_N_DAYS:{n}", until="TODAY"), now_ms)
    assert first is not None
    assert last == datetime.fromtimestamp(now_ms / 1000, JST).date()
    assert last - first == timedelta(days=n - 1)
