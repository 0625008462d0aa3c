"""Artifacts: every file has a row before its first byte, and is stored only together with its whole work."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final, Literal

import msgspec
from sqlite_utils import Database

from pixivflow.ledger.cells import PROGRESS, drop_plans
from pixivflow.ledger.leases import Lease, fenced_update, stands
from protocol.payloads import WorkFacts
from protocol.states import CellStatus
from protocol.works import WorkRef

Root = Literal["download", "state"]


class PathTaken(Exception):
    """The path belongs to another page's row: nothing is written."""


class NewArtifact(msgspec.Struct, frozen=True):
    """A file to be made: page (from 0; -1 for a sidecar), variant, and its final path below ``root``."""

    page: int
    variant: str
    path: str


class Artifact(msgspec.Struct, frozen=True):
    """A file's row; bytes and hash are None until it is durable."""

    id: int
    page: int
    variant: str
    root: Root
    path: str
    status: str
    bytes: int | None = None
    sha256: str | None = None
    media_type: str | None = None


_OWNS_WORK: Final = "status IN ('selected', 'artifact_ready') AND work = ?"
_COLUMNS = "id, page, variant, root, path, status, bytes, sha256, media_type"


def plan_artifacts(
    db: Database,
    lease: Lease,
    work: WorkRef,
    revision: str,
    files: Sequence[NewArtifact],
    *,
    root: Root,
    owner: str,
    now: int,
    report: str | None = None,
) -> tuple[Artifact, ...] | None:
    """Insert a row for each file, or find the one that exists; None for a stale lease.

    A file of another revision of the same page keeps its name, and the new one gets its revision added. Plans of
    an earlier run that the new plan has no use for are dropped. Raises `PathTaken` when a path belongs to another
    work, page or variant.
    """
    assignments = "progress_at = max(progress_at, ?), report = coalesce(?, report)"
    if not fenced_update(
        db, lease, now, assignments, (now, report), expected=_OWNS_WORK, expected_values=(str(work),)
    ):
        return None
    artifacts = tuple(_planned(db, str(work), revision, file, root, owner, now) for file in files)
    drop_plans(db, lease.id, keep=[artifact.id for artifact in artifacts])
    for artifact in artifacts:
        db.execute(
            "INSERT INTO cell_artifacts (cell_id, artifact_id) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (lease.id, artifact.id),
        )
    return artifacts


def _planned(
    db: Database, work: str, revision: str, file: NewArtifact, root: Root, owner: str, now: int
) -> Artifact:
    renamed = msgspec.structs.replace(file, path=_with_revision(file.path, revision))
    artifact, holder = _insert_or_find(db, work, revision, file, root, owner, now)
    if holder[0] == work and holder[1] != revision:
        artifact, holder = _insert_or_find(db, work, revision, renamed, root, owner, now)
    if (artifact.page, artifact.variant) == (file.page, file.variant) and holder == (work, revision, owner):
        return artifact
    raise PathTaken(
        f"{file.path} belongs to {holder[0]} page {artifact.page} ({artifact.variant}); "
        "give the path template more fields, such as {id} and {page}"
    )


def _with_revision(path: str, revision: str) -> str:
    name = PurePosixPath(path)
    return str(name.with_name(f"{name.stem}_r{revision.replace('/', '')}{name.suffix}"))


def _insert_or_find(
    db: Database, work: str, revision: str, file: NewArtifact, root: Root, owner: str, now: int
) -> tuple[Artifact, tuple[str, str, str]]:
    db.execute(
        """INSERT INTO artifacts (owner, work, revision, variant, page, root, path, created_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (root, path) WHERE status <> 'discard' DO NOTHING""",
        (owner, work, revision, file.variant, file.page, root, file.path, now),
    )
    row = db.execute(
        f"SELECT work, revision, owner, {_COLUMNS} FROM artifacts WHERE root = ? AND path = ? AND status <> 'discard'",
        (root, file.path),
    ).fetchone()
    return Artifact(*row[3:]), (row[0], row[1], row[2])


def record_artifact(
    db: Database, lease: Lease, artifact_id: int, size: int, sha256: str, media_type: str, now: int
) -> bool:
    """Note that a file of the cell is durable on disk; false for a stale lease, or a file that is not the cell's.

    A stored file that had to be made anew is recorded as it is now.
    """
    if not fenced_update(db, lease, now, PROGRESS, (now,)):
        return False
    recorded = db.execute(
        f"UPDATE artifacts SET bytes = ?, sha256 = ?, media_type = ? WHERE {_LIVE_FILE_OF_CELL}",
        (size, sha256, media_type, artifact_id, lease.id),
    ).rowcount
    return recorded == 1


_LIVE_FILE_OF_CELL: Final = """id = ? AND status <> 'discard' AND EXISTS
    (SELECT 1 FROM cell_artifacts WHERE cell_id = ? AND artifact_id = artifacts.id)"""


def drop_artifact(db: Database, lease: Lease, artifact_id: int, now: int) -> bool:
    """Take a file that could not be made out of the cell's plan; false for a stale lease.

    Its row goes with the last cell that has it planned; a file that was stored before stays.
    """
    if not fenced_update(db, lease, now, PROGRESS, (now,)):
        return False
    db.execute("DELETE FROM cell_artifacts WHERE cell_id = ? AND artifact_id = ?", (lease.id, artifact_id))
    db.execute(
        """DELETE FROM artifacts WHERE id = ? AND status = 'planned' AND sha256 IS NULL
           AND NOT EXISTS (SELECT 1 FROM cell_artifacts WHERE artifact_id = artifacts.id)""",
        (artifact_id,),
    )
    return True


