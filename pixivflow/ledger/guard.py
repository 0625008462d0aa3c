"""The database as a call sees it: known tables only, no schema changes, never outside the engine's transaction."""

import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from sqlite_utils import Database
from sqlite_utils.db import NoTable, Table

_REFUSED: Final = {
    sqlite3.SQLITE_TRANSACTION: "transaction",
    sqlite3.SQLITE_ATTACH: "attach",
    sqlite3.SQLITE_DETACH: "detach",
    sqlite3.SQLITE_ALTER_TABLE: "alter table",
    sqlite3.SQLITE_CREATE_INDEX: "create index",
    sqlite3.SQLITE_CREATE_TABLE: "create table",
    sqlite3.SQLITE_CREATE_TEMP_TABLE: "create temp table",
    sqlite3.SQLITE_CREATE_TRIGGER: "create trigger",
    sqlite3.SQLITE_CREATE_VIEW: "create view",
    sqlite3.SQLITE_CREATE_VTABLE: "create virtual table",
    sqlite3.SQLITE_DROP_INDEX: "drop index",
    sqlite3.SQLITE_DROP_TABLE: "drop table",
    sqlite3.SQLITE_DROP_TRIGGER: "drop trigger",
    sqlite3.SQLITE_DROP_VIEW: "drop view",
}


class GuardedDatabase(Database):
    """A `Database` that inside `guarded` refuses what would break the engine's promises.

    The connection must have ``isolation_level=None``; it stays the caller's to close.
    """

    _guarding = False
    _refusal = ""
    _tables: frozenset[str] = frozenset()

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection, recursive_triggers=False, execute_plugins=False, strict=True)
        connection.set_authorizer(self._authorize)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Guard the block; an error that the guard caused gets a note that says so."""
        self._guarding, self._refusal = True, ""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if self._refusal:
                error.add_note(f"a ledger call may not use: {self._refusal}")
            raise
        finally:
            self._guarding = False

    def learn_tables(self) -> None:
        """Take the tables that exist now as the known ones."""
        self._tables = frozenset(self.table_names())

    @property
    def supports_strict(self) -> bool:
        """True: the engine refuses an older SQLite, and the inherited probe creates a table."""
        return True

    @property
    def supports_on_conflict(self) -> bool:
        """True: the engine refuses an older SQLite, and the inherited probe creates a table."""
        return True

    def table(self, table_name: str, **kwargs: Any) -> Table:
        """Return a known table; raise NoTable for any other name, so that no typo creates one."""
        if self._guarding and table_name not in self._tables:
            raise NoTable(f"the ledger has no table {table_name!r}")
        return super().table(table_name, **kwargs)

    def execute(self, sql: str, parameters: Sequence[Any] | dict[str, Any] | None = None) -> sqlite3.Cursor:
        """Execute one statement inside the engine's transaction."""
        self._require_transaction()
        return super().execute(sql, parameters)

    def query(
        self, sql: str, params: Sequence[Any] | dict[str, Any] | None = None
    ) -> Generator[dict[str, Any], None, None]:
        """Yield rows of one statement inside the engine's transaction."""
        self._require_transaction()
        return super().query(sql, params)

    def executescript(self, sql: str) -> sqlite3.Cursor:
        """Execute several statements inside the engine's transaction."""
        self._require_transaction()
        return super().executescript(sql)

    def _require_transaction(self) -> None:
        # SQLite ends a transaction by itself on some errors; what a call ran after that would commit alone.
        if self._guarding and not self.conn.in_transaction:
            raise sqlite3.OperationalError("the transaction of this call is gone")

    def _authorize(self, action: int, first: str | None, *_rest: str | None) -> int:
        if self._guarding and action in _REFUSED:
            self._refusal = f"{_REFUSED[action]} {first or ''}".strip()
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK
