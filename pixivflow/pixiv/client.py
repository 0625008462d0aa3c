"""The client of Pixiv's App API for one account."""

import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Literal
from urllib.parse import urlencode

import httpx
import msgspec

from pixivflow.clock import Wall
from pixivflow.pixiv.api import ApiCaller
from pixivflow.pixiv.credentials import TokenStore
from pixivflow.pixiv.errors import (
    AccessDenied,
    NotFound,
    OwnerGone,
    ServerFailed,
    WorkDeleted,
    WorkRestricted,
)
from pixivflow.pixiv.models import Illust
from pixivflow.pixiv.pages import Page, read_artist_page, read_detail, read_page
from pixivflow.pixiv.session import AccountSession
from pixivflow.pixiv.settings import PixivSettings
from pixivflow.pixiv.transport import open_http
from pixivflow.pixiv.walk import SEARCH_OFFSET_CAP, Walk

_TARGETS = {
    "partial": "partial_match_for_tags",
    "exact": "exact_match_for_tags",
    "title_caption": "title_and_caption",
}
_SORTS = {"newest": "date_desc", "oldest": "date_asc", "popular": "popular_desc"}


class SearchQuery(msgspec.Struct, frozen=True):
    """What to search for; dates are Japanese calendar days, ``YYYY-MM-DD``, both included."""

    word: str
    target: Literal["partial", "exact", "title_caption"] = "partial"
    sort: Literal["newest", "oldest", "popular"] = "newest"
    start_date: str | None = None
    end_date: str | None = None


class PixivClient:
    """Reads works and lists in the name of one account; safe for many tasks at once."""

    def __init__(self, account: str, api: ApiCaller, api_url: str) -> None:
        self.account = account
        self._api = api
        self._api_url = api_url

    async def illust_detail(self, illust_id: int) -> Illust:
        """Return a work. Raises WorkDeleted, WorkRestricted, or an Outage that says nothing about the work."""
        try:
            illust = await self._api.get(
                self._url("/v1/illust/detail", {"illust_id": illust_id}), read_detail
            )
        except NotFound as exc:
            raise WorkDeleted(f"illustration {illust_id} is deleted, private, or never existed") from exc
        except AccessDenied as exc:
            raise WorkRestricted(f"illustration {illust_id} is withheld from this account") from exc
        if illust.id != illust_id:
            raise ServerFailed(f"Pixiv answers with illustration {illust.id} instead of {illust_id}")
        if illust.restricted:
            raise WorkRestricted(f"illustration {illust_id} is withheld from this account (placeholder)")
        return illust

    def search(self, query: SearchQuery) -> Walk:
        """Walk over the works that match; Pixiv shows the first 5,000 or so."""
        url = self._url(
            "/v1/search/illust",
            {
                "word": query.word,
                "search_target": _TARGETS[query.target],
                "sort": _SORTS[query.sort],
                "start_date": query.start_date,
                "end_date": query.end_date,
            },
        )
        return Walk(self._page, url, self._api_url, offset_cap=SEARCH_OFFSET_CAP)

    def ranking(self, mode: str, date: str | None) -> Walk:
        """Walk over a ranking in order of rank; ``date`` None is the newest one published."""
        url = self._url("/v1/illust/ranking", {"mode": mode, "date": date})
        return Walk(self._page, url, self._api_url)

    def artist_works(self, artist_id: int) -> Walk:
        """Walk over everything an artist published, newest first."""
        url = self._url("/v1/user/illusts", {"user_id": artist_id})
        return Walk(partial(self._artist_page, artist_id), url, self._api_url)

    async def _page(self, url: str) -> Page:
        return await self._api.get(url, read_page)

    async def _artist_page(self, artist_id: int, url: str) -> Page:
        try:
            answer = await self._api.get(url, read_artist_page)
        except NotFound as exc:
            raise OwnerGone(f"artist {artist_id} has left Pixiv or does not exist") from exc
        if answer.gone:
            raise OwnerGone(f"artist {artist_id} is suspended or has left Pixiv")
        return answer.page

    def _url(self, path: str, params: Mapping[str, str | int | None]) -> str:
        query = urlencode({name: value for name, value in params.items() if value is not None})
        return f"{self._api_url.rstrip('/')}{path}?{query}"


@asynccontextmanager
async def open_pixiv_client(
    account: str,
    configured_token: str | None,
    store: TokenStore,
    settings: PixivSettings,
    *,
    wall: Wall,
    rng: random.Random,
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncGenerator[PixivClient]:
    """Open the client of one account; it asks for no token before its first request.

    Raises BadAddress for a proxy that can't be used.
    """
    async with open_http(settings.proxy, settings.timeout_s, transport) as http:
        session = AccountSession(account, configured_token, store, settings, http, wall)
        api = ApiCaller(account, session, http, settings, wall=wall, rng=rng)
        yield PixivClient(account, api, settings.api_url)
