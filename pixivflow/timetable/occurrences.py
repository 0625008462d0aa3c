"""Which instants a schedule names, whatever its zone's clock does.

With a fixed hour field each local time runs once, at its first pass, and all times that one gap swallowed become one
occurrence at the first instant after it. With ``*`` or ``/`` in the hour field every matching instant that really
happens counts. Instants are milliseconds UTC, always on a whole second.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from zoneinfo import ZoneInfo

from pixivflow.timetable.cron import SEARCH_DAYS, Cron
from pixivflow.timetable.zones import Piece, pieces

DAY_S = 86400
LAST_S = 250_000_000_000
"""Farther is not searched: Python's calendar ends in the year 9999."""
LOOK_BACK_S = 2 * DAY_S
"""Longer than any change of a clock, so that a repeated time is known as such."""


def occurrences(cron: Cron, zone: ZoneInfo, after_ms: int, until_ms: int) -> Iterator[int]:
    """Yield the instants after ``after_ms`` up to and with ``until_ms``, oldest first."""
    first, last = after_ms // 1000 + 1, min(until_ms // 1000, LAST_S)
    for piece in _pieces_with_times(cron, zone, first, last):
        for at in _instants(cron, piece, first):
            if at > last:
                return
            yield at * 1000


def next_occurrence(cron: Cron, zone: ZoneInfo, after_ms: int) -> int | None:
    """Return the first instant after ``after_ms``; None when 41 years hold none."""
    return next(occurrences(cron, zone, after_ms, after_ms + SEARCH_DAYS * DAY_S * 1000), None)


def latest_occurrence(cron: Cron, zone: ZoneInfo, at_ms: int, not_before_ms: int) -> int | None:
    """Return the newest instant that is not after ``at_ms`` and not before ``not_before_ms``."""
    newest = newest_occurrences(cron, zone, not_before_ms - 1, at_ms, 1)
    return newest[0] if newest else None


def newest_occurrences(
    cron: Cron, zone: ZoneInfo, after_ms: int, until_ms: int, limit: int
) -> tuple[int, ...]:
    """Return the newest ``limit`` instants after ``after_ms`` up to ``until_ms``, oldest first.

    The work is bounded by the limit and the logarithm of the span, not by how many instants the span holds.
    """
    if limit < 1 or until_ms <= after_ms:
        return ()
    found = tuple(islice(occurrences(cron, zone, after_ms, until_ms), limit + 1))
    if len(found) <= limit:
        return found
    middle = (after_ms + until_ms) // 2
    right = newest_occurrences(cron, zone, middle, until_ms, limit)
    return newest_occurrences(cron, zone, after_ms, middle, limit - len(right)) + right


def count_occurrences(cron: Cron, zone: ZoneInfo, after_ms: int, until_ms: int) -> int:
    """Return how many instants lie after ``after_ms`` up to ``until_ms``, by arithmetic rather than by listing."""
    first, last = after_ms // 1000 + 1, min(until_ms // 1000, LAST_S)
    total = 0
    for piece in _pieces_with_times(cron, zone, first, last):
        if first <= piece.start <= last and _starts_late(cron, piece):
            total += 1
        low = max(_fresh_start(cron, piece), first + piece.offset)
        total += _count(cron, low, min(piece.local_end, last + 1 + piece.offset))
    return total


def _pieces_with_times(cron: Cron, zone: ZoneInfo, first: int, last: int) -> Iterator[Piece]:
    """Yield the pieces that may hold instants from ``first`` to ``last``, leaping over stretches of empty days."""
    start: int | None = first - LOOK_BACK_S
    while start is not None:
        day = start // DAY_S
        for piece in pieces(zone, start):
            if piece.start > last:
                return
            day = piece.start // DAY_S
            if not any(cron.on_epoch_day(day + near) for near in (-1, 0, 1, 2)):
                break
            if piece.end > first:
                yield piece
        leap = cron.next_epoch_day(day + 3, last // DAY_S + 2)
        start = None if leap is None else (leap - 2) * DAY_S


def _instants(cron: Cron, piece: Piece, first: int) -> Iterator[int]:
    if piece.start >= first and _starts_late(cron, piece):
        yield piece.start
    for local in _local_times(cron, max(_fresh_start(cron, piece), first + piece.offset), piece.local_end):
        yield local - piece.offset


def _fresh_start(cron: Cron, piece: Piece) -> int:
    """Return the local second from which this piece's times count."""
    return piece.local_start if cron.every_pass else max(piece.local_start, piece.shown_until)


def _starts_late(cron: Cron, piece: Piece) -> bool:
    """Whether a gap before the piece swallowed times that its first second, itself not named, makes up for."""
    if cron.every_pass or piece.shown_until >= piece.local_start:
        return False
    return _names_any(cron, piece.shown_until, piece.local_start) and not _names_any(
        cron, piece.local_start, piece.local_start + 1
    )


def _names_any(cron: Cron, low: int, high: int) -> bool:
    return next(_local_times(cron, low, high), None) is not None


def _local_times(cron: Cron, low: int, high: int) -> Iterator[int]:
    """Yield the local seconds in ``[low, high)`` that the expression names."""
    for day in range(low // DAY_S, (high - 1) // DAY_S + 1):
        if cron.on_epoch_day(day):
            yield from _times_of_day(cron, day * DAY_S, low, high)


def _times_of_day(cron: Cron, midnight: int, low: int, high: int) -> Iterator[int]:
    for hour in cron.hours:
        at_hour = midnight + hour * 3600
        if at_hour + 3600 <= low:
            continue
        if at_hour >= high:
            return
        for minute in cron.minutes:
            at_minute = at_hour + minute * 60
            if at_minute + 60 > low and at_minute < high:
                yield from (at_minute + second for second in cron.seconds if low <= at_minute + second < high)


def _count(cron: Cron, low: int, high: int) -> int:
    if low >= high:
        return 0
    total = 0
    for day in range(low // DAY_S, (high - 1) // DAY_S + 1):
        if cron.on_epoch_day(day):
            midnight = day * DAY_S
            total += _count_before(cron, min(high - midnight, DAY_S)) - _count_before(
                cron, max(low - midnight, 0)
            )
    return total


def _count_before(cron: Cron, second_of_day: int) -> int:
    """Return how many times of one day lie before a second of it."""
    hour, rest = divmod(second_of_day, 3600)
    minute, second = divmod(rest, 60)
    full_hours, full_minutes = bisect_left(cron.hours, hour), bisect_left(cron.minutes, minute)
    total = full_hours * len(cron.minutes) * len(cron.seconds)
    if hour in cron.hours:
        total += full_minutes * len(cron.seconds)
        if minute in cron.minutes:
            total += bisect_left(cron.seconds, second)
    return total


def swallowed_times(cron: Cron, zone: ZoneInfo, occurrence_ms: int) -> Iterator[int]:
    """Yield the local seconds of a gap that ends at this occurrence and that it makes up for."""
    at = occurrence_ms // 1000
    for piece in pieces(zone, at - LOOK_BACK_S):
        if piece.start == at and not cron.every_pass:
            yield from _local_times(cron, piece.shown_until, piece.local_start)
        if piece.start >= at:
            return
