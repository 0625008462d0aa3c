"""The store: from an address to a durable, verified file."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Protocol

import httpx
import trio

from pixivflow.download.answers import announced_length, picture_type, status_error
from pixivflow.download.errors import IntegrityFailed, PathRefused, StorageFailed, storage_errors
from pixivflow.download.formats import PICTURES, SNIFF_BYTES
from pixivflow.download.partfile import PartFile, StoredFile, same_file
from pixivflow.download.places import Place
from pixivflow.download.plan import is_placeholder
from pixivflow.pixiv.errors import NetworkFailed, WorkRestricted

__all__ = ["ImageSource", "Store", "StoredFile"]

CHUNK = 512 * 1024
_GRACE_S = 5
_HEADERS = {"Accept-Encoding": "identity"}


class ImageSource(Protocol):
    """Where the bytes come from."""

    def stream(
        self, url: str, headers: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[httpx.Response]:
        """Ask for ``url``; the answer's body is read inside the block, whatever its status."""


class Store:
    """Fetches files side by side, as many as ``limiter`` has tokens, for all who share it.

    ``min_free`` is the number of bytes that must stay free on the disk, ``chunk`` what is held in memory of one file.
    """

    def __init__(
        self,
        images: ImageSource,
        limiter: trio.CapacityLimiter,
        *,
        min_free: int = 0,
        chunk: int = CHUNK,
        accept: Collection[str] = PICTURES,
    ) -> None:
        self._images = images
        self._limiter = limiter
        self._min_free = min_free
        self._chunk = chunk
        self._accept = accept

    async def fetch(
        self, url: str, root: Path, path: str, *, on_bytes: Callable[[int], None] | None = None
    ) -> StoredFile:
        """Fetch ``url`` into ``root / path``; it is durable on return. ``on_bytes`` hears each chunk's length.

        The name keeps its extension even where the signature says another format; the media type follows the
        signature. Raises the errors of `pixivflow.download.errors`, and of Pixiv's the outages and
        ``WorkRestricted`` (placeholders). No ``.part`` is left behind an error; a cancelled fetch may leave it.
        """
        if is_placeholder(url):
            raise WorkRestricted(f"{url} is a placeholder, not the work")
        place = Place(root, path)
        async with self._limiter:
            await trio.to_thread.run_sync(self._admit, place, 0)
            async with _part(place) as part:
                media_type = await self._receive(url, place, part, on_bytes or _ignore)
                return await trio.to_thread.run_sync(part.publish, media_type)

    async def known(self, root: Path, path: str, expected: StoredFile, *, verify: bool = False) -> bool:
        """Whether a recorded file is still there with its length, and with ``verify`` also its hash."""
        place = Place(root, path)

        def look() -> bool:
            place.check()
            with storage_errors(place.final):
                return same_file(place.final, expected, content=verify)

        return await trio.to_thread.run_sync(look)

    async def discard(self, root: Path, path: str) -> None:
        """Remove a file, its ``.part`` and the folders that this leaves empty; a missing file is fine."""
        place = Place(root, path)

        def remove() -> None:
            place.check()
            place.remove()

        await trio.to_thread.run_sync(remove)

    async def drop_parts(self, root: Path, paths: Iterable[str]) -> None:
        """Remove what unfinished fetches of ``paths`` left; nobody may be fetching them."""
        places = [Place(root, path) for path in paths]

        def drop() -> None:
            for place in places:
                with suppress(PathRefused, StorageFailed):
                    place.check()
                    place.drop_part()

        await trio.to_thread.run_sync(drop)

    def _admit(self, place: Place, coming: int) -> None:
        place.check()
        place.require_room(self._min_free, coming)

    async def _receive(self, url: str, place: Place, part: PartFile, on_bytes: Callable[[int], None]) -> str:
        """Write the body into ``part`` and give its media type."""
        async with self._images.stream(url, _HEADERS) as response:
            error = status_error(response.status_code, url, response.headers.get("retry-after"))
            if error is not None:
                raise error
            announced = announced_length(response.headers)
            if announced:
                await trio.to_thread.run_sync(self._admit, place, announced)
            try:
                media_type = await self._write_body(response, url, part, on_bytes)
            except httpx.HTTPError as failure:
                why = str(failure) or type(failure).__name__
                raise NetworkFailed(f"{url}: the transfer broke off, {why}") from failure
            if announced is not None and response.num_bytes_downloaded != announced:
                raise IntegrityFailed(
                    f"{url}: {response.num_bytes_downloaded} bytes came, {announced} were announced"
                )
            return media_type

    async def _write_body(
        self, response: httpx.Response, url: str, part: PartFile, on_bytes: Callable[[int], None]
    ) -> str:
        """Write chunk by chunk; nothing is written before the first bytes are known to be a picture's."""
        judge = partial(
            picture_type, url=url, content_type=response.headers.get("content-type", ""), accept=self._accept
        )
        media_type = ""
        held = bytearray()
        async with _open_body(response) as body:
            async for data in body:
                held += data
                on_bytes(len(data))
                if not media_type and len(held) >= SNIFF_BYTES:
                    media_type = judge(bytes(held[:SNIFF_BYTES]))
                if len(held) >= self._chunk:
                    await trio.to_thread.run_sync(part.write, held)
                    held = bytearray()
        media_type = media_type or judge(bytes(held[:SNIFF_BYTES]))
        if held:
            await trio.to_thread.run_sync(part.write, held)
        return media_type


@asynccontextmanager
async def _open_body(response: httpx.Response) -> AsyncGenerator[AsyncIterator[bytes]]:
    """Give the decoded body; it may be left half-read."""
    body = response.aiter_bytes()
    try:
        yield body
    finally:
        # The body is a stack of generators that closing the outer one leaves open. A step that is cancelled
        # goes through all of them.
        with trio.move_on_after(0, shield=True), suppress(httpx.HTTPError, NetworkFailed):
            async for _ in body:
                pass
            await trio.lowlevel.checkpoint()


@asynccontextmanager
async def _part(place: Place) -> AsyncGenerator[PartFile]:
    """Give a part file; it is gone after an error, and closed in any case."""
    part = PartFile(place)
    try:
        yield part
    except Exception:
        with trio.move_on_after(_GRACE_S, shield=True):
            await trio.to_thread.run_sync(part.drop)
        raise
    finally:
        part.close()


def _ignore(_: int) -> None:
    """Nobody wants to know."""
