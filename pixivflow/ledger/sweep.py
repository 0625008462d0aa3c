"""What is ended from outside: rows whose holders died, cells past their time, rows past their expiry."""

from collections.abc import Collection, Mapping

import msgspec
from sqlite_utils import Database

from pixivflow.ledger.cells import end_unleased
from pixivflow.ledger.leases import CRASH_LIMIT, Queue, Reclaimed, reclaim
from pixivflow.ledger.outbox import Settled, end_row_unleased, expired_rows, heal_cell
from protocol.reasons import Reason
from protocol.states import CellStatus, IntentStatus


class Swept(msgspec.Struct, frozen=True):
    """What one sweep did, by row."""

    reclaimed: tuple[Reclaimed, ...] = ()
    crashed: tuple[str, ...] = ()
    overdue_cells: tuple[int, ...] = ()
    expired_rows: tuple[int, ...] = ()
    healed_cells: tuple[int, ...] = ()


def reclaim_orphaned(
    db: Database, now: int, held: Mapping[Queue, Collection[int]], *, everyone: bool = False
) -> tuple[Reclaimed, ...]:
    """Take back rows of both queues from holders that are gone, and end those that crashed too often."""
    taken = tuple(
        row for queue in Queue for row in reclaim(db, queue, now, held.get(queue, ()), everyone=everyone)
    )
    for row in taken:
        if row.crashes >= CRASH_LIMIT:
            _end_crashed(db, row, now)
    return taken


def _end_crashed(db: Database, row: Reclaimed, now: int) -> None:
    text = f"the daemon died {row.crashes} times in a row while working on it"
    if row.queue is Queue.CELLS:
        end_unleased(db, row.id, CellStatus.FAILED, Reason.CRASHED_REPEATEDLY, text, now)
    else:
        settled = Settled(IntentStatus.FAILED, Reason.CRASHED_REPEATEDLY, error_class="crashed", detail=text)
        end_row_unleased(db, row.id, settled, now)


def sweep(db: Database, now: int, held: Mapping[Queue, Collection[int]]) -> Swept:
    """Reclaim, then end what is over its time; what was taken back in this sweep is not ended in it."""
    taken = reclaim_orphaned(db, now, held)
    resumed = {row.id for row in taken if row.queue is Queue.CELLS}
    resumed_rows = {row.id for row in taken if row.queue is Queue.OUTBOX}
    return Swept(
        reclaimed=taken,
        crashed=tuple(f"{row.queue}:{row.id}" for row in taken if row.crashes >= CRASH_LIMIT),
        overdue_cells=tuple(
            cell for cell in _overdue(db, now) if cell not in resumed and _end_overdue(db, cell, now)
        ),
        expired_rows=tuple(
            row for row in expired_rows(db, now) if row not in resumed_rows and _abandon(db, row, now)
        ),
        healed_cells=tuple(cell for cell in _in_delivery(db) if heal_cell(db, cell, now) is not None),
    )


def _overdue(db: Database, now: int) -> tuple[int, ...]:
    rows = db.execute(
        "SELECT id FROM cells WHERE state = 'pending' AND retry_until <= ? ORDER BY id LIMIT 100", (now,)
    ).fetchall()
    return tuple(row[0] for row in rows)


def _end_overdue(db: Database, cell_id: int, now: int) -> bool:
    """End a cell at the end of its time with the cause that kept it waiting."""
    row = db.execute(
        """SELECT reason_code, reason, auth_reason, auth_expired_at FROM cells
           LEFT JOIN accounts ON accounts.name = cells.account WHERE cells.id = ?""",
        (cell_id,),
    ).fetchone()
    code, explanation, auth_reason, auth_expired_at = row
    if auth_expired_at is not None:
        reason, text = Reason.AUTH_FAILED, auth_reason or "the account is logged out; run: pixivflow login"
    elif code is not None:
        reason, text = Reason(code), explanation
    else:
        reason, text = Reason.QUEUED_TOO_LONG, "it waited for its turn until its time was over"
    return end_unleased(db, cell_id, CellStatus.FAILED, reason, text, now)


def _abandon(db: Database, row_id: int, now: int) -> bool:
    row = db.execute("SELECT last_error FROM outbox WHERE id = ?", (row_id,)).fetchone()
    text = f"not delivered before it expired; last answer: {row[0] or 'none'}"
    settled = Settled(IntentStatus.FAILED, Reason.DELIVERY_ABANDONED, error_class="expired", detail=text)
    return end_row_unleased(db, row_id, settled, now) is not None


def _in_delivery(db: Database) -> tuple[int, ...]:
    """Cells in delivery that have no open row: a crash between settlements cannot leave one, a repair may."""
    rows = db.execute(
        """SELECT cells.id FROM cells WHERE cells.status = 'delivery_pending' AND ended_at IS NULL AND work IS NOT NULL
           AND EXISTS (SELECT 1 FROM deliveries WHERE cell_id = cells.id)
           AND NOT EXISTS (SELECT 1 FROM deliveries JOIN outbox ON outbox.delivery_id = deliveries.id
               WHERE cell_id = cells.id AND outbox.state IN ('pending', 'running', 'uncertain')) LIMIT 100"""
    ).fetchall()
    return tuple(row[0] for row in rows)


def prune(db: Database, *, events_before: int, payloads_before: int) -> None:
    """Delete old events and the payloads of rows that ended long ago; intents and bindings stay for ever."""
    db.execute("DELETE FROM events WHERE at < ?", (events_before,))
    db.execute(
        "UPDATE outbox SET payload = NULL WHERE ended_at < ? AND payload IS NOT NULL AND state = 'done'",
        (payloads_before,),
    )
