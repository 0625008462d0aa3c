"""The works and authors of the simulated Pixiv."""

from datetime import datetime, timedelta, timezone
from typing import Annotated, Literal

import msgspec

JST = timezone(timedelta(hours=9), "JST")
Extension = Literal["jpg", "png", "gif"]
Positive = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
StubKind = Literal["unknown", "sanity_level", "unviewable", "mypixiv", "r18", "r18g"]


class SimUser(msgspec.Struct, frozen=True):
    """An author; ``followed`` says how the signed-in account follows them."""

    id: int
    name: str
    account: str
    comment: str = "架空の作者です。\r\nAn invented author."
    followed: Literal["public", "private"] | None = None


class SimWork(msgspec.Struct, frozen=True, kw_only=True):
    """One work. Extensions repeat when there are fewer of them than pages.

    ``stub`` withholds the content from the account; ``deleted`` leaves a gap: lists drop the work after
    they were cut into pages, everything else answers 404. ``uploaded`` (default: ``created``) is the time
    in the addresses, so another one means another revision.
    """

    id: int
    title: str
    author: SimUser
    created: Annotated[datetime, msgspec.Meta(tz=True)]
    type: Literal["illust", "manga", "ugoira"] = "illust"
    tags: tuple[str, ...] = ()
    caption: str = ""
    caption_in_lists: bool = True
    page_count: Positive = 1
    width: Positive = 720
    height: Positive = 1018
    restrict: int = 0
    x_restrict: int = 0
    ai_type: int = 1
    bookmarks: int = 100
    views: int = 1000
    comments: int = 3
    stub: StubKind | None = None
    extensions: Annotated[tuple[Extension, ...], msgspec.Meta(min_length=1)] = ("jpg",)
    deleted: bool = False
    muted: bool = False
    uploaded: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    hashed: bool = False
    delays: tuple[int, ...] = ()
    bookmark_id: int | None = None
    bookmark_restrict: Literal["public", "private"] = "public"

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of every page, in pixels."""
        return self.width, self.height

    @property
    def frame_delays(self) -> tuple[int, ...]:
        """Milliseconds of each frame of an animation; nothing for other works."""
        if self.type != "ugoira":
            return ()
        return self.delays or (100, 100, 100, 400)

    @property
    def upload_time(self) -> datetime:
        """When the files were last put up, in JST."""
        return (self.uploaded or self.created).astimezone(JST)

    def extension(self, page: int) -> Extension:
        """Give the extension of the original of a page, without the dot."""
        return self.extensions[page % len(self.extensions)]
