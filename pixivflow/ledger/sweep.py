"""What is ended from outside: rows whose holders died, cells past their time, rows past their expiry."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

import msgspec
from sqlite_utils import Database

from pixivflow.ledger.cells import end_unleased, reclaim_cells
from pixivflow.ledger.leases import CRASH_LIMIT, Queue, Reclaimed, apart
from pixivflow.ledger.moves import read_reason
from pixivflow.ledger.outbox import Settled, end_row_unleased, expired_rows, heal_cell, reclaim_rows
from protocol.reasons import Reason
from protocol.states import CellStatus, IntentStatus

BATCH: Final = 100
"""How many rows of a kind one sweep ends."""


class Swept(msgspec.Struct, frozen=True):
    """What one sweep did, by row."""

    reclaimed: tuple[Reclaimed, ...] = ()
    crashed: tuple[str, ...] = ()
    overdue_cells: tuple[int, ...] = ()
    expired_rows: tuple[int, ...] = ()
    healed_cells: tuple[int, ...] = ()


def reclaim_orphaned(
    db: Database,
    now: int,
    held: Mapping[Queue, Collection[int]],
    *,
    owner: str | None = None,
    everyone: bool = False,
) -> tuple[Reclaimed, ...]:
    """Take back rows of both queues from holders that are gone, and end those that crashed too often."""
    return (
        *reclaim_cells(db, now, held.get(Queue.CELLS, ()), owner=owner, everyone=everyone),
        *reclaim_rows(db, now, held.get(Queue.OUTBOX, ()), owner=owner, everyone=everyone),
    )


def sweep(
    db: Database, now: int, held: Mapping[Queue, Collection[int]], *, owner: str | None = None
) -> Swept:
    """Reclaim, then end what is over its time; what was taken back in this sweep is not ended in it."""
    taken = reclaim_orphaned(db, now, held, owner=owner)
    resumed = {row.id for row in taken if row.queue is Queue.CELLS}
    resumed_rows = {row.id for row in taken if row.queue is Queue.OUTBOX}
    return Swept(
        reclaimed=taken,
        crashed=tuple(f"{row.queue}:{row.id}" for row in taken if row.crashes >= CRASH_LIMIT),
        overdue_cells=tuple(
            cell
            for cell in _overdue(db, now, BATCH + len(resumed))
            if cell not in resumed and apart(db, now, f"cells:{cell}", partial(_end_overdue, db, cell, now))
        ),
        expired_rows=tuple(
            row
            for row in expired_rows(db, now, BATCH + len(resumed_rows))
            if row not in resumed_rows and apart(db, now, f"outbox:{row}", partial(_abandon, db, row, now))
        ),
        healed_cells=tuple(
            cell
            for cell in _in_delivery(db)
            if apart(db, now, f"cells:{cell}", partial(heal_cell, db, cell, now)) is not None
        ),
    )


def _overdue(db: Database, now: int, limit: int) -> tuple[int, ...]:
    rows = db.execute(
        "SELECT id FROM cells WHERE state = 'pending' AND retry_until <= ? ORDER BY retry_until LIMIT ?",
        (now, limit),
    ).fetchall()
    return tuple(row[0] for row in rows)


def _end_overdue(db: Database, cell_id: int, now: int) -> bool:
    """End a cell at the end of its time with the cause that kept it waiting."""
    row = db.execute(
        """SELECT reason_code, reason, auth_reason, auth_expired_at, cooldown_until FROM cells
           LEFT JOIN accounts ON accounts.name = cells.account WHERE cells.id = ?""",
        (cell_id,),
    ).fetchone()
    code, explanation, auth_reason, auth_expired_at, cooldown_until = row
    if auth_expired_at is not None:
        reason, text = Reason.AUTH_FAILED, auth_reason or "the account is logged out; run: pixivflow login"
    elif code is not None:
        reason, text = read_reason(code) or Reason.INTERNAL_ERROR, explanation
    elif cooldown_until is not None and cooldown_until > now:
        reason, text = Reason.RATE_LIMITED, "its account was cooling down until its time was over"
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
