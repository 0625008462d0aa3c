"""The resolved target as a cell keeps it: what to collect and what to do with it, without secrets."""

from typing import Literal

import msgspec

from protocol.works import WorkKind

Mode = Literal["search", "ranking", "artist", "work"]


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which works are looked at."""

    mode: Mode
    tags: tuple[str, ...] = ()
    tags_match: Literal["all", "any"] = "all"
    match: Literal["partial", "exact", "title_caption"] = "partial"
    sort: Literal["newest", "oldest", "popular"] = "newest"
    ranking: str = "day"
    ranking_date: str | None = None
    """``YYYY-MM-DD``, ``TODAY`` or ``YESTERDAY`` (JST days); None is the newest published ranking."""
    artist_id: int | None = None
    work: int | None = None


class Filters(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which of them are refused."""

    exclude_tags: tuple[str, ...] = ()
    min_bookmarks: int | None = None
    max_bookmarks: int | None = None
    min_views: int | None = None
    ai: Literal["any", "exclude", "only"] = "any"
    r18: Literal["exclude", "include", "only"] = "exclude"
    r18g: Literal["exclude", "include", "only"] = "exclude"
    min_pages: int | None = None
    max_pages: int | None = None
    since: str | None = None
    """First JST day: ``YYYY-MM-DD``, ``TODAY``, ``YESTERDAY`` or ``LAST_N_DAYS:n``."""
    until: str | None = None
    """Last JST day, in the same forms."""


class CellSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Everything a run or a recovery of the cell needs to know about its target."""

    target_id: str
    account: str
    source: Source
    filters: Filters = Filters()
    kind: WorkKind = WorkKind.ILLUSTRATION
    scan_limit: int = 5
    storage: Literal["persistent", "cache"] = "persistent"
    path: str = "{author_id}-{author_name}/{id}_{title}_p{page}"
    names: Literal["portable", "linux"] = "portable"
    sidecar: bool = True
    routes: tuple[str, ...] = ()
    fields: dict[str, str] = {}
    timeout_s: float = 1800.0
    retry_for_s: float = 21600.0
