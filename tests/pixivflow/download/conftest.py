"""An image host of our own on loopback that says exactly what a test tells it to, and real pictures."""

import io
import os
import random
import subprocess
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import trio
from PIL import Image

from pixivflow.download.store import Store
from pixivflow.pixiv.images import open_image_host
from pixivflow.pixiv.settings import PixivSettings


class Answer(msgspec.Struct, frozen=True):
    """What the host answers, byte for byte."""

    body: bytes = b""
    status: int = 200
    headers: tuple[str, ...] = ()
    framing: str = "length"
    """``length`` announces the whole body, ``close`` nothing, ``chunked`` ends properly after what is sent."""
    sent: int | None = None
    """How much of the body goes out; None is all of it."""
    hold: bool = False
    """Whether the connection stays open after that, without another byte."""

    def wire(self) -> bytes:
        sent = self.body[: self.sent]
        framing = {
            "length": f"Content-Length: {len(self.body)}",
            "close": "X-Framing: close",
            "chunked": "Transfer-Encoding: chunked",
        }
        lines = (f"HTTP/1.1 {self.status} Answer", framing[self.framing], "Connection: close", *self.headers)
        body = f"{len(sent):x}\r\n".encode() + sent + b"\r\n0\r\n\r\n" if self.framing == "chunked" else sent
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Host:
    """A server for one test; ``answers`` by path, ``asked`` remembers the requests."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.busy = 0
        self.busiest = 0
        self.together = 0
        """How many requests must be there before the first is answered."""
        self.gate = trio.Event()

    def put(self, path: str, body: bytes, **how: Any) -> str:
        """Serve ``body`` at ``path``, in the way of `Answer`, and give the address."""
        self.answers[path] = Answer(body, **how)
        return self.base + path

    async def serve(self, stream: trio.SocketStream) -> None:
        async with stream:
            self.busy += 1
            self.busiest = max(self.busiest, self.busy)
            try:
                await self._answer(stream)
            except trio.BrokenResourceError:
                pass
            finally:
                self.busy -= 1

    async def _answer(self, stream: trio.SocketStream) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            data = await stream.receive_some()
            if not data:
                return
            head += data
        self.asked.append(head.decode())
        if len(self.asked) >= self.together:
            self.gate.set()
        await self.gate.wait()
        answer = self.answers.get(head.split()[1].decode(), Answer(b"gone", 404))
        await stream.send_all(answer.wire())
        if answer.hold:
            await trio.sleep_forever()


@asynccontextmanager
async def open_host() -> AsyncGenerator[Host]:
    async with trio.open_nursery() as nursery:
        host = Host("")
        listeners = await nursery.start(partial(trio.serve_tcp, host.serve, 0, host="127.0.0.1"))
        host.base = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        yield host
        nursery.cancel_scope.cancel()


@pytest.fixture
async def host() -> AsyncGenerator[Host]:
    async with open_host() as opened:
        yield opened


@pytest.fixture
async def images() -> AsyncGenerator[object]:
    async with open_image_host(PixivSettings(), transport=httpx.AsyncHTTPTransport(verify=False)) as opened:
        yield opened


@pytest.fixture
def limiter() -> trio.CapacityLimiter:
    return trio.CapacityLimiter(3)


@pytest.fixture
def store(images, limiter) -> Store:
    return Store(images, limiter)


@pytest.fixture
def chunky(images, limiter) -> Store:
    """A store that writes often."""
    return Store(images, limiter, chunk=1000)


@pytest.fixture(scope="session")
def pictures() -> dict[str, bytes]:
    noise = random.Random(7).randbytes(90 * 70 * 3)
    drawn = Image.frombytes("RGB", (90, 70), noise)
    return {
        "jpg": _encoded([drawn], "JPEG", quality=95),
        "progressive": _encoded([drawn], "JPEG", quality=95, progressive=True),
        "png": _encoded([drawn], "PNG"),
        "gif": _encoded([drawn, drawn.rotate(90)], "GIF"),
        "webp": _encoded([drawn], "WEBP"),
    }


def _encoded(frames: list[Image.Image], kind: str, **options: object) -> bytes:
    target = io.BytesIO()
    more = {"save_all": True, "append_images": frames[1:]} if frames[1:] else {}
    frames[0].save(target, kind, **more, **options)
    return target.getvalue()


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A file system of 64 KiB; only root can have one."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = os.geteuid() == 0 and _run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place))
    if not mounted:
        pytest.skip("a small file system needs root and mount")
    yield place
    _run("umount", str(place))


def _run(*command: str) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
