"""A cell's life under its lease: claim, retry, end. See `pixivflow.ledger.leases` for the fence."""

from collections.abc import Collection
from typing import Final

import msgspec
from sqlite_utils import Database

from pixivflow.ledger.events import record_event
from pixivflow.ledger.leases import (
    CRASH_LIMIT,
    Lease,
    Queue,
    Reclaimed,
    acquire,
    fenced_update,
    marks,
    reclaim,
    stands,
    suspect_running,
)
from pixivflow.ledger.moves import may_move, read_status
from pixivflow.ledger.slots import refresh_slot
from protocol.reasons import Reason
from protocol.states import CellStatus, SlotStatus

PROGRESS: Final = "crashes = 0, progress_at = max(progress_at, ?)"


class ClaimedCell(msgspec.Struct, frozen=True):
    """A leased cell; ``spec`` and ``work`` are raw, to be decoded under the lease."""

    lease: Lease
    slot_id: str | None
    target_id: str
    account: str
    spec: str
    status: CellStatus
    work: str | None
    attempts: int
    retry_until: int
    occurrence_at: int | None
    correlation_id: str | None


def claim_cell(
    db: Database,
    owner: str,
    now: int,
    *,
    held: Collection[int] = (),
    selecting: Collection[str] = (),
    known: Collection[str] | None = None,
    only: Collection[int] | None = None,
) -> ClaimedCell | None:
    """Lease the cell that is next: by priority, due time, insertion.

    A cell without a work needs selection and is claimed only for the accounts in ``selecting``; one that owns a
    work is resumed at any time. Cells of logged-out or cooling accounts and of slots not admitted wait; those past
    their time are left to the sweep. With ``known`` a cell of any other account is claimed too, so that its holder
    can say what is wrong. Cells whose lease has expired are taken back first.
    """
    reclaim_cells(db, now, held, owner=owner)
    while (found := _next_cell(db, now, held, selecting, known, only)) is not None:
        lease = acquire(db, Queue.CELLS, found, owner, now)
        claimed = None if lease is None else _claimed(db, lease, now)
        if claimed is not None:
            return claimed
    return None


def _next_cell(
    db: Database,
    now: int,
    held: Collection[int],
    selecting: Collection[str],
    known: Collection[str] | None,
    only: Collection[int] | None,
) -> int | None:
    crash_bound = CRASH_LIMIT - 1 if suspect_running(db) else CRASH_LIMIT
    narrowed = "" if only is None else f"AND cells.id IN ({marks(only)})"
    unknown = "" if known is None else f"OR cells.account NOT IN ({marks(known)})"
    # A plus keeps a column out of the choice of an index: the order of cells_next saves sorting all that is due.
    row = db.execute(
        f"""SELECT cells.id FROM cells
            LEFT JOIN slots ON slots.slot_id = cells.slot_id
            LEFT JOIN accounts ON accounts.name = cells.account
            WHERE cells.state = 'pending' AND +cells.due_at <= ? AND cells.crashes < ? AND +cells.retry_until > ?
              AND (cells.slot_id IS NULL OR slots.admitted_at IS NOT NULL)
              AND accounts.auth_expired_at IS NULL AND coalesce(accounts.cooldown_until, 0) <= ?
              AND (cells.work IS NOT NULL OR cells.account IN ({marks(selecting)}) {unknown})
              AND cells.id NOT IN ({marks(held)}) {narrowed}
            ORDER BY cells.priority DESC, cells.due_at, cells.id LIMIT 1""",
        (now, crash_bound, now, now, *selecting, *(known or ()), *held, *(only or ())),
    ).fetchone()
    return None if row is None else int(row[0])


def reclaim_cells(
    db: Database, now: int, held: Collection[int], *, owner: str | None = None, everyone: bool = False
) -> tuple[Reclaimed, ...]:
    """Take back cells whose holder is gone, and end those that crashed too often. See `leases.reclaim`."""

    def end(row: Reclaimed) -> None:
        text = f"the daemon died {row.crashes} times in a row while working on it"
        end_unleased(db, row.id, CellStatus.FAILED, Reason.CRASHED_REPEATEDLY, text, now)

    return reclaim(db, Queue.CELLS, now, held, owner=owner, everyone=everyone, end=end)


def _claimed(db: Database, lease: Lease, now: int) -> ClaimedCell | None:
    """Read the leased cell; one in a status that this program does not know is ended instead."""
    row = db.execute(
        """SELECT slots.status, cells.slot_id, target_id, account, spec, cells.status, work, attempts, retry_until,
           occurrence_at, correlation_id FROM cells LEFT JOIN slots ON slots.slot_id = cells.slot_id
           WHERE cells.id = ?""",
        (lease.id,),
    ).fetchone()
    status = read_status(row[5])
    if status is None:
        text = f"the cell's status can't be read: {row[5]}"
        end_cell(db, lease, CellStatus.FAILED, now, Reason.INTERNAL_ERROR, text)
        return None
    if row[0] != SlotStatus.RUNNING:
        refresh_slot(db, row[1], now)
    return ClaimedCell(lease, row[1], row[2], row[3], row[4], status, *row[6:])