def commit_files(db: Database, lease: Lease, facts: WorkFacts, now: int) -> bool:
    """Make the cell's files ``stored`` and the cell ``artifact_ready``: the binding is final.

    False, and no change, for a stale lease or while a file of the work is not recorded.
    """
    if not stands(db, lease, now, f"commit files of {facts.work}"):
        return False
    files, recorded = db.execute(
        """SELECT count(*), count(*) FILTER (WHERE sha256 IS NOT NULL AND status <> 'discard')
           FROM cell_artifacts JOIN artifacts ON artifacts.id = artifact_id WHERE cell_id = ?""",
        (lease.id,),
    ).fetchone()
    if (
        not files
        or recorded < files
        or not fenced_update(
            db,
            lease,
            now,
            f"status = '{CellStatus.ARTIFACT_READY}', {PROGRESS}",
            (now,),
            expected=_OWNS_WORK,
            expected_values=(str(facts.work),),
        )
    ):
        return False
    db.execute(
        """UPDATE artifacts SET status = 'stored', stored_at = ? WHERE status = 'planned' AND id IN
           (SELECT artifact_id FROM cell_artifacts WHERE cell_id = ?)""",
        (now, lease.id),
    )
    _remember_work(db, facts, now)
    return True


def _remember_work(db: Database, facts: WorkFacts, now: int) -> None:
    db.execute(
        """INSERT INTO works (work, revision, title, author, facts, first_seen_at, updated_at)
           VALUES (:work, :revision, :title, :author, :facts, :now, :now)
           ON CONFLICT (work) DO UPDATE SET revision = excluded.revision, title = excluded.title,
               author = excluded.author, facts = excluded.facts, updated_at = excluded.updated_at""",
        {
            "work": str(facts.work),
            "revision": facts.revision,
            "title": facts.title,
            "author": facts.author_name,
            "facts": msgspec.json.encode(facts).decode(),
            "now": now,
        },
    )


def read_facts(db: Database, work: WorkRef) -> WorkFacts | None:
    """Return what was last known about a stored work."""
    row = db.execute("SELECT facts FROM works WHERE work = ?", (str(work),)).fetchone()
    return None if row is None else msgspec.json.decode(row[0], type=WorkFacts)


def artifacts_of_cell(db: Database, cell_id: int) -> tuple[Artifact, ...]:
    """Return a cell's files, pages first, in page order."""
    rows = db.execute(
        f"""SELECT {_COLUMNS} FROM cell_artifacts JOIN artifacts ON artifacts.id = artifact_id
            WHERE cell_id = ? ORDER BY variant, page""",
        (cell_id,),
    ).fetchall()
    return tuple(Artifact(*row) for row in rows)


def discardable(db: Database, limit: int, after: int = 0) -> tuple[Artifact, ...]:
    """Return files that the cleaner may remove, oldest first; the page after the row ``after``.

    A path that another live row names again is left on disk; its discarded row just goes.
    """
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM artifacts WHERE status = 'discard' AND id > ? ORDER BY id LIMIT ?",
        (after, limit),
    ).fetchall()
    return tuple(Artifact(*row) for row in rows)


def path_in_use(db: Database, root: Root, path: str) -> bool:
    """Whether a live row names the path."""
    return (
        db.execute(
            "SELECT 1 FROM artifacts WHERE root = ? AND path = ? AND status <> 'discard'", (root, path)
        ).fetchone()
        is not None
    )


def forget_discarded(db: Database, artifact_ids: Sequence[int]) -> None:
    """Delete the rows of files that are gone from disk."""
    for artifact_id in artifact_ids:
        db.execute(
            """DELETE FROM cell_artifacts WHERE artifact_id = ?
               AND EXISTS (SELECT 1 FROM artifacts WHERE id = artifact_id AND status = 'discard')""",
            (artifact_id,),
        )
        db.execute("DELETE FROM artifacts WHERE id = ? AND status = 'discard'", (artifact_id,))


def discard_cache_of(db: Database, cell_id: int) -> None:
    """Let the cleaner remove a cell's own (cache) files, for no intent needs them any more."""
    db.execute(
        """UPDATE artifacts SET status = 'discard' WHERE root = 'state' AND status <> 'discard' AND id IN
           (SELECT artifact_id FROM cell_artifacts WHERE cell_id = ?)""",
        (cell_id,),
    )


def expire_failed_caches(db: Database, before: int) -> int:
    """Discard cache files of cells that ended before ``before`` and have no open intent; return how many."""
    return db.execute(
        """UPDATE artifacts SET status = 'discard'
           WHERE root = 'state' AND status <> 'discard' AND created_at < :before AND NOT EXISTS
           (SELECT 1 FROM cell_artifacts JOIN cells ON cells.id = cell_id WHERE artifact_id = artifacts.id
              AND (cells.ended_at IS NULL OR cells.ended_at >= :before OR EXISTS
                (SELECT 1 FROM deliveries JOIN outbox ON outbox.delivery_id = deliveries.id
                 WHERE deliveries.cell_id = cells.id AND outbox.state IN ('pending', 'running', 'uncertain'))))""",
        {"before": before},
    ).rowcount
