"""Intents and outbox rows: committed with the cell, claimed by lanes, ended by the one settle function."""

from collections.abc import Collection, Sequence

import msgspec
from sqlite_utils import Database

from pixivflow.ledger.binding import intent_allows, may_send
from pixivflow.ledger.cells import end_cell, end_unleased
from pixivflow.ledger.events import record_event
from pixivflow.ledger.files import discard_cache_of
from pixivflow.ledger.leases import (
    CRASH_LIMIT,
    Lease,
    Queue,
    Reclaimed,
    acquire,
    fenced_update,
    marks,
    reclaim,
    suspect_running,
)
from pixivflow.ledger.moves import (
    CELL_AFTER_DELIVERY,
    DeliveryState,
    IntentFacts,
    delivery_state,
    read_reason,
)
from pixivflow.ledger.slots import refresh_slot
from protocol.payloads import Payload
from protocol.reasons import Reason
from protocol.states import CellStatus, IntentStatus


class NewIntent(msgspec.Struct, frozen=True):
    """A frozen message for one route, and how often and how long (ms UTC) it may be tried."""

    payload: Payload
    max_attempts: int
    expires_at: int


class Committed(msgspec.Struct, frozen=True):
    """What the commit came to; ``had`` are routes that have the work from elsewhere."""

    status: CellStatus
    routes: tuple[str, ...] = ()
    had: tuple[str, ...] = ()


class ClaimedRow(msgspec.Struct, frozen=True):
    """A leased outbox row; ``payload`` is raw, to be decoded under the lease."""

    lease: Lease
    delivery_id: int
    route: str
    payload: str
    attempts: int
    max_attempts: int
    expires_at: int
    slot_id: str | None
    target_id: str


def commit_delivery(
    db: Database, lease: Lease, revision: str, intents: Sequence[NewIntent], now: int
) -> Committed | None:
    """Write intents, outbox rows and the cell in one go; None for a stale lease.

    A route that has the work already, that refused it, or that another cell had bound it for, gets no second intent,
    whatever the revision. Without a route left the cell ends. None, too, for a cell whose files are not committed or whose work is another.
    """
    expected = " AND ".join(["status = 'artifact_ready'", *("work = ?" for _ in intents)])
    works = [str(intent.payload.work) for intent in intents]
    if not fenced_update(db, lease, now, "crashes = 0", expected=expected, expected_values=works):
        return None
    if not intents:
        return Committed(CellStatus.SUBMITTED) if end_cell(db, lease, CellStatus.SUBMITTED, now) else None
    sent = [
        intent
        for intent in intents
        if may_send(db, lease.id, intent.payload.route)
        and _insert_intent(db, lease.id, revision, intent, now)
    ]
    had = tuple(intent.payload.route for intent in intents if intent not in sent)
    if not sent:
        text = "every route has the work from another target"
        end_cell(db, lease, CellStatus.DUPLICATE, now, Reason.DUPLICATE_EXHAUSTED, text)
        discard_cache_of(db, lease.id)
        return Committed(CellStatus.DUPLICATE, had=had)
    fenced_update(
        db,
        lease,
        now,
        "status = 'delivery_pending', state = 'done', reason_code = NULL, reason = NULL, lease_owner = NULL, lease_until = NULL",
    )
    refresh_slot(db, sent[0].payload.slot_id, now)
    return Committed(CellStatus.DELIVERY_PENDING, tuple(intent.payload.route for intent in sent), had)


def _insert_intent(db: Database, cell_id: int, revision: str, intent: NewIntent, now: int) -> bool:
    """Write intent and row. An intent of this very key that failed is taken up again, with its row."""
    payload = intent.payload
    if not intent_allows(db, payload.work, payload.route):
        return False
    failed = db.execute("SELECT id FROM deliveries WHERE idempotency_key = ?", (payload.key,)).fetchone()
    if failed is not None:
        record_event(db, now, "intent_revived", f"deliveries:{failed[0]}", payload.key)
    (delivery_id,) = db.execute(
        """INSERT INTO deliveries (idempotency_key, route, work, revision, cell_id, slot_id, target_id, created_at)
           VALUES (:key, :route, :work, :revision, :cell, :slot, :target, :now)
           ON CONFLICT (idempotency_key) DO UPDATE SET status = 'pending', revision = excluded.revision,
               cell_id = excluded.cell_id, remote_id = NULL, reason = NULL, settled_at = NULL
           RETURNING id""",
        {
            "key": payload.key,
            "route": payload.route,
            "work": str(payload.work),
            "revision": revision,
            "cell": cell_id,
            "slot": payload.slot_id,
            "target": payload.target_id,
            "now": now,
        },
    ).fetchone()
    db.execute(
        """INSERT INTO outbox (kind, idempotency_key, delivery_id, route, payload, max_attempts, expires_at, created_at,
               due_at)
           VALUES ('delivery', :key, :delivery, :route, :payload, :max_attempts, :expires_at, :now, :now)
           ON CONFLICT (kind, idempotency_key) DO UPDATE SET state = 'pending', payload = excluded.payload,
               max_attempts = excluded.max_attempts, expires_at = excluded.expires_at, due_at = excluded.due_at,
               attempts = 0, crashes = 0, ended_at = NULL, error_class = NULL, last_error = NULL,
               lease_generation = lease_generation + 1""",
        {
            "key": payload.key,
            "delivery": delivery_id,
            "route": payload.route,
            "payload": msgspec.json.encode(payload).decode(),
            "max_attempts": intent.max_attempts,
            "expires_at": intent.expires_at,
            "now": now,
        },
    )
    return True


