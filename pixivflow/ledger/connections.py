"""The two connections of a ledger, without threads: one writes and checkpoints, one reads."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

from outcome import Error, Outcome

from pixivflow.ledger.batch import BatchLost, Call, commit_together, read_alone
from pixivflow.ledger.faults import LedgerRefused, is_worldly, primary_code, unavailable, unreadable
from pixivflow.ledger.guard import GuardedDatabase
from pixivflow.ledger.migrate import Migration, migrate
from pixivflow.ledger.opening import BUSY_TIMEOUT_MS, inspect, refusal

Connect: TypeAlias = Callable[[Path], sqlite3.Connection]

JOURNAL_LIMIT_BYTES: Final = 16 * 1024 * 1024
CHECKPOINT_PAGES: Final = 1_000
CLOSING_BUSY_MS: Final = 200
_STATEMENTS_KEPT: Final = 256
_WRITER_PRAGMAS: Final = (
    "foreign_keys = ON",
    f"journal_size_limit = {JOURNAL_LIMIT_BYTES}",
    f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
    "mmap_size = 0",
    "temp_store = MEMORY",
)
_READER_PRAGMAS: Final = ("query_only = ON", "wal_autocheckpoint = 0", "mmap_size = 0", "temp_store = MEMORY")


def connect_writer(path: Path) -> sqlite3.Connection:
    """Open the file for writing; the engine sets everything else."""
    return sqlite3.connect(
        path, isolation_level=None, timeout=BUSY_TIMEOUT_MS / 1000, cached_statements=_STATEMENTS_KEPT
    )


def connect_reader(path: Path) -> sqlite3.Connection:
    """Open the file read-only."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    return sqlite3.connect(
        uri,
        uri=True,
        isolation_level=None,
        timeout=BUSY_TIMEOUT_MS / 1000,
        cached_statements=_STATEMENTS_KEPT,
    )


class Writer:
    """The connection that writes. All methods but `interrupt` belong to one thread."""

    def __init__(
        self,
        path: Path,
        migrations: Sequence[Migration],
        connect: Connect = connect_writer,
        *,
        durable: bool = True,
    ) -> None:
        self._path = path
        self._migrations = migrations
        self._connect = connect
        self._synchronous = "FULL" if durable else "OFF"
        self._db: GuardedDatabase | None = None
        self.batches = 0
        self.lost_batches = 0
        self.calls = 0
        self.largest_batch = 0

    def open(self) -> None:
        """Check the file, open it, bring its schema up to date. Raises `LedgerRefused`."""
        inspect(self._path, self._migrations)
        try:
            self._db = self._opened()
        except sqlite3.Error as error:
            raise refusal(self._path, error) from error

    def run(self, calls: Sequence[Call]) -> list[Outcome[Any]]:
        """Commit the calls together; where that fails, every one of them ends as `LedgerUnavailable`."""
        self.batches += 1
        self.calls += len(calls)
        self.largest_batch = max(self.largest_batch, len(calls))
        try:
            answers = commit_together(self._usable(), calls)
        except (BatchLost, sqlite3.Error, LedgerRefused) as error:
            self.lost_batches += 1
            cause = (error.__cause__ or error) if isinstance(error, BatchLost) else error
            return [Error(unavailable(self._path, cause)) for _ in calls]
        return [_translated(answer, lambda cause: unavailable(self._path, cause)) for answer in answers]

    def interrupt(self) -> None:
        """Cut short the statement that runs now; from any thread."""
        _interrupt(self._db)

    def close(self) -> None:
        """Move the log into the file where nobody hinders it, and close."""
        if self._db is None:
            return
        connection, self._db = self._db.conn, None
        with suppress(sqlite3.Error):
            # What stays in the log is read back at the next start: nothing depends on this checkpoint.
            connection.execute(f"PRAGMA busy_timeout = {CLOSING_BUSY_MS}")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        connection.close()

    def _usable(self) -> GuardedDatabase:
        if self._db is not None and self._db.conn.in_transaction:
            # The last batch could be neither committed nor rolled back: only a new connection lets go of it.
            stuck, self._db = self._db.conn, None
            stuck.close()
        if self._db is None:
            self._db = self._opened()
        return self._db

    def _opened(self) -> GuardedDatabase:
        connection = self._connect(self._path)
        try:
            _use_wal(self._path, connection)
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            return _prepared(connection, _WRITER_PRAGMAS, self._migrations)
        except BaseException:
            connection.close()
            raise


class Reader:
    """The connection that reads. All methods but `interrupt` belong to one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: GuardedDatabase | None = None

    def open(self) -> None:
        """Open a ledger that a `Writer` has open already. Raises `LedgerRefused`."""
        try:
            self._db = self._opened()
        except sqlite3.Error as error:
            raise refusal(self._path, error) from error

    def run(self, calls: Sequence[Call]) -> list[Outcome[Any]]:
        """Answer each call on a snapshot of its own."""
        if self._db is None:
            raise RuntimeError("the reader is not open")
        db = self._db
        return [_translated_read(read_alone(db, call), self._path) for call in calls]

    def interrupt(self) -> None:
        """Cut short the statement that runs now; from any thread."""
        _interrupt(self._db)

    def close(self) -> None:
        """Close without a checkpoint: that is the writer's alone."""
        if self._db is not None:
            self._db.conn.close()
            self._db = None

    def _opened(self) -> GuardedDatabase:
        connection = connect_reader(self._path)
        try:
            return _prepared(connection, _READER_PRAGMAS, ())
        except BaseException:
            connection.close()
            raise


def _use_wal(path: Path, connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    mode: str = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise LedgerRefused(
            f"the disk of the ledger {path} offers no shared memory for SQLite: use another one"
        )


def _prepared(
    connection: sqlite3.Connection, pragmas: Sequence[str], migrations: Sequence[Migration]
) -> GuardedDatabase:
    for pragma in pragmas:
        connection.execute(f"PRAGMA {pragma}").fetchone()
    db = GuardedDatabase(connection)
    if migrations:
        migrate(db, migrations)
    db.learn_tables()
    return db


def _translated(answer: Outcome[Any], told: Callable[[BaseException], BaseException]) -> Outcome[Any]:
    if isinstance(answer, Error) and is_worldly(answer.error):
        return Error(told(answer.error))
    return answer


def _translated_read(answer: Outcome[Any], path: Path) -> Outcome[Any]:
    # A call that tries to write here is a bug of ours, not a disk that went read-only.
    if isinstance(answer, Error) and primary_code(answer.error) == sqlite3.SQLITE_READONLY:
        return answer
    return _translated(answer, lambda cause: unreadable(path, cause))


def _interrupt(db: GuardedDatabase | None) -> None:
    if db is not None:
        with suppress(sqlite3.ProgrammingError):
            db.conn.interrupt()
