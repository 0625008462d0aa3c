"""The sender of a ``multipart`` route: one form over HTTP, streamed from disk."""

import importlib.metadata
import secrets
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, aclosing, asynccontextmanager
from functools import partial
from typing import cast

import httpx
import msgspec
import trio
from socksio.exceptions import SOCKSError

from pixivflow.clock import Wall
from pixivflow.delivery.answers import MAX_ANSWER
from pixivflow.delivery.artifacts import FileUnreadable, OpenFile, open_verified
from pixivflow.delivery.form import FormBody
from pixivflow.delivery.keys import header_value
from pixivflow.delivery.settings import MultipartSettings, Roots
from pixivflow.delivery.verdicts import from_failure, read_answer
from pixivflow.delivery.wording import basic_authorization, one_line, scrub, secrets_of
from protocol.payloads import Payload
from protocol.verdicts import Verdict, VerdictKind

CONNECT_S = 30.0
READINESS_S = 10.0

NETWORK_FAULTS = (httpx.HTTPError, httpx.InvalidURL, trio.TooSlowError, SOCKSError, OSError)
"""All that receiver, proxy and network can make the client raise."""


class MultipartSender:
    """Sends messages to one receiver. Every send has a connection of its own.

    A kept one may have died unseen, and would then cost an attempt.
    """

    def __init__(
        self, settings: MultipartSettings, roots: Roots, client: httpx.AsyncClient, wall: Wall
    ) -> None:
        self._settings = settings
        self._roots = roots
        self._client = client
        self._wall = wall
        self._secrets = secrets_of(settings)

    async def ready(self) -> bool:
        """Whether the readiness address answers 2xx in time; True where none is configured."""
        await trio.lowlevel.checkpoint()
        address = self._settings.readiness_url
        if address is None:
            return True
        url, headers = self._addressed(address)
        try:
            with trio.fail_after(READINESS_S):
                async with self._client.stream("GET", url, headers=headers) as response:
                    return response.is_success
        except NETWORK_FAULTS:
            return False

    async def send(self, payload: Payload, open_file: Roots | None = None) -> Verdict:
        """Send one message and return what came of it; ``open_file`` replaces the roots given at opening.

        Raises `FileMissing`, before the first byte leaves: all files are read and compared first. Only for a
        file that shrinks during the send it is raised later, and the request then stays incomplete.
        """
        await trio.lowlevel.checkpoint()
        roots = self._roots if open_file is None else open_file
        with ExitStack() as stack:
            verify = partial(open_verified, payload.files, roots, stack, trio.from_thread.check_cancelled)
            try:
                files = await trio.to_thread.run_sync(verify)
                verdict = await self._post(payload, files)
            except FileUnreadable as exc:
                verdict = Verdict(VerdictKind.RETRY, error_class="artifact_unreadable", detail=str(exc))
        return msgspec.structs.replace(verdict, detail=one_line(scrub(verdict.detail, self._secrets)))

    async def _post(self, payload: Payload, files: tuple[OpenFile, ...]) -> Verdict:
        await trio.lowlevel.checkpoint()
        body = FormBody(payload.fields, self._settings.file_field, files, secrets.token_hex(16))
        url, headers = self._addressed(self._settings.url)
        headers.update(
            {
                "Content-Type": body.content_type,
                "Content-Length": str(body.length),
                "Idempotency-Key": header_value(payload.key),
            }
        )
        try:
            with trio.fail_after(self._settings.timeout_s):
                request = self._client.build_request(self._settings.method, url, headers=headers)
                request.stream = body  # as content= it would be wrapped in a generator that nobody closes
                async with aclosing(await self._client.send(request, stream=True)) as response:
                    answer = await _read_bounded(response)
        except NETWORK_FAULTS as exc:
            return from_failure(exc, body.handed_over)
        return read_answer(response.status_code, response.headers, answer, now_ms=self._wall.now_ms())

    def _addressed(self, address: str) -> tuple[httpx.URL, httpx.Headers]:
        """Return an address without userinfo and the headers for it: credentials only for their own origin."""
        url = httpx.URL(address)
        headers = httpx.Headers(encoding="utf-8")
        basic = basic_authorization(url)
        if basic is not None:
            headers["Authorization"] = basic
        if _origin(url) == _origin(httpx.URL(self._settings.url)):
            headers.update(httpx.Headers(self._settings.headers, encoding="utf-8"))
        return url.copy_with(userinfo=b""), headers


async def _read_bounded(response: httpx.Response) -> bytes:
    """Read the answer as it came, at most `MAX_ANSWER` bytes of it."""
    answer = b""
    async with aclosing(cast("AsyncGenerator[bytes]", response.aiter_raw())) as chunks:
        async for chunk in chunks:
            answer += chunk
            if len(answer) >= MAX_ANSWER:
                break
    return answer[:MAX_ANSWER]


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


@asynccontextmanager
async def open_multipart(
    settings: MultipartSettings, roots: Roots, wall: Wall, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncGenerator[MultipartSender]:
    """Open the sender of one receiver; its connections are closed at the end."""
    limit = min(CONNECT_S, settings.timeout_s)
    client = httpx.AsyncClient(
        transport=transport,
        proxy=settings.proxy,
        verify=await trio.to_thread.run_sync(_tls_context(settings)),
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(None, connect=limit),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
        headers={
            "User-Agent": f"pixivflow/{importlib.metadata.version('pixivflow')}",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        },
    )
    async with client:
        yield MultipartSender(settings, roots, client, wall)


def _tls_context(settings: MultipartSettings) -> Callable[[], ssl.SSLContext]:
    """Return what makes the TLS context; without an https address it trusts nobody and costs nothing."""
    addresses = (settings.url, settings.readiness_url, settings.proxy)
    if any(address and httpx.URL(address).scheme == "https" for address in addresses):
        return httpx.create_ssl_context
    return partial(ssl.SSLContext, ssl.PROTOCOL_TLS_CLIENT)
