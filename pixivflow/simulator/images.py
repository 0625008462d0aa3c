"""The image host: originals, thumbnails, animation zips, placeholders."""

from datetime import UTC
from email.utils import format_datetime
from urllib.parse import urlsplit

import trio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from pixivflow.simulator import paths
from pixivflow.simulator.connections import CONNECTION, Connection
from pixivflow.simulator.gallery import File, Gallery
from pixivflow.simulator.ranges import Unsatisfiable, part
from pixivflow.simulator.world import World

CHUNK = 64 << 10
STATIC = "/common/images/"
_REFERERS = frozenset({"app-api.pixiv.net", "www.pixiv.net"})


class Images:
    """The endpoints. ``bytes_per_s`` limits each connection."""

    def __init__(self, world: World, gallery: Gallery, *, bytes_per_s: int | None) -> None:
        self._world = world
        self._gallery = gallery
        self._bytes_per_s = bytes_per_s
        self._own_host = urlsplit(world.api_url).netloc

    def routes(self) -> list[Route]:
        """Path and endpoint of each."""
        return [
            Route(STATIC + "{name}", self.static, methods=["GET", "HEAD"]),
            Route("/{path:path}", self.picture, methods=["GET", "HEAD"]),
        ]

    async def static(self, request: Request) -> Response:
        """Placeholders and avatars: no referer needed."""
        name = request.path_params["name"]
        if not name.startswith(("limit_", "no_profile")) or not name.endswith(".png"):
            return _words(404, "Not Found")
        file = await self._gallery.placeholder(name.removesuffix(".png"))
        return self._serve(request, file, "Mon, 01 Jan 2024 00:00:00 GMT")

    async def picture(self, request: Request) -> Response:
        """Give a file of a work; only for those who come from Pixiv's own pages."""
        referer = urlsplit(request.headers.get("referer", "")).netloc
        if referer not in _REFERERS and referer != self._own_host:
            return _words(403, "Forbidden")
        path = paths.parse(request.url.path)
        work = self._world.find(path.work_id) if path else None
        if path is None or work is None or work.stub is not None or not paths.belongs(path, work):
            return _words(404, "Not Found")
        file = await self._gallery.picture(path, work)
        return self._serve(request, file, format_datetime(work.upload_time.astimezone(UTC), usegmt=True))

    def _serve(self, request: Request, file: File, modified: str) -> Response:
        headers = {"last-modified": modified, "accept-ranges": "bytes", "cache-control": "max-age=31536000"}
        size = len(file.data)
        resumable = request.headers.get("if-range", modified) == modified
        try:
            span = part(request.headers.get("range"), size) if resumable else None
        except Unsatisfiable:
            return Response(b"", 416, headers | {"content-range": f"bytes */{size}"})
        first, last = span or (0, size - 1)
        headers["content-length"] = str(last + 1 - first)
        if span:
            headers["content-range"] = f"bytes {first}-{last}/{size}"
        data = memoryview(file.data)[first : last + 1] if request.method == "GET" else memoryview(b"")
        return _PacedResponse(data, 206 if span else 200, headers, file.media_type, self._bytes_per_s)


class _PacedResponse(Response):
    """Sends a file in pieces, at a rate; stops when the client leaves."""

    def __init__(
        self, data: memoryview, status: int, headers: dict[str, str], media_type: str, bytes_per_s: int | None
    ) -> None:
        super().__init__(None, status, headers, media_type)
        self._data = data
        self._rate = bytes_per_s

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Send it."""
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await send(start)
        connection: Connection = scope[CONNECTION]
        step = min(CHUNK, max(1024, self._rate // 20)) if self._rate else CHUNK
        for place in range(0, len(self._data), step):
            if connection.is_over:
                return
            piece = bytes(self._data[place : place + step])
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            if self._rate:
                await trio.sleep(len(piece) / self._rate)
        await send({"type": "http.response.body", "body": b""})


def _words(status: int, text: str) -> Response:
    return Response(f"<html><body><h1>{status} {text}</h1></body></html>", status, media_type="text/html")
