"""What of a schedule is due, what is caught up, and what is missed for ever."""

from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from pixivflow.timetable.cron import Cron
from pixivflow.timetable.occurrences import count_occurrences, newest_occurrences

CatchUp = Literal["latest", "all", "none"]

MOST = 100
"""Most slots run at once by catch-up, and most missed ones that get a row each."""


class Due(msgspec.Struct, frozen=True):
    """What to make of the occurrences since the watermark; instants in milliseconds, oldest first."""

    run: tuple[int, ...]
    missed: tuple[int, ...]
    """At most 100, the newest."""
    missed_more: int
    """How many older ones were missed besides: they become one row with this count."""
    watermark_ms: int
    missed_more_until_ms: int | None = None
    """The newest of those older ones, the instant of their row."""


def due(
    cron: Cron,
    zone: ZoneInfo,
    *,
    watermark_ms: int,
    now_ms: int,
    catch_up: CatchUp,
    window_s: float,
    on_time_s: float = 60,
) -> Due:
    """Decide about every occurrence after the watermark up to now.

    The newest runs under every policy when it is at most ``on_time_s`` late. Of the others ``latest`` runs the newest
    when nothing is on time, ``all`` the newest 100, ``none`` nothing, always only what is younger than ``window_s``.
    """
    newest = newest_occurrences(cron, zone, watermark_ms, now_ms, 2 * MOST + 1)
    if not newest:
        return Due(run=(), missed=(), missed_more=0, watermark_ms=watermark_ms)
    on_time = newest[-1:] if now_ms - newest[-1] <= on_time_s * 1000 else ()
    late = newest[: len(newest) - len(on_time)]
    caught_up = _caught_up(late, bool(on_time), catch_up, now_ms - window_s * 1000)
    missed = late[: len(late) - len(caught_up)]
    older = count_occurrences(cron, zone, watermark_ms, newest[0] - 1) if len(newest) > 2 * MOST else 0
    folded, listed = missed[:-MOST], missed[-MOST:]
    return Due(
        run=caught_up + on_time,
        missed=listed,
        missed_more=older + len(folded),
        watermark_ms=newest[-1],
        missed_more_until_ms=folded[-1] if folded else None,
    )


def _caught_up(late: tuple[int, ...], on_time: bool, catch_up: CatchUp, since_ms: float) -> tuple[int, ...]:
    """Return the end of ``late`` that is run after all."""
    match catch_up:
        case "none":
            return ()
        case "latest":
            return () if on_time else tuple(at for at in late[-1:] if at > since_ms)
        case "all":
            return tuple(at for at in late[-MOST:] if at > since_ms)


def watermark_is_ahead(watermark_ms: int, now_ms: int, lead_s: float) -> bool:
    """Whether the last occurrence lies so far in the future that the clock must have been wrong."""
    return watermark_ms - now_ms > lead_s * 1000
