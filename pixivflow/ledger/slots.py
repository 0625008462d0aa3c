"""Slots and schedules: what is due becomes durable here, with its cells and the watermark, in one transaction."""

import secrets
from collections.abc import Collection, Mapping

import msgspec
from sqlite_utils import Database

from pixivflow.ledger.events import record_event
from pixivflow.ledger.moves import CellFacts, business_status, read_reason, read_status, slot_status
from protocol.reasons import Reason
from protocol.states import CellStatus, SlotStatus, Trigger


class NewCell(msgspec.Struct, frozen=True):
    """A cell to be: its target as resolved now, and until when (ms UTC) it may be retried."""

    target_id: str
    account: str
    spec: str
    """`protocol.specs.CellSpec` as JSON."""
    retry_until: int


class NewSlot(msgspec.Struct, frozen=True):
    """A slot to be. ``watermark`` (ms UTC) moves the schedule's last occurrence; it never moves back."""

    slot_id: str
    trigger: Trigger
    cells: tuple[NewCell, ...]
    schedule_id: str | None = None
    occurrence_at: int | None = None
    label: str | None = None
    watermark: int | None = None


class Materialised(msgspec.Struct, frozen=True):
    """What became of a `NewSlot`: ``created`` is false when the slot existed already."""

    slot_id: str
    created: bool
    cell_ids: tuple[int, ...]


class ScheduleRow(msgspec.Struct, frozen=True):
    """What the ledger remembers of a schedule."""

    id: str
    cron: str
    timezone: str
    effective_from: int
    last_occurrence_at: int
    paused_at: int | None


def sync_schedules(
    db: Database, schedules: Collection[tuple[str, str, str]], now: int
) -> Mapping[str, ScheduleRow]:
    """Record (id, cron, timezone) of every schedule; a new or edited one starts now and never catches up."""
    for schedule_id, cron, timezone in schedules:
        db.execute(
            """INSERT INTO schedules (id, cron, timezone, effective_from, last_occurrence_at)
               VALUES (:id, :cron, :timezone, :now, :now)
               ON CONFLICT (id) DO UPDATE SET cron = excluded.cron, timezone = excluded.timezone,
                   effective_from = excluded.effective_from,
                   last_occurrence_at = max(last_occurrence_at, excluded.last_occurrence_at)
               WHERE cron <> excluded.cron OR timezone <> excluded.timezone""",
            {"id": schedule_id, "cron": cron, "timezone": timezone, "now": now},
        )
    return read_schedules(db)


def read_schedules(db: Database) -> Mapping[str, ScheduleRow]:
    """Return every schedule that the ledger remembers, by id."""
    rows = db.execute(
        "SELECT id, cron, timezone, effective_from, last_occurrence_at, paused_at FROM schedules"
    ).fetchall()
    return {row[0]: ScheduleRow(*row) for row in rows}


def move_watermark(db: Database, schedule_id: str, occurrence_at: int) -> None:
    """Raise a schedule's watermark; it never falls."""
    db.execute(
        "UPDATE schedules SET last_occurrence_at = max(last_occurrence_at, ?) WHERE id = ?",
        (occurrence_at, schedule_id),
    )


def set_watermark_back(db: Database, schedule_id: str, occurrence_at: int, now: int) -> None:
    """Lower a watermark that lies in the future (the clock was wrong), and say so in the audit."""
    db.execute("UPDATE schedules SET last_occurrence_at = ? WHERE id = ?", (occurrence_at, schedule_id))
    record_event(db, now, "watermark_set_back", f"schedule:{schedule_id}", str(occurrence_at))