def drop_plans(db: Database, cell_id: int, keep: Collection[int] = ()) -> None:
    """Take the cell off its files but those in ``keep``.

    What is not stored, or lies in the cell's own cache, and is no other open cell's may go.
    """
    others = f"cell_id = ? AND artifact_id NOT IN ({marks(keep)})"
    db.execute(
        f"""UPDATE artifacts SET status = 'discard' WHERE (status = 'planned' OR root = 'state') AND id IN
            (SELECT artifact_id FROM cell_artifacts WHERE {others}) AND NOT EXISTS
            (SELECT 1 FROM cell_artifacts JOIN cells ON cells.id = cell_id
             WHERE artifact_id = artifacts.id AND cell_id <> ? AND cells.ended_at IS NULL)""",
        (cell_id, *keep, cell_id),
    )
    db.execute(f"DELETE FROM cell_artifacts WHERE {others}", (cell_id, *keep))


class CellFailure(msgspec.Struct, frozen=True):
    """Why a run failed. ``retry_at`` (ms UTC) is None when it is final; ``spends`` is false for an outage's wait."""

    reason: Reason
    text: str
    retry_at: int | None
    report: str | None = None
    spends: bool = True


def fail_cell(db: Database, lease: Lease, failure: CellFailure, now: int) -> bool:
    """Record a failed run: retry later with status and binding kept, or end the cell as ``failed``."""
    if failure.retry_at is None:
        return end_cell(db, lease, CellStatus.FAILED, now, failure.reason, failure.text, failure.report)
    return fenced_update(
        db,
        lease,
        now,
        """state = 'pending', due_at = ?, attempts = attempts + ?, crashes = 0, reason_code = ?, reason = ?,
        report = coalesce(?, report), lease_owner = NULL, lease_until = NULL""",
        (failure.retry_at, int(failure.spends), failure.reason, failure.text, failure.report),
    )


def end_cell(
    db: Database,
    lease: Lease,
    status: CellStatus,
    now: int,
    reason: Reason | None = None,
    text: str | None = None,
    report: str | None = None,
) -> bool:
    """End the leased cell in a terminal status; false (and no change) for a stale lease or an illegal move."""
    if not stands(db, lease, now, f"end as {status}") or not _may_end(db, lease.id, status, now):
        return False
    ended = fenced_update(
        db,
        lease,
        now,
        """status = ?, state = 'done', reason_code = ?, reason = ?, report = coalesce(?, report), ended_at = ?,
        crashes = 0, lease_owner = NULL, lease_until = NULL, attempts = attempts + ?""",
        (status, reason, text, report, now, int(status is CellStatus.FAILED)),
    )
    if ended:
        _after_end(db, lease.id, status, now)
    return ended


def end_unleased(
    db: Database, cell_id: int, status: CellStatus, reason: Reason | None, text: str | None, now: int
) -> bool:
    """End a cell that nobody runs: a pending one past its time, or one whose intents have all ended."""
    if not _may_end(db, cell_id, status, now):
        return False
    changed = db.execute(
        """UPDATE cells SET status = ?, state = 'done', reason_code = coalesce(?, reason_code),
           reason = coalesce(?, reason), ended_at = ?, lease_generation = lease_generation + 1
           WHERE id = ? AND state <> 'running' AND ended_at IS NULL""",
        (status, reason, text, now, cell_id),
    ).rowcount
    if changed:
        _after_end(db, cell_id, status, now)
    return changed == 1


def _may_end(db: Database, cell_id: int, status: CellStatus, now: int) -> bool:
    row = db.execute("SELECT status, work FROM cells WHERE id = ?", (cell_id,)).fetchone()
    origin = None if row is None else read_status(row[0])
    if origin is None:
        allowed = row is not None and status is CellStatus.FAILED
    else:
        allowed = may_move(origin, status, owns_work=row[1] is not None)
    if allowed:
        return True
    record_event(db, now, "illegal_move", f"cells:{cell_id}", f"{row and row[0]} -> {status}")
    return False


def _after_end(db: Database, cell_id: int, status: CellStatus, now: int) -> None:
    slot_id = db.execute("SELECT slot_id FROM cells WHERE id = ?", (cell_id,)).fetchone()[0]
    if status is not CellStatus.SUBMITTED:
        drop_unfinished(db, cell_id)
    refresh_slot(db, slot_id, now)


def drop_unfinished(db: Database, cell_id: int) -> None:
    """Let the cleaner remove the files of an ended cell that were never stored."""
    stored = db.execute(
        """SELECT artifact_id FROM cell_artifacts JOIN artifacts ON artifacts.id = artifact_id
           WHERE cell_id = ? AND status = 'stored'""",
        (cell_id,),
    ).fetchall()
    drop_plans(db, cell_id, keep=[row[0] for row in stored])
