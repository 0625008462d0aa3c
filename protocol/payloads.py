"""What is frozen when a work is committed for delivery: everything a send needs but addresses and secrets."""

from typing import Literal

import msgspec

from protocol.works import WorkRef


class PayloadFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file to be sent, as it was when the work was committed."""

    artifact_id: int
    root: Literal["download", "state"]
    """The folder that ``path`` is relative to: ``download_dir`` or ``state_dir``."""
    path: str
    name: str
    bytes: int
    sha256: str
    media_type: str


class Payload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One frozen message for one route."""

    key: str
    """The idempotency key, equal in every attempt."""
    route: str
    work: WorkRef
    target_id: str
    slot_id: str | None
    fields: tuple[tuple[str, str], ...] = ()
    """Rendered text fields, in the order in which they are sent."""
    files: tuple[PayloadFile, ...] = ()


class WorkFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known about a work beside its files: kept in the ledger, used by templates and sidecars."""

    work: WorkRef
    revision: str
    title: str
    author_id: int
    author_name: str
    author_account: str = ""
    type: str = "illust"
    caption: str = ""
    tags: tuple[str, ...] = ()
    translated_tags: tuple[str | None, ...] = ()
    created_at: str = ""
    """ISO 8601 with offset, as Pixiv gave it; empty when unknown."""
    page_count: int = 1
    width: int = 0
    height: int = 0
    x_restrict: int = 0
    ai_type: int = 0
    total_view: int | None = None
    total_bookmarks: int | None = None
