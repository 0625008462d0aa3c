"""The control socket: JSON-RPC 2.0 over WebSocket on a Unix socket, for the owner and, if wanted, one group."""

import grp
import os
import socket
import stat
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import structlog
import trio
from trio_websocket import WebSocketConnection

from pixivflow.unix_websocket import SocketPathTooLong, check_path, serve
from protocol.rpc import (
    MAX_MESSAGE_BYTES,
    Code,
    Failure,
    Request,
    RequestId,
    Response,
    decode_request,
    encode,
    failure,
)

IDLE_S = 60.0
ANSWER_S = 1.5
"""How long a client may leave an answer unread; with the close it fits into the time in which a daemon must end."""
BACKLOG = 128

Method = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""Takes the params, returns what msgspec can encode.

`MethodRefused` declines, `ValueError` and `msgspec.ValidationError` blame the params, anything else is a bug.
"""

log = structlog.get_logger(__name__)


class MethodRefused(Exception):
    """A method understood the request and declines it; ``data`` goes to the caller."""

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data


class ControlSocketUnusable(Exception):
    """The socket cannot be made; the text names its path and what to do."""


async def serve_control(
    path: Path,
    methods: Mapping[str, Method],
    *,
    group: str | None = None,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Answer calls on the socket at ``path`` until cancelled; started when clients can connect.

    The caller holds the lock that makes it the only daemon: a socket left behind by a dead one is replaced. The file
    has mode 0600, or 0660 and the given group, and is removed at the end. A method that has returned gets its answer
    delivered even when the server is cancelled meanwhile. Raises `ControlSocketUnusable`.
    """
    bound, made = await trio.to_thread.run_sync(_bind, path, group)
    with bound:
        try:
            bound.listen(BACKLOG)
            listener = trio.SocketListener(trio.socket.from_stdlib_socket(bound))
            task_status.started()
            await serve(listener, partial(_converse, methods))
        finally:
            _remove(path, made)


def _bind(path: Path, group: str | None) -> tuple[socket.socket, os.stat_result]:
    """Return a bound socket and its file's facts; it does not listen before the file's mode is right."""
    try:
        check_path(path)
        gid = None if group is None else grp.getgrnam(group).gr_gid
    except SocketPathTooLong as error:
        raise ControlSocketUnusable(str(error)) from error
    except KeyError as error:
        raise ControlSocketUnusable(
            f"control.group: there is no group {group!r} on this machine; create it or name another"
        ) from error
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        _remove_stale(path)
        bound.bind(os.fspath(path))
        path.chmod(0o600 if gid is None else 0o660)
        if gid is not None:
            os.chown(path, -1, gid)
        made = path.lstat()
    except OSError as error:
        bound.close()
        raise ControlSocketUnusable(
            f"{path}: the control socket cannot be made for group {group!r}: {error.strerror}; the daemon needs to own "
            "the folder and to be a member of the group"
            if group is not None
            else f"{path}: the control socket cannot be made: {error.strerror}; the daemon needs to own the folder"
        ) from error
    return bound, made


def _remove_stale(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise FileExistsError(0, "another file has this name; move it away", os.fspath(path))
    path.unlink()


def _remove(path: Path, made: os.stat_result) -> None:
    """Remove the socket unless another daemon has put its own in this place."""
    try:
        if os.path.samestat(path.lstat(), made):
            path.unlink()
    except OSError as error:
        log.warning("control socket not removed", path=str(path), error=error.strerror)


async def _converse(methods: Mapping[str, Method], connection: WebSocketConnection) -> None:
    """Answer one client's calls, one after another, until it goes or falls silent."""
    while True:
        with trio.move_on_after(IDLE_S) as silence:
            message = await connection.get_message()
        if silence.cancelled_caught:
            return
        answer = await _answer(methods, message)
        if answer is None:
            continue
        # Shielded, so that the answer to a call that stops the daemon still leaves.
        with trio.move_on_after(ANSWER_S, shield=True) as sending:
            await connection.send_message(answer.decode())
        if sending.cancelled_caught:
            log.warning("control client dropped: it does not read its answer", waited_s=ANSWER_S)
            return


async def _answer(methods: Mapping[str, Method], message: str | bytes) -> bytes | None:
    """Return the answer to a message, None to a notification."""
    request = decode_request(message)
    if isinstance(request, Failure):
        return encode(request)
    answer = await _call(methods, request)
    if not request.wants_answer:
        return None
    try:
        encoded = encode(answer)
    except Exception:
        log.exception("a control method returned what JSON cannot say", method=request.method)
        return encode(_internal(answer.id, request.method))
    if len(encoded) > MAX_MESSAGE_BYTES:
        return encode(
            failure(answer.id, Code.TOO_LARGE, f"the answer of {request.method} is over 1 MiB; ask for less")
        )
    return encoded


async def _call(methods: Mapping[str, Method], request: Request) -> Response | Failure:
    """Run the method that a request names; the one place where a method's bug ends."""
    request_id = None if isinstance(request.id, msgspec.UnsetType) else request.id
    method = methods.get(request.method)
    if method is None:
        return failure(
            request_id, Code.METHOD_NOT_FOUND, f"there is no method {request.method!r}", sorted(methods)
        )
    try:
        return Response(request_id, await method(request.params))
    except MethodRefused as refused:
        return failure(request_id, Code.REFUSED, refused.message, refused.data)
    except (ValueError, msgspec.ValidationError) as error:
        return failure(request_id, Code.INVALID_PARAMS, str(error))
    except Exception:
        log.exception("a control method failed", method=request.method)
        return _internal(request_id, request.method)


def _internal(request_id: RequestId, method: str) -> Failure:
    return failure(request_id, Code.INTERNAL, f"{method} failed inside the daemon; its log has the traceback")
