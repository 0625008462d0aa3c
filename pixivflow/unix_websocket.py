"""WebSockets on a Unix socket, for both ends, with deadlines where the library has none."""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import structlog
import trio
from trio_websocket import (
    ConnectionClosed,
    HandshakeError,
    WebSocketConnection,
    wrap_client_stream,
    wrap_server_stream,
)

from protocol.rpc import MAX_MESSAGE_BYTES

HANDSHAKE_S = 5.0
CLOSE_S = 0.4
"""Short enough to fit, beside a last answer, into the time in which a daemon must end."""
MAX_PATH_BYTES = 107

Handler = Callable[[WebSocketConnection], Awaitable[None]]

log = structlog.get_logger(__name__)


class SocketPathTooLong(ValueError):
    """A path that the kernel takes for no Unix socket."""


class UnixStream(trio.abc.HalfCloseableStream):
    """A Unix socket that the library does not ask for address and port.

    Closing it closes the socket beneath.
    """

    def __init__(self, stream: trio.abc.HalfCloseableStream) -> None:
        self._stream = stream

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send all of it."""
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until there is room to send."""
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        """Say that nothing more will be sent."""
        await self._stream.send_eof()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Return what has arrived, empty at the end."""
        return await self._stream.receive_some(max_bytes)

    async def aclose(self) -> None:
        """Close the socket."""
        await self._stream.aclose()


def check_path(path: Path) -> None:
    """Raise `SocketPathTooLong` for a path that no Unix socket can have."""
    length = len(os.fsencode(path))
    if length > MAX_PATH_BYTES:
        raise SocketPathTooLong(
            f"{path}: a Unix socket's path has at most {MAX_PATH_BYTES} bytes, this one has {length}; "
            "choose a shorter state_dir"
        )


@asynccontextmanager
async def connect(path: Path) -> AsyncGenerator[WebSocketConnection]:
    """Open a connection to the socket at ``path`` and close it at the end.

    Raises `OSError` when nobody listens, `trio.TooSlowError` when the handshake is not answered, `HandshakeError`
    when it is declined, `SocketPathTooLong`.
    """
    check_path(path)
    async with UnixStream(await trio.open_unix_socket(path)) as stream:
        try:
            async with trio.open_nursery() as nursery:
                with trio.fail_after(HANDSHAKE_S):
                    connection = await wrap_client_stream(
                        nursery,
                        stream,  # type: ignore[arg-type]  # takes any stream, as its own text says
                        "localhost",
                        "/",
                        max_message_size=MAX_MESSAGE_BYTES,
                    )
                yield connection
                with trio.move_on_after(CLOSE_S):
                    await connection.aclose()
                nursery.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raise _only(group) from None


async def serve(listener: trio.SocketListener, handler: Handler) -> None:
    """Run ``handler`` for every client until cancelled; no client can end the server.

    The connection is closed when the handler returns. `ConnectionClosed` may leave it; any other error is logged.
    Cancelled, it closes its connections politely, each within `CLOSE_S`. Closes the listener.
    """
    await trio.serve_listeners(partial(_serve_client, handler), [listener])


async def _serve_client(handler: Handler, stream: trio.SocketStream) -> None:
    try:
        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope()
            nursery.start_soon(_cancel_in_turn, scope)
            with trio.CancelScope(shield=True):
                await _converse(handler, UnixStream(stream), scope)
            nursery.cancel_scope.cancel()
    except* (ConnectionClosed, HandshakeError, trio.TooSlowError, trio.BrokenResourceError) as gone:
        log.debug("websocket client gone", why=[repr(error) for error in gone.exceptions])
    except* Exception:
        log.exception("websocket client dropped after an error")


async def _cancel_in_turn(scope: trio.CancelScope) -> None:
    """Hand a cancellation on into a shield."""
    try:
        await trio.sleep_forever()
    finally:
        scope.cancel()


async def _converse(handler: Handler, stream: UnixStream, scope: trio.CancelScope) -> None:
    """Shake hands and run the handler within ``scope``; what reads lives longer, so that the close is heard."""
    async with trio.open_nursery() as nursery:
        with scope:
            with trio.fail_after(HANDSHAKE_S):
                request = await wrap_server_stream(nursery, stream, max_message_size=MAX_MESSAGE_BYTES)
                connection = await request.accept()
            try:
                await handler(connection)
            finally:
                with trio.move_on_after(CLOSE_S, shield=True):
                    await connection.aclose()
        nursery.cancel_scope.cancel()


def _only(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the one error of a group, or the group when there are several."""
    if len(group.exceptions) > 1:
        return group
    inner = group.exceptions[0]
    return _only(inner) if isinstance(inner, BaseExceptionGroup) else inner
