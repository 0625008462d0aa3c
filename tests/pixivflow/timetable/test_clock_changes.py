"""The rule of clock changes, held against a scan of every real minute and against cronsim."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from pixivflow.timetable import (
    count_occurrences,
    latest_occurrence,
    newest_occurrences,
    next_occurrence,
    occurrences,
    parse_cron,
    shift_note,
)

ZONES = ("Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Lord_Howe", "Asia/Beirut")
CHANGES = {
    "Europe/Berlin": ("2025-03-30", "2025-10-26", "2026-03-29", "2026-10-25"),
    "America/New_York": ("2025-03-09", "2025-11-02", "2026-03-08", "2026-11-01"),
    "Asia/Tokyo": ("2026-01-01",),
    "Australia/Lord_Howe": ("2025-04-06", "2025-10-05", "2026-04-05", "2026-10-04"),
    "Asia/Beirut": ("2025-03-30", "2025-10-26", "2026-03-29", "2026-10-25"),
    "America/St_Johns": ("2010-03-14", "2010-11-07"),
    "America/Asuncion": ("2023-03-26", "2023-10-01"),
    "America/Havana": ("2024-03-10", "2024-11-03"),
    "Pacific/Apia": ("2011-12-30",),
    "Africa/Casablanca": ("2026-02-15", "2026-03-22"),
}
MINUTE = timedelta(minutes=1)
SIZES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def values(field: str, low: int, high: int) -> frozenset[int]:
    """A reader of fields of its own: numbers, ranges, steps, lists."""
    found: set[int] = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
        found.update(range(int(first), int(last or (high if step else first)) + 1, int(step or 1)))
    return frozenset(found)


class Scan:
    """Looks at the real minutes one after another and asks of each what a wall clock would show."""

    def __init__(self, text: str) -> None:
        minute, hour, day, month, weekday, *second = text.split()
        self.seconds = values(second[0], 0, 59) if second else frozenset({0})
        self.step = timedelta(seconds=1) if second else MINUTE
        self.fixed = not set(hour) & set("*/")
        self.minutes, self.hours, self.days, self.months = (
            values(field, *size) for field, size in zip((minute, hour, day, month), SIZES, strict=False)
        )
        self.weekdays = frozenset(value % 7 for value in values(weekday, 0, 7))
        self.either = day[0] != "*" and weekday[0] != "*"

    def matches(self, local: datetime) -> bool:
        if (
            local.minute not in self.minutes
            or local.hour not in self.hours
            or local.second not in self.seconds
        ):
            return False
        if local.month not in self.months:
            return False
        by_day, by_weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return (by_day or by_weekday) if self.either else (by_day and by_weekday)

    def fires(self, minutes: Iterable[tuple[int, datetime]]) -> Iterator[int]:
        shown: datetime | None = None
        for at_ms, local in minutes:
            due = self.matches(local)
            if self.fixed and shown is not None:
                if local <= shown:
                    continue
                while (shown := shown + self.step) < local:
                    due = due or self.matches(shown)
            shown = local
            if due:
                yield at_ms


def real_minutes(
    zone: ZoneInfo, start: datetime, end: datetime, step_s: int = 60
) -> Iterator[tuple[int, datetime]]:
    for at in range(int(start.timestamp()), int(end.timestamp()), step_s):
        yield at * 1000, datetime.fromtimestamp(at, zone).replace(tzinfo=None)


def millis(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def local_times(cron: str, zone: str, day: str, days: int = 1) -> list[str]:
    """What runs on a local day, as local times with offset."""
    here = ZoneInfo(zone)
    start = datetime.fromisoformat(day).replace(tzinfo=here)
    end = (datetime.fromisoformat(day) + timedelta(days=days)).replace(tzinfo=here)
    found = occurrences(
        parse_cron(cron), here, int(start.timestamp() * 1000) - 1, int(end.timestamp() * 1000) - 1
    )
    return [f"{datetime.fromtimestamp(at / 1000, here):%H:%M:%S%z}" for at in found]


def fields(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    several = st.lists(number, min_size=1, max_size=3, unique=True).map(lambda some: ",".join(map(str, some)))
    span = (
        st.tuples(number, number)
        .filter(lambda pair: pair[0] < pair[1])
        .map(lambda pair: f"{pair[0]}-{pair[1]}")
    )
    return st.one_of(several, span)


def steps(high: int) -> st.SearchStrategy[str]:
    return st.one_of(
        st.just("*"),
        st.integers(1, high).map(lambda step: f"*/{step}"),
        st.integers(0, high).map(lambda low: f"{low}/2"),
    )


HOURS = st.one_of(st.sampled_from(["0", "1", "2", "1-3", "0,2", "23"]), fields(0, 23), steps(23))
MINUTES = st.one_of(st.sampled_from(["0", "30", "0,30"]), fields(0, 59), steps(59))
DAYS = st.sampled_from(
    ["* * *", "* * *", "* * 0", "* * 6,7", "*/2 * *", "1-7 * 0", "*/2 * 1-5", "8-14,30 3,10 *", "29 2 *"]
)
EXPRESSIONS = st.builds(lambda *some: " ".join(some), MINUTES, HOURS, DAYS)


@st.composite
def windows(draw: st.DrawFn) -> tuple[ZoneInfo, datetime, datetime]:
    name = draw(st.sampled_from(sorted(CHANGES)))
    change = datetime.fromisoformat(draw(st.sampled_from(CHANGES[name]))).replace(tzinfo=UTC)
    start = change + timedelta(minutes=draw(st.integers(-2 * 1440, 1440)))
    return ZoneInfo(name), start, start + timedelta(minutes=draw(st.integers(1, 3 * 1440)))


@settings(max_examples=150, deadline=None)
@given(window=windows(), text=EXPRESSIONS)
def test_the_rule_agrees_with_a_scan_of_every_minute_around_changes(
    window: tuple[ZoneInfo, datetime, datetime], text: str
) -> None:
    zone, start, end = window
    scanned = Scan(text).fires(real_minutes(zone, start - timedelta(days=2), end))
    first_ms, end_ms = int(start.timestamp() * 1000), int(end.timestamp() * 1000)
    expected = [at for at in scanned if at >= first_ms]
    cron = parse_cron(text)
    assert list(occurrences(cron, zone, first_ms - 1, end_ms - 1)) == expected
    assert count_occurrences(cron, zone, first_ms - 1, end_ms - 1) == len(expected)
    assert newest_occurrences(cron, zone, first_ms - 1, end_ms - 1, 5) == tuple(expected[-5:])
    assert latest_occurrence(cron, zone, end_ms - 1, first_ms) == (expected[-1] if expected else None)
    if expected:
        assert next_occurrence(cron, zone, first_ms - 1) == expected[0]


@pytest.mark.parametrize("name", ZONES)
def test_a_whole_year_agrees_with_a_scan_of_every_minute(name: str) -> None:
    zone, start, end = ZoneInfo(name), datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    minutes = list(real_minutes(zone, start, end))
    for text in ("30 2 * * *", "0 0 * * *", "*/15 1-3 * * *", "30 */2 * * *", "15 1/2 1-7 * 0"):
        found = list(occurrences(parse_cron(text), zone, minutes[0][0] - 1, minutes[-1][0]))
        assert found == list(Scan(text).fires(minutes)), text


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(ZONES), minute=fields(0, 59), hour=fields(0, 23), days=DAYS)
def test_fixed_hours_agree_with_cronsim(name: str, minute: str, hour: str, days: str) -> None:
    zone, start = ZoneInfo(name), datetime(2026, 1, 1, tzinfo=UTC)
    text = f"{minute} {hour} {days}"
    oracle = CronSim(text, start.astimezone(zone))
    theirs = [int(next(oracle).timestamp() * 1000) for _ in range(200)]
    ours = list(occurrences(parse_cron(text), zone, int(start.timestamp() * 1000), theirs[-1]))
    assert ours == sorted(set(theirs))


INSTANTS_OF_CHANGE = {
    "Europe/Berlin": ("2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"),
    "Australia/Lord_Howe": ("2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"),
    "Asia/Beirut": ("2026-03-28T22:00:00Z", "2026-10-24T21:00:00Z"),
    "America/St_Johns": ("2010-03-14T03:31:00Z", "2010-11-07T02:31:00Z"),
    "Pacific/Apia": ("2011-12-30T10:00:00Z",),
}


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(sorted(INSTANTS_OF_CHANGE)),
    fields=st.tuples(
        st.sampled_from(["*", "0,30,59", "*/7"]),
        HOURS,
        st.just("* * *"),
        st.sampled_from(["0", "*/15", "59", "7,40"]),
    ),
    data=st.data(),
)
def test_seconds_agree_with_a_scan_of_every_second(
    name: str, fields: tuple[str, ...], data: st.DataObject
) -> None:
    zone, text = ZoneInfo(name), " ".join(fields)
    change = datetime.fromisoformat(data.draw(st.sampled_from(INSTANTS_OF_CHANGE[name])))
    start, end = change - timedelta(seconds=4000), change + timedelta(seconds=4000)
    expected = list(Scan(text).fires(real_minutes(zone, start, end, 1)))
    first_ms, last_ms = int(start.timestamp() * 1000), int(end.timestamp() * 1000) - 1
    assert list(occurrences(parse_cron(text), zone, first_ms - 1, last_ms)) == expected
    assert count_occurrences(parse_cron(text), zone, first_ms - 1, last_ms) == len(expected)


def test_a_time_in_a_gap_runs_at_the_first_instant_after_it() -> None:
    assert local_times("30 2 * * *", "Europe/Berlin", "2026-03-29") == ["03:00:00+0200"]


def test_all_times_of_one_gap_run_once() -> None:
    assert local_times("0,15,30 2,3 * * *", "Europe/Berlin", "2026-03-29") == [
        "03:00:00+0200",
        "03:15:00+0200",
        "03:30:00+0200",
    ]
    assert local_times("0-59 2 * * *", "Europe/Berlin", "2026-03-29") == ["03:00:00+0200"]


def test_a_fixed_time_in_a_repeated_hour_runs_at_its_first_pass_only() -> None:
    assert local_times("30 2 * * *", "Europe/Berlin", "2026-10-25") == ["02:30:00+0200"]


def test_a_schedule_of_every_quarter_runs_in_both_passes_of_a_repeated_hour() -> None:
    found = local_times("*/15 * * * *", "Europe/London", "2025-10-26")[4:12]
    assert found == [
        f"01:{minute}:00{offset}" for offset in ("+0100", "+0000") for minute in ("00", "15", "30", "45")
    ]


def test_every_fifteen_seconds_has_no_silent_hour_when_the_hour_repeats() -> None:
    assert len(local_times("* * * * * */15", "Europe/Berlin", "2026-10-25")) == 25 * 240
    assert len(local_times("* * * * * */15", "Europe/Berlin", "2026-03-29")) == 23 * 240


def test_a_step_of_hours_has_no_false_time_after_a_gap() -> None:
    assert "03:00:00+0200" not in local_times("30 */2 * * *", "Europe/Berlin", "2026-03-29")


def test_midnight_that_does_not_exist_runs_once_at_one() -> None:
    assert local_times("0 0 * * *", "Asia/Beirut", "2026-03-29") == ["01:00:00+0300"]


def test_a_repeated_half_hour_is_known_by_its_real_length() -> None:
    assert local_times("15,45 1 * * *", "Australia/Lord_Howe", "2026-04-05") == [
        "01:15:00+1100",
        "01:45:00+1100",
    ]
    assert local_times("15,45 * * * *", "Australia/Lord_Howe", "2026-04-05")[2:5] == [
        "01:15:00+1100",
        "01:45:00+1100",
        "01:45:00+1030",
    ]


def test_a_gap_of_half_an_hour_swallows_only_its_own_times() -> None:
    assert local_times("10,45 2 * * *", "Australia/Lord_Howe", "2026-10-04") == [
        "02:30:00+1100",
        "02:45:00+1100",
    ]


def test_a_start_in_the_second_pass_does_not_bring_the_first_pass_back() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    found = next_occurrence(parse_cron("30 2 * * *"), berlin, millis("2026-10-25T02:15:00+01:00"))
    assert found == millis("2026-10-26T02:30:00+01:00")


def test_a_rare_date_is_found_years_ahead() -> None:
    utc = ZoneInfo("UTC")
    assert next_occurrence(parse_cron("0 0 29 2 *"), utc, millis("2096-03-01T00:00:00Z")) == millis(
        "2104-02-29T00:00:00Z"
    )
    assert next_occurrence(parse_cron("0 0 29 2 */7"), utc, millis("2026-01-01T00:00:00Z")) == millis(
        "2032-02-29T00:00:00Z"
    )


def test_the_end_of_the_calendar_ends_the_search() -> None:
    assert next_occurrence(parse_cron("0 0 * * *"), ZoneInfo("UTC"), millis("9999-01-01T00:00:00Z")) is None


def test_the_schedule_next_page_marks_a_time_that_does_not_exist() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    at = millis("2026-03-29T03:00:00+02:00")
    assert shift_note(parse_cron("30 2 * * *"), berlin, at) == "02:30 does not exist; runs at 03:00"
    assert (
        shift_note(parse_cron("0,30 2 * * *"), berlin, at)
        == "02:00 and 02:30 do not exist; runs once at 03:00"
    )
    assert (
        shift_note(parse_cron("0-9 2 * * *"), berlin, at)
        == "02:00 and 02:01 and later do not exist; runs once at 03:00"
    )


def test_the_schedule_next_page_marks_passes_of_a_repeated_hour() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert (
        shift_note(parse_cron("30 2 * * *"), berlin, millis("2026-10-25T02:30:00+02:00"))
        == "repeated hour: first pass"
    )
    assert (
        shift_note(parse_cron("30 * * * *"), berlin, millis("2026-10-25T02:30:00+01:00"))
        == "repeated hour: second pass"
    )


def test_an_ordinary_day_has_no_remark() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert shift_note(parse_cron("30 2 * * *"), berlin, millis("2026-06-01T02:30:00+02:00")) is None
    assert shift_note(parse_cron("0 * * * *"), berlin, millis("2026-03-29T03:00:00+02:00")) is None
