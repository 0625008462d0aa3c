"""Endpoints that suggest: tags that begin so, tags of the day, everybody's newest, works one may like."""

from collections import Counter

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pixivflow.simulator.catalogue import SimWork
from pixivflow.simulator.objects import illust_object
from pixivflow.simulator.parameters import PAGE, Parameters, next_url
from pixivflow.simulator.refusals import json_answer
from pixivflow.simulator.vocabulary import TRANSLATIONS
from pixivflow.simulator.world import World

SUGGESTIONS = 10
TRENDS = 12


class Discovery:
    """The endpoints."""

    def __init__(self, world: World) -> None:
        self._world = world

    def routes(self) -> list[Route]:
        """Path and endpoint of each."""
        return [
            Route("/v2/search/autocomplete", self.autocomplete),
            Route("/v1/trending-tags/illust", self.trending),
            Route("/v1/illust/new", self.newest),
            Route("/v1/illust/recommended", self.recommended),
        ]

    async def autocomplete(self, request: Request) -> Response:
        """Tags that contain a word, the most used first."""
        word = Parameters(request).text("word").casefold()
        tags = [tag for tag, _ in self._used_tags() if word in tag.casefold()]
        found = [{"name": tag, "translated_name": TRANSLATIONS.get(tag)} for tag in tags[:SUGGESTIONS]]
        return json_answer({"tags": found})

    async def trending(self, _request: Request) -> Response:
        """The most used tags, each with a work."""
        works = [work for work in self._shown() if work.stub is None and work.x_restrict == 0]
        trends = []
        for tag, _ in self._used_tags()[:TRENDS]:
            best = max((work for work in works if tag in work.tags), key=_popularity, default=None)
            if best is not None:
                shown = illust_object(self._world.image_url, best)
                trends.append({"tag": tag, "translated_name": TRANSLATIONS.get(tag), "illust": shown})
        return json_answer({"trend_tags": trends})

    async def newest(self, request: Request) -> Response:
        """Everybody's newest works; the cursor is a work's id."""
        parameters = Parameters(request)
        kind = parameters.choice("content_type", ("illust", "manga"))
        below = parameters.integer("max_illust_id", 1 << 62)
        works = sorted((work for work in self._shown() if work.type == kind and work.id <= below), key=_id)[
            ::-1
        ]
        url = None
        if len(works) > PAGE:
            url = next_url(self._world.api_url, request, "max_illust_id", works[PAGE].id)
        return json_answer({"illusts": self._objects(works[:PAGE]), "next_url": url})

    async def recommended(self, request: Request) -> Response:
        """Works one may like: here the most popular ones."""
        offset = Parameters(request).offset()
        works = sorted(self._shown(), key=_popularity, reverse=True)
        end = offset + PAGE
        url = next_url(self._world.api_url, request, "offset", end) if end < len(works) else None
        extras = {"ranking_illusts": [], "contest_exists": False, "privacy_policy": {}}
        return json_answer({"illusts": self._objects(works[offset:end]), **extras, "next_url": url})

    def _shown(self) -> list[SimWork]:
        return [work for work in self._world.timeline() if not work.deleted]

    def _used_tags(self) -> list[tuple[str, int]]:
        return Counter(tag for work in self._shown() if work.stub is None for tag in work.tags).most_common()

    def _objects(self, works: list[SimWork]) -> list[dict[str, object]]:
        return [illust_object(self._world.image_url, work) for work in works]


def _popularity(work: SimWork) -> tuple[int, int]:
    return work.bookmarks, work.id


def _id(work: SimWork) -> int:
    return work.id
