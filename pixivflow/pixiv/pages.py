"""Pixiv's answers read into models: nulls count as "not said", one bad entry does not spoil a page."""

from typing import Any

import msgspec

from pixivflow.pixiv.models import Illust, User

_OPTIONAL = ("create_date", "total_view", "total_bookmarks")
"""Fields whose default says "not known": a value that can't be read is as good as none."""


class Page(msgspec.Struct, frozen=True):
    """One page of a list. ``unreadable`` counts the entries that could not be read."""

    illusts: tuple[Illust, ...]
    next_url: str | None
    unreadable: int = 0


class ArtistPage(msgspec.Struct, frozen=True):
    """One page of an artist's works; ``gone`` when Pixiv no longer has the artist."""

    page: Page
    gone: bool = False


class _RawPage(msgspec.Struct, frozen=True):
    illusts: tuple[msgspec.Raw, ...]
    next_url: str | None = None


class _RawOwner(msgspec.Struct, frozen=True):
    user: User | msgspec.UnsetType | None = msgspec.UNSET
    illusts: tuple[msgspec.Raw, ...] | None = None


class _RawDetail(msgspec.Struct, frozen=True):
    illust: msgspec.Raw


def read_page(body: bytes) -> Page:
    """Read a list. Raises msgspec.DecodeError when it is no list at all."""
    raw = msgspec.json.decode(body, type=_RawPage)
    entries = tuple(_entry(item) for item in raw.illusts)
    readable = tuple(entry for entry in entries if entry is not None)
    return Page(readable, raw.next_url or None, len(entries) - len(readable))


def read_artist_page(body: bytes) -> ArtistPage:
    """Read a list of an artist's works. Raises msgspec.DecodeError when it is no list at all."""
    owner = msgspec.json.decode(body, type=_RawOwner)
    missing = owner.user is None or (isinstance(owner.user, User) and not owner.user.id)
    if missing and not owner.illusts:
        return ArtistPage(Page((), None), gone=True)
    return ArtistPage(read_page(body))


def read_detail(body: bytes) -> Illust:
    """Read the detail of one work. Raises msgspec.DecodeError when it can't be read."""
    return read_illust(bytes(msgspec.json.decode(body, type=_RawDetail).illust))


def read_illust(body: bytes) -> Illust:
    """Read one work, leniently in everything but its id. Raises msgspec.DecodeError."""
    try:
        return msgspec.json.decode(body, type=Illust)
    except msgspec.ValidationError:
        facts = _without_nulls(msgspec.json.decode(body))
    try:
        return msgspec.convert(facts, Illust)
    except msgspec.ValidationError:
        if not isinstance(facts, dict):
            raise
        known = {name: value for name, value in facts.items() if name not in _OPTIONAL}
        return msgspec.convert(known, Illust)


def _entry(raw: msgspec.Raw) -> Illust | None:
    try:
        return read_illust(bytes(raw))
    except msgspec.DecodeError:
        return None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value if inner is not None]
    return value
