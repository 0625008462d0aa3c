"""Which occurrence a trigger from outside means."""

from zoneinfo import ZoneInfo

import msgspec

from pixivflow.timetable.cron import Cron, CronRefused
from pixivflow.timetable.occurrences import latest_occurrence, next_occurrence

NUDGE_MS = 60_000
"""A clock that ticks this much early means the occurrence ahead of it, not the one behind."""


class Accepted(msgspec.Struct, frozen=True):
    """The trigger means this occurrence."""

    occurrence_ms: int


class Refused(msgspec.Struct, frozen=True):
    """No occurrence is near enough; between these two instants the next one may be triggered."""

    earliest_ms: int
    latest_ms: int
    reason: str


def resolve_trigger(
    cron: Cron, zone: ZoneInfo, *, now_ms: int, grace_s: float = 5400, lead_s: float = 900
) -> Accepted | Refused:
    """Map a trigger to the latest occurrence within grace, else to one at most ``lead_s`` ahead.

    Lead is never more than a quarter of the gap between two occurrences. Raises `CronRefused` for a schedule without
    a next occurrence.
    """
    grace_ms, lead_ms = round(grace_s * 1000), round(lead_s * 1000)
    ahead = _next(cron, zone, now_ms)
    behind = latest_occurrence(cron, zone, now_ms, now_ms - max(grace_ms, 4 * lead_ms))
    quarter_ms = lead_ms if behind is None else (ahead - behind) // 4
    early_ms = ahead - now_ms
    if early_ms <= min(NUDGE_MS, lead_ms, quarter_ms):
        return Accepted(ahead)
    if behind is not None and now_ms - behind <= grace_ms:
        return Accepted(behind)
    if early_ms <= min(lead_ms, quarter_ms):
        return Accepted(ahead)
    return Refused(
        earliest_ms=ahead - min(lead_ms, quarter_ms),
        latest_ms=ahead + min(grace_ms, _next(cron, zone, ahead) - ahead),
        reason=f"no occurrence within the last {grace_s / 60:g} minutes or the next {lead_s / 60:g}",
    )


def _next(cron: Cron, zone: ZoneInfo, after_ms: int) -> int:
    found = next_occurrence(cron, zone, after_ms)
    if found is None:
        raise CronRefused(f"cron {cron.text!r}: has no occurrence within 40 years")
    return found
