"""Lines for people: one line, bounded, without secrets."""

import base64
import re
from collections.abc import Iterable
from urllib.parse import unquote

import httpx

from pixivflow.delivery.settings import MultipartSettings

MAX_LINE = 300
SHORTEST_SECRET = 4
_USERINFO = re.compile(r"(?<=//)[^/\s@]+@")
_BLANK = re.compile(r"[\s\x00-\x1f\x7f\u2028\u2029]+")
_SCHEMES = frozenset({"basic", "bearer", "digest", "token", "apikey"})


def one_line(text: str, limit: int = MAX_LINE) -> str:
    """Return ``text`` on one line of at most ``limit`` characters, without the userinfo of addresses."""
    line = _USERINFO.sub("***@", _BLANK.sub(" ", text)).strip()
    line = "".join(letter if letter.isprintable() else "�" for letter in line)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def secrets_of(settings: MultipartSettings) -> tuple[str, ...]:
    """Return everything in a route's settings that must not be shown, longest first."""
    found: set[str] = set()
    for value in settings.headers.values():
        found.update((value, *(word for word in value.split() if word.lower() not in _SCHEMES)))
    for address in (settings.url, settings.readiness_url, settings.proxy):
        if address:
            found.update(_secrets_of_address(address))
    return tuple(sorted((text for text in found if len(text) >= SHORTEST_SECRET), key=len, reverse=True))


def scrub(line: str, secrets: Iterable[str]) -> str:
    """Return ``line`` with every secret replaced by ``***``."""
    for secret in secrets:
        line = line.replace(secret, "***")
    return line


def _secrets_of_address(address: str) -> Iterable[str]:
    url = httpx.URL(address)
    raw = url.userinfo.decode()
    if raw:
        plain = f"{url.username}:{url.password}"
        yield from (raw, plain, url.username, url.password, unquote(raw), _basic(plain))
    yield from (value for _, value in url.params.multi_items())


def _basic(userinfo: str) -> str:
    return base64.b64encode(userinfo.encode()).decode()


def basic_authorization(url: httpx.URL) -> str | None:
    """Return the Authorization header that an address with userinfo asks for."""
    if not url.userinfo:
        return None
    return f"Basic {_basic(f'{url.username}:{url.password}')}"
