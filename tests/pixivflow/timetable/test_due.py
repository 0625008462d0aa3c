"""What is due, caught up or missed."""

from datetime import datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from pixivflow.timetable import CatchUp, Due, due, occurrences, parse_cron, watermark_is_ahead

UTC_ZONE = ZoneInfo("UTC")
DAY_S = 86_400
MINUTELY = "* * * * *"


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text + "+00:00").timestamp() * 1000)


def decide(cron: str, watermark: str, now: str, catch_up: CatchUp = "latest", window_s: float = DAY_S) -> Due:
    return due(
        parse_cron(cron),
        UTC_ZONE,
        watermark_ms=ms(watermark),
        now_ms=ms(now),
        catch_up=catch_up,
        window_s=window_s,
    )


def test_nothing_is_due_before_the_next_occurrence() -> None:
    found = decide("0 8 * * *", "2026-01-01T08:00:00", "2026-01-02T07:59:59")
    assert found == Due(run=(), missed=(), missed_more=0, watermark_ms=ms("2026-01-01T08:00:00"))


def test_an_occurrence_on_time_runs_under_every_policy() -> None:
    for policy in ("latest", "all", "none"):
        found = decide("0 8 * * *", "2026-01-01T08:00:00", "2026-01-02T08:01:00", policy)
        assert (found.run, found.missed) == ((ms("2026-01-02T08:00:00"),), ())
        assert found.watermark_ms == ms("2026-01-02T08:00:00")


def test_latest_runs_the_newest_missed_one() -> None:
    found = decide("0 8 * * *", "2026-01-01T08:00:00", "2026-01-04T10:00:00")
    assert found.run == (ms("2026-01-04T08:00:00"),)
    assert found.missed == (ms("2026-01-02T08:00:00"), ms("2026-01-03T08:00:00"))


def test_latest_leaves_what_is_older_than_the_window() -> None:
    found = decide("0 8 * * *", "2026-01-01T08:00:00", "2026-01-02T10:00:00", window_s=3600)
    assert (found.run, found.missed) == ((), (ms("2026-01-02T08:00:00"),))


def test_catch_up_and_a_tick_close_together_make_one_run() -> None:
    found = decide("0 * * * *", "2026-01-01T08:00:00", "2026-01-01T10:00:05")
    assert (found.run, found.missed) == ((ms("2026-01-01T10:00:00"),), (ms("2026-01-01T09:00:00"),))


def test_all_runs_those_within_the_window_oldest_first() -> None:
    found = decide("0 * * * *", "2026-01-01T00:00:00", "2026-01-01T06:30:00", "all", window_s=3 * 3600)
    assert found.run == (ms("2026-01-01T04:00:00"), ms("2026-01-01T05:00:00"), ms("2026-01-01T06:00:00"))
    assert found.missed == tuple(ms(f"2026-01-01T0{hour}:00:00") for hour in (1, 2, 3))


def test_none_runs_nothing_that_was_missed() -> None:
    found = decide("0 8 * * *", "2026-01-01T08:00:00", "2026-01-02T10:00:00", "none")
    assert (found.run, found.missed) == ((), (ms("2026-01-02T08:00:00"),))


def test_a_hundred_and_one_missed_minutes_do_not_stop_a_schedule() -> None:
    found = decide(MINUTELY, "2026-01-01T00:00:00", "2026-01-01T01:41:00")
    assert found.run == (ms("2026-01-01T01:41:00"),)
    assert (len(found.missed), found.missed_more) == (100, 0)


def test_three_days_of_missed_minutes_make_one_run_and_a_count() -> None:
    found = decide(MINUTELY, "2026-01-01T00:00:00", "2026-01-04T00:00:00")
    assert len(found.run) == 1
    assert (len(found.missed), found.missed_more) == (100, 3 * 1440 - 101)
    assert found.missed_more_until_ms == found.missed[0] - 60_000


def test_all_runs_at_most_a_hundred_after_a_long_time() -> None:
    found = decide(MINUTELY, "2026-01-01T00:00:00", "2026-01-04T00:02:00", "all")
    assert len(found.run) == 101
    assert found.run == tuple(sorted(found.run))
    assert len(found.run) + len(found.missed) + found.missed_more == 3 * 1440 + 2


def test_a_clock_that_jumps_ten_years_costs_no_walk_through_every_second() -> None:
    found = decide("* * * * * *", "2026-01-01T00:00:00", "2036-01-01T00:00:00", "all")
    total = (ms("2036-01-01T00:00:00") - ms("2026-01-01T00:00:00")) // 1000
    assert len(found.run) + len(found.missed) + found.missed_more == total


def test_a_clock_set_back_brings_nothing_again() -> None:
    found = decide("0 * * * *", "2026-01-01T10:00:00", "2026-01-01T10:00:00")
    assert found.run == ()
    assert decide("0 * * * *", "2026-01-01T10:00:00", "2026-01-01T09:00:00").watermark_ms == ms(
        "2026-01-01T10:00:00"
    )


def test_an_edited_schedule_starts_at_its_edit() -> None:
    found = decide("15 2 * * *", "2026-01-01T05:00:00", "2026-01-01T05:00:10")
    assert (found.run, found.missed) == ((), ())


def test_a_watermark_beyond_the_lead_is_reported() -> None:
    now = ms("2026-01-01T00:00:00")
    assert watermark_is_ahead(now + 900_001, now, 900)
    assert not watermark_is_ahead(now + 900_000, now, 900)


@given(
    cron=st.sampled_from([MINUTELY, "*/7 * * * *", "30 2 * * *", "0 0 * * 1", "0 9-11 * * * */20"]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Asia/Beirut"]),
    span=st.tuples(st.integers(ms("2026-03-01T00:00:00"), ms("2026-11-30T00:00:00")), st.integers(0, 5000)),
    policy=st.sampled_from(["latest", "all", "none"]),
    window_s=st.sampled_from([60, 3600, DAY_S]),
)
def test_every_occurrence_is_run_missed_or_counted_once(
    cron: str, zone: str, span: tuple[int, int], policy: CatchUp, window_s: float
) -> None:
    parsed, here, start = parse_cron(cron), ZoneInfo(zone), span[0]
    now = start + span[1] * 60_000
    found = due(parsed, here, watermark_ms=start, now_ms=now, catch_up=policy, window_s=window_s)
    expected = list(occurrences(parsed, here, start, now))
    assert sorted(found.run + found.missed) == expected[found.missed_more :]
    assert len(found.run) + len(found.missed) + found.missed_more == len(expected)
    assert found.watermark_ms == (expected[-1] if expected else start)
    if policy != "all":
        assert len(found.run) <= 1
