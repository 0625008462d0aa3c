"""HTTP clients whose failures are this package's own errors, with proxies from the settings alone."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx
import trio
from socksio.exceptions import SOCKSError

from pixivflow.pixiv.errors import BadAddress, NetworkFailed

PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")
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
    inner = transport or await _network(checked)
    timeout = httpx.Timeout(timeout_s)
    async with httpx.AsyncClient(transport=TypedTransport(inner), trust_env=False, timeout=timeout) as client:
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
    """A transport that raises NetworkFailed, also while a body is read."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Pass the request on."""
        with typed_failures(request.url.host):
            response = await self._inner.handle_async_request(request)
        if isinstance(response.stream, httpx.AsyncByteStream):
            response.stream = _TypedStream(response.stream, request.url.host)
        return response

    async def aclose(self) -> None:
        """Close the transport inside."""
        await self._inner.aclose()


class _TypedStream(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, host: str) -> None:
        self._inner = inner
        self._host = host

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _TypedChunks(aiter(self._inner), self._host)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _TypedChunks(AsyncIterator[bytes]):
    def __init__(self, inner: AsyncIterator[bytes], host: str) -> None:
        self._inner = inner
        self._host = host

    async def __anext__(self) -> bytes:
        with typed_failures(self._host):
            return await anext(self._inner)
