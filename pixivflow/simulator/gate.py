"""The front of every simulated host: counts requests, delays them, injects faults."""

from collections.abc import Callable
from typing import Any

import trio

from pixivflow.simulator.connections import CONNECTION, App
from pixivflow.simulator.exchange import Exchange, Message, Receive, Replay, Send
from pixivflow.simulator.faults import DEFAULT_STATUS, Fault, Faults
from pixivflow.simulator.refusals import envelope
from pixivflow.simulator.requests import RequestLog, Role, SeenRequest
from pixivflow.simulator.spoilers import Rewriter, Spoiler

FAULT = "pixivflow.fault"
ADMIN = "/_simulator/"
WALL_PAGE = b"<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>Checking.</body></html>"


class Gate:
    """Wraps an application.

    ``on_unseen`` hears of requests that the application never sees: with the kind of the fault that answered
    in its place, or ``cut`` when the client left before it had sent the whole request.
    """

    def __init__(
        self,
        app: App,
        role: Role,
        *,
        faults: Faults,
        requests: RequestLog,
        latency_s: float = 0.0,
        on_unseen: Callable[[SeenRequest, str], None] | None = None,
    ) -> None:
        self._app = app
        self._role = role
        self._faults = faults
        self._requests = requests
        self._latency_s = latency_s
        self._on_unseen = on_unseen

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["path"].startswith(ADMIN):
            await self._app(scope, receive, send)
            return
        seen = _seen(self._role, scope)
        with self._requests.answering(seen):
            fault = self._faults.take(scope["method"], scope["path"])
            scope[FAULT] = fault
            body = await _read_all(receive)
            if body is None:
                self._note_unseen(seen, "cut")
                return
            await trio.sleep(self._latency_s + (fault.delay_s if fault else 0.0))
            replay = Replay(body, receive)
            exchange = Exchange(scope[CONNECTION], send)
            if fault is None:
                await self._app(scope, replay, exchange.send)
            else:
                await self._misbehave(fault, seen, scope, replay, exchange)

    async def _misbehave(
        self, fault: Fault, seen: SeenRequest, scope: Any, receive: Replay, exchange: Exchange
    ) -> None:
        match fault.kind:
            case "status" | "rate_limit" | "html" | "hang" | "reset":
                self._note_unseen(seen, fault.kind)
                await _answer_instead(fault, self._role, receive, exchange)
            case "truncate" | "stall" | "corrupt" | "wrong_type":
                await self._app(scope, receive, Spoiler(fault, receive, exchange).send)
            case "repeat_cursor" | "empty_page" | "sparse" | "extra_fields" | "repeat_work":
                url = f"{_base(scope)}{scope['path']}?{scope['query_string'].decode('latin-1')}"
                await self._app(scope, receive, Rewriter(fault, url, exchange).send)
            case "lose_answer":
                await self._app(scope, receive, _lost)
                exchange.connection.reset()
            case _:
                await self._app(scope, receive, exchange.send)

    def _note_unseen(self, seen: SeenRequest, word: str) -> None:
        if self._on_unseen is not None:
            self._on_unseen(seen, word)


async def _answer_instead(fault: Fault, role: Role, receive: Replay, exchange: Exchange) -> None:
    if fault.kind == "reset":
        exchange.connection.reset()
    if fault.kind in ("reset", "hang"):
        await receive.until_gone()
        return
    status, media_type, body = _words_of(fault, role)
    headers = [(b"content-type", media_type.encode())]
    if fault.retry_after is not None:
        headers.append((b"retry-after", fault.retry_after.encode()))
    await exchange.answer(status, headers, body)


def _words_of(fault: Fault, role: Role) -> tuple[int, str, bytes]:
    chosen = fault.status if fault.status != DEFAULT_STATUS else None
    if fault.body is not None:
        return fault.status, fault.media_type, fault.body.encode()
    if fault.kind == "rate_limit":
        usual = 403 if role == "api" else 429
        return chosen or usual, "application/json", envelope(message="Rate Limit")
    if fault.kind == "html":
        return chosen or 403, "text/html; charset=UTF-8", WALL_PAGE
    if fault.status >= 500:  # noqa: PLR2004  the class of server faults
        return fault.status, "text/html; charset=UTF-8", b"<html><body>Server Error</body></html>"
    body = envelope(message=fault.message, user_message=fault.user_message)
    return fault.status, "application/json", body


def _seen(role: Role, scope: Any) -> SeenRequest:
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    query = scope["query_string"].decode("latin-1")
    return SeenRequest(role, scope["method"], scope["path"], query, headers, trio.current_time())


def _base(scope: Any) -> str:
    host, port = scope["server"]
    return f"http://{host}:{port}"


async def _lost(_message: Message) -> None:
    """Send nothing."""


async def _read_all(receive: Receive) -> bytes | None:
    """Give the request's whole body, so that no answer leaves the client stuck in sending it; None if it is cut."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)
