"""Answers that are spoiled on their way to the client."""

from collections.abc import Callable
from typing import Any

import msgspec

from pixivflow.simulator.exchange import Exchange, Message, Replay
from pixivflow.simulator.faults import Fault, FaultKind

_KEPT_OF_A_WORK = ("id", "type", "image_urls", "page_count", "meta_single_page", "meta_pages")


class Spoiler:
    """Passes an answer on, spoiled."""

    def __init__(self, fault: Fault, receive: Replay, exchange: Exchange) -> None:
        self._fault = fault
        self._receive = receive
        self._exchange = exchange
        self._left = fault.keep_bytes or 0

    async def send(self, message: Message) -> None:
        """Take a part of the answer."""
        if message["type"] == "http.response.start":
            await self._exchange.send(self._head(message))
        elif self._fault.kind == "wrong_type":
            await self._exchange.send(message)
        else:
            await self._body(message)

    def _head(self, start: Message) -> Message:
        headers = dict(start["headers"])
        if self._fault.keep_bytes is None:
            self._left = int(headers.get(b"content-length", b"0")) // 2
        if self._fault.kind == "wrong_type":
            headers[b"content-type"] = b"text/html"
        return {**start, "headers": list(headers.items())}

    async def _body(self, message: Message) -> None:
        data = bytes(message.get("body", b""))
        kept = data[: self._left]
        self._left -= len(kept)
        if self._fault.kind == "corrupt":
            await self._exchange.send({**message, "body": kept + bytes(len(data) - len(kept))})
            return
        cut = len(kept) < len(data)
        await self._exchange.send({"type": "http.response.body", "body": kept, "more_body": True})
        if not cut:
            return
        if self._fault.kind == "truncate":
            await self._exchange.connection.aclose()
        await self._receive.until_gone()


class Rewriter:
    """Passes JSON on with other contents."""

    def __init__(self, fault: Fault, url: str, exchange: Exchange) -> None:
        self._fault = fault
        self._url = url
        self._exchange = exchange
        self._start: Message = {}
        self._body = bytearray()

    async def send(self, message: Message) -> None:
        """Take a part of the answer."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        self._body += message.get("body", b"")
        if message.get("more_body", False):
            return
        page = msgspec.json.decode(bytes(self._body))
        changed = _rewritten(page, self._fault.kind, self._url)
        headers = [(name, value) for name, value in self._start["headers"] if name != b"content-length"]
        await self._exchange.answer(self._start["status"], headers, msgspec.json.encode(changed))


def _rewritten(page: dict[str, Any], kind: FaultKind, url: str) -> dict[str, Any]:
    match kind:
        case "repeat_cursor":
            return page | {"next_url": url}
        case "empty_page":
            return page | {"illusts": []}
        case "repeat_work":
            works = page["illusts"]
            return page | {"illusts": works + works[:1]}
        case "sparse":
            return _each_work(page, _sparse)
        case _:
            return _each_work(page, _with_extras) | {"an_unknown_key": {"banner": None}}


def _each_work(page: dict[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    if "illust" in page:
        return page | {"illust": change(page["illust"])}
    return page | {"illusts": [change(work) for work in page.get("illusts", [])]}


def _sparse(work: dict[str, Any]) -> dict[str, Any]:
    return {key: work[key] for key in _KEPT_OF_A_WORK} | {"user": {"id": None}}


def _with_extras(work: dict[str, Any]) -> dict[str, Any]:
    return work | {
        "seasonal_effect": None,
        "event_banners": [],
        "restriction_attributes": ["restricted_mode"],
    }
