"""Asks the running daemon through its control socket."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import trio
from trio_websocket import ConnectionClosed, HandshakeError

from pixivflow.unix_websocket import SocketPathTooLong, connect
from protocol.rpc import Code, Failure, Request, UnreadableAnswer, decode_answer, encode


class DaemonUnreachable(Exception):
    """No answer from a daemon; the text names the socket and the reason.

    ``sent`` is true when the request may have been carried out all the same, ``absent`` when nobody listens.
    """

    def __init__(self, message: str, *, sent: bool = False, absent: bool = False) -> None:
        super().__init__(f"{message}; the request may have been carried out" if sent else message)
        self.sent = sent
        self.absent = absent


class DaemonWentAway(Exception):
    """The daemon ended while its cells were waited for."""


class CallRefused(Exception):
    """The daemon answered that it does not do this; ``code`` is a `protocol.rpc.Code`."""

    def __init__(self, message: str, data: Any = None, code: int = Code.REFUSED) -> None:
        super().__init__(message)
        self.message = message
        self.data = data
        self.code = code


async def call(socket_path: Path, method: str, params: Mapping[str, Any], *, deadline_s: float = 10) -> Any:
    """Return what the daemon's method answers; raises `DaemonUnreachable` or `CallRefused`."""
    request = encode(Request(method, params, 1)).decode()
    sent = False
    try:
        with trio.fail_after(deadline_s):
            async with connect(socket_path) as connection:
                sent = True
                await connection.send_message(request)
                answer = decode_answer(await connection.get_message())
    except (
        OSError,
        trio.TooSlowError,
        ConnectionClosed,
        HandshakeError,
        SocketPathTooLong,
        UnreadableAnswer,
    ) as error:
        absent = isinstance(error, FileNotFoundError | ConnectionRefusedError)
        raise DaemonUnreachable(_reason(socket_path, error), sent=sent, absent=absent) from error
    if isinstance(answer, Failure):
        raise CallRefused(answer.error.message, answer.error.data, answer.error.code)
    return answer.result


def _reason(path: Path, error: Exception) -> str:
    match error:
        case FileNotFoundError():
            reason = f"no daemon is running: there is no socket {path}"
        case ConnectionRefusedError():
            reason = f"no daemon is running: nobody listens on {path}"
        case PermissionError():
            reason = f"no access to {path}: become the daemon's user, root or a member of control.group"
        case trio.TooSlowError():
            reason = f"the daemon behind {path} does not answer in time"
        case ConnectionClosed():
            reason = f"the daemon behind {path} closed the connection without an answer"
        case SocketPathTooLong():
            reason = str(error)
        case _:
            reason = f"the daemon behind {path} cannot be asked: {error}"
    return reason
