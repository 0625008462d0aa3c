"""Pixiv's objects as its App API sends them: unknown fields ignored, every field but the id optional.

Source: observed answers of the App API; Pixiv publishes no specification.
"""

import re
from datetime import datetime

import msgspec

from protocol.works import WorkKind, WorkRef

LIMIT_PREFIX = "/common/images/limit_"
_PATH_TIME = re.compile(r"/img/(\d{4}/\d{2}/\d{2}/\d{2}/\d{2}/\d{2})/")


class Tag(msgspec.Struct, frozen=True):
    """A tag and its translation into the account's language."""

    name: str = ""
    translated_name: str | None = None


class User(msgspec.Struct, frozen=True):
    """The author of a work; stubs have no id."""

    id: int | None = None
    name: str = ""
    account: str = ""


class SinglePage(msgspec.Struct, frozen=True):
    """Where the original of a one-page work lies; empty for several pages."""

    original_image_url: str | None = None


class ImageUrls(msgspec.Struct, frozen=True):
    """Addresses of one page."""

    square_medium: str | None = None
    medium: str | None = None
    large: str | None = None
    original: str | None = None


class MetaPage(msgspec.Struct, frozen=True):
    """One page of a work with several."""

    image_urls: ImageUrls = ImageUrls()


class Illust(msgspec.Struct, frozen=True):
    """An illustration, manga or ugoira, from a list or from its detail. None is "not said"."""

    id: int
    title: str = ""
    type: str = "illust"
    image_urls: ImageUrls = ImageUrls()
    caption: str = ""
    restrict: int = 0
    user: User = User()
    tags: tuple[Tag, ...] = ()
    create_date: datetime | None = None
    page_count: int = 1
    width: int = 0
    height: int = 0
    sanity_level: int = 0
    x_restrict: int = 0
    meta_single_page: SinglePage = SinglePage()
    meta_pages: tuple[MetaPage, ...] = ()
    total_view: int | None = None
    total_bookmarks: int | None = None
    visible: bool = True
    is_muted: bool = False
    illust_ai_type: int = 0

    @property
    def ref(self) -> WorkRef:
        """The work's identity."""
        return WorkRef(WorkKind.ILLUSTRATION, self.id)

    @property
    def original_urls(self) -> tuple[str, ...]:
        """Addresses of the originals, in page order; empty when Pixiv gave none."""
        if self.meta_pages:
            return tuple(page.image_urls.original or "" for page in self.meta_pages)
        single = self.meta_single_page.original_image_url
        return (single,) if single else ()

    @property
    def restricted(self) -> bool:
        """Whether this is a stub: the account may not have the content, and the facts mean nothing."""
        thumbnails = (self.image_urls.square_medium, self.image_urls.medium, self.image_urls.large)
        return not self.visible or any(
            LIMIT_PREFIX in (url or "") for url in (*self.original_urls, *thumbnails)
        )

    @property
    def revision(self) -> str:
        """The time of the last upload as the first page's address has it (JST, ``YYYY/MM/DD/HH/MM/SS``).

        Empty when the address has none. It changes when pages are replaced under the same id.
        """
        urls = self.original_urls
        found = _PATH_TIME.search(urls[0]) if urls else None
        return found[1] if found else ""
