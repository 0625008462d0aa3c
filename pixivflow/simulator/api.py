"""The App API for illustrations. Novels will be a second class of endpoints beside `Illustrations`."""

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pixivflow.simulator.catalogue import SimWork
from pixivflow.simulator.objects import illust_object, ugoira_metadata, user_detail, user_object
from pixivflow.simulator.parameters import PAGE, Parameters, next_url
from pixivflow.simulator.rankings import MODES, newest_published, ranking
from pixivflow.simulator.refusals import NO_USER, NO_WORK, Refusal, invalid, json_answer
from pixivflow.simulator.search import Search, wanted
from pixivflow.simulator.world import World

FEED_CAP = 6000
RELATED_CAP = 150
UNTAGGED = "未分類"


class Illustrations:
    """The endpoints."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._search = Search(world)

    def routes(self) -> list[Route]:
        """Path and endpoint of each."""
        return [
            Route("/v1/search/illust", self.search),
            Route("/v1/illust/ranking", self.ranking),
            Route("/v1/illust/detail", self.detail),
            Route("/v1/user/illusts", self.user_illusts),
            Route("/v1/user/detail", self.user_detail),
            Route("/v2/illust/related", self.related),
            Route("/v1/user/bookmarks/illust", self.bookmarks),
            Route("/v2/illust/follow", self.follow),
            Route("/v1/ugoira/metadata", self.ugoira),
        ]

    async def search(self, request: Request) -> Response:
        """Works by words."""
        parameters = Parameters(request)
        search = wanted(parameters, premium=self._world.premium)
        offset = parameters.offset()
        page = self._page(request, self._search.find(search), offset)
        return json_answer(page | {"search_span_limit": 31_536_000, "show_ai": True})

    async def ranking(self, request: Request) -> Response:
        """Give a day's list; the place in the list is the rank."""
        parameters = Parameters(request)
        mode = parameters.choice("mode", MODES, "day")
        now = self._world.now
        day = parameters.day("date") or newest_published(now)
        works = ranking(self._world.timeline(), mode, day, now)
        return json_answer(self._page(request, works, parameters.offset(None)))

    async def detail(self, request: Request) -> Response:
        """One work."""
        work = self._world.find(Parameters(request).integer("illust_id"))
        if work is None or work.stub == "unknown":
            raise Refusal(404, user_message=NO_WORK)
        return json_answer({"illust": illust_object(self._world.image_url, work, detail=True)})

    async def user_illusts(self, request: Request) -> Response:
        """Give an author's works, newest first; for an author who is gone: nobody and nothing."""
        parameters = Parameters(request)
        author = self._world.catalogue.author(parameters.integer("user_id"))
        kind = parameters.given("type")
        if kind not in (None, "illust", "manga", "ugoira"):
            raise invalid("type", "Type contains invalid value")
        if author is None:
            return json_answer({"user": {"id": None}, "illusts": [], "next_url": None})
        works = [
            work
            for work in reversed(self._world.timeline())
            if work.author.id == author.id and kind in (None, work.type)
        ]
        page = self._page(request, works, parameters.offset(None))
        return json_answer({"user": user_object(self._world.image_url, author)} | page)

    async def user_detail(self, request: Request) -> Response:
        """Give an author's profile."""
        author = self._world.catalogue.author(Parameters(request).integer("user_id"))
        if author is None:
            raise Refusal(404, user_message=NO_USER)
        works = [work for work in self._world.timeline() if work.author.id == author.id]
        manga = sum(work.type == "manga" for work in works)
        return json_answer(user_detail(self._world.image_url, author, len(works) - manga, manga))

    async def related(self, request: Request) -> Response:
        """Works that share tags with one, the most similar first."""
        parameters = Parameters(request)
        seed = self._world.find(parameters.integer("illust_id"))
        if seed is None:
            raise Refusal(404, user_message=NO_WORK)
        tags = set(seed.tags)
        others = [work for work in self._world.timeline() if work.id != seed.id and tags & set(work.tags)]
        others.sort(key=lambda work: (-len(tags & set(work.tags)), work.id))
        return json_answer(self._page(request, others[:RELATED_CAP], parameters.offset()))

    async def bookmarks(self, request: Request) -> Response:
        """Give the signed-in account's bookmarks, the newest bookmark first; the cursor is a bookmark id."""
        parameters = Parameters(request)
        parameters.integer("user_id")
        restrict = parameters.choice("restrict", ("public", "private"))
        tag = parameters.given("tag")
        below = parameters.integer("max_bookmark_id", 1 << 62)
        marked = sorted(
            (
                (work.bookmark_id, work)
                for work in self._world.timeline()
                if work.bookmark_id is not None
                and work.bookmark_id <= below
                and work.bookmark_restrict == restrict
                and tag in (None, bookmark_tag(work))
            ),
            key=lambda pair: -pair[0],
        )
        following = marked[PAGE][0] if len(marked) > PAGE else None
        return json_answer(
            {
                "illusts": self._objects([work for _, work in marked[:PAGE]]),
                "next_url": following
                and next_url(self._world.api_url, request, "max_bookmark_id", following),
            }
        )

    async def follow(self, request: Request) -> Response:
        """Give the newest works of the authors the account follows."""
        parameters = Parameters(request)
        restrict = parameters.choice("restrict", ("public", "private", "all"))
        wanted_kinds = ("public", "private") if restrict == "all" else (restrict,)
        works = [work for work in reversed(self._world.timeline()) if work.author.followed in wanted_kinds]
        return json_answer(self._page(request, works[:FEED_CAP], parameters.offset(None)))

    async def ugoira(self, request: Request) -> Response:
        """Zip and delays of an animation."""
        work = self._world.find(Parameters(request).integer("illust_id"))
        if work is None or work.stub is not None or work.type != "ugoira":
            raise Refusal(404, user_message=NO_WORK)
        return json_answer(ugoira_metadata(self._world.image_url, work))

    def _page(self, request: Request, works: Sequence[SimWork], offset: int) -> dict[str, Any]:
        end = offset + PAGE
        more = end < len(works)
        url = next_url(self._world.api_url, request, "offset", end) if more else None
        return {"illusts": self._objects(works[offset:end]), "next_url": url}

    def _objects(self, works: Sequence[SimWork]) -> list[dict[str, Any]]:
        return [illust_object(self._world.image_url, work) for work in works if not work.deleted]


def bookmark_tag(work: SimWork) -> str:
    """Give the owner's own tag on a bookmark: the name of the second tag, for every third work none."""
    return work.tags[1] if work.id % 3 and len(work.tags) > 1 else UNTAGGED
