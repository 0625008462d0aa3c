"""What must be true before a ledger's file may be opened for writing."""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from pixivflow.ledger.disk import network_disk
from pixivflow.ledger.faults import LedgerDamaged, LedgerRefused, cause_text, is_damage
from pixivflow.ledger.migrate import Migration, refuse_newer, schema_version

OLDEST_SQLITE: Final = (3, 37, 0)
BUSY_TIMEOUT_MS: Final = 5_000


def sqlite_version_text() -> str:
    """Name the SQLite in use, for the log."""
    return sqlite3.sqlite_version


def inspect(path: Path, migrations: Sequence[Migration]) -> None:
    """Raise `LedgerRefused` or `LedgerDamaged` unless ``path`` may be opened; changes nothing.

    Reads the whole file once (``PRAGMA quick_check``), through SQLite only: closing the file by any other means
    would drop the locks this process has on it.
    """
    _refuse_old_sqlite()
    _refuse_place(path)
    if _is_new(path):
        return
    try:
        with closing(_connect_checking(path)) as connection:
            _refuse_damaged(path, connection)
            _refuse_foreign(path, connection, migrations)
    except sqlite3.Error as error:
        raise refusal(path, error) from error


def refusal(path: Path, error: sqlite3.Error) -> LedgerRefused:
    """Say in the user's words why SQLite would not open the ledger."""
    if is_damage(error):
        return _damaged(path, str(error))
    return LedgerRefused(f"cannot open the ledger {path}: {cause_text(error)}")


def _refuse_old_sqlite() -> None:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise LedgerRefused(
            f"SQLite {sqlite3.sqlite_version} is too old: use a Python with SQLite 3.37 or newer"
        )


def _refuse_place(path: Path) -> None:
    folder = path.parent
    if not folder.is_dir():
        raise LedgerRefused(f"cannot open the ledger {path}: there is no folder {folder}; make it first")
    if path.is_dir():
        raise LedgerRefused(f"cannot open the ledger {path}: it is a folder; name a file")
    fstype = network_disk(path)
    if fstype is not None:
        raise LedgerRefused(
            f"the ledger {path} lies on a network disk ({fstype}), where SQLite's locks cannot be trusted: "
            "set state_dir to a folder on a disk of this machine"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise LedgerRefused(
            f"cannot open the ledger {path}: the folder {folder} is not writable; give this user write access to it"
        )


def _is_new(path: Path) -> bool:
    if _size(path) > 0:
        return False
    if _size(_beside(path, "-wal")) > 0:
        # SQLite would delete the log, and with it everything since the last checkpoint.
        raise _damaged(path, f"it is missing or empty, but {_beside(path, '-wal').name} is still there")
    return True


def _connect_checking(path: Path) -> sqlite3.Connection:
    # Only a death in the very first transaction leaves a rollback journal, and a reader may not play it back.
    mode = "rw" if _beside(path, "-journal").exists() else "ro"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_MS / 1000)


def _refuse_damaged(path: Path, connection: sqlite3.Connection) -> None:
    found: str = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise _damaged(path, " ".join(found.split()))


def _refuse_foreign(path: Path, connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    version = schema_version(connection)
    refuse_newer(version, migrations, f"the ledger {path}")
    if version == 0 and connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise LedgerRefused(
            f"{path} is another program's SQLite database: set state_dir to a folder of its own"
        )


def _damaged(path: Path, detail: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"the ledger {path} is damaged or no SQLite database ({detail}). Nothing was changed. Restore a backup of it; "
        f"or move it aside by hand together with {path.name}-wal and {path.name}-shm, and accept that everything may "
        "be posted again"
    )


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
