"""A receiver over real HTTP that does what its script says, and works to be delivered."""

import hashlib
import io
import json
import socket
import struct
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import h11
import msgspec
import pytest
import python_multipart
import trio

from pixivflow.delivery.settings import Roots
from protocol.payloads import Payload, PayloadFile, WorkFacts
from protocol.works import WorkKind, WorkRef

WORK = WorkRef(WorkKind.ILLUSTRATION, 123)
KEY = "pixivflow:channel:illustration:123:morning@20261130T230000Z:landscape"


class Say(msgspec.Struct, frozen=True):
    """Answer so, whatever was posted."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class Lose(msgspec.Struct, frozen=True):
    """Take the post, then cut the connection without an answer."""


class CutAnswer(msgspec.Struct, frozen=True):
    """Take the post, announce an answer and send half of it."""


class Reset(msgspec.Struct, frozen=True):
    """Reset the connection after the first piece of the body."""


class Hang(msgspec.Struct, frozen=True):
    """Take the post and stay silent."""


class Deaf(msgspec.Struct, frozen=True):
    """Read the head and nothing more."""


Act = Say | Lose | CutAnswer | Reset | Hang | Deaf


class Seen(msgspec.Struct, frozen=True):
    """One request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    fields: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str, str, bytes], ...] = ()
    """(field, file name, media type, content)"""


class Receiver:
    """What became visible, by key; and every request."""

    def __init__(self) -> None:
        self.script: deque[Act] = deque()
        self.seen: list[Seen] = []
        self.visible: dict[str, Seen] = {}
        self.connections = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/submissions"

    async def handle(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        async with stream:
            try:
                await self._exchange(stream)
            except (trio.BrokenResourceError, h11.RemoteProtocolError):
                return

    async def _exchange(self, stream: trio.SocketStream) -> None:
        http = h11.Connection(h11.SERVER)
        request = await _next_event(http, stream)
        act = self.script.popleft() if self.script else None
        if isinstance(act, Deaf):
            await trio.sleep_forever()
        body = b""
        while isinstance(event := await _next_event(http, stream), h11.Data):
            body += event.data
            if isinstance(act, Reset):
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
        seen = _parse(request, body)
        self.seen.append(seen)
        await self._answer(http, stream, act, seen)

    async def _answer(
        self, http: h11.Connection, stream: trio.SocketStream, act: Act | None, seen: Seen
    ) -> None:
        key = seen.headers.get("idempotency-key", "")
        if not isinstance(act, Say) and seen.method != "GET":
            word = "replayed" if key in self.visible else "accepted"
            self.visible.setdefault(key, seen)
            act = act or Say(201, json.dumps({"status": word, "id": 77}).encode())
        await trio.lowlevel.checkpoint()
        match act or Say(200):
            case Say(status, body, headers):
                response = h11.Response(
                    status_code=status, headers=[*headers, ("content-length", str(len(body)))]
                )
                await stream.send_all(
                    http.send(response) + http.send(h11.Data(body)) + http.send(h11.EndOfMessage())
                )
            case CutAnswer():
                await stream.send_all(b"HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\n{")
            case Hang():
                await trio.sleep_forever()


async def _next_event(http: h11.Connection, stream: trio.SocketStream) -> h11.Event:
    await trio.lowlevel.checkpoint()
    while (event := http.next_event()) is h11.NEED_DATA:
        http.receive_data(await stream.receive_some(65536))
    return event


def _parse(request: h11.Request, body: bytes) -> Seen:
    headers = {name.decode(): value.decode() for name, value in request.headers}
    fields: list[tuple[str, str]] = []
    files: list[tuple[str, str, str, bytes]] = []

    def on_file(file: python_multipart.multipart.File) -> None:
        file.file_object.seek(0)
        media = file.content_type or ""
        files.append((file.field_name.decode(), file.file_name.decode(), media, file.file_object.read()))
        file.close()

    def on_field(field: python_multipart.multipart.Field) -> None:
        fields.append((field.field_name.decode(), (field.value or b"").decode()))

    if headers.get("content-type", "").startswith("multipart/"):
        python_multipart.parse_form(
            {
                "Content-Type": headers["content-type"].encode(),
                "Content-Length": headers["content-length"].encode(),
            },
            io.BytesIO(body),
            on_field,
            on_file,
        )
    return Seen(request.method.decode(), request.target.decode(), headers, tuple(fields), tuple(files))


@asynccontextmanager
async def open_receiver() -> AsyncGenerator[Receiver]:
    """Serve a receiver on a free port of loopback until the block ends."""
    receiver = Receiver()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, receiver.handle, 0, host="127.0.0.1"))
        receiver.port = listeners[0].socket.getsockname()[1]
        yield receiver
        nursery.cancel_scope.cancel()


@pytest.fixture
async def receiver() -> AsyncGenerator[Receiver]:
    async with open_receiver() as served:
        yield served


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    (tmp_path / "downloads").mkdir()
    (tmp_path / "state").mkdir()
    return {"download": tmp_path / "downloads", "state": tmp_path / "state"}


Store = Callable[..., PayloadFile]


@pytest.fixture
def store(roots: Roots) -> Store:
    """Write a file below the download folder and return its frozen description."""

    def write(name: str, content: bytes, path: str | None = None) -> PayloadFile:
        target = roots["download"] / (path or name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        return PayloadFile(1, "download", path or name, name, len(content), digest, "image/png")

    return write


@pytest.fixture
def payload() -> Callable[..., Payload]:
    def make(
        files: Sequence[PayloadFile] = (),
        fields: Sequence[tuple[str, str]] = (("title", "x"),),
        key: str = KEY,
    ) -> Payload:
        return Payload(
            key, "channel", WORK, "landscape", "morning@20261130T230000Z", tuple(fields), tuple(files)
        )

    return make


@pytest.fixture
def facts() -> WorkFacts:
    return WorkFacts(
        work=WORK,
        revision="2026/11/30/08/00/00",
        title="Évening 夕焼け",
        author_id=9,
        author_name="あき",
        author_account="aki",
        caption="one<br />two &amp; <a href='/jump.php?x'>link</a>",
        tags=("風景", "sky"),
        translated_tags=("scenery", None),
        created_at="2026-11-30T08:00:00+09:00",
        page_count=3,
        x_restrict=1,
        ai_type=2,
        total_bookmarks=500,
    )