def claim_row(
    db: Database,
    route: str,
    owner: str,
    now: int,
    *,
    held: Collection[int] = (),
    only: Collection[int] | None = None,
) -> ClaimedRow | None:
    """Lease the route's next due row; ``only`` narrows to the intents of these cells.

    Rows whose lease has expired are taken back first; those past their own expiry are left to the sweep.
    """
    reclaim_rows(db, now, held, owner=owner)
    crash_bound = CRASH_LIMIT - 1 if suspect_running(db) else CRASH_LIMIT
    narrowed = "" if only is None else f"AND deliveries.cell_id IN ({marks(only)})"
    # A plus keeps a column out of the choice of an index: the order of outbox_next saves sorting all that is due.
    row = db.execute(
        f"""SELECT outbox.id, delivery_id, payload, attempts, coalesce(max_attempts, 1), expires_at,
                deliveries.slot_id, deliveries.target_id
            FROM outbox JOIN deliveries ON deliveries.id = outbox.delivery_id
            WHERE state = 'pending' AND outbox.route = ? AND +due_at <= ? AND crashes < ? AND +expires_at > ?
              AND outbox.id NOT IN ({marks(held)}) {narrowed}
            ORDER BY priority DESC, due_at, outbox.id LIMIT 1""",
        (route, now, crash_bound, now, *held, *(only or ())),
    ).fetchone()
    lease = None if row is None else acquire(db, Queue.OUTBOX, row[0], owner, now)
    return None if lease is None else ClaimedRow(lease, row[1], route, *row[2:])


def reclaim_rows(
    db: Database, now: int, held: Collection[int], *, owner: str | None = None, everyone: bool = False
) -> tuple[Reclaimed, ...]:
    """Take back outbox rows whose holder is gone, and end those that crashed too often. See `leases.reclaim`."""

    def end(row: Reclaimed) -> None:
        detail = f"the daemon died {row.crashes} times in a row while working on it"
        settled = Settled(
            IntentStatus.FAILED, Reason.CRASHED_REPEATEDLY, error_class="crashed", detail=detail
        )
        end_row_unleased(db, row.id, settled, now)

    return reclaim(db, Queue.OUTBOX, now, held, owner=owner, everyone=everyone, end=end)


class Settled(msgspec.Struct, frozen=True):
    """How a row ends: what its intent becomes, and why."""

    status: IntentStatus
    reason: Reason | None = None
    remote_id: str | None = None
    error_class: str | None = None
    detail: str = ""
    spends: bool = False


class Postponed(msgspec.Struct, frozen=True):
    """When a row is tried again (ms UTC), and whether this failure spent an attempt."""

    due_at: int
    spends: bool
    error_class: str | None
    detail: str


Settlement = Settled | Postponed


class SettleResult(msgspec.Struct, frozen=True):
    """Whose cell the settlement touched, and the status it has now (None while it stays open)."""

    cell_id: int
    slot_id: str | None
    cell_status: CellStatus | None


def settle_row(db: Database, lease: Lease, settlement: Settlement, now: int) -> SettleResult | None:
    """Write row, intent, cell, slot and discard marks in one transaction; None, and no change, for a stale lease."""
    if isinstance(settlement, Postponed):
        written = fenced_update(
            db,
            lease,
            now,
            """state = 'pending', due_at = ?, attempts = attempts + ?, crashes = 0, error_class = ?, last_error = ?,
            on_wire_at = NULL, lease_owner = NULL, lease_until = NULL""",
            (settlement.due_at, int(settlement.spends), settlement.error_class, settlement.detail),
        )
    else:
        written = fenced_update(
            db,
            lease,
            now,
            """state = ?, attempts = attempts + ?, crashes = 0, error_class = ?, last_error = ?, on_wire_at = NULL,
            ended_at = ?, lease_owner = NULL, lease_until = NULL""",
            (_row_state(settlement), int(settlement.spends), settlement.error_class, settlement.detail, now),
        )
    return _after_row(db, lease.id, settlement, now) if written else None


