"""Which files a work becomes: addresses and paths of its pages, decided before the first byte."""

import re
from datetime import timedelta, timezone
from urllib.parse import urlsplit

import msgspec

from pixivflow.download.errors import UnsupportedWork
from pixivflow.download.names import file_path
from pixivflow.pixiv.errors import WorkRestricted
from pixivflow.pixiv.models import LIMIT_PREFIX, Illust
from protocol.payloads import WorkFacts
from protocol.specs import CellSpec

JST = timezone(timedelta(hours=9))
PLACEHOLDER_HOST = "s.pximg.net"
_PICTURE = re.compile(r"\.(jpe?g|png|gif|webp)$", re.IGNORECASE)


class PlannedFile(msgspec.Struct, frozen=True):
    """One page before it is fetched."""

    page: int
    """Counted from 0, as Pixiv does."""
    variant: str
    url: str
    path: str
    """Relative to the root, with ``/``."""


def facts_of(illust: Illust) -> WorkFacts:
    """Give what is kept about a work beside its files."""
    created = illust.create_date
    if created is not None and created.tzinfo is None:
        created = created.replace(tzinfo=JST)
    return WorkFacts(
        work=illust.ref,
        revision=illust.revision,
        title=illust.title,
        author_id=illust.user.id or 0,
        author_name=illust.user.name,
        author_account=illust.user.account,
        type=illust.type,
        caption=illust.caption,
        tags=tuple(tag.name for tag in illust.tags),
        translated_tags=tuple(tag.translated_name for tag in illust.tags),
        created_at=created.isoformat() if created else "",
        page_count=max(illust.page_count, len(illust.original_urls)),
        width=illust.width,
        height=illust.height,
        x_restrict=illust.x_restrict,
        ai_type=illust.illust_ai_type,
        total_view=illust.total_view,
        total_bookmarks=illust.total_bookmarks,
    )


def is_placeholder(url: str) -> bool:
    """Whether the address shows a "cannot be shown" picture and never the work."""
    host, path = _host_and_path(url)
    return host == PLACEHOLDER_HOST or path.startswith(LIMIT_PREFIX)


def plan_files(illust: Illust, spec: CellSpec) -> tuple[PlannedFile, ...]:
    """Give one file for each page, in page order, with distinct paths.

    Raises `WorkRestricted` for stubs and placeholders, `UnsupportedWork` for ugoira and for works that lack the
    address of a page, and `TemplateRefused`. A path is never chosen by what lies on the disk.
    """
    urls = illust.original_urls
    if illust.restricted or any(map(is_placeholder, urls)):
        raise WorkRestricted(f"{illust.ref}: Pixiv shows a placeholder; the account may not have this work")
    if illust.type == "ugoira":
        # Its original is the first frame only; that still must not pass for the work.
        raise UnsupportedWork(f"{illust.ref}: animations (ugoira) can't be downloaded yet")
    facts = facts_of(illust)
    if len(urls) < facts.page_count or not all(urls):
        known = sum(map(bool, urls))
        raise UnsupportedWork(f"{illust.ref}: Pixiv gave addresses of {known} of {facts.page_count} pages")
    return tuple(
        PlannedFile(
            page=page,
            variant="original",
            url=url,
            path=str(file_path(spec.path, facts, page, _extension(illust, url), spec.names)),
        )
        for page, url in enumerate(urls)
    )


def _extension(illust: Illust, url: str) -> str:
    """Give the page's own extension; the name keeps it even where the signature disagrees."""
    found = _PICTURE.search(_host_and_path(url)[1])
    if found is None:
        raise UnsupportedWork(f"{illust.ref}: the address {url} ends in no known picture extension")
    return found[1].lower()


def _host_and_path(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", ""
    return parts.hostname or "", parts.path
