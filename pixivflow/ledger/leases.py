"""The one lease machine of cells, jobs and outbox rows.

A lease is the right to act on a row; its identity is (queue, id, generation). Every acquire, release, unowned
release and reclaim adds one to the generation, and every write of a holder matches it: whoever lost the lease
changes nothing. `attempts` is never touched here: only a settlement that records a failure spends one.
"""

import sqlite3
from collections.abc import Callable, Collection
from enum import StrEnum
from functools import partial
from typing import Final, TypeVar

import msgspec
from sqlite_utils import Database

from pixivflow.ledger.events import record_event

T = TypeVar("T")

CRASH_LIMIT: Final = 3
"""Leases in a row that may die with the process before the row itself is ended."""
USABLE_MARGIN_MS: Final = 5_000


class Queue(StrEnum):
    """A table whose rows are leased."""

    CELLS = "cells"
    OUTBOX = "outbox"


LEASE_MS: Final = {Queue.CELLS: 180_000, Queue.OUTBOX: 120_000}


class Lease(msgspec.Struct, frozen=True):
    """The right to act on one row until ``until`` (ms UTC)."""

    queue: Queue
    id: int
    generation: int
    owner: str
    until: int

    @property
    def subject(self) -> str:
        """The row's name in events and logs."""
        return f"{self.queue}:{self.id}"

    def usable(self, now: int) -> bool:
        """Whether a side effect may still begin."""
        return now < self.until - USABLE_MARGIN_MS


class Reclaimed(msgspec.Struct, frozen=True):
    """A row taken back from a holder that is gone."""

    queue: Queue
    id: int
    crashes: int


def marks(values: Collection[object]) -> str:
    """Placeholders for an IN list."""
    return ", ".join("?" * len(values))


def acquire(db: Database, queue: Queue, row_id: int, owner: str, now: int) -> Lease | None:
    """Lease one pending row; None when somebody else was faster."""
    until = now + LEASE_MS[queue]
    row = db.execute(
        f"""UPDATE {queue} SET state = 'running', lease_owner = ?, lease_generation = lease_generation + 1,
            lease_until = ?, progress_at = ? WHERE id = ? AND state = 'pending' RETURNING lease_generation""",
        (owner, until, now, row_id),
    ).fetchone()
    return None if row is None else Lease(queue, row_id, row[0], owner, until)


def fenced_update(
    db: Database,
    lease: Lease,
    now: int,
    assignments: str,
    values: Collection[object] = (),
    *,
    expected: str = "TRUE",
    expected_values: Collection[object] = (),
) -> bool:
    """Apply ``assignments`` to the leased row if the lease stands and the row is as ``expected`` (an SQL condition).

    Else nothing changes but that an event is left.
    """
    changed = db.execute(
        f"""UPDATE {lease.queue} SET {assignments}
            WHERE id = ? AND lease_generation = ? AND state = 'running' AND ({expected})""",
        (*values, lease.id, lease.generation, *expected_values),
    ).rowcount
    if changed == 0 and stands(db, lease, now, assignments):
        record_event(db, now, "illegal_move", lease.subject, _one_line(assignments))
    return changed == 1


def stands(db: Database, lease: Lease, now: int, what: str) -> bool:
    """Whether the holder still holds the row; a stale one's attempt at ``what`` leaves an event."""
    row = db.execute(
        f"SELECT lease_generation, state FROM {lease.queue} WHERE id = ?", (lease.id,)
    ).fetchone()
    if row is not None and (row[0], row[1]) == (lease.generation, "running"):
        return True
    found = "no row" if row is None else f"generation {row[0]} ({row[1]})"
    detail = f"generation {lease.generation}, found {found}: {_one_line(what)}"
    record_event(db, now, "stale_write", lease.subject, detail)
    return False


def _one_line(statement: str) -> str:
    return " ".join(statement.split())[:60]


def renew(db: Database, leases: Collection[tuple[Lease, int]], now: int) -> dict[Lease, int | None]:
    """Prolong leases, given with the time of their last progress; map each to its new end, None when it is lost."""
    renewed: dict[Lease, int | None] = {}
    for lease, progress_at in leases:
        row = db.execute(
            f"""UPDATE {lease.queue} SET lease_until = max(lease_until, ?), progress_at = max(progress_at, ?)
                WHERE id = ? AND lease_generation = ? AND state = 'running' RETURNING lease_until""",
            (now + LEASE_MS[lease.queue], progress_at, lease.id, lease.generation),
        ).fetchone()
        if row is None:
            stands(db, lease, now, "renew")
        renewed[lease] = None if row is None else row[0]
    return renewed


