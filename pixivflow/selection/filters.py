"""Which candidates are refused by what the list says about them: no request, no ledger."""

import re
import unicodedata
from collections.abc import Callable
from datetime import date
from typing import Literal, TypeVar
from urllib.parse import urlsplit

import msgspec

from pixivflow.pixiv.models import Illust
from pixivflow.selection.days import day_of, window
from pixivflow.selection.report import SkipCode
from protocol.specs import Filters

PLACEHOLDER_HOST = "s.pximg.net"
STILL_TYPES = frozenset({"illust", "manga"})
AI_GENERATED = 2
ALL_AGES, R18, R18G = 0, 1, 2
_RATING_NAMES = {ALL_AGES: "all ages", R18: "R-18", R18G: "R-18G"}
_Ordered = TypeVar("_Ordered", int, date)
_LIMIT_KIND = re.compile(r"/common/images/(limit_[^/.?]+)")


class Refusal(msgspec.Struct, frozen=True):
    """Why a candidate is not taken; ``detail`` names the filter or the fact, and the values."""

    code: SkipCode
    detail: str


class _Case(msgspec.Struct, frozen=True):
    illust: Illust
    filters: Filters
    since: date | None
    until: date | None


def refusal(illust: Illust, filters: Filters, now_ms: int) -> Refusal | None:
    """Why a work is refused, or None.

    The facts of a stub mean nothing, so nothing but ``restricted`` is said about one. An unknown counter or
    date never passes a filter that asks for it. Raises ValueError for a day that can't be read.
    """
    if kind := _placeholder(illust):
        return Refusal(SkipCode.RESTRICTED, kind)
    if illust.type not in STILL_TYPES:
        return Refusal(SkipCode.UNSUPPORTED_MEDIA, illust.type)
    if fault := _metadata_fault(illust):
        return Refusal(SkipCode.INVALID_METADATA, fault)
    case = _Case(illust, filters, *window(filters, now_ms))
    detail = next((found for check in _CHECKS if (found := check(case))), None)
    return Refusal(SkipCode.FILTERED, detail) if detail else None


def rating(illust: Illust) -> Literal[0, 1, 2]:
    """0 for all ages, 1 for R-18, 2 for R-18G, by the rating and by the tag that goes with it."""
    names = {fold(tag.name) for tag in illust.tags}
    if illust.x_restrict >= R18G or "r-18g" in names:
        return 2
    if illust.x_restrict == R18 or "r-18" in names:
        return 1
    return 0


def fold(tag: str) -> str:
    """Write a tag as it is compared: without regard to case, width and outer spaces."""
    return unicodedata.normalize("NFKC", tag).casefold().strip()


def _placeholder(illust: Illust) -> str | None:
    urls = (*illust.original_urls, illust.image_urls.large or "", illust.image_urls.medium or "")
    kind = next((found[1] for url in urls if (found := _LIMIT_KIND.search(url))), None)
    if kind or illust.restricted:
        return kind or "not visible to this account"
    if any(urlsplit(url).hostname == PLACEHOLDER_HOST for url in illust.original_urls):
        return "a placeholder stands for a page"
    return None


def _metadata_fault(illust: Illust) -> str | None:
    urls = illust.original_urls
    if illust.id <= 0:
        return f"impossible id {illust.id}"
    if not urls:
        return "no page has an address"
    if not all(urls):
        return f"page {urls.index('')} has no address"
    if len(urls) < illust.page_count:
        return f"{len(urls)} addresses for {illust.page_count} pages"
    return None


def _muted(case: _Case) -> str | None:
    return "muted by the account" if case.illust.is_muted else None


def _age_rating(case: _Case) -> str | None:
    """With ``only`` on either rating, all ages are out; a rating is in unless it says ``exclude``."""
    filters, found = case.filters, rating(case.illust)
    wanted = {R18: filters.r18, R18G: filters.r18g}
    allowed = found not in wanted or wanted[found] != "exclude"
    if found == ALL_AGES:
        allowed = "only" not in wanted.values()
    if allowed:
        return None
    return f"rated {_RATING_NAMES[found]}: r18 = {filters.r18}, r18g = {filters.r18g}"


def _ai(case: _Case) -> str | None:
    generated = case.illust.illust_ai_type == AI_GENERATED
    if case.filters.ai == "exclude" and generated:
        return "ai = exclude: AI-generated"
    if case.filters.ai == "only" and not generated:
        return f"ai = only: illust_ai_type {case.illust.illust_ai_type}"
    return None


def _exclude_tags(case: _Case) -> str | None:
    excluded = {fold(tag) for tag in case.filters.exclude_tags}
    for tag in case.illust.tags:
        for name in (tag.name, tag.translated_name):
            if name and fold(name) in excluded:
                return f"exclude_tags: {name}"
    return None


def _below(name: str, value: _Ordered | None, least: _Ordered | None) -> str | None:
    if least is None:
        return None
    if value is None:
        return f"{name} = {least}: unknown"
    return f"{name} = {least}: {value}" if value < least else None


def _above(name: str, value: _Ordered | None, most: _Ordered | None) -> str | None:
    if most is None:
        return None
    if value is None:
        return f"{name} = {most}: unknown"
    return f"{name} = {most}: {value}" if value > most else None


def _counters(case: _Case) -> str | None:
    work, filters = case.illust, case.filters
    return (
        _below("min_bookmarks", work.total_bookmarks, filters.min_bookmarks)
        or _above("max_bookmarks", work.total_bookmarks, filters.max_bookmarks)
        or _below("min_views", work.total_view, filters.min_views)
    )


def _pages(case: _Case) -> str | None:
    pages = len(case.illust.original_urls)
    return _below("min_pages", pages, case.filters.min_pages) or _above(
        "max_pages", pages, case.filters.max_pages
    )


def _days(case: _Case) -> str | None:
    day = None if case.illust.create_date is None else day_of(case.illust.create_date)
    return _below("since", day, case.since) or _above("until", day, case.until)


_CHECKS: tuple[Callable[[_Case], str | None], ...] = (
    _muted,
    _age_rating,
    _ai,
    _exclude_tags,
    _days,
    _pages,
    _counters,
)
