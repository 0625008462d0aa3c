"""Serving an ASGI application by Hypercorn, with the connection in the application's hands.

Hypercorn's own `serve` hides the connection; faults need it (a reset is no HTTP), so does writing headers and
body at once, and so does closing at once while answers hang. Therefore each connection runs Hypercorn's
`TCPServer` over a thin stream of our own.
"""

import logging
import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

CONNECTION = "pixivflow.connection"
_LINGER_ZERO = struct.pack("ii", 1, 0)

App = Callable[[Any, Any, Any], Awaitable[None]]


class Connection:
    """A client's connection: a stream for Hypercorn, and a handle to cut it for the application."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._held: list[bytes] | None = None
        self.socket = stream.socket
        self.over = WorkerContext(None)

    async def send_all(self, data: bytes) -> None:
        """Send, or keep for later inside `one_write`."""
        if self._held is None:
            await self._stream.send_all(data)
        else:
            self._held.append(data)

    async def receive_some(self, max_bytes: int) -> bytes:
        """Receive; the end of the stream also ends Hypercorn's wait for another request."""
        failure: Exception | None = None
        data = b""
        try:
            data = bytes(await self._stream.receive_some(max_bytes))
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            failure = error
        if not data:
            await self.over.terminated.set()
        if failure is not None:
            raise failure
        return data

    async def send_eof(self) -> None:
        """Send what is held, then say that no more comes."""
        await self._flush()
        await self._stream.send_eof()

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

    def close(self) -> None:
        """Close the connection without waiting for anything; tasks that use it notice."""
        self.socket.close()

    def reset(self) -> None:
        """Close hard: the client gets a reset."""
        if self.socket.fileno() != -1:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self.socket.close()

    @property
    def is_over(self) -> bool:
        """Whether the client has left or the connection was closed."""
        return self.over.terminated.is_set() or self.socket.fileno() == -1

    @asynccontextmanager
    async def one_write(self) -> AsyncGenerator[None]:
        """Gather everything sent in the block into one write."""
        self._held = []
        try:
            yield
        finally:
            held, self._held = self._held, None
        if held:
            await self._send_quietly(b"".join(held))

    async def _flush(self) -> None:
        held, self._held = self._held, None
        if held:
            await self._send_quietly(b"".join(held))

    async def _send_quietly(self, data: bytes) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await self._stream.send_all(data)
            return
        await self.over.terminated.set()


async def bind(host: str, port: int) -> trio.SocketListener:
    """Listen on an address; port 0 takes a free one. Raises OSError naming the address."""
    try:
        listeners = await trio.open_tcp_listeners(port, host=host)
    except OSError as error:
        text = f"cannot listen on {host}:{port}: {error.strerror or error}; choose another port, or 0 for a free one"
        raise OSError(error.errno, text) from error
    first, *others = listeners
    for other in others:
        await other.aclose()
    return first


def port_of(listener: trio.SocketListener) -> int:
    """Give the port a listener has got."""
    return int(listener.socket.getsockname()[1])


class HttpServer:
    """Serves one application on one listener until cancelled."""

    def __init__(self, app: App, listener: trio.SocketListener) -> None:
        self._app = app
        self._listener = listener
        self._config = Config()
        self._config.errorlog = logging.getLogger("pixivflow.simulator")
        self._config.include_server_header = False
        self._config.keep_alive_timeout = 600.0
        self._config.keep_alive_max_requests = 1 << 30
        self._open: set[Connection] = set()

    async def answer_clients(self) -> None:
        """Serve; closes the listener at the end."""
        await trio.serve_listeners(self._serve, [self._listener])

    def disconnect(self) -> None:
        """Close every connection, so that no task waits for a client any more."""
        for connection in self._open:
            connection.close()

    async def _serve(self, stream: trio.SocketStream) -> None:
        connection = Connection(stream)
        self._open.add(connection)

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await self._app({**scope, CONNECTION: connection}, receive, send)

        server = TCPServer(
            ASGIWrapper(app), self._config, connection.over, ConnectionState({}), cast(Any, connection)
        )
        try:
            await server.run()
        except* (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
            pass  # the client, a fault or the shutdown closed it
        finally:
            self._open.discard(connection)
            connection.close()
