"""One request and its answer, between Hypercorn and an application."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from pixivflow.simulator.connections import Connection

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Exchange:
    """The way back to the client: headers wait for the first part of the body, both go out in one write."""

    def __init__(self, connection: Connection, send: Send) -> None:
        self.connection = connection
        self._send = send
        self._start: Message | None = None

    async def send(self, message: Message) -> None:
        """Pass a part of the answer on."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        start, self._start = self._start, None
        if start is None:
            await self._send(message)
            return
        async with self.connection.one_write():
            await self._send(start)
            await self._send(message)

    async def answer(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """Answer with a whole body."""
        length = (b"content-length", str(len(body)).encode())
        await self.send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
        await self.send({"type": "http.response.body", "body": body})


class Replay:
    """Gives an application the body that was read before, then what the client does next."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        """Give the next event of the request."""
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def until_gone(self) -> None:
        """Wait until the client has left."""
        while (await self())["type"] != "http.disconnect":
            pass