def release(db: Database, lease: Lease, now: int) -> bool:
    """Give the row back unspent, due at once. Its holder's only (shutdown, lost session)."""
    return fenced_update(
        db,
        lease,
        now,
        "state = 'pending', lease_generation = lease_generation + 1, lease_owner = NULL, lease_until = NULL",
    )


def release_unowned(db: Database, queue: Queue, row_id: int, now: int) -> bool:
    """Take a running row back with no lease in hand (an operator's order); its holder finds its lease stale."""
    changed = db.execute(
        f"""UPDATE {queue} SET state = 'pending', lease_generation = lease_generation + 1, lease_owner = NULL,
            lease_until = NULL WHERE id = ? AND state = 'running'""",
        (row_id,),
    ).rowcount
    if changed:
        record_event(db, now, "released_unowned", f"{queue}:{row_id}")
    return changed == 1


def reclaim(
    db: Database,
    queue: Queue,
    now: int,
    held: Collection[int],
    *,
    owner: str | None = None,
    everyone: bool = False,
    end: Callable[[Reclaimed], object] | None = None,
) -> tuple[Reclaimed, ...]:
    """Take back rows whose holder is gone: expired and not ``held`` by this process.

    A lease of ``owner``, this very process, that nobody holds could not be settled (a full disk): it is no crash.

    With ``everyone`` (at start, under the exclusive lock) every running row is taken back, whatever its expiry.
    Each update asks again for generation and expiry, so that a holder that finished meanwhile stands. Rows at the
    crash limit go to ``end``. Each row stands alone: one that can't be read stops no other.
    """
    condition = "state = 'running'" if everyone else "state = 'running' AND lease_until < :now"
    rows = db.execute(
        f"SELECT id, lease_generation FROM {queue} WHERE {condition} ORDER BY lease_until", {"now": now}
    ).fetchall()

    def take(row_id: int, generation: int) -> Reclaimed | None:
        taken = _take_back(db, queue, row_id, generation, condition, owner, now)
        if taken is not None and taken.crashes >= CRASH_LIMIT and end is not None:
            end(taken)
        return taken

    found = (
        apart(db, now, f"{queue}:{row_id}", partial(take, row_id, generation))
        for row_id, generation in rows
        if row_id not in held
    )
    return tuple(row for row in found if row is not None)


def _take_back(
    db: Database, queue: Queue, row_id: int, generation: int, condition: str, owner: str | None, now: int
) -> Reclaimed | None:
    row = db.execute(
        f"""UPDATE {queue} SET state = 'pending', lease_generation = lease_generation + 1, lease_owner = NULL,
            lease_until = NULL, crashes = crashes + (lease_owner IS NOT :owner)
            WHERE id = :id AND lease_generation = :generation AND {condition} RETURNING crashes""",
        {"id": row_id, "generation": generation, "owner": owner, "now": now},
    ).fetchone()
    if row is None:
        return None
    record_event(db, now, "reclaimed", f"{queue}:{row_id}", f"generation {generation}, crash {row[0]}")
    return Reclaimed(queue, row_id, row[0])


def apart(db: Database, now: int, subject: str, act: Callable[[], T]) -> T | None:
    """Do something about one row in a savepoint of its own: a row that can't be read changes nothing but the audit."""
    db.execute("SAVEPOINT apart")
    try:
        result = act()
    except (ValueError, msgspec.MsgspecError, sqlite3.IntegrityError) as error:
        db.execute("ROLLBACK TO apart")
        db.execute("RELEASE apart")
        record_event(db, now, "unreadable_row", subject, _one_line(repr(error)))
        return None
    db.execute("RELEASE apart")
    return result


def suspect_running(db: Database) -> bool:
    """Whether a row one crash below the limit runs now: at most one such row runs in the whole process."""
    # Constants, not values: only so the planner may use the partial index of suspects.
    return any(
        db.execute(
            f"SELECT 1 FROM {queue} WHERE state = 'running' AND crashes > {CRASH_LIMIT - 2} LIMIT 1"
        ).fetchone()
        for queue in Queue
    )
