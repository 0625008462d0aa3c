"""What people and programs ask to see: read-only views, newest first, ready to be encoded as JSON."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from sqlite_utils import Database

T = TypeVar("T")


class FileView(msgspec.Struct, frozen=True):
    """A file of a cell."""

    page: int
    variant: str
    root: str
    path: str
    status: str
    bytes: int | None
    sha256: str | None


class DeliveryView(msgspec.Struct, frozen=True):
    """An intent and how it fared."""

    id: int
    route: str
    work: str
    slot_id: str | None
    target_id: str
    status: str
    remote_id: str | None
    reason: str | None
    idempotency_key: str
    created_at: int
    settled_at: int | None


class CellView(msgspec.Struct, frozen=True):
    """A cell as lists show it; ``report`` is the scan's, as JSON."""

    id: int
    slot_id: str | None
    target_id: str
    account: str
    status: str
    state: str
    work: str | None
    title: str | None
    attempts: int
    reason_code: str | None
    reason: str | None
    due_at: int
    created_at: int
    ended_at: int | None
    login_needed: bool = False
    """Whether the account has no login that works; its cells wait for one."""
    cooldown_until: int | None = None
    """Until when the account rests because Pixiv asked for it; may be past."""
    report: msgspec.Raw | None = None


class CellDetail(msgspec.Struct, frozen=True):
    """A cell with its files and deliveries."""

    cell: CellView
    files: tuple[FileView, ...]
    deliveries: tuple[DeliveryView, ...]


class SlotView(msgspec.Struct, frozen=True):
    """A slot as lists show it."""

    slot_id: str
    schedule_id: str | None
    occurrence_at: int | None
    trigger: str
    status: str
    business_status: str | None
    reason_code: str | None
    missed_count: int
    cells: int
    submitted: int
    created_at: int
    ended_at: int | None


class SlotDetail(msgspec.Struct, frozen=True):
    """A slot with its cells."""

    slot: SlotView
    cells: tuple[CellDetail, ...]


class OutboxView(msgspec.Struct, frozen=True):
    """An outbox row as lists show it."""

    id: int
    kind: str
    route: str
    state: str
    work: str | None
    slot_id: str | None
    target_id: str | None
    attempts: int
    max_attempts: int | None
    due_at: int
    error_class: str | None
    last_error: str | None
    idempotency_key: str
    created_at: int
    ended_at: int | None


_CELL = """cells.id, cells.slot_id, cells.target_id, cells.account, cells.status, cells.state, cells.work, works.title,
    cells.attempts, cells.reason_code, cells.reason, cells.due_at, cells.created_at, cells.ended_at,
    accounts.auth_expired_at IS NOT NULL, accounts.cooldown_until, cells.report"""
_CELLS = "cells LEFT JOIN works USING (work) LEFT JOIN accounts ON accounts.name = cells.account"
_SLOT = """slots.slot_id, schedule_id, occurrence_at, trigger, slots.status, business_status, slots.reason_code,
    missed_count, (SELECT count(*) FROM cells WHERE cells.slot_id = slots.slot_id),
    (SELECT count(*) FROM cells WHERE cells.slot_id = slots.slot_id AND cells.status = 'submitted'),
    slots.created_at, slots.ended_at"""
_DELIVERY = """id, route, work, slot_id, target_id, status, remote_id, reason, idempotency_key, created_at, settled_at"""
_OUTBOX = """outbox.id, kind, outbox.route, outbox.state, deliveries.work, deliveries.slot_id, deliveries.target_id,
    attempts, max_attempts, due_at, error_class, last_error, outbox.idempotency_key, outbox.created_at, ended_at"""


def _rows(db: Database, sql: str, values: Sequence[object], make: Callable[..., T]) -> tuple[T, ...]:
    return tuple(make(*row) for row in db.execute(sql, tuple(values)).fetchall())


def _cell_view(*row: Any) -> CellView:
    *facts, login_needed, cooldown_until, report = row
    columns: list[Any] = [
        *facts,
        bool(login_needed),
        cooldown_until,
        None if report is None else msgspec.Raw(report.encode()),
    ]
    return CellView(*columns)


def list_slots(db: Database, limit: int = 50, schedule: str | None = None) -> tuple[SlotView, ...]:
    """Return the newest slots."""
    narrowed = "" if schedule is None else "WHERE schedule_id = ?"
    values = (limit,) if schedule is None else (schedule, limit)
    order = "ORDER BY created_at DESC, slot_id DESC LIMIT ?"
    return _rows(db, f"SELECT {_SLOT} FROM slots {narrowed} {order}", values, SlotView)


def get_slot(db: Database, slot_id: str) -> SlotDetail | None:
    """Return one slot with its cells, files and deliveries."""
    slots = _rows(db, f"SELECT {_SLOT} FROM slots WHERE slot_id = ?", (slot_id,), SlotView)
    if not slots:
        return None
    ids = db.execute("SELECT id FROM cells WHERE slot_id = ? ORDER BY id", (slot_id,)).fetchall()
    return SlotDetail(slots[0], tuple(cell for row in ids if (cell := get_cell(db, row[0])) is not None))


