"""The tables. Times are integer milliseconds UTC; works, specs, reports and payloads are text."""

from typing import Final

from sqlite_utils import Database

from pixivflow.ledger.migrate import Migration

LEASE_COLUMNS: Final = """
    state TEXT NOT NULL DEFAULT 'pending', priority INTEGER NOT NULL DEFAULT 0, due_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0, max_attempts INTEGER, crashes INTEGER NOT NULL DEFAULT 0,
    lease_owner TEXT, lease_generation INTEGER NOT NULL DEFAULT 0, lease_until INTEGER, progress_at INTEGER
"""

STATEMENTS: Final = (
    """CREATE TABLE schedules (
        id TEXT PRIMARY KEY, cron TEXT NOT NULL, timezone TEXT NOT NULL, effective_from INTEGER NOT NULL,
        last_occurrence_at INTEGER NOT NULL, paused_at INTEGER
    ) STRICT""",
    """CREATE TABLE slots (
        slot_id TEXT PRIMARY KEY, schedule_id TEXT, occurrence_at INTEGER, trigger TEXT NOT NULL, label TEXT,
        status TEXT NOT NULL, business_status TEXT, reason_code TEXT, missed_count INTEGER NOT NULL DEFAULT 0,
        request_key TEXT UNIQUE, request_fingerprint TEXT, recovery_of TEXT, correlation_id TEXT NOT NULL,
        created_at INTEGER NOT NULL, admitted_at INTEGER, ended_at INTEGER
    ) STRICT""",
    f"""CREATE TABLE cells (
        id INTEGER PRIMARY KEY, slot_id TEXT REFERENCES slots(slot_id), target_id TEXT NOT NULL,
        account TEXT NOT NULL, spec TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'pending', work TEXT,
        bound_generation INTEGER, bound_routes TEXT, stage INTEGER NOT NULL DEFAULT 0, reason_code TEXT, reason TEXT, report TEXT,
        retry_until INTEGER NOT NULL, created_at INTEGER NOT NULL, ended_at INTEGER, {LEASE_COLUMNS},
        UNIQUE (slot_id, target_id)
    ) STRICT""",
    f"""CREATE TABLE jobs (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, dedup_key TEXT NOT NULL, payload TEXT NOT NULL, title TEXT,
        url TEXT, force INTEGER NOT NULL DEFAULT 0, slot_id TEXT, target_id TEXT, duration_ms INTEGER,
        last_error TEXT, created_at INTEGER NOT NULL, ended_at INTEGER, {LEASE_COLUMNS}
    ) STRICT""",
    """CREATE TABLE works (
        work TEXT PRIMARY KEY, revision TEXT NOT NULL, title TEXT NOT NULL, author TEXT NOT NULL,
        facts TEXT NOT NULL, first_seen_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE artifacts (
        id INTEGER PRIMARY KEY, owner TEXT NOT NULL, work TEXT NOT NULL, revision TEXT NOT NULL,
        variant TEXT NOT NULL, page INTEGER NOT NULL, root TEXT NOT NULL, path TEXT NOT NULL,
        status TEXT NOT NULL DEFAULT 'planned', bytes INTEGER, sha256 TEXT, media_type TEXT,
        created_at INTEGER NOT NULL, stored_at INTEGER
    ) STRICT""",
    """CREATE TABLE cell_artifacts (
        cell_id INTEGER NOT NULL REFERENCES cells(id), artifact_id INTEGER NOT NULL REFERENCES artifacts(id),
        PRIMARY KEY (cell_id, artifact_id)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE deliveries (
        id INTEGER PRIMARY KEY, idempotency_key TEXT NOT NULL UNIQUE, route TEXT NOT NULL, work TEXT NOT NULL,
        revision TEXT NOT NULL, cell_id INTEGER REFERENCES cells(id), slot_id TEXT, target_id TEXT NOT NULL,
        status TEXT NOT NULL DEFAULT 'pending', remote_id TEXT, reason TEXT, again INTEGER NOT NULL DEFAULT 0,
        created_at INTEGER NOT NULL, settled_at INTEGER
    ) STRICT""",
    f"""CREATE TABLE outbox (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, idempotency_key TEXT NOT NULL,
        delivery_id INTEGER REFERENCES deliveries(id), route TEXT NOT NULL, payload TEXT, progress TEXT,
        on_wire_at INTEGER, cancel_requested INTEGER NOT NULL DEFAULT 0, error_class TEXT, last_error TEXT,
        created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, ended_at INTEGER, {LEASE_COLUMNS},
        UNIQUE (kind, idempotency_key)
    ) STRICT""",
    """CREATE TABLE routes (
        name TEXT PRIMARY KEY, paused_at INTEGER, reason TEXT, breaker TEXT, last_sent_at INTEGER, facts TEXT
    ) STRICT""",
    """CREATE TABLE walks (
        source TEXT PRIMARY KEY, clean_exit INTEGER NOT NULL DEFAULT 0, last_walk_at INTEGER, baseline_at INTEGER
    ) STRICT""",
    """CREATE TABLE skips (
        target_id TEXT NOT NULL, work TEXT NOT NULL, code TEXT NOT NULL, spec_hash TEXT NOT NULL,
        at INTEGER NOT NULL, PRIMARY KEY (target_id, work)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE accounts (
        name TEXT PRIMARY KEY, last_request_at INTEGER, cooldown_until INTEGER, breaker TEXT,
        auth_expired_at INTEGER, auth_reason TEXT, fingerprint TEXT
    ) STRICT""",
    """CREATE TABLE events (
        id INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL,
        detail TEXT NOT NULL DEFAULT ''
    ) STRICT""",
    "CREATE INDEX cells_next ON cells(priority DESC, due_at, id) WHERE state = 'pending'",
    "CREATE INDEX cells_leased ON cells(lease_until) WHERE state = 'running'",
    "CREATE INDEX cells_suspect ON cells(crashes) WHERE state = 'running' AND crashes > 1",
    "CREATE INDEX cells_holding ON cells(work) WHERE ended_at IS NULL AND work IS NOT NULL",
    "CREATE INDEX cells_waiting ON cells(retry_until) WHERE state = 'pending'",
    "CREATE INDEX slots_waiting ON slots(occurrence_at) WHERE admitted_at IS NULL AND ended_at IS NULL",
    "CREATE INDEX slots_open ON slots(schedule_id) WHERE admitted_at IS NOT NULL AND ended_at IS NULL",
    "CREATE INDEX slots_newest ON slots(created_at)",
    "CREATE UNIQUE INDEX jobs_in_flight ON jobs(dedup_key) WHERE state IN ('pending', 'running')",
    "CREATE INDEX jobs_due ON jobs(due_at) WHERE state = 'pending'",
    "CREATE INDEX jobs_leased ON jobs(lease_until) WHERE state = 'running'",
    "CREATE UNIQUE INDEX artifacts_path ON artifacts(root, path) WHERE status <> 'discard'",
    "CREATE INDEX artifacts_work ON artifacts(work, revision) WHERE status = 'stored'",
    "CREATE INDEX artifacts_discard ON artifacts(id) WHERE status = 'discard'",
    "CREATE INDEX artifacts_cached ON artifacts(created_at) WHERE root = 'state' AND status <> 'discard'",
    "CREATE INDEX cell_artifacts_artifact ON cell_artifacts(artifact_id)",
    """CREATE UNIQUE INDEX deliveries_once ON deliveries(route, work, revision)
        WHERE status IN ('pending', 'delivered', 'duplicate') AND again = 0""",
    "CREATE INDEX deliveries_work ON deliveries(work, route)",
    "CREATE INDEX deliveries_cell ON deliveries(cell_id)",
    "CREATE INDEX outbox_next ON outbox(route, priority DESC, due_at, id) WHERE state = 'pending'",
    "CREATE INDEX outbox_due ON outbox(route, due_at) WHERE state = 'pending'",
    "CREATE INDEX outbox_expiring ON outbox(expires_at) WHERE state = 'pending'",
    "CREATE INDEX outbox_leased ON outbox(lease_until) WHERE state = 'running'",
    "CREATE INDEX outbox_suspect ON outbox(crashes) WHERE state = 'running' AND crashes > 1",
    "CREATE INDEX outbox_dead ON outbox(ended_at) WHERE state = 'dead'",
    "CREATE INDEX outbox_ended ON outbox(ended_at) WHERE ended_at IS NOT NULL AND payload IS NOT NULL",
    "CREATE INDEX outbox_delivery ON outbox(delivery_id)",
    "CREATE INDEX events_at ON events(at)",
)


def _first(db: Database) -> None:
    for statement in STATEMENTS:
        db.execute(statement)


MIGRATIONS: Final = (Migration(version=1, name="first tables", apply=_first),)
