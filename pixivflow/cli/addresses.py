"""Which work somebody means: an id, or one of the address forms that name one illustration."""

import re
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

LARGEST_ID: Final = 10**15
ACCEPTED: Final = (
    "an id such as 123456, https://www.pixiv.net/artworks/123456, the address of one of its images on i.pximg.net, "
    "or pixiv://illusts/123456"
)
_HOSTS: Final = frozenset({"pixiv.net", "www.pixiv.net", "touch.pixiv.net", "phixiv.net", "www.phixiv.net"})
_IMAGE_HOST: Final = re.compile(r"(?:i\.pximg\.net|(?:i[0-9]*|img)(?:[0-9]*)\.pixiv\.net)")
_ID: Final = re.compile(r"(?:illustration:)?([0-9]{1,19})")
_PATH: Final = re.compile(r"(?:/[a-z]{2}(?:-[A-Za-z]{2,4})?)?/(?:artworks|i)/([0-9]{1,19})")
_IMAGE: Final = re.compile(r"([0-9]{1,19})(?:[-_][A-Za-z0-9_]+)*\.[A-Za-z0-9]{2,5}")
_OTHER: Final = (
    (re.compile(r"/novel/|/n/[0-9]|//novels/"), "a novel"),
    (re.compile(r"/artworks/unlisted/"), "an unlisted work, which the App API does not give"),
    (re.compile(r"/series/"), "a series"),
    (re.compile(r"/bookmark"), "bookmarks"),
    (re.compile(r"/users/|/u/[0-9]|member\.php|//users/|/@|pixiv\.me/"), "a user"),
    (re.compile(r"/tags/|/search"), "a search"),
    (re.compile(r"ranking\.php"), "a ranking"),
)


class AddressRefused(ValueError):
    """A text that names no single illustration; it says what was found and what is accepted."""


def parse_work(text: str) -> int:
    """Return the id of the illustration that a text names. Raises `AddressRefused`."""
    given = text.strip().strip("<>\"'")
    found = _ID.fullmatch(given)
    number = found[1] if found else _from_address(given)
    if number is None:
        raise AddressRefused(f"{_short(given)!r} is {_what(given)}; accepted are {ACCEPTED}")
    if not 0 < int(number) < LARGEST_ID:
        raise AddressRefused(f"{_short(given)!r} is no id of a work; accepted are {ACCEPTED}")
    return int(number)


def _from_address(text: str) -> str | None:
    address = text if "://" in text else f"https://{text}"
    try:
        parts = urlsplit(address)
        host = (parts.hostname or "").lower()
    except ValueError:
        return None
    path = unquote(parts.path).rstrip("/")
    if parts.scheme == "pixiv":
        return _whole(re.compile(r"/([0-9]{1,19})"), path) if host == "illusts" else None
    if parts.scheme not in ("http", "https"):
        return None
    if host in _HOSTS:
        return _from_query(parts.query) if path.endswith("/member_illust.php") else _whole(_PATH, path)
    return _whole(_IMAGE, path.rpartition("/")[2]) if _IMAGE_HOST.fullmatch(host) else None


def _from_query(query: str) -> str | None:
    values = parse_qs(query).get("illust_id", [])
    return values[0] if len(values) == 1 and re.fullmatch(r"[0-9]{1,19}", values[0]) else None


def _whole(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.fullmatch(text)
    return found[1] if found else None


def _what(text: str) -> str:
    return next((name for pattern, name in _OTHER if pattern.search(text)), "no work that can be recognised")


def _short(text: str) -> str:
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return shown if len(shown) <= 80 else f"{shown[:79]}…"  # noqa: PLR2004 - a line of the terminal
