"""The table of slots, targets, works, files and posts."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from rich import box
from rich.table import Table
from rich.text import Text

from pixivflow.cli.demo.facts import CellFacts, SlotFacts, VisiblePost
from pixivflow.cli.demo.scenery import ROUTES
from pixivflow.cli.demo.verdict import sent_key
from pixivflow.cli.output import plain
from protocol.states import ArtifactStatus, CellStatus

WIDE: Final = 100
NARROW: Final = 64
GAP: Final = 2
_OPEN: Final[Mapping[CellStatus, str]] = MappingProxyType(
    {
        CellStatus.PENDING: "being chosen",
        CellStatus.NO_CANDIDATE: "nothing to post",
    }
)
_PICTURE: Final = "original"


def table_of(slots: Sequence[SlotFacts], posts: Iterable[VisiblePost], width: int) -> Table:
    """Return what is known now, at most ``width`` columns wide where that can be."""
    visible = tuple(posts)
    seen = Counter((post.route, post.key) for post in visible)
    rows = [
        (
            Text(slot_name(each, width) if number == 0 else "", "bold"),
            Text(cell.cell.target_id),
            Text(work_text(cell), "" if cell.cell.work else "dim"),
            Text(files_text(cell, visible)),
            posts_text(cell, seen, named=width >= NARROW),
        )
        for each in slots
        for number, cell in enumerate(each.cells)
    ]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, GAP - 1, 0, 0), header_style="bold")
    taken = sum(max((row[column].cell_len for row in rows), default=0) + GAP for column in (0, 1, 3, 4))
    for name in ("slot", "target", "work", "files", "posts"):
        limit = max(9, width - taken - GAP) if name == "work" else None
        table.add_column(name, no_wrap=True, overflow="ellipsis", max_width=limit)
    last = {sum(len(each.cells) for each in slots[: count + 1]) - 1 for count in range(len(slots) - 1)}
    for number, row in enumerate(rows):
        table.add_row(*row, end_section=number in last)
    return table


def slot_name(slot: SlotFacts, width: int) -> str:
    """Return the slot's id, or where that is too wide, its time (UTC)."""
    at = datetime.fromtimestamp(slot.slot.occurrence_at / 1000, UTC)
    return slot.slot.slot_id if width >= WIDE else f"{at:%H:%M:%S}"


def work_text(cell: CellFacts) -> str:
    """Return the id and the title of the cell's work, or what the cell waits for."""
    if cell.cell.work is None:
        return _OPEN.get(cell.cell.status, str(cell.cell.status))
    title = " ".join(plain(cell.cell.title or "").split())
    return f"{cell.cell.work.rpartition(':')[2]} {title}".rstrip()


def files_text(cell: CellFacts, posts: Iterable[VisiblePost]) -> str:
    """Return how many pages are stored, or were until their delivery."""
    pages = [file for file in cell.files if file.variant == _PICTURE]
    kept = sum(file.status == ArtifactStatus.STORED for file in pages)
    if kept < len(pages) and not cell.cell.status.terminal:
        return f"{kept} of {len(pages)}"
    if kept or not cell.deliveries:
        return f"{kept} kept" if kept else ""
    keys = {intent.idempotency_key for intent in cell.deliveries}
    posted = max((post.files for post in posts if post.key in keys), default=len(pages))
    return f"{posted} dropped"


def posts_text(cell: CellFacts, seen: Mapping[tuple[str, str], int], *, named: bool) -> Text:
    """Return how often each of the target's routes shows the post, with the routes' names or not; once is right."""
    keys = {intent.route: sent_key(intent.route, intent.idempotency_key) for intent in cell.deliveries}
    shown = Text()
    for route in ROUTES.get(cell.cell.target_id, tuple(keys)):
        count = seen.get((route, keys.get(route, "")), 0)
        style = {0: "dim", 1: "green"}.get(count, "bold red")
        shown.append(", " if shown else "", "dim").append(f"{route} {count}" if named else str(count), style)
    return shown