def end_row_unleased(db: Database, row_id: int, settlement: Settled, now: int) -> SettleResult | None:
    """End a row that nobody holds (expired, crashed too often) with all that hangs on it."""
    changed = db.execute(
        """UPDATE outbox SET state = ?, error_class = ?, last_error = ?, ended_at = ?,
           lease_generation = lease_generation + 1 WHERE id = ? AND state = 'pending'""",
        (_row_state(settlement), settlement.error_class, settlement.detail, now, row_id),
    ).rowcount
    return _after_row(db, row_id, settlement, now) if changed else None


def _row_state(settlement: Settled) -> str:
    return "dead" if settlement.status is IntentStatus.FAILED else "done"


def _after_row(db: Database, row_id: int, settlement: Settlement, now: int) -> SettleResult:
    delivery_id, cell_id, slot_id = db.execute(
        """SELECT deliveries.id, cell_id, deliveries.slot_id FROM outbox JOIN deliveries
           ON deliveries.id = delivery_id WHERE outbox.id = ?""",
        (row_id,),
    ).fetchone()
    if isinstance(settlement, Postponed):
        return SettleResult(cell_id, slot_id, None)
    changed = db.execute(
        """UPDATE deliveries SET status = ?, reason = ?, remote_id = coalesce(?, remote_id), settled_at = ?
           WHERE id = ? AND status = 'pending'""",
        (settlement.status, settlement.reason, settlement.remote_id, now, delivery_id),
    ).rowcount
    if not changed:
        record_event(
            db, now, "illegal_move", f"deliveries:{delivery_id}", f"settled before; now {settlement.status}"
        )
    return SettleResult(cell_id, slot_id, heal_cell(db, cell_id, now))


def heal_cell(db: Database, cell_id: int, now: int) -> CellStatus | None:
    """End a ``delivery_pending`` cell whose intents have all ended; None while one is live, or without any."""
    rows = db.execute(
        """SELECT deliveries.status, deliveries.reason, outbox.last_error, EXISTS (SELECT 1 FROM outbox AS row
               WHERE row.delivery_id = deliveries.id AND row.state IN ('pending', 'running', 'uncertain'))
           FROM deliveries LEFT JOIN outbox ON outbox.delivery_id = deliveries.id WHERE cell_id = ? ORDER BY deliveries.id""",
        (cell_id,),
    ).fetchall()
    state = delivery_state([IntentFacts(IntentStatus(row[0]), bool(row[3])) for row in rows])
    status = CELL_AFTER_DELIVERY[state]
    if status is None or not rows or not _in_delivery(db, cell_id):
        return None
    failed = next((row for row in rows if row[0] == IntentStatus.FAILED), None)
    reason = None if failed is None else read_reason(failed[1]) or Reason.DELIVERY_FAILED
    end_unleased(db, cell_id, status, reason, None if failed is None else failed[2], now)
    if state in {DeliveryState.CONFIRMED, DeliveryState.DUPLICATE}:
        discard_cache_of(db, cell_id)
    return status


def _in_delivery(db: Database, cell_id: int) -> bool:
    row = db.execute(
        "SELECT 1 FROM cells WHERE id = ? AND status = 'delivery_pending' AND ended_at IS NULL", (cell_id,)
    ).fetchone()
    return row is not None


def make_due(db: Database, route: str, now: int) -> int:
    """Make a route's waiting rows due, for it works again; return how many."""
    return db.execute(
        "UPDATE outbox SET due_at = ? WHERE route = ? AND state = 'pending' AND due_at > ?", (now, route, now)
    ).rowcount


def expired_rows(db: Database, now: int, limit: int = 100) -> tuple[int, ...]:
    """Return pending rows that waited for their receiver until they expired."""
    rows = db.execute(
        "SELECT id FROM outbox WHERE state = 'pending' AND expires_at <= ? ORDER BY expires_at LIMIT ?",
        (now, limit),
    ).fetchall()
    return tuple(row[0] for row in rows)


def next_due(db: Database, route: str) -> int | None:
    """When (ms UTC) the route's next pending row is due; None when there is none."""
    row = db.execute(
        "SELECT min(due_at) FROM outbox WHERE route = ? AND state = 'pending'", (route,)
    ).fetchone()
    return None if row is None else row[0]
