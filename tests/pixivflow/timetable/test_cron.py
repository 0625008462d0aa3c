"""What an expression means, and what is refused."""

from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st

from pixivflow.timetable import Cron, CronRefused, occurrences, parse_cron

UTC_ZONE = ZoneInfo("UTC")
START = datetime(2026, 1, 1, tzinfo=UTC)
START_MS = int(START.timestamp() * 1000)


def first(text: str, count: int) -> list[str]:
    found = islice(occurrences(parse_cron(text), UTC_ZONE, START_MS - 1, START_MS + 10**12), count)
    return [f"{datetime.fromtimestamp(at / 1000, UTC):%a %m-%d %H:%M:%S}" for at in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 8 * * *", ["Thu 01-01 08:00:00", "Fri 01-02 08:00:00"]),
        ("59/15 * * * *", ["Thu 01-01 00:59:00", "Thu 01-01 01:59:00"]),
        (
            "5/20 3 * * *",
            ["Thu 01-01 03:05:00", "Thu 01-01 03:25:00", "Thu 01-01 03:45:00", "Fri 01-02 03:05:00"],
        ),
        ("0 0 * * 1", ["Mon 01-05 00:00:00", "Mon 01-12 00:00:00"]),
        ("0 0 * * mon", ["Mon 01-05 00:00:00", "Mon 01-12 00:00:00"]),
        ("0 0 * * 0", ["Sun 01-04 00:00:00", "Sun 01-11 00:00:00"]),
        ("0 0 * * 7", ["Sun 01-04 00:00:00", "Sun 01-11 00:00:00"]),
        (
            "0 0 * * Fri-Mon",
            ["Fri 01-02 00:00:00", "Sat 01-03 00:00:00", "Sun 01-04 00:00:00", "Mon 01-05 00:00:00"],
        ),
        (
            "0 0 * * 5-7",
            ["Fri 01-02 00:00:00", "Sat 01-03 00:00:00", "Sun 01-04 00:00:00", "Fri 01-09 00:00:00"],
        ),
        ("0 0 * * 0-7/3", ["Sat 01-03 00:00:00", "Sun 01-04 00:00:00", "Wed 01-07 00:00:00"]),
        (
            "0 22-1 * * *",
            ["Thu 01-01 00:00:00", "Thu 01-01 01:00:00", "Thu 01-01 22:00:00", "Thu 01-01 23:00:00"],
        ),
        ("0 0 1 jan,JUL *", ["Thu 01-01 00:00:00", "Wed 07-01 00:00:00"]),
        ("0 0 13 * 5", ["Fri 01-02 00:00:00", "Fri 01-09 00:00:00", "Tue 01-13 00:00:00"]),
        ("0 0 */2 * 5", ["Fri 01-09 00:00:00", "Fri 01-23 00:00:00"]),
        ("0 0 13 * */7", ["Sun 09-13 00:00:00", "Sun 12-13 00:00:00"]),
        ("0 0 31 * *", ["Sat 01-31 00:00:00", "Tue 03-31 00:00:00", "Sun 05-31 00:00:00"]),
        ("0 0 L * *", ["Sat 01-31 00:00:00", "Sat 02-28 00:00:00", "Tue 03-31 00:00:00"]),
        ("0 0 * * fri#2", ["Fri 01-09 00:00:00", "Fri 02-13 00:00:00"]),
        ("0 0 * * L5", ["Fri 01-30 00:00:00", "Fri 02-27 00:00:00"]),
        ("0 0 ? * 1", ["Mon 01-05 00:00:00", "Mon 01-12 00:00:00"]),
        ("0 0 * * * */30", ["Thu 01-01 00:00:00", "Thu 01-01 00:00:30", "Fri 01-02 00:00:00"]),
        ("  0   0 *  * * ", ["Thu 01-01 00:00:00", "Fri 01-02 00:00:00"]),
    ],
)
def test_an_expression_keeps_its_meaning(text: str, expected: list[str]) -> None:
    assert first(text, len(expected)) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0 0 30 2 *", "never happens"),
        ("0 0 31 4 *", "never happens"),
        ("0 0 31 2,4,6 *", "never happens"),
        ("0 0 30 feb ?", "never happens"),
        ("", "has 0"),
        ("* * * *", "has 4"),
        ("* * * * * * 2027", "has 7"),
        ("@daily", "has 1"),
        ("60 * * * *", "out of range"),
        ("* 24 * * *", "out of range"),
        ("* * 0 * *", "'0'|out of range|never"),
        ("* * * 13 *", "out of range"),
        ("* * * * 8", "out of range"),
        ("* * * * * 60", "out of range"),
        ("-1 * * * *", "minute '-1': expected"),
        ("5-5 * * * *", "has one value"),
        ("* * * jan-jan *", "has one value"),
        ("*/0 * * * *", "between 1 and 60"),
        ("*/90 * * * *", "between 1 and 60"),
        ("* */25 * * *", "between 1 and 24"),
        ("h * * * *", "minute 'h': expected"),
        ("r * * * *", "minute 'r': expected"),
        ("0 0 15w * *", "day '15w': expected"),
        ("0 0 1 * fri#2", "cannot be joined"),
        ("0 0 * * fri#6", "weekday .*: expected"),
        ("0 0 * * 1,fri#2", "mixing"),
        ("0 mon * * *", "hour 'mon': expected"),
        ("1,,2 * * * *", "minute '': expected"),
        ("٣ * * * *", "minute .*: expected"),
        ("0 0 * * * " + "1," * 200 + "2", "five fields"),
    ],
)
def test_an_expression_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(CronRefused, match=reason):
        parse_cron(text)


@given(st.text("0123456789*/-,#?lwhrmonfebsatjan @", max_size=30))
def test_any_text_is_either_a_schedule_or_refused(text: str) -> None:
    try:
        cron = parse_cron(text)
    except CronRefused:
        return
    assert next(occurrences(cron, UTC_ZONE, START_MS, START_MS + 41 * 366 * 86_400_000), None) is not None


NUMBERS = st.sampled_from(["*", "*/7", "3", "0,30", "10-20/5", "58/3"])
HOURS = st.sampled_from(["*", "*/5", "3", "7,19", "20-2"])
DAYS = st.sampled_from(["*", "*/9", "1", "13,29", "20-31"])
MONTHS = st.sampled_from(["*", "2", "jan-mar", "*/5"])
WEEKDAYS = st.sampled_from(["*", "0", "mon-fri", "6-1", "*/3"])


@given(st.tuples(NUMBERS, HOURS, DAYS, MONTHS, WEEKDAYS, NUMBERS).map(" ".join))
def test_stepping_agrees_with_croniter_where_no_clock_changes(text: str) -> None:
    stepper = croniter(text, START, ret_type=datetime, implement_cron_bug=True)
    theirs = [int(stepper.get_next().timestamp() * 1000) for _ in range(20)]
    assert list(islice(occurrences(parse_cron(text), UTC_ZONE, START_MS, theirs[-1]), 20)) == theirs


def test_the_hour_field_decides_whether_every_pass_counts() -> None:
    def every_pass(text: str) -> bool:
        cron: Cron = parse_cron(text)
        return cron.every_pass

    assert [every_pass(text) for text in ("0 * * * *", "0 */2 * * *", "0 1-5/2 * * *")] == [True, True, True]
    assert [every_pass(text) for text in ("* 2 * * *", "*/5 0-23 * * *", "0 1,2 * * *")] == [
        False,
        False,
        False,
    ]