def materialise(db: Database, slot: NewSlot, now: int) -> Materialised:
    """Insert slot, cells and watermark, idempotent on the slot's id; a ``missed`` slot is taken up again."""
    created = _insert_slot(db, slot, now) or _revive_missed(db, slot, now)
    if created:
        for cell in slot.cells:
            db.execute(
                """INSERT INTO cells (slot_id, target_id, account, spec, retry_until, created_at, due_at)
                   VALUES (?, ?, ?, ?, ?, ?, ?)""",
                (slot.slot_id, cell.target_id, cell.account, cell.spec, cell.retry_until, now, now),
            )
    if slot.schedule_id is not None and slot.watermark is not None:
        move_watermark(db, slot.schedule_id, slot.watermark)
    ids = db.execute("SELECT id FROM cells WHERE slot_id = ? ORDER BY id", (slot.slot_id,)).fetchall()
    return Materialised(slot.slot_id, created, tuple(row[0] for row in ids))


def _insert_slot(db: Database, slot: NewSlot, now: int) -> bool:
    cursor = db.execute(
        """INSERT INTO slots (slot_id, schedule_id, occurrence_at, trigger, label, status, correlation_id, created_at)
           VALUES (?, ?, ?, ?, ?, 'pending', ?, ?) ON CONFLICT (slot_id) DO NOTHING""",
        (
            slot.slot_id,
            slot.schedule_id,
            slot.occurrence_at,
            slot.trigger,
            slot.label,
            secrets.token_hex(8),
            now,
        ),
    )
    return cursor.rowcount == 1


def _revive_missed(db: Database, slot: NewSlot, now: int) -> bool:
    cursor = db.execute(
        """UPDATE slots SET status = 'pending', trigger = ?, reason_code = NULL, missed_count = 0, created_at = ?,
           ended_at = NULL WHERE slot_id = ? AND status = 'missed' AND missed_count <= 1""",
        (slot.trigger, now, slot.slot_id),
    )
    return cursor.rowcount == 1


def add_adhoc_cell(db: Database, cell: NewCell, now: int) -> int:
    """Insert a cell that belongs to no slot (``once``, ``get``) and return its id."""
    row = db.execute(
        """INSERT INTO cells (target_id, account, spec, retry_until, created_at, due_at) VALUES (?, ?, ?, ?, ?, ?)
           RETURNING id""",
        (cell.target_id, cell.account, cell.spec, cell.retry_until, now, now),
    ).fetchone()
    return int(row[0])


def join_adhoc_cell(db: Database, cell: NewCell, now: int) -> int:
    """Return the open cell outside any slot that has this target and spec; insert one where there is none."""
    found = db.execute(
        """SELECT id FROM cells WHERE slot_id IS NULL AND target_id = ? AND spec = ? AND ended_at IS NULL
           ORDER BY id LIMIT 1""",
        (cell.target_id, cell.spec),
    ).fetchone()
    return add_adhoc_cell(db, cell, now) if found is None else int(found[0])


def record_missed(
    db: Database,
    schedule_id: str,
    slot_id: str,
    occurrence_at: int,
    now: int,
    *,
    count: int = 1,
    watermark: int,
) -> None:
    """Record an occurrence that was not run (or ``count`` of them, ending with this one), so that no gap is silent."""
    recorded = db.execute(
        """INSERT INTO slots (slot_id, schedule_id, occurrence_at, trigger, status, missed_count, correlation_id,
               created_at, ended_at)
           VALUES (?, ?, ?, ?, 'missed', ?, ?, ?, ?) ON CONFLICT (slot_id) DO NOTHING""",
        (slot_id, schedule_id, occurrence_at, Trigger.CRON, count, secrets.token_hex(8), now, now),
    ).rowcount
    if recorded:
        record_event(db, now, "missed", f"slot:{slot_id}", f"{count} occurrence(s)")
    move_watermark(db, schedule_id, watermark)


class Admission(msgspec.Struct, frozen=True):
    """Slots that may run now, and their cells."""

    admitted: tuple[str, ...]
    cell_ids: tuple[int, ...]
    skipped: tuple[str, ...]


