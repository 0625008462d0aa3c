"""What became of cells that somebody waited for: the judgement, its exit code, and how it is told."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import msgspec

from pixivflow.cli import exits
from pixivflow.cli.output import plain, when, work_id, work_url
from pixivflow.ledger.reports import DeliveryView, FileView
from protocol.reasons import MEANINGS, Reason
from protocol.states import OPEN_CELL_STATUSES, CellStatus

FILES_SHOWN: Final = 12
Roots = Mapping[str, Path]
"""The folders that paths of files are relative to, by the name of the root."""


class CellFacts(msgspec.Struct, frozen=True):
    """A cell, as ``cells.get`` tells of it."""

    id: int
    target_id: str
    account: str
    status: CellStatus
    state: str
    due_at: int
    slot_id: str | None = None
    work: str | None = None
    title: str | None = None
    attempts: int = 0
    reason_code: str | None = None
    reason: str | None = None
    created_at: int = 0
    ended_at: int | None = None
    login_needed: bool = False
    cooldown_until: int | None = None
    report: dict[str, Any] | None = None


class CellStory(msgspec.Struct, frozen=True):
    """A cell with its files and deliveries."""

    cell: CellFacts
    files: tuple[FileView, ...] = ()
    deliveries: tuple[DeliveryView, ...] = ()


class Result(StrEnum):
    """What a cell came to, for the exit code."""

    DONE = "done"
    NOTHING = "nothing"
    PARTLY = "partly"
    FAILED = "failed"
    OPEN = "open"


def result_of(cell: CellFacts) -> Result:
    """Judge a cell by its status."""
    if cell.status in OPEN_CELL_STATUSES:
        return Result.OPEN
    match cell.status:
        case CellStatus.SUBMITTED:
            return Result.DONE
        case CellStatus.NO_CANDIDATE | CellStatus.DUPLICATE:
            return Result.NOTHING
        case CellStatus.PARTIAL:
            return Result.PARTLY
        case _:
            return Result.FAILED


def exit_code(results: Collection[Result]) -> int:
    """Return 0 when everything went well or there was nothing new, 1 all failed, 3 some did, 4 some are open."""
    if Result.OPEN in results:
        return exits.UNCERTAIN
    if results and all(result is Result.FAILED for result in results):
        return exits.FAILURE
    return exits.PARTLY if {Result.FAILED, Result.PARTLY} & set(results) else exits.OK


def hint_of(reason_code: str | None) -> str:
    """Return what a reason code means for a person; empty when it is unknown."""
    try:
        return "" if reason_code is None else MEANINGS[Reason(reason_code)].hint
    except ValueError:
        return ""


def refusal_of(cell: CellFacts) -> str:
    """Return why the one work that a cell was about was not taken."""
    report = cell.report or {}
    passed_over = [*report.get("skipped", ()), *report.get("unavailable", ())]
    detail = next((entry["detail"] for entry in passed_over if entry.get("detail")), None)
    return plain(detail or cell.reason or cell.reason_code or cell.status)


def waiting_for(cell: CellFacts, now: int) -> tuple[str, str]:
    """Return the name and the text of what a pending cell waits for."""
    if cell.login_needed:
        return "waits", f"the account needs a login (pixivflow login {cell.account})"
    if (cell.cooldown_until or 0) > max(now, cell.due_at):
        return "waits", f"until {when(cell.cooldown_until)}: Pixiv asked account {cell.account} for a pause"
    return "next try", when(cell.due_at)


def told(story: CellStory, roots: Roots, logins_needed: Collection[str] = ()) -> Iterator[str]:
    """Yield the lines that tell of a cell."""
    cell = story.cell
    yield f"{cell.target_id}: {_headline(cell)}"
    if cell.work is not None and result_of(cell) is not Result.NOTHING:
        yield f"  {work_url(cell.work)}"
    yield from file_lines(story.files, roots)
    for delivery in story.deliveries:
        extra = delivery.remote_id or delivery.reason
        yield f"  {delivery.route}: {delivery.status}" + (f" ({plain(extra)})" if extra else "")
    yield from _why(cell, logins_needed)


def file_lines(files: Iterable[FileView], roots: Roots) -> Iterator[str]:
    """Yield a line for each file, the first ones by their paths."""
    listed = tuple(files)
    for file in listed[:FILES_SHOWN]:
        path = roots[file.root] / file.path
        note = "" if path.exists() else _missing(file)
        yield f"  {plain(path)}{note}"
    if len(listed) > FILES_SHOWN:
        yield f"  and {len(listed) - FILES_SHOWN} more files"


def scan_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a scan's report says: counts, then each work that was passed over and why."""
    counts = ", ".join(f"{count} {code}" for code, count in sorted(_skip_counts(report).items()))
    passed_over = f"; passed over: {counts}" if counts else ""
    yield f"scan: {report.get('listed', 0)} listed, {report.get('attempted', 0)} tried{passed_over}"
    if report.get("outage"):
        yield f"  it broke off: {plain(report['outage'])}"
    for skipped in report.get("skipped", ()):
        detail = plain(skipped.get("detail", ""))
        yield f"  {work_id(skipped['work'])}: {skipped['code']}" + (f" ({detail})" if detail else "")
    for passing in report.get("unavailable", ()):
        yield f"  {work_id(passing['work'])}: not to be had this time ({plain(passing['detail'])})"


def _skip_counts(report: Mapping[str, Any]) -> dict[str, int]:
    counts: dict[str, int] = dict(report.get("more", {}))
    for skipped in report.get("skipped", ()):
        counts[skipped["code"]] = counts.get(skipped["code"], 0) + 1
    return counts


def _headline(cell: CellFacts) -> str:
    work = "" if cell.work is None else f"{work_id(cell.work)} {plain(cell.title or '')}".rstrip()
    match result_of(cell):
        case Result.DONE:
            return work
        case Result.NOTHING:
            return f"nothing new: {cell.reason_code or cell.status}"
        case Result.PARTLY:
            return f"{work}: only some routes took it"
        case Result.FAILED:
            return f"{work} failed: {cell.reason_code or cell.status}".lstrip()
        case Result.OPEN:
            state = cell.state if cell.state in ("pending", "running") else "waits for its routes"
            words = ", ".join(dict.fromkeys((str(cell.status), state)))
            return f"{work} still open: {words}".lstrip()


def _why(cell: CellFacts, logins_needed: Collection[str]) -> Iterator[str]:
    result = result_of(cell)
    if result is Result.DONE:
        return
    if cell.reason:
        yield f"  {plain(cell.reason)}"
    if result is Result.OPEN:
        yield from _open_lines(cell, logins_needed)
    elif hint := hint_of(cell.reason_code):
        yield f"  {hint}"
    if result is Result.NOTHING and cell.report:
        yield from (f"  {line}" for line in list(scan_lines(cell.report))[:FILES_SHOWN])


def _open_lines(cell: CellFacts, logins_needed: Collection[str]) -> Iterator[str]:
    if cell.account in logins_needed:
        yield f"  account {cell.account!r} needs a login: pixivflow login {cell.account}"
    elif cell.state == "pending" and cell.reason_code is not None:
        yield f"  it is tried again at {when(cell.due_at)}"
    yield f"  cell {cell.id} stays in the ledger; a running daemon goes on with it (pixivflow cells --open)"


def _missing(file: FileView) -> str:
    return " (removed after delivery)" if file.status == "discard" else " (not there)"
