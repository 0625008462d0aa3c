"""The table of slots, targets, works, files and posts."""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from rich import box
from rich.table import Table
from rich.text import Text

from pixivflow.cli.demo.facts import CellFacts, SlotFacts, VisiblePost
from pixivflow.cli.demo.scenery import INBOX, ROUTES, SCHEDULE
from pixivflow.cli.demo.verdict import sent_key
from protocol.states import ArtifactStatus, CellStatus

NARROW: Final = 64
_OPEN: Final = {
    CellStatus.PENDING: "is being chosen",
    CellStatus.SELECTED: "chosen",
    CellStatus.ARTIFACT_READY: "stored",
    CellStatus.DELIVERY_PENDING: "on its way",
}
_PICTURE: Final = "original"


def table_of(slots: Sequence[SlotFacts], posts: Iterable[VisiblePost], width: int) -> Table:
    """Return what is known now; a narrow terminal gets shorter columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False, title_justify="left")
    table.add_column("slot", no_wrap=True)
    table.add_column("target", no_wrap=True)
    table.add_column("work", no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column("files", no_wrap=True)
    table.add_column("posts", no_wrap=True)
    seen = Counter((post.route, post.key) for post in posts)
    for each in slots:
        for number, cell in enumerate(each.cells):
            last = number == len(each.cells) - 1
            name = slot_name(each, width) if number == 0 else ""
            table.add_row(
                Text(name, "bold"),
                cell.cell.target_id,
                _work(cell, width),
                files_text(cell),
                _posts(cell, seen, width),
                end_section=last,
            )
    return table


def slot_name(slot: SlotFacts, width: int) -> str:
    """Return the slot's id, or on a narrow terminal its time."""
    at = datetime.fromtimestamp(slot.slot.occurrence_at / 1000, UTC)
    return f"{at:%H:%M:%S}" if width < NARROW + 40 else f"{SCHEDULE}@{at:%Y%m%dT%H%M%SZ}"


def work_text(cell: CellFacts) -> str:
    """Return the id and the title of the cell's work, or what the cell waits for."""
    if cell.cell.work is None:
        return _OPEN.get(cell.cell.status, str(cell.cell.status))
    title = plain(cell.cell.title or "")
    return f"{cell.cell.work.rpartition(':')[2]} {title or '(no title)'}".rstrip()


def files_text(cell: CellFacts) -> str:
    """Return how many pages are stored, and whether they were dropped after their delivery."""
    pages = [file for file in cell.files if file.variant == _PICTURE]
    kept = sum(file.status == ArtifactStatus.STORED for file in pages)
    if any(file.status == ArtifactStatus.PLANNED for file in pages):
        return f"{kept} of {len(pages)}"
    if cell.cell.status is CellStatus.SUBMITTED and kept == 0:
        return "dropped"
    return f"{kept} kept" if pages else ""


def plain(title: str) -> str:
    """Return a title without what could play tricks on a terminal: controls, directions, line breaks."""
    visible = (" " if unicodedata.category(letter)[0] in "CZ" else letter for letter in title)
    return " ".join("".join(visible).split())


def _work(cell: CellFacts, width: int) -> Text:
    text = work_text(cell)
    return Text(text if width >= NARROW else text.split(" ")[0], "dim" if cell.cell.work is None else "")


def _posts(cell: CellFacts, seen: Counter[tuple[str, str]], width: int) -> Text:
    """Return how often each of the routes shows the post; once is right."""
    intents = {
        intent.route: sent_key(intent.route, intent.idempotency_key) for intent in cell.deliveries
    }
    shown = Text()
    for route in ROUTES.get(cell.cell.target_id, tuple(intents)):
        count = seen[route, intents.get(route, "")]
        style = {0: "dim", 1: "green"}.get(count, "bold red")
        name = route if width >= NARROW else route[:2]
        shown.append(" " if shown else "").append(f"{name} {count}", style)
    return shown


def is_folder(route: str) -> bool:
    """Whether the route delivers into a folder."""
    return route == INBOX
