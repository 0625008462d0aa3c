"""Which occurrence a trigger from outside means."""

from datetime import datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from pixivflow.timetable import Accepted, Refused, parse_cron, resolve_trigger

UTC_ZONE = ZoneInfo("UTC")


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text + "+00:00").timestamp() * 1000)


def resolve(cron: str, now: str) -> Accepted | Refused:
    return resolve_trigger(parse_cron(cron), UTC_ZONE, now_ms=ms(now))


def test_a_trigger_within_grace_means_the_latest_occurrence() -> None:
    for now in ("2026-01-01T08:00:00", "2026-01-01T09:30:00"):
        assert resolve("0 8 * * *", now) == Accepted(ms("2026-01-01T08:00:00"))


def test_a_trigger_after_grace_is_refused_with_the_next_window() -> None:
    found = resolve("0 8 * * *", "2026-01-01T09:30:01")
    assert isinstance(found, Refused)
    assert (found.earliest_ms, found.latest_ms) == (ms("2026-01-02T07:45:00"), ms("2026-01-02T09:30:00"))
    assert "90 minutes" in found.reason


def test_a_trigger_within_lead_means_the_occurrence_ahead() -> None:
    assert resolve("0 8 * * *", "2026-01-01T07:45:00") == Accepted(ms("2026-01-01T08:00:00"))
    assert isinstance(resolve("0 8 * * *", "2026-01-01T07:44:59"), Refused)


def test_a_tick_some_milliseconds_early_means_its_own_occurrence() -> None:
    found = resolve_trigger(parse_cron("0 * * * *"), UTC_ZONE, now_ms=ms("2026-01-01T09:00:00") - 40)
    assert found == Accepted(ms("2026-01-01T09:00:00"))


def test_a_late_clock_inside_grace_does_not_consume_the_next_occurrence() -> None:
    assert resolve("0 * * * *", "2026-01-01T08:50:00") == Accepted(ms("2026-01-01T08:00:00"))


def test_lead_is_at_most_a_quarter_of_the_gap() -> None:
    cron, now = parse_cron("*/20 * * * *"), ms("2026-01-01T08:13:00")
    assert isinstance(resolve_trigger(cron, UTC_ZONE, now_ms=now, grace_s=60), Refused)
    found = resolve_trigger(cron, UTC_ZONE, now_ms=now + 2 * 60_000, grace_s=60)
    assert found == Accepted(ms("2026-01-01T08:20:00"))


def test_the_nudge_is_small_for_a_schedule_of_every_minute() -> None:
    cron, at = parse_cron("* * * * *"), ms("2026-01-01T08:00:00")
    assert resolve_trigger(cron, UTC_ZONE, now_ms=at + 40_000) == Accepted(at)
    assert resolve_trigger(cron, UTC_ZONE, now_ms=at + 50_000) == Accepted(at + 60_000)


@given(
    cron=st.sampled_from(["0 8 * * *", "*/20 * * * *", "30 2 * * *", "0 0 1 * *", "0 8,9 * * *"]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
    now=st.integers(ms("2026-01-01T00:00:00"), ms("2026-12-31T00:00:00")),
    grace_s=st.integers(60, 20_000),
    lead_s=st.integers(60, 5_000),
)
def test_a_refusal_names_a_window_at_whose_ends_a_trigger_is_accepted(
    cron: str, zone: str, now: int, grace_s: int, lead_s: int
) -> None:
    def ask(at: int) -> Accepted | Refused:
        return resolve_trigger(parse_cron(cron), ZoneInfo(zone), now_ms=at, grace_s=grace_s, lead_s=lead_s)

    found = ask(now)
    if isinstance(found, Refused):
        assert now < found.earliest_ms < found.latest_ms
        assert isinstance(ask(found.earliest_ms), Accepted)
        assert isinstance(ask(found.latest_ms), Accepted)
        assert isinstance(ask(found.earliest_ms - 1), Refused)
    else:
        assert -grace_s * 1000 <= found.occurrence_ms - now <= lead_s * 1000
