"""HTTP clients whose failures are this package's own errors, with proxies from the settings alone."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Self

import httpx
import trio
from socksio.exceptions import SOCKSError

from pixivflow.pixiv.errors import BadAddress, NetworkFailed

PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")
STREAM = "pixivflow.stream"
_TEXT_LIMIT = 160
_LAST_PORT = 65_535


@asynccontextmanager
async def open_http(
    proxy: str | None, timeout_s: float, transport: httpx.AsyncBaseTransport | None
) -> AsyncGenerator[httpx.AsyncClient]:
    """Open a client that ignores environment proxies and follows no redirect.

    Raises BadAddress for a proxy that can't be used. A ``transport`` given takes the place of the network.
    """
    checked = None if proxy is None else checked_proxy(proxy)
    typed = (
        TypedTransport(await _network(checked), runs_out=True)
        if transport is None
        else TypedTransport(transport)
    )
    async with httpx.AsyncClient(
        transport=typed, trust_env=False, timeout=httpx.Timeout(timeout_s)
    ) as client:
        yield client


def checked_proxy(address: str) -> httpx.Proxy:
    """Read the address of a proxy. Raises BadAddress, which never shows a user name or password."""
    expected = "expected a form like http://host:3128 or socks5h://host:1080"
    scheme = address.partition("://")[0].strip().lower() if "://" in address else ""
    if scheme not in PROXY_SCHEMES:
        hint = "; write socks5:// or socks5h:// for a SOCKS proxy" if scheme.startswith("socks") else ""
        raise BadAddress(f"the proxy address has no known scheme, {expected}{hint}")
    try:
        proxy = httpx.Proxy(address.strip())
    except (httpx.InvalidURL, ValueError):
        raise BadAddress(f"the proxy address can't be read, {expected}") from None
    if not proxy.url.host or (proxy.url.port or 1) > _LAST_PORT:
        raise BadAddress(f"the proxy address lacks a usable host or port, {expected}")
    return proxy


async def _network(proxy: httpx.Proxy | None) -> httpx.AsyncHTTPTransport:
    # Reading the certificate store takes tens of milliseconds.
    context = await trio.to_thread.run_sync(lambda: httpx.create_ssl_context(trust_env=False))
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
    return httpx.AsyncHTTPTransport(verify=context, trust_env=False, limits=limits, proxy=proxy)


@contextmanager
def typed_failures(host: str) -> Iterator[None]:
    """Turn what the HTTP library raises about ``host`` into NetworkFailed."""
    try:
        yield
    except httpx.LocalProtocolError:
        # Its text quotes the offending header, which may be the credentials.
        raise NetworkFailed(f"{host}: the request can't be put on the wire") from None
    except httpx.TimeoutException as exc:
        raise NetworkFailed(f"{host}: no answer in time ({type(exc).__name__})") from exc
    except (httpx.RequestError, SOCKSError) as exc:
        detail = str(exc)[:_TEXT_LIMIT] or "no detail"
        raise NetworkFailed(f"{host}: {type(exc).__name__}: {detail}") from exc


class TypedTransport(httpx.AsyncBaseTransport):
    """A transport that raises NetworkFailed, also while a body is read.

    ``runs_out``: a body of ``inner`` ends by itself soon after it was closed, as those of the network do.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport, *, runs_out: bool = False) -> None:
        self._inner = inner
        self._runs_out = runs_out

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Pass the request on."""
        with typed_failures(request.url.host):
            response = await self._inner.handle_async_request(request)
        if isinstance(response.stream, httpx.AsyncByteStream):
            stream = TypedStream(response.stream, request.url.host, runs_out=self._runs_out)
            response.stream = stream
            response.extensions = {**response.extensions, STREAM: stream}
        return response

    async def aclose(self) -> None:
        """Close the transport inside."""
        await self._inner.aclose()


class TypedStream(httpx.AsyncByteStream, AsyncIterator[bytes]):
    """A body that raises NetworkFailed and may be left in the middle; it can be read once."""

    def __init__(self, inner: httpx.AsyncByteStream, host: str, *, runs_out: bool) -> None:
        self._inner = inner
        self._host = host
        self._runs_out = runs_out
        self._chunks: AsyncIterator[bytes] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._chunks is None:
            self._chunks = aiter(self._inner)
        with typed_failures(self._host):
            return await anext(self._chunks)

    async def aclose(self) -> None:
        """Close the body inside, which ends its connection when there is more to come."""
        await self._inner.aclose()
        if self._chunks is not None and self._runs_out:
            # The library reads through nested generators; on the closed connection they run to their end.
            with suppress(httpx.RequestError):
                async for _ in self._chunks:
                    pass
