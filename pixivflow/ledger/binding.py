"""Work identity: a cell owns at most one work, for ever, and the routes that were free for it. See `leases` for the fence."""

from collections.abc import Collection, Sequence

import msgspec
from sqlite_utils import Database

from pixivflow.ledger.cells import PROGRESS, drop_plans
from pixivflow.ledger.leases import Lease, fenced_update, stands
from protocol.reasons import Reason
from protocol.works import WorkRef


class Bound(msgspec.Struct, frozen=True):
    """The cell owns the work now."""


class Lost(msgspec.Struct, frozen=True):
    """The cell owns another work (or the lease is gone: ``work`` is None). Never process your own."""

    work: WorkRef | None


class Taken(msgspec.Struct, frozen=True):
    """No route of the cell is free for the work: a duplicate for the scan."""


BindAnswer = Bound | Lost | Taken


def already_had(db: Database, work: WorkRef, revision: str, routes: Collection[str]) -> bool:
    """Whether the work is no candidate: confirmed, under way or refused on every route; or stored, without routes."""
    if routes:
        return not any(intent_allows(db, work, route) for route in routes)
    row = db.execute(
        "SELECT 1 FROM artifacts WHERE work = ? AND revision = ? AND status = 'stored' LIMIT 1",
        (str(work), revision),
    ).fetchone()
    return row is not None


def intent_allows(db: Database, work: WorkRef, route: str) -> bool:
    """Whether a route may get the work: nobody has sent it there, sends it, or was refused, in any revision."""
    row = db.execute(
        """SELECT 1 FROM deliveries WHERE work = ? AND route = ? AND (status IN ('pending', 'delivered', 'duplicate')
           OR (status = 'failed' AND reason = ?)) LIMIT 1""",
        (str(work), route, Reason.DELIVERY_REJECTED),
    ).fetchone()
    return row is None


def _routes_held_by_others(db: Database, work: WorkRef, cell_id: int) -> Sequence[frozenset[str] | None]:
    """Return the routes that each other open cell holds the work for; None for what can't be read."""
    rows = db.execute(
        "SELECT bound_routes FROM cells WHERE work = ? AND ended_at IS NULL AND id <> ?", (str(work), cell_id)
    ).fetchall()
    return [_routes_in(row[0]) for row in rows]


def _routes_in(text: str | None) -> frozenset[str] | None:
    try:
        return msgspec.json.decode(text or "", type=frozenset[str])
    except msgspec.MsgspecError:
        return None


def may_send(db: Database, cell_id: int, route: str) -> bool:
    """Whether the route was free when the cell bound its work; unreadable notes stand in nobody's way."""
    row = db.execute("SELECT bound_routes FROM cells WHERE id = ?", (cell_id,)).fetchone()
    routes = None if row is None else _routes_in(row[0])
    return routes is None or route in routes


def bind(
    db: Database, lease: Lease, work: WorkRef, revision: str, routes: Collection[str], now: int
) -> BindAnswer:
    """Give the cell its one work, for ever, before any side effect.

    A cell that has this very work keeps the generation that bound it: a later run may not unbind it.
    """
    row = db.execute("SELECT work FROM cells WHERE id = ?", (lease.id,)).fetchone()
    owned = None if row is None else row[0]
    if not stands(db, lease, now, f"bind {work}") or owned not in {None, str(work)}:
        return Lost(_work_of(owned))
    if owned is not None:
        return Bound()
    free = _free_routes(db, work, revision, routes, lease.id)
    if free is None:
        return Taken()
    bound = fenced_update(
        db,
        lease,
        now,
        f"status = 'selected', work = ?, bound_routes = ?, bound_generation = lease_generation, {PROGRESS}",
        (str(work), msgspec.json.encode(sorted(free)).decode(), now),
        expected="status = 'pending' AND work IS NULL",
    )
    return Bound() if bound else Lost(None)


def _work_of(text: str | None) -> WorkRef | None:
    try:
        return None if text is None else WorkRef.parse(text)
    except ValueError:
        return None


def _free_routes(
    db: Database, work: WorkRef, revision: str, routes: Collection[str], cell_id: int
) -> frozenset[str] | None:
    """The routes that the cell may hold the work for; None when there is none (or, without routes, no need)."""
    others = _routes_held_by_others(db, work, cell_id)
    if not routes:
        return None if frozenset() in others or already_had(db, work, revision, ()) else frozenset()
    if None in others:
        return None
    held = frozenset[str]().union(*(other for other in others if other))
    return (
        frozenset(route for route in routes if route not in held and intent_allows(db, work, route)) or None
    )


def unbind(db: Database, lease: Lease, work: WorkRef, now: int) -> bool:
    """Undo this very run's binding, on a verdict about the work and before any file of it is recorded."""
    if not stands(db, lease, now, f"unbind {work}"):
        return False
    recorded = db.execute(
        """SELECT 1 FROM cell_artifacts JOIN artifacts ON artifacts.id = artifact_id
           WHERE cell_id = ? AND sha256 IS NOT NULL LIMIT 1""",
        (lease.id,),
    ).fetchone()
    mine = db.execute(
        "SELECT 1 FROM cells WHERE id = ? AND work = ? AND bound_generation = ? AND status = 'selected'",
        (lease.id, str(work), lease.generation),
    ).fetchone()
    if recorded is not None or mine is None:
        return False
    undone = fenced_update(
        db, lease, now, "status = 'pending', work = NULL, bound_routes = NULL, bound_generation = NULL"
    )
    if undone:
        drop_plans(db, lease.id)
    return undone
