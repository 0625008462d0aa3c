"""What every route can do, and how its sender is opened."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Protocol

import httpx

from pixivflow.clock import SystemWall, Wall
from pixivflow.delivery.artifacts import FileMissing
from pixivflow.delivery.folder import open_folder
from pixivflow.delivery.multipart import open_multipart
from pixivflow.delivery.settings import FolderSettings, MultipartSettings, Roots, RouteSettings, check_route
from protocol.payloads import Payload
from protocol.verdicts import Verdict

__all__ = ["FileMissing", "Roots", "Sender", "open_sender"]


class Sender(Protocol):
    """The way to one receiver."""

    async def ready(self) -> bool:
        """Whether a send makes sense now. Never raises for what receiver or network do."""

    async def send(self, payload: Payload, open_file: Roots | None = None) -> Verdict:
        """Send one frozen message; may be cancelled and repeated with the same payload at any time.

        Never raises for what receiver or network do. Raises `FileMissing` where a file is not what was frozen.
        """


@asynccontextmanager
async def open_sender(
    settings: RouteSettings,
    roots: Roots,
    *,
    wall: Wall | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncGenerator[Sender]:
    """Open the sender of a route; what it holds is closed at the end. Raises `RouteRefused`."""
    check_route(settings)
    clock = wall or SystemWall()
    match settings:
        case MultipartSettings():
            async with open_multipart(settings, roots, clock, transport) as sender:
                yield sender
        case FolderSettings():
            yield await open_folder(settings, roots, clock.now_ms() / 1000)
