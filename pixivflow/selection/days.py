"""Pixiv's days: a day is a JST day everywhere, whatever zone the host or the schedule is in."""

import re
from datetime import date, datetime, timedelta, timezone

from protocol.specs import Filters

JST = timezone(timedelta(hours=9), "JST")
FORMS = "YYYY-MM-DD, TODAY, YESTERDAY or LAST_N_DAYS:n"
_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_LAST_N_DAYS = re.compile(r"LAST_N_DAYS:([1-9]\d{0,4})", re.ASCII)


def today(now_ms: int) -> date:
    """Find the JST day of an instant given in milliseconds UTC."""
    return datetime.fromtimestamp(now_ms / 1000, JST).date()


def day_of(moment: datetime) -> date:
    """Find the JST day of a time that Pixiv named; one without a zone is JST already."""
    return moment.date() if moment.tzinfo is None else moment.astimezone(JST).date()


def resolve_day(text: str, now_ms: int) -> date:
    """Find the day that a configured text means at an instant (milliseconds UTC).

    ``LAST_N_DAYS:n`` is the first of the n days that end today, so ``LAST_N_DAYS:1`` is today.
    Raises ValueError for a text in none of the known forms.
    """
    if text == "TODAY":
        return today(now_ms)
    if text == "YESTERDAY":
        return today(now_ms) - timedelta(days=1)
    if span := _LAST_N_DAYS.fullmatch(text):
        return today(now_ms) - timedelta(days=int(span[1]) - 1)
    if _ISO_DAY.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError as error:
            raise ValueError(f"no such day: {text!r} ({error})") from error
    raise ValueError(f"not a day: {text!r}, expected {FORMS}")


def window(filters: Filters, now_ms: int) -> tuple[date | None, date | None]:
    """Find the first and the last JST day that the filters let in; None is open."""
    since = None if filters.since is None else resolve_day(filters.since, now_ms)
    until = None if filters.until is None else resolve_day(filters.until, now_ms)
    return since, until
