from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest
import trio

from pixivflow.pixiv.client import SearchQuery
from pixivflow.pixiv.errors import WorkDeleted, WorkRestricted
from pixivflow.pixiv.models import Illust, SinglePage, Tag, User
from pixivflow.selection.sources import Walk
from protocol.specs import CellSpec, Filters, Source

JST = timezone(timedelta(hours=9))
NOW = datetime(2026, 1, 2, 12, 30, tzinfo=JST)


def make_illust(work: int, **facts) -> Illust:
    address = f"https://i.pximg.net/img-original/img/2026/01/02/00/30/00/{work}_p0.png"
    defaults = {
        "title": f"work {work}",
        "user": User(id=7, name="artist"),
        "tags": (Tag("風景", "scenery"),),
        "create_date": NOW - timedelta(hours=2),
        "meta_single_page": SinglePage(address),
        "total_bookmarks": 100,
        "total_view": 1000,
        "illust_ai_type": 1,
    }
    return Illust(id=work, **(defaults | facts))


class PagedWalk:
    def __init__(self, shelf: "Shelf", works: list[Illust]) -> None:
        self._shelf = shelf
        self._works = works
        self._at = 0
        self.unreadable = shelf.unreadable

    async def next_page(self) -> tuple[Illust, ...] | None:
        await trio.lowlevel.checkpoint()
        if self._at > 0 and self._at >= len(self._works):
            return None
        fault = self._shelf.faults.get(self._shelf.pages_served + 1)
        if fault is not None:
            raise fault
        self._shelf.pages_served += 1
        page = tuple(self._works[self._at : self._at + self._shelf.page_size])
        self._at += self._shelf.page_size
        return page


class Shelf:
    """A small Pixiv in memory: it searches, ranks and pages over real works."""

    def __init__(self) -> None:
        self.works: list[Illust] = []
        self.rankings: dict[tuple[str, str | None], list[Illust]] = {}
        self.page_size = 3
        self.unreadable = 0
        self.pages_served = 0
        self.faults: dict[int, Exception] = {}
        """By number of the page served."""
        self.queries: list[SearchQuery] = []

    def add(self, *works: Illust) -> None:
        self.works.extend(works)

    async def illust_detail(self, illust_id: int) -> Illust:
        await trio.lowlevel.checkpoint()
        for work in self.works:
            if work.id == illust_id and work.restricted:
                raise WorkRestricted(f"illustration:{illust_id} is withheld")
            if work.id == illust_id:
                return work
        raise WorkDeleted(f"illustration:{illust_id} is gone")

    def search(self, query: SearchQuery) -> Walk:
        self.queries.append(query)
        since, until = query.start_date or "0000", query.end_date or "9999"
        found = [
            work
            for work in self.works
            if work.create_date is None
            or since <= work.create_date.astimezone(JST).date().isoformat() <= until
        ]
        oldest_first = query.sort == "oldest"
        found.sort(key=lambda work: work.create_date or NOW, reverse=not oldest_first)
        return PagedWalk(self, found)

    def ranking(self, mode: str, day: str | None) -> Walk:
        return PagedWalk(self, self.rankings.get((mode, day), []))

    def artist_works(self, artist_id: int) -> Walk:
        own = [work for work in self.works if work.user.id == artist_id]
        return PagedWalk(self, sorted(own, key=lambda work: -work.id))


@pytest.fixture
def now_ms() -> int:
    return round(NOW.timestamp() * 1000)


@pytest.fixture
def illust() -> Callable[..., Illust]:
    return make_illust


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def spec() -> Callable[..., CellSpec]:
    def make(
        *, source: Source | None = None, filters: Filters | None = None, scan_limit: int = 5
    ) -> CellSpec:
        return CellSpec(
            target_id="landscape",
            account="main",
            source=source or Source(mode="search", tags=("風景",)),
            filters=filters or Filters(),
            scan_limit=scan_limit,
        )

    return make
