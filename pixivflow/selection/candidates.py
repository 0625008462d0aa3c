"""The candidates of a source, one by one, in the order in which they are worth a try.

How each mode is asked:

- ``search``: the tags joined by spaces (all of them) or by ``OR`` (any). Pixiv has no tags with spaces, so
  a tag written with some means all its words; among ``any`` it stands in parentheses. A tag with a leading
  ``-`` excludes, as on Pixiv. ``exclude_tags`` are not sent: they also match translations, which only we see.
  The window of days is sent.
- ``sort = "popular"`` is not asked of Pixiv, which without premium gives one page of it, silently: the
  newest pages within the window are sampled and ordered by bookmarks here.
- ``ranking``: in the order of rank. ``artist``: newest first, whatever ``sort`` says. ``work``: that one.
"""

from collections import deque
from datetime import date, timedelta

import trio

from pixivflow.pixiv.client import SearchQuery
from pixivflow.pixiv.errors import PaginationError
from pixivflow.pixiv.models import Illust
from pixivflow.selection.days import day_of, resolve_day, today, window
from pixivflow.selection.sources import (
    MostBookmarked,
    NamedWork,
    Nowhere,
    Pixiv,
    Published,
    UntilPast,
    Walk,
)
from protocol.specs import Filters, Source

PAGES_LIMIT = 20
"""Pages asked for in one selection."""
POPULAR_PAGES = 5
"""Pages that ``sort = "popular"`` samples."""


class Candidates:
    """Works of a walk, each once; a page is asked for only when the one before is used up."""

    def __init__(self, walk: Walk, *, pages_limit: int = PAGES_LIMIT) -> None:
        self._walk = walk
        self._pages_left = pages_limit
        self._pages_limit = pages_limit
        self._waiting: deque[Illust] = deque()
        self._seen: set[int] = set()
        self._ended = False

    @property
    def unreadable(self) -> int:
        """Entries of the pages so far that could not be read: they are no candidates."""
        return self._walk.unreadable

    async def next(self) -> Illust | None:
        """Give the next work not seen before; None at the end of the source or of the page limit.

        Raises what the walk raises (Outage, PaginationError, WorkUnavailable for a named work,
        NotPublishedYet), and PaginationError when all pages up to the limit were empty.
        """
        # A whole page may be refused without a request: others must get their turn meanwhile.
        await trio.lowlevel.checkpoint()
        while (illust := self._next_unseen()) is None and not self._ended:
            if self._pages_left == 0:
                self._end_early()
            else:
                await self._turn_page()
        return illust

    def _next_unseen(self) -> Illust | None:
        while self._waiting:
            illust = self._waiting.popleft()
            if illust.id not in self._seen:
                self._seen.add(illust.id)
                return illust
        return None

    async def _turn_page(self) -> None:
        page = await self._walk.next_page()
        if page is None:
            self._ended = True
        else:
            self._pages_left -= 1
            self._waiting.extend(page)

    def _end_early(self) -> None:
        if not self._seen:
            raise PaginationError(f"{self._pages_limit} pages in a row without any work")
        self._ended = True


def open_candidates(pixiv: Pixiv, source: Source, filters: Filters, now_ms: int) -> Candidates:
    """Give the candidates of a source; nothing is asked before the first ``next``.

    Raises ValueError for a source without what its mode needs, or a day that can't be read.
    """
    return Candidates(_open_walk(pixiv, source, filters, now_ms))


def search_word(source: Source) -> str:
    """Write the word that Pixiv is asked for. Raises ValueError without tags."""
    tags = [" ".join(tag.split()) for tag in source.tags]
    tags = [tag for tag in tags if tag]
    if not tags:
        raise ValueError("mode = search needs at least one of tags")
    if source.tags_match == "all" or len(tags) == 1:
        return " ".join(tags)
    return " OR ".join(f"({tag})" if " " in tag else tag for tag in tags)


def ranking_day(source: Source, now_ms: int) -> date | None:
    """Find the JST day of the ranking; None asks for the newest one."""
    return None if source.ranking_date is None else resolve_day(source.ranking_date, now_ms)


def _open_walk(pixiv: Pixiv, source: Source, filters: Filters, now_ms: int) -> Walk:
    since, until = window(filters, now_ms)
    if source.mode == "work":
        return NamedWork(pixiv, _needed(source.work, source, "work"))
    if since is not None and until is not None and since > until:
        return Nowhere()
    if source.mode == "ranking":
        return _ranking(pixiv, source, now_ms)
    if source.mode == "artist":
        walk = pixiv.artist_works(_needed(source.artist_id, source, "artist_id"))
        return _dated(walk, since, None)
    return _search(pixiv, source, since, until)


def _search(pixiv: Pixiv, source: Source, since: date | None, until: date | None) -> Walk:
    oldest_first = source.sort == "oldest"
    query = SearchQuery(
        word=search_word(source),
        target=source.match,
        sort="oldest" if oldest_first else "newest",
        start_date=_iso(since),
        end_date=_iso(until),
    )
    walk = pixiv.search(query)
    dated = _dated(walk, None, until) if oldest_first else _dated(walk, since, None)
    return MostBookmarked(dated, POPULAR_PAGES) if source.sort == "popular" else dated


def _dated(walk: Walk, first: date | None, last: date | None) -> Walk:
    """End the walk past ``first`` (going back in time) or past ``last`` (going forward)."""
    if first is None and last is None:
        return walk

    def is_past(illust: Illust) -> bool:
        if illust.restricted or illust.create_date is None:
            return False
        day = day_of(illust.create_date)
        return (first is not None and day < first) or (last is not None and day > last)

    return UntilPast(walk, is_past)


def _ranking(pixiv: Pixiv, source: Source, now_ms: int) -> Walk:
    day = ranking_day(source, now_ms)
    walk = pixiv.ranking(source.ranking, _iso(day))
    if day is None or day >= today(now_ms) - timedelta(days=1):
        return Published(walk, f"{source.ranking} of {day or 'the newest day'}")
    return walk


def _iso(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _needed(value: int | None, source: Source, key: str) -> int:
    if value is None:
        raise ValueError(f"mode = {source.mode} needs {key}")
    return value
