"""The image host: a Referer on every request, credentials on none."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import httpx

from pixivflow.pixiv.errors import WorkRestricted, WorkUnavailable
from pixivflow.pixiv.headers import REFERER
from pixivflow.pixiv.models import LIMIT_PREFIX
from pixivflow.pixiv.settings import PixivSettings
from pixivflow.pixiv.transport import STREAM, open_http, typed_failures

IMAGE_HOST = "i.pximg.net"
PLACEHOLDER_HOST = "s.pximg.net"
_NEVER_SENT = frozenset({"authorization", "cookie", "referer", "user-agent", "accept-encoding", "host"})


def address_of(url: str, image_url: str | None) -> httpx.URL:
    """Return where to fetch ``url``, by way of the mirror ``image_url`` if there is one.

    Raises WorkRestricted for placeholders, WorkUnavailable for what is no http(s) address.
    """
    try:
        address = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise WorkUnavailable("the address of a page can't be read") from None
    plain = address.scheme in {"http", "https"} and address.host and "%" not in address.host
    if not plain or address.userinfo:
        raise WorkUnavailable("the address of a page is not a plain http(s) address")
    if address.host == PLACEHOLDER_HOST or address.path.startswith(LIMIT_PREFIX):
        raise WorkRestricted(f"Pixiv shows a placeholder instead of the picture: {address.path}")
    if image_url is None or address.host != IMAGE_HOST:
        return address
    return httpx.URL(image_url.rstrip("/") + address.raw_path.decode("ascii"))


class ImageHost:
    """Streams files of works; safe for many tasks at once."""

    def __init__(self, http: httpx.AsyncClient, settings: PixivSettings) -> None:
        self._http = http
        self._settings = settings

    @asynccontextmanager
    async def stream(
        self, url: str, headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator[httpx.Response]:
        """Open the answer to a GET of ``url``, of any status; the body is read inside, then closed.

        A reader that may stop early uses ``aclosing(response.aiter_raw())``.
        Raises NetworkFailed, also from reading the body; WorkRestricted for placeholders; WorkUnavailable for
        what is no http(s) address. The total time is the caller's to limit.
        """
        address = address_of(url, self._settings.image_url)
        request = self._http.build_request("GET", address, headers=self._headers(headers or {}))
        with typed_failures(address.host):
            response = await self._http.send(request, stream=True)
            # Without the library's wrapper, whose generators can't be left early.
            response.stream = response.extensions.get(STREAM, response.stream)
            try:
                yield response
            finally:
                await response.aclose()

    def _headers(self, wanted: Mapping[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in wanted.items() if name.lower() not in _NEVER_SENT}
        own = {"Referer": REFERER, "User-Agent": self._settings.user_agent, "Accept-Encoding": "identity"}
        return {**kept, **own}


@asynccontextmanager
async def open_image_host(
    settings: PixivSettings, *, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncGenerator[ImageHost]:
    """Open the way to the image host. Raises BadAddress for a proxy that can't be used."""
    async with open_http(settings.proxy_of_images, settings.timeout_s, transport) as http:
        yield ImageHost(http, settings)
