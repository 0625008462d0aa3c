"""The sidecar: a JSON file beside a work's pages that says what they are.

Schema 1, in this order: ``schema``, ``kind`` (``illustration``), ``id``, ``url`` of the work's page, ``revision``,
``type``, ``title``, ``author`` (``id``, ``name``, ``account``), ``caption`` (HTML, in full), ``tags`` (``name``, ``translated``),
``created_at`` (ISO 8601 with offset), ``page_count``, ``width``, ``height`` (of page 0), ``x_restrict``, ``ai_type``, ``total_view``,
``total_bookmarks``, ``slot_id``, ``target_id``, ``pages`` (``page``, ``file`` relative to the sidecar, ``bytes``, ``sha256``,
``media_type``, ``url``). Keys may be added within a schema, never removed or given another meaning. The same
input gives the same bytes.
"""

import os
import re
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path, PurePosixPath

import msgspec
import trio

from pixivflow.download.cleaning import is_reserved, trim
from pixivflow.download.partfile import PartFile, StoredFile
from pixivflow.download.places import Place
from pixivflow.download.plan import PlannedFile
from protocol.payloads import WorkFacts

SCHEMA = 1


class Author(msgspec.Struct, frozen=True):
    """Who made the work."""

    id: int
    name: str
    account: str


class SidecarTag(msgspec.Struct, frozen=True):
    """A tag and what Pixiv translates it to."""

    name: str
    translated: str | None


class SidecarPage(msgspec.Struct, frozen=True):
    """One stored page."""

    page: int
    file: str
    bytes: int
    sha256: str
    media_type: str
    url: str


class Sidecar(msgspec.Struct, frozen=True):
    """The whole document."""

    schema: int
    kind: str
    id: int
    url: str
    revision: str
    type: str
    title: str
    author: Author
    caption: str
    tags: tuple[SidecarTag, ...]
    created_at: str
    page_count: int
    width: int
    height: int
    x_restrict: int
    ai_type: int
    total_view: int | None
    total_bookmarks: int | None
    slot_id: str | None
    target_id: str
    pages: tuple[SidecarPage, ...]


def sidecar_path(planned: Sequence[PlannedFile]) -> str:
    """Give the path of the sidecar: the first page's without its ``_pN`` and with ``.json``."""
    first = planned[0]
    path = PurePosixPath(first.path)
    short = trim(re.sub(rf"_p0*{first.page}$", "", path.stem))
    name = path.stem if not short or is_reserved(short) else short
    return str(path.with_name(f"{name}.json"))


def sidecar_bytes(
    facts: WorkFacts,
    files: Sequence[tuple[PlannedFile, StoredFile]],
    *,
    slot_id: str | None,
    target_id: str,
    path: str,
) -> bytes:
    """Give the document as it is written."""
    folder = PurePosixPath(path).parent
    document = Sidecar(
        schema=SCHEMA,
        kind=facts.work.kind.value,
        id=facts.work.id,
        url=facts.work.url,
        revision=facts.revision,
        type=facts.type,
        title=facts.title,
        author=Author(facts.author_id, facts.author_name, facts.author_account),
        caption=facts.caption,
        tags=_tags(facts),
        created_at=facts.created_at,
        page_count=facts.page_count,
        width=facts.width,
        height=facts.height,
        x_restrict=facts.x_restrict,
        ai_type=facts.ai_type,
        total_view=facts.total_view,
        total_bookmarks=facts.total_bookmarks,
        slot_id=slot_id,
        target_id=target_id,
        pages=tuple(_page(planned, stored, folder) for planned, stored in files),
    )
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


async def write_sidecar(
    root: Path,
    facts: WorkFacts,
    files: Sequence[tuple[PlannedFile, StoredFile]],
    *,
    slot_id: str | None,
    target_id: str,
    path: str,
) -> str:
    """Write the sidecar to ``root / path``, durable on return, in place of an older one; give ``path``.

    Raises `StorageFailed`, `DiskFull` or `PathRefused`.
    """
    data = sidecar_bytes(facts, files, slot_id=slot_id, target_id=target_id, path=path)
    await trio.to_thread.run_sync(_write, Place(root, path), data)
    return path


def _write(place: Place, data: bytes) -> None:
    place.check()
    part = PartFile(place)
    try:
        part.write(data)
        part.replace()
    except Exception:
        part.drop()
        raise
    finally:
        part.close()


def _tags(facts: WorkFacts) -> tuple[SidecarTag, ...]:
    pairs = zip_longest(facts.tags, facts.translated_tags[: len(facts.tags)])
    return tuple(SidecarTag(name, translated) for name, translated in pairs)


def _page(planned: PlannedFile, stored: StoredFile, folder: PurePosixPath) -> SidecarPage:
    return SidecarPage(
        page=planned.page,
        file=os.path.relpath(planned.path, folder),
        bytes=stored.bytes,
        sha256=stored.sha256,
        media_type=stored.media_type,
        url=planned.url,
    )
