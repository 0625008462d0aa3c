"""What a route needs to know to send: the live half of a delivery, never frozen and never stored."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

import httpx
import msgspec

Roots = Mapping[Literal["download", "state"], Path]
ArrayFormat = Literal["comma", "repeat", "json"]

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PROXY_SCHEMES = frozenset({"http", "https", "socks5", "socks5h"})
OWN_HEADERS = frozenset(
    {"content-length", "content-type", "host", "idempotency-key", "transfer-encoding", "connection"}
)
"""Headers that the sender writes itself."""


class RouteRefused(ValueError):
    """A route's settings can't work; the text names the route, the key and what is expected."""


class MultipartSettings(msgspec.Struct, frozen=True):
    """A receiver of ``multipart/form-data`` over HTTP."""

    dedup: ClassVar[Literal["key", "none"]] = "key"

    name: str
    url: str
    headers: dict[str, str] = {}
    file_field: str = "files"
    array_format: ArrayFormat = "comma"
    method: str = "POST"
    readiness_url: str | None = None
    proxy: str | None = None
    timeout_s: float = 300.0
    """Seconds for one whole send, from the connection to the last byte of the answer."""

    def __repr__(self) -> str:
        return f"MultipartSettings({self.name!r})"  # headers and addresses may hold secrets


class FolderSettings(msgspec.Struct, frozen=True):
    """A folder that another program reads."""

    dedup: ClassVar[Literal["key", "none"]] = "key"

    name: str
    path: Path


RouteSettings = MultipartSettings | FolderSettings


def check_route(settings: RouteSettings) -> None:
    """Raise `RouteRefused` for settings with which no send could ever begin."""
    if isinstance(settings, FolderSettings):
        return
    _check_address(settings.name, "url", settings.url)
    if settings.readiness_url is not None:
        _check_address(settings.name, "readiness_url", settings.readiness_url)
    if settings.proxy is not None:
        _check_address(settings.name, "proxy", settings.proxy, _PROXY_SCHEMES)
    if not _HEADER_NAME.fullmatch(settings.method):
        raise RouteRefused(f"route {settings.name}: method is {settings.method!r}, expected one like POST")
    for name, value in settings.headers.items():
        _check_header(settings.name, name, value)


def _check_address(
    route: str, key: str, address: str, schemes: frozenset[str] = frozenset({"http", "https"})
) -> None:
    try:
        url = httpx.URL(address)
        url.host.encode("idna")
    except (httpx.InvalidURL, UnicodeError) as exc:
        raise RouteRefused(
            f"route {route}: {key} is no address, expected one like https://host/path"
        ) from exc
    if url.scheme not in schemes or not url.host:
        expected = ", ".join(f"{scheme}://" for scheme in sorted(schemes))
        raise RouteRefused(f"route {route}: {key} must begin with one of {expected} and name a host")


def _check_header(route: str, name: str, value: str) -> None:
    if not _HEADER_NAME.fullmatch(name):
        raise RouteRefused(f"route {route}: {name!r} is no name of a header; use letters, digits and -")
    if name.lower() in OWN_HEADERS:
        raise RouteRefused(f"route {route}: the header {name} is written by PixivFlow; remove it")
    if value != value.strip() or not value.replace("\t", " ").isprintable():
        raise RouteRefused(
            f"route {route}: the value of header {name} has line ends, control characters or spaces around it; "
            "a secret read from a file often ends with a line end"
        )
