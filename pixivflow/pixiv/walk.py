"""A walk over the pages of a list that always ends: every step moves on, stops, or raises."""

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl, urlsplit

import structlog
import trio

from pixivflow.pixiv.errors import NotFound, PaginationError, RequestRefused
from pixivflow.pixiv.models import Illust
from pixivflow.pixiv.pages import Page

log = structlog.get_logger()

PUBLISHED_API = "https://app-api.pixiv.net"
SEARCH_OFFSET_CAP = 5000
BARREN_PAGES = 20
"""How many pages in a row may bring nothing new."""
MOST_PAGES = 5000
_STATUS_PAST_THE_END = 416


def cursor_of(url: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return what makes a page address the same as another: its path and parameters in any order."""
    parts = urlsplit(url)
    return parts.path, tuple(sorted(parse_qsl(parts.query, keep_blank_values=True)))


def offset_of(url: str) -> int | None:
    """Return the offset in a page address, or None."""
    for name, value in parse_qsl(url.partition("?")[2].partition("#")[0]):
        if name == "offset" and value.isascii() and value.isdigit():
            return int(value)
    return None


def checked_next(next_url: str, api_url: str) -> str:
    """Return the address to follow: ``next_url`` itself, which must lie on the API's host.

    An address on Pixiv's published API host stays valid behind another ``api_url`` (a mirror, the simulator) and
    is asked for there. Raises PaginationError for any other host: the access token goes to the API alone.
    """
    origin = _origin(next_url)
    if origin is not None and origin == _origin(api_url):
        return next_url
    if origin is not None and origin == _origin(PUBLISHED_API):
        return api_url.rstrip("/") + next_url[len(PUBLISHED_API) :]
    raise PaginationError("the address of the next page does not lie on the API's host")


def _origin(url: str) -> tuple[str, str, int | None] | None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.hostname is None or "@" in parts.netloc or "\\" in url:
        return None
    default = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, port or default


class Walk:
    """Pages of one list, asked for one after the other. Not for use by two tasks at once.

    ``truncated``: the list went on beyond what Pixiv shows. ``unreadable``: entries that could not be read.
    A step that raised or was cancelled can be tried again; it asks for the same page.
    """

    def __init__(
        self,
        fetch: Callable[[str], Awaitable[Page]],
        first_url: str,
        api_url: str,
        *,
        offset_cap: int | None = None,
    ) -> None:
        self.truncated = False
        self.unreadable = 0
        self._fetch = fetch
        self._api_url = api_url
        self._offset_cap = offset_cap
        self._next: str | None = first_url
        self._seen_cursors: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
        self._seen_ids: set[int] = set()
        self._barren = 0

    async def next_page(self) -> tuple[Illust, ...] | None:
        """Return the next page, possibly empty; None at the end.

        Raises PaginationError when the list makes no progress, OwnerGone when the artist is no more, and whatever
        the request raises.
        """
        if self._next is None:
            await trio.lowlevel.checkpoint()
            return None
        url = self._checked(self._next)
        page = await self._fetched(url)
        if page is None:
            self._next = None
            return None
        self._advance(url, page)
        return page.illusts

    async def _fetched(self, url: str) -> Page | None:
        try:
            return await self._fetch(url)
        except RequestRefused as exc:
            if not self._ends_with(exc):
                raise
        await trio.lowlevel.checkpoint()
        return None

    def _checked(self, url: str) -> str:
        url = checked_next(url, self._api_url)
        if cursor_of(url) in self._seen_cursors:
            raise PaginationError(f"the list at {urlsplit(url).path} leads back to a page already read")
        if self._barren >= BARREN_PAGES:
            raise PaginationError(f"{BARREN_PAGES} pages in a row brought nothing new, the list does not end")
        if len(self._seen_cursors) >= MOST_PAGES:
            raise PaginationError(f"the list does not end within {MOST_PAGES} pages")
        return url

    def _ends_with(self, exc: RequestRefused) -> bool:
        """Whether Pixiv says by this refusal that the page before was the last."""
        if not self._seen_cursors:
            return False
        if "offset" in exc.parameters:
            self.truncated = True
            return True
        return isinstance(exc, NotFound) or exc.status == _STATUS_PAST_THE_END

    def _advance(self, url: str, page: Page) -> None:
        self._seen_cursors.add(cursor_of(url))
        new = {illust.id for illust in page.illusts} - self._seen_ids
        self._seen_ids |= new
        self._barren = 0 if new else self._barren + 1
        if page.unreadable:
            self.unreadable += page.unreadable
            log.warning("entries_unreadable", path=urlsplit(url).path, count=page.unreadable)
        self._next = page.next_url or None
        offset = None if page.next_url is None else offset_of(page.next_url)
        if self._offset_cap is not None and offset is not None and offset > self._offset_cap:
            self.truncated = True
            self._next = None