def admit(db: Database, overlap: Mapping[str, str], now: int) -> Admission:
    """Admit waiting slots, oldest first; ``overlap`` maps a schedule to ``queue`` or ``skip``.

    A schedule's slot waits while an earlier one still has a pending or running cell. With ``queue`` one slot
    waits and further ones are skipped; with ``skip`` none waits. Slots of a catch-up
    were ordered as they are and all wait, one after the other. Manual slots overlap nothing and are admitted.
    """
    admitted: list[str] = []
    skipped: list[str] = []
    waiting: set[str] = set()
    rows = db.execute(
        """SELECT slot_id, schedule_id, trigger FROM slots WHERE admitted_at IS NULL AND ended_at IS NULL
           ORDER BY occurrence_at, slot_id"""
    ).fetchall()
    for slot_id, schedule_id, trigger in rows:
        if trigger == Trigger.MANUAL or not _schedule_runs(db, schedule_id):
            db.execute("UPDATE slots SET admitted_at = ? WHERE slot_id = ?", (now, slot_id))
            admitted.append(slot_id)
        elif trigger == Trigger.CATCH_UP:
            continue
        elif overlap.get(schedule_id, "queue") == "queue" and schedule_id not in waiting:
            waiting.add(schedule_id)
        else:
            _skip(db, slot_id, now)
            skipped.append(slot_id)
    cells = [
        row[0]
        for slot_id in admitted
        for row in db.execute("SELECT id FROM cells WHERE slot_id = ? AND state = 'pending'", (slot_id,))
    ]
    return Admission(tuple(admitted), tuple(cells), tuple(skipped))


def _schedule_runs(db: Database, schedule_id: str) -> bool:
    return (
        db.execute(
            """SELECT 1 FROM slots JOIN cells USING (slot_id) WHERE slots.schedule_id = ? AND slots.admitted_at IS NOT NULL
               AND slots.ended_at IS NULL AND slots.trigger <> 'manual' AND cells.state IN ('pending', 'running') LIMIT 1""",
            (schedule_id,),
        ).fetchone()
        is not None
    )


def _skip(db: Database, slot_id: str, now: int) -> None:
    db.execute(
        """UPDATE cells SET status = 'failed', state = 'done', reason_code = ?, ended_at = ?,
           lease_generation = lease_generation + 1 WHERE slot_id = ? AND state = 'pending'""",
        (Reason.OVERLAP_SKIPPED, now, slot_id),
    )
    db.execute("UPDATE slots SET reason_code = ? WHERE slot_id = ?", (Reason.OVERLAP_SKIPPED, slot_id))
    refresh_slot(db, slot_id, now)


def refresh_slot(db: Database, slot_id: str | None, now: int) -> SlotStatus | None:
    """Recompute a slot from its cells; the change that ends it is recorded once. None for a cell without a slot."""
    if slot_id is None:
        return None
    rows = db.execute(
        "SELECT status, reason_code, lease_generation FROM cells WHERE slot_id = ?", (slot_id,)
    ).fetchall()
    cells = [
        CellFacts(read_status(status) or CellStatus.PENDING, read_reason(reason), started=generation > 0)
        for status, reason, generation in rows
    ]
    status, business = slot_status(cells), business_status(cells)
    ended = business is not None
    changed = db.execute(
        """UPDATE slots SET status = ?, business_status = ?, ended_at = CASE WHEN ? THEN coalesce(ended_at, ?) END
           WHERE slot_id = ? AND (status <> ? OR business_status IS NOT ?)""",
        (status, business, ended, now, slot_id, status, business),
    ).rowcount
    if changed and ended:
        record_event(db, now, "slot_ended", f"slot:{slot_id}", f"{status} ({business})")
    return status


def slots_waiting(db: Database) -> bool:
    """Whether a slot waits to be admitted."""
    return (
        db.execute("SELECT 1 FROM slots WHERE admitted_at IS NULL AND ended_at IS NULL LIMIT 1").fetchone()
        is not None
    )
