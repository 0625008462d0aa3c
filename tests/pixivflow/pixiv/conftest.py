"""A small real HTTP server that plays Pixiv by a script, and clients pointed at it."""

import json
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import parse_qsl

import h11
import pytest
import trio

from pixivflow.clock import SystemWall
from pixivflow.pixiv.client import open_pixiv_client
from pixivflow.pixiv.credentials import TokenStore
from pixivflow.pixiv.settings import PixivSettings

OAUTH_ERROR = (
    "Error occurred at the OAuth process. Please check your Access Token to fix this. "
    "Error Message: invalid_grant"
)


class Asked:
    """A request as it came over the wire."""

    def __init__(self, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        self.method = method
        self.target = target
        self.path, _, self.query = target.partition("?")
        self.headers = headers
        self.body = body

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode()))


class Answer:
    """What to send back; ``cut`` ends the connection before the announced length, ``hang`` never answers."""

    def __init__(
        self, status=200, body=b"", content_type="application/json", *, headers=(), cut=False, hang=False
    ):
        self.status = status
        self.body = body
        self.headers = [("Content-Type", content_type), *headers]
        self.cut = cut
        self.hang = hang


class ScriptedPixiv:
    """Token endpoint and API under one address; `on` says what a path answers."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.refresh_token = "refresh-0"
        self.rotate = False
        self.expires_in = 3600
        self.valid: set[str] = set()
        self.token_gate: trio.Event | None = None
        self.token_answers: list[Answer] = []
        self.arrived = trio.Event()
        self._issued = 0
        self._scripts: dict[str, list[Answer | Callable[[Asked], Answer]]] = {}

    def on(self, path, *answers):
        """Answer requests of ``path`` one after the other; the last answer stays."""
        self._scripts[path] = list(answers)

    def asked_for(self, path: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.path == path]

    @property
    def refreshes(self) -> int:
        return len(self.asked_for("/auth/token"))

    def json(self, value, status=200, **kwargs) -> Answer:
        return Answer(status, json.dumps(value).encode(), **kwargs)

    def error(self, status, message="", user_message="", **kwargs) -> Answer:
        inner = {"user_message": user_message, "message": message, "reason": "", "user_message_details": {}}
        return self.json({"error": inner}, status, **kwargs)

    def html(self, status, **kwargs) -> Answer:
        return Answer(status, b"<!DOCTYPE html><title>Just a moment...</title>", "text/html", **kwargs)

    def answer(self, **kwargs) -> Answer:
        return Answer(**kwargs)

    def list_of(self, *ids, next_target=None, **more) -> Answer:
        next_url = None if next_target is None else self.url + next_target
        return self.json({"illusts": [{"id": number} for number in ids], "next_url": next_url, **more})

    async def answer_to(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        self.arrived.set()
        if asked.path == "/auth/token":
            if self.token_gate is not None:
                await self.token_gate.wait()
            return self.token_answers.pop(0) if self.token_answers else self._grant(asked)
        script = self._scripts.get(asked.path)
        if asked.path.startswith("/v") and not self._signed_in(asked):
            return self.error(400, OAUTH_ERROR)
        if not script:
            return self.error(404, user_message="Specified end-point doesn't exist.")
        step = script.pop(0) if len(script) > 1 else script[0]
        return step(asked) if callable(step) else step

    def _signed_in(self, asked: Asked) -> bool:
        return asked.headers.get("authorization", "").removeprefix("Bearer ") in self.valid

    def refused_grant(self, message="Invalid refresh token") -> Answer:
        errors = {"system": {"message": message, "code": 1508}}
        return self.json({"has_error": True, "errors": errors, "error": "invalid_grant"}, 400)

    def _grant(self, asked: Asked) -> Answer:
        if (
            asked.form.get("grant_type") == "refresh_token"
            and asked.form["refresh_token"] != self.refresh_token
        ):
            return self.refused_grant()
        self._issued += 1
        if self.rotate:
            self.refresh_token = f"refresh-{self._issued}"
        access = f"access-{self._issued}"
        self.valid.add(access)
        grant = {
            "access_token": access,
            "expires_in": self.expires_in,
            "refresh_token": self.refresh_token,
            "user": {
                "id": "90000001",
                "name": "collector-example",
                "mail_address": "collector@example.invalid",
                "is_premium": True,
                "x_restrict": 2,
            },
        }
        return self.json({**grant, "response": grant})


async def _serve(pixiv: ScriptedPixiv, stream: trio.SocketStream) -> None:
    connection = h11.Connection(h11.SERVER)
    request, body = None, b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await stream.receive_some())
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += event.data
        else:
            break
    if request is None:
        return
    headers = {name.decode().lower(): value.decode() for name, value in request.headers}
    answer = await pixiv.answer_to(Asked(request.method.decode(), request.target.decode(), headers, body))
    if answer.hang:
        await trio.sleep_forever()
    length = len(answer.body) + (10 if answer.cut else 0)
    head = [*answer.headers, ("Content-Length", str(length)), ("Connection", "close")]
    sent = connection.send(h11.Response(status_code=answer.status, headers=head))
    await stream.send_all(sent + answer.body)


@asynccontextmanager
async def loopback(pixiv: ScriptedPixiv) -> AsyncGenerator[ScriptedPixiv]:
    async def handler(stream: trio.SocketStream) -> None:
        async with stream:
            try:
                await _serve(pixiv, stream)
            except trio.BrokenResourceError:
                return

    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, handler, 0, host="127.0.0.1")
        listeners = await nursery.start(serve)
        port = listeners[0].socket.getsockname()[1]
        pixiv.url = f"http://127.0.0.1:{port}"
        yield pixiv
        nursery.cancel_scope.cancel()


@pytest.fixture
async def pixiv():
    async with loopback(ScriptedPixiv()) as server:
        yield server


@pytest.fixture
async def image_server():
    async with loopback(ScriptedPixiv()) as server:
        yield server


@pytest.fixture
def settings(pixiv) -> PixivSettings:
    return PixivSettings(api_url=pixiv.url, oauth_url=pixiv.url, pace_s=0.0, retry_base_s=0.0, timeout_s=5.0)


@pytest.fixture
def store(tmp_path) -> TokenStore:
    return TokenStore(tmp_path / "tokens")


@pytest.fixture
async def client(pixiv, settings, store):
    wall, rng = SystemWall(), random.Random(7)
    async with open_pixiv_client("main", "refresh-0", store, settings, wall=wall, rng=rng) as opened:
        yield opened