def list_cells(db: Database, limit: int = 50, *, open_only: bool = False) -> tuple[CellView, ...]:
    """Return the newest cells, those without a slot included."""
    narrowed = "WHERE cells.ended_at IS NULL" if open_only else ""
    sql = f"SELECT {_CELL} FROM {_CELLS} {narrowed} ORDER BY cells.id DESC LIMIT ?"
    return _rows(db, sql, (limit,), _cell_view)


def get_cell(db: Database, cell_id: int) -> CellDetail | None:
    """Return one cell with its files and deliveries."""
    cells = _rows(
        db,
        f"SELECT {_CELL} FROM {_CELLS} WHERE cells.id = ?",
        (cell_id,),
        _cell_view,
    )
    if not cells:
        return None
    files = _rows(
        db,
        """SELECT page, variant, root, path, status, bytes, sha256 FROM cell_artifacts
           JOIN artifacts ON artifacts.id = artifact_id WHERE cell_id = ? ORDER BY variant, page""",
        (cell_id,),
        FileView,
    )
    deliveries = _rows(
        db, f"SELECT {_DELIVERY} FROM deliveries WHERE cell_id = ? ORDER BY id", (cell_id,), DeliveryView
    )
    return CellDetail(cells[0], files, deliveries)


class WorkFiles(msgspec.Struct, frozen=True):
    """A work that is stored, and its files in the archive."""

    work: str
    revision: str
    title: str
    files: tuple[FileView, ...]


def files_of_work(db: Database, work: str) -> WorkFiles | None:
    """Return the stored files of a work's current revision; None when there are none."""
    known = db.execute("SELECT revision, title FROM works WHERE work = ?", (work,)).fetchone()
    if known is None:
        return None
    files = _rows(
        db,
        """SELECT page, variant, root, path, status, bytes, sha256 FROM artifacts
           WHERE work = ? AND revision = ? AND status = 'stored' ORDER BY owner <> 'archive', variant, page, id""",
        (work, known[0]),
        FileView,
    )
    return WorkFiles(work, known[0], known[1], files) if files else None


def list_deliveries(db: Database, limit: int = 50, work: str | None = None) -> tuple[DeliveryView, ...]:
    """Return the newest intents."""
    narrowed = "" if work is None else "WHERE work = ?"
    values = (limit,) if work is None else (work, limit)
    return _rows(
        db, f"SELECT {_DELIVERY} FROM deliveries {narrowed} ORDER BY id DESC LIMIT ?", values, DeliveryView
    )


def list_outbox(
    db: Database, limit: int = 50, state: str | None = None, route: str | None = None
) -> tuple[OutboxView, ...]:
    """Return the newest outbox rows."""
    tests = [
        (column, value)
        for column, value in (("outbox.state", state), ("outbox.route", route))
        if value is not None
    ]
    narrowed = "WHERE " + " AND ".join(f"{column} = ?" for column, _ in tests) if tests else ""
    sql = f"""SELECT {_OUTBOX} FROM outbox LEFT JOIN deliveries ON deliveries.id = delivery_id {narrowed}
              ORDER BY outbox.id DESC LIMIT ?"""
    return _rows(db, sql, (*(value for _, value in tests), limit), OutboxView)


def get_outbox(db: Database, row_id: int) -> tuple[OutboxView, str | None] | None:
    """Return one outbox row and its frozen payload (JSON)."""
    sql = f"SELECT {_OUTBOX} FROM outbox LEFT JOIN deliveries ON deliveries.id = delivery_id WHERE outbox.id = ?"
    rows = _rows(db, sql, (row_id,), OutboxView)
    if not rows:
        return None
    return rows[0], db.execute("SELECT payload FROM outbox WHERE id = ?", (row_id,)).fetchone()[0]


class Counts(msgspec.Struct, frozen=True):
    """How much of everything there is, for the live status."""

    slots_open: int
    cells_pending: int
    cells_running: int
    cells_in_delivery: int
    outbox_pending: dict[str, int]
    """By route, those of routes that left the configuration included."""
    outbox_dead: int
    next_due_at: int | None


def count_all(db: Database) -> Counts:
    """Count what is open."""

    def one(sql: str) -> int:
        return int(db.execute(sql).fetchone()[0])

    # Each part is worded as the condition of a partial index: the live status never reads what is finished.
    routes = db.execute(
        """SELECT route, sum(rows) FROM
           (SELECT route, count(*) AS rows FROM outbox WHERE state = 'pending' GROUP BY route
            UNION ALL SELECT route, count(*) FROM outbox WHERE state = 'running' GROUP BY route) GROUP BY route"""
    )
    return Counts(
        slots_open=one("SELECT count(*) FROM slots WHERE ended_at IS NULL AND admitted_at IS NULL")
        + one("SELECT count(*) FROM slots WHERE ended_at IS NULL AND admitted_at IS NOT NULL"),
        cells_pending=one("SELECT count(*) FROM cells WHERE state = 'pending'"),
        cells_running=one("SELECT count(*) FROM cells WHERE state = 'running'"),
        cells_in_delivery=one(
            """SELECT count(*) FROM cells
               WHERE status = 'delivery_pending' AND ended_at IS NULL AND work IS NOT NULL"""
        ),
        outbox_pending=dict(routes.fetchall()),
        outbox_dead=one("SELECT count(*) FROM outbox WHERE state = 'dead'"),
        next_due_at=db.execute("SELECT min(due_at) FROM cells WHERE state = 'pending'").fetchone()[0],
    )
