"""Rankings: which works a list holds, in which order, and when it is published."""

import hashlib
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta

from pixivflow.simulator.catalogue import JST, SimWork

_GENERAL = ("day", "week", "month", "day_male", "day_female", "week_original", "week_rookie")
_MANGA = ("day_manga", "week_manga", "month_manga", "week_rookie_manga", "week_original_manga")
_AI = ("day_ai", "day_r18_ai")
_ADULT = ("day_r18", "day_male_r18", "day_female_r18", "week_r18", "day_r18_manga", "week_r18_manga")
_GROTESQUE = ("week_r18g", "week_r18g_manga", "day_r18g_manga")
MODES = frozenset((*_GENERAL, *_MANGA, *_AI, *_ADULT, *_GROTESQUE))

_WINDOW = {"day": 7, "week": 14, "month": 31}
_NOON = time(12, tzinfo=JST)


def newest_published(now: datetime) -> date:
    """Give the day of the newest ranking there is: yesterday's comes at noon, by Japanese time."""
    local = now.astimezone(JST)
    return local.date() - timedelta(days=1 if local.timetz() >= _NOON else 2)


def ranking(works: Iterable[SimWork], mode: str, day: date, now: datetime) -> list[SimWork]:
    """Give the works of a day's list, best first; empty while it is not published."""
    if day > newest_published(now):
        return []
    end = datetime.combine(day + timedelta(days=1), time(), JST)
    start = end - timedelta(days=_WINDOW[mode.partition("_")[0]])
    chosen = [work for work in works if start <= work.created < end and _fits(work, mode)]
    chosen.sort(key=lambda work: (-_score(work, mode, day), work.id))
    return chosen[: 100 if "r18" in mode else 500]


def _fits(work: SimWork, mode: str) -> bool:
    parts = mode.split("_")
    rating = 2 if "r18g" in parts else 1 if "r18" in parts else 0
    kind_fits = "manga" not in parts or work.type == "manga"
    ai_fits = ("ai" in parts) == (work.ai_type == 2)  # noqa: PLR2004  Pixiv's number for "made by AI"
    return work.stub is None and work.x_restrict == rating and kind_fits and ai_fits


def _score(work: SimWork, mode: str, day: date) -> float:
    digest = hashlib.blake2b(f"{work.id} {mode} {day}".encode(), digest_size=2).digest()
    return work.bookmarks * (0.9 + 0.2 * int.from_bytes(digest) / 65_535)
