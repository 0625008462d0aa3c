"""What can be known about the demo: the ledger's view, and what lies at the receivers and on the disk."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import trio

from actors.parts import open_state
from pixivflow.cli.client import call
from pixivflow.cli.demo.scenery import CHANNEL, INBOX, SCHEDULE, Place
from pixivflow.clock import SystemWall
from pixivflow.config import load_base
from pixivflow.ledger.reports import get_slot, list_slots
from pixivflow.simulator.receiver import Post
from protocol.states import CellStatus

NEWEST: Final = 20
ANSWER_S: Final = 5.0


class FileFacts(msgspec.Struct, frozen=True):
    """A file as the ledger knows it."""

    variant: str
    root: str
    path: str
    status: str


class DeliveryFacts(msgspec.Struct, frozen=True):
    """An intent as the ledger knows it."""

    route: str
    status: str
    idempotency_key: str


class CellRow(msgspec.Struct, frozen=True):
    """A cell itself."""

    target_id: str
    status: CellStatus
    work: str | None = None
    title: str | None = None
    reason_code: str | None = None


class CellFacts(msgspec.Struct, frozen=True):
    """A cell with its files and intents."""

    cell: CellRow
    files: tuple[FileFacts, ...] = ()
    deliveries: tuple[DeliveryFacts, ...] = ()


class SlotRow(msgspec.Struct, frozen=True):
    """A slot itself."""

    slot_id: str
    status: str
    occurrence_at: int
    cells: int
    ended_at: int | None = None


class SlotFacts(msgspec.Struct, frozen=True):
    """A slot with its cells."""

    slot: SlotRow
    cells: tuple[CellFacts, ...] = ()


class VisiblePost(msgspec.Struct, frozen=True):
    """A post as a reader of a route sees it."""

    route: str
    key: str
    work: str | None
    files: int


def slots_in_order(slots: Iterable[SlotFacts]) -> tuple[SlotFacts, ...]:
    """Return the slots that have cells (a missed one has none), the oldest first."""
    return tuple(sorted((each for each in slots if each.cells), key=lambda each: each.slot.occurrence_at))


async def ask_slots(socket: Path, known: Mapping[str, SlotFacts]) -> Mapping[str, SlotFacts]:
    """Ask the daemon for its slots; those in ``known`` that have ended are not asked for again.

    Raises `DaemonUnreachable`.
    """
    listed = await call(socket, "slots.list", {"limit": NEWEST, "schedule": SCHEDULE}, deadline_s=ANSWER_S)
    found = dict(known)
    for row in msgspec.convert(listed, tuple[SlotRow, ...]):
        before = found.get(row.slot_id)
        if before is None or before.slot.ended_at is None:
            detail = await call(socket, "slots.get", {"slot_id": row.slot_id}, deadline_s=ANSWER_S)
            found[row.slot_id] = msgspec.convert(detail, SlotFacts)
    return found


async def read_slots(place: Place) -> tuple[SlotFacts, ...]:
    """Read all slots from the ledger of a daemon that has ended. Raises `LedgerLocked`, `LedgerRefused`."""
    config = load_base(place.config, {})
    async with open_state(config, SystemWall()) as ledger:
        rows = await ledger.read(list_slots, NEWEST, SCHEDULE)
        details = [await ledger.read(get_slot, row.slot_id) for row in rows]
    return slots_in_order(msgspec.json.decode(msgspec.json.encode(details), type=tuple[SlotFacts, ...]))


def channel_posts(posts: Iterable[Post]) -> tuple[VisiblePost, ...]:
    """Return what readers of the receiver see."""
    return tuple(VisiblePost(CHANNEL, post.key, post.work, len(post.files)) for post in posts)


async def inbox_posts(place: Place) -> tuple[VisiblePost, ...]:
    """Return what a reader of the folder route sees: one post for each manifest."""
    return await trio.to_thread.run_sync(_inbox_posts, place.inbox)


def _inbox_posts(folder: Path) -> tuple[VisiblePost, ...]:
    found: list[VisiblePost] = []
    for path in sorted(folder.glob("*.json")):
        manifest: dict[str, Any] = msgspec.json.decode(path.read_bytes())
        found.append(VisiblePost(INBOX, manifest["key"], manifest["work"], len(manifest["files"])))
    return tuple(found)


async def files_on_disk(place: Place) -> frozenset[tuple[str, str]]:
    """Return root and relative path of every file that was collected or delivered into a folder."""
    return await trio.to_thread.run_sync(_files_on_disk, place)


def _files_on_disk(place: Place) -> frozenset[tuple[str, str]]:
    places = (
        ("download", place.downloads, place.downloads),
        ("state", place.state, place.state / "cache"),
        (INBOX, place.inbox, place.inbox),
    )
    return frozenset(
        (root, path.relative_to(base).as_posix())
        for root, base, folder in places
        for path in folder.rglob("*")
        if path.is_file()
    )
