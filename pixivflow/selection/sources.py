"""What selection needs of Pixiv, and how a walk over pages is narrowed, sampled and watched."""

from collections.abc import Callable
from typing import Protocol

import trio

from pixivflow.pixiv.client import SearchQuery
from pixivflow.pixiv.models import Illust
from pixivflow.selection.errors import NotPublishedYet


class Walk(Protocol):
    """Pages of a list, one request each."""

    @property
    def unreadable(self) -> int:
        """Entries so far that could not be read and are in no page."""

    async def next_page(self) -> tuple[Illust, ...] | None:
        """Fetch the next page, which may be empty; None at the end.

        Raises Outage, PaginationError, OwnerGone. What was raised or cancelled can be tried again.
        """


class Pixiv(Protocol):
    """The part of the client that selection uses. A walk asks nothing before its first page."""

    async def illust_detail(self, illust_id: int, /) -> Illust:
        """Fetch that one work, never a stub. Raises WorkDeleted, WorkRestricted, Outage."""

    def search(self, query: SearchQuery, /) -> Walk:
        """List the works that a search finds."""

    def ranking(self, mode: str, day: str | None, /) -> Walk:
        """List works in the order of a ranking; None is the newest one."""

    def artist_works(self, artist_id: int, /) -> Walk:
        """List an artist's works, newest first."""


class NamedWork:
    """The one work that is named, as a walk of one page."""

    unreadable = 0

    def __init__(self, pixiv: Pixiv, illust_id: int) -> None:
        self._pixiv = pixiv
        self._illust_id = illust_id
        self._asked = False

    async def next_page(self) -> tuple[Illust, ...] | None:
        """Fetch the work, then None. Raises WorkDeleted, WorkRestricted, Outage."""
        await trio.lowlevel.checkpoint()
        if self._asked:
            return None
        illust = await self._pixiv.illust_detail(self._illust_id)
        self._asked = True
        return (illust,)


class Nowhere:
    """A walk that has nothing: the window of days is empty."""

    unreadable = 0

    async def next_page(self) -> tuple[Illust, ...] | None:
        """Answer None."""
        await trio.lowlevel.checkpoint()
        return None


class _Over:
    """A walk over another one."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk

    @property
    def unreadable(self) -> int:
        """Entries so far that could not be read."""
        return self._walk.unreadable


class UntilPast(_Over):
    """A walk in the order of dates that asks for no page after one with a work past the window.

    The rest of that page is given out: a list by id is not strictly one by date.
    """

    def __init__(self, walk: Walk, is_past: Callable[[Illust], bool]) -> None:
        super().__init__(walk)
        self._is_past = is_past
        self._done = False

    async def next_page(self) -> tuple[Illust, ...] | None:
        """Fetch the next page, or None once the walk went past the window."""
        await trio.lowlevel.checkpoint()
        if self._done:
            return None
        page = await self._walk.next_page()
        self._done = page is not None and any(self._is_past(illust) for illust in page)
        return page


class MostBookmarked(_Over):
    """The first pages of a walk as one page, ordered by bookmarks; unknown counts come last."""

    def __init__(self, walk: Walk, pages: int) -> None:
        super().__init__(walk)
        self._left = pages
        self._sample: tuple[Illust, ...] = ()
        self._given = False

    async def next_page(self) -> tuple[Illust, ...] | None:
        """Give the ordered sample, then None. What an interrupted call had read is kept for the next."""
        await trio.lowlevel.checkpoint()
        if self._given:
            return None
        while self._left > 0:
            page = await self._walk.next_page()
            if page is None:
                break
            self._left -= 1
            self._sample += page
        self._given = True
        return tuple(sorted(self._sample, key=_by_bookmarks))


class Published(_Over):
    """A ranking whose emptiness means that it is not there yet."""

    def __init__(self, walk: Walk, name: str) -> None:
        super().__init__(walk)
        self._name = name
        self._empty = True

    async def next_page(self) -> tuple[Illust, ...] | None:
        """Fetch the next page. Raises NotPublishedYet at the end of a ranking without any work."""
        page = await self._walk.next_page()
        if page is None and self._empty and self.unreadable == 0:
            raise NotPublishedYet(
                f"the ranking {self._name} is empty: Pixiv publishes a day's ranking about 12:00 JST on the"
                " next day, and an account that may not see such works finds it empty at any time"
            )
        self._empty = self._empty and not page
        return page


def _by_bookmarks(illust: Illust) -> tuple[int, int]:
    bookmarks = -1 if illust.total_bookmarks is None else illust.total_bookmarks
    return -bookmarks, -illust.id
