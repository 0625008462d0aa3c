"""Cron expressions: five fields, or a sixth, last one for seconds.

Sunday is 0 and 7, Monday is 1; names (``mon``, ``jan``) are understood. A day field and a weekday field that are both
restricted (neither starts with ``*``) add up, as in cron. ``L`` is the last day of a month, ``fri#2`` its second and
``L5`` its last Friday. What other readers of cron disagree about, or what can never happen, is refused with a reason.
"""

import re
from collections.abc import Collection
from datetime import date, timedelta
from typing import Any

import msgspec
from croniter import croniter

EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
MAX_TEXT = 200
SEARCH_DAYS = 41 * 366
"""Farther ahead than any possible day of any expression: a 29 February on one weekday may be 40 years away."""

_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_WEEKDAYS = "sun|mon|tue|wed|thu|fri|sat"
_FIELDS = (
    ("minute", r"\d+", 60),
    ("hour", r"\d+", 24),
    ("day", r"\d+", 31),
    ("month", rf"\d+|{_MONTHS}", 12),
    ("weekday", rf"\d+|{_WEEKDAYS}", 7),
    ("second", r"\d+", 60),
)
_SPECIAL = {"day": re.compile(r"l|\?"), "weekday": re.compile(rf"(?:\d|{_WEEKDAYS})\#[1-5]|l[0-7]|\?")}
_FULL_CYCLE = (date(2000, 1, 1), date(2027, 12, 31))
"""28 years that hold every pairing of date and weekday."""


class CronRefused(ValueError):
    """An expression that is no schedule; the text says why."""


class Cron(msgspec.Struct, frozen=True):
    """A parsed expression; made by `parse_cron`."""

    text: str
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    last_day: bool
    months: frozenset[int]
    weekdays: frozenset[int]
    nth_weekdays: frozenset[tuple[int, int]]
    """(weekday, which one of the month), -1 for the last."""
    either_day: bool
    """Day and weekday are both restricted, and one of them is enough."""
    every_pass: bool
    """The hour field has ``*`` or ``/``: it runs at every matching instant that really happens."""

    @property
    def every_day(self) -> bool:
        """Whether no day is left out."""
        return (len(self.months), len(self.days), len(self.weekdays)) == (12, 31, 7)

    def on(self, day: date) -> bool:
        """Whether the expression names times on this date."""
        if day.month not in self.months:
            return False
        by_date = day.day in self.days or (self.last_day and (day + timedelta(days=1)).day == 1)
        by_weekday = self._on_weekday(day)
        return (by_date or by_weekday) if self.either_day else (by_date and by_weekday)

    def _on_weekday(self, day: date) -> bool:
        weekday = day.isoweekday() % 7
        if weekday in self.weekdays:
            return True
        if not self.nth_weekdays:
            return False
        last = (day + timedelta(days=7)).month != day.month
        return (weekday, (day.day + 6) // 7) in self.nth_weekdays or (
            last and (weekday, -1) in self.nth_weekdays
        )

    def on_epoch_day(self, epoch_day: int) -> bool:
        """Whether the expression names times on the date that is so many days after 1970-01-01."""
        return self.every_day or self.on(date.fromordinal(EPOCH_ORDINAL + epoch_day))

    def next_epoch_day(self, first: int, last: int) -> int | None:
        """Return the first date on or after ``first`` that has times, None when none is before or on ``last``."""
        day, end = date.fromordinal(EPOCH_ORDINAL + first), EPOCH_ORDINAL + min(last, first + SEARCH_DAYS)
        while day.toordinal() <= end:
            if day.month not in self.months:
                day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
            elif self.on(day):
                return day.toordinal() - EPOCH_ORDINAL
            else:
                day += timedelta(days=1)
        return None


def parse_cron(text: str) -> Cron:
    """Read an expression; raises `CronRefused` with the reason, also for dates that never happen."""
    fields = text.lower().split()
    if len(fields) not in {5, 6} or len(text) > MAX_TEXT:
        raise CronRefused(
            f"cron {text[:MAX_TEXT]!r}: expected five fields (minute hour day month weekday), or a sixth, last one "
            f"for seconds, but it has {len(fields)}"
        )
    for (name, atom, size), field in zip(_FIELDS, fields, strict=False):
        for item in field.split(","):
            _check_item(text, name, atom, size, item)
    expanded, nth = _expand(text, " ".join(fields))
    cron = _built(text, fields, expanded, nth)
    if not _ever(cron):
        raise CronRefused(f"cron {text!r}: this date never happens; correct the day or the month")
    return cron


def _check_item(text: str, name: str, atom: str, size: int, item: str) -> None:
    if name in _SPECIAL and _SPECIAL[name].fullmatch(item):
        return
    found = re.fullmatch(rf"(?:\*|({atom})(?:-({atom}))?)(?:/(\d+))?", item, re.ASCII)
    if found is None:
        raise CronRefused(f"cron {text!r}: {name} {item!r}: expected a number, a range, a list or *")
    low, high, step = found.groups()
    if low is not None and low == high:
        raise CronRefused(f"cron {text!r}: the range {item!r} of the {name} has one value; write {low!r}")
    if step is not None and not 1 <= int(step) <= size:
        raise CronRefused(f"cron {text!r}: the step of {name} {item!r} must be between 1 and {size}")


def _expand(text: str, fields: str) -> tuple[list[list[Any]], dict[Any, set[Any]]]:
    try:
        expanded, nth = croniter.expand(fields)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise CronRefused(f"cron {text!r}: {str(error).splitlines()[-1]}") from error
    return [list(field) for field in expanded], {key: set(value) for key, value in nth.items()}


def _built(text: str, fields: list[str], expanded: list[list[Any]], nth: dict[Any, set[Any]]) -> Cron:
    day_field, weekday_field = fields[2], fields[4]
    restricted = not day_field.startswith(("*", "?")) and not weekday_field.startswith(("*", "?"))
    if nth and not day_field.startswith(("*", "?")):
        raise CronRefused(f"cron {text!r}: {weekday_field!r} cannot be joined with a day of the month")
    return Cron(
        text=text,
        seconds=_numbers(expanded[-1], range(60)) if len(fields) == len(_FIELDS) else (0,),
        minutes=_numbers(expanded[0], range(60)),
        hours=_numbers(expanded[1], range(24)),
        days=frozenset(_numbers(expanded[2], range(1, 32))),
        last_day="l" in expanded[2],
        months=frozenset(_numbers(expanded[3], range(1, 13))),
        weekdays=frozenset(_numbers(expanded[4], range(7))) - frozenset(nth),
        nth_weekdays=frozenset(
            (int(weekday), -1 if which == "l" else int(which))
            for weekday, all_of in nth.items()
            for which in all_of
        ),
        either_day=restricted,
        every_pass="*" in fields[1] or "/" in fields[1],
    )


def _numbers(field: list[Any], everything: Collection[int]) -> tuple[int, ...]:
    """Return the sorted values of an expanded field."""
    if "*" in field:
        return tuple(everything)
    return tuple(sorted(value for value in field if isinstance(value, int)))


def _ever(cron: Cron) -> bool:
    first, last = (day.toordinal() - EPOCH_ORDINAL for day in _FULL_CYCLE)
    return cron.next_epoch_day(first, last) is not None
