"""Brings a ledger's schema up to this program's version."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
from sqlite_utils import Database

from pixivflow.ledger.faults import LedgerRefused


class Migration(msgspec.Struct, frozen=True):
    """One step of the schema: ``apply`` leads from version - 1 to ``version``."""

    version: int
    name: str
    apply: Callable[[Database], None]


def schema_version(connection: sqlite3.Connection) -> int:
    """Tell the version that the ledger's file carries; 0 is a new one."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def refuse_newer(version: int, migrations: Sequence[Migration], name: str = "the ledger") -> None:
    """Raise `LedgerRefused` for a schema that this program does not know."""
    if version > len(migrations):
        raise LedgerRefused(
            f"{name} was written by a newer pixivflow (schema {version}, this program knows {len(migrations)}): "
            "install that version again, or restore a backup made before the upgrade"
        )


def migrate(db: Database, migrations: Sequence[Migration]) -> int:
    """Apply what is pending, each step in one transaction with its version; return the version reached.

    The connection must not be in a transaction. Raises `LedgerRefused` for a newer schema, ValueError when the
    versions are not 1, 2, 3 ..., and whatever a step raises, after its transaction was rolled back.
    """
    _require_contiguous(migrations)
    refuse_newer(schema_version(db.conn), migrations)
    for migration in migrations[schema_version(db.conn) :]:
        with _foreign_keys_off(db.conn):
            _apply(db, migration)
    return schema_version(db.conn)


def _require_contiguous(migrations: Sequence[Migration]) -> None:
    versions = [migration.version for migration in migrations]
    if versions != list(range(1, len(versions) + 1)):
        raise ValueError(f"migrations must be numbered 1, 2, 3 ...: {versions}")


def _apply(db: Database, migration: Migration) -> None:
    connection = db.conn
    connection.execute("BEGIN IMMEDIATE")
    try:
        _require_version(connection, migration.version - 1)
        migration.apply(db)
        _require_transaction(connection, migration)
        _require_references(connection, migration)
        connection.execute(f"PRAGMA user_version = {migration.version}")
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def _require_version(connection: sqlite3.Connection, version: int) -> None:
    if schema_version(connection) != version:
        raise LedgerRefused("another program changed the ledger's schema at this moment: start again")


def _require_transaction(connection: sqlite3.Connection, migration: Migration) -> None:
    if not connection.in_transaction:
        raise RuntimeError(f"migration {migration.version} ({migration.name}) ended its own transaction")


def _require_references(connection: sqlite3.Connection, migration: Migration) -> None:
    broken = connection.execute("PRAGMA foreign_key_check").fetchone()
    if broken is not None:
        raise sqlite3.IntegrityError(
            f"migration {migration.version} ({migration.name}) leaves table {broken[0]} "
            f"with rows that refer to nothing in {broken[2]}"
        )


@contextmanager
def _foreign_keys_off(connection: sqlite3.Connection) -> Iterator[None]:
    # A rebuilt table is dropped under its old name: with foreign keys on, that would delete what refers to it.
    was_on = connection.execute("PRAGMA foreign_keys").fetchone()[0]
    connection.execute("PRAGMA foreign_keys = OFF")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA foreign_keys = {was_on}")
