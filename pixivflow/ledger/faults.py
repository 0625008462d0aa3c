"""What can go wrong with the ledger as a whole.

- `LedgerUnavailable`: a write's outcome is unknown; read again before acting, never compensate.
- `LedgerRefused`: the ledger cannot be opened as it is.
  - `LedgerDamaged`: its file is damaged, or no SQLite database at all.
"""

import sqlite3
from pathlib import Path
from typing import Final

_WORLD: Final = frozenset({
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOTADB,
})  # fmt: skip
_ADVICE: Final = {
    sqlite3.SQLITE_FULL: "make room on its disk",
    sqlite3.SQLITE_IOERR: "look at its disk (the kernel's log says more)",
    sqlite3.SQLITE_READONLY: "give this user write access to the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "give this user write access to the file and its folder",
    sqlite3.SQLITE_BUSY: "end the other program that keeps it locked",
    sqlite3.SQLITE_CORRUPT: "stop, keep the file, and restore a backup",
    sqlite3.SQLITE_NOTADB: "stop, keep the file, and restore a backup",
}


class LedgerUnavailable(Exception):
    """The ledger could not confirm a call: what it wrote may or may not be there."""


class LedgerRefused(Exception):
    """The ledger cannot be opened; the text says what to do. Nothing was changed."""


class LedgerDamaged(LedgerRefused):
    """The ledger's file is damaged. It was left in place, untouched."""


def primary_code(error: BaseException | None) -> int | None:
    """SQLite's primary result code, where the error carries one."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


def is_worldly(error: BaseException) -> bool:
    """Whether the disk, memory or another program is at fault rather than the statement."""
    return isinstance(error, sqlite3.Error) and primary_code(error) in _WORLD


def is_damage(error: BaseException) -> bool:
    """Whether the error says that the file's content is wrong."""
    return primary_code(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def cause_text(error: BaseException) -> str:
    """One line for people: the error, and what to do about it where that is known."""
    name = getattr(error, "sqlite_errorname", None)
    text = str(error) or type(error).__name__
    told = f"{text} ({name})" if isinstance(name, str) else text
    advice = _ADVICE.get(primary_code(error) or sqlite3.SQLITE_OK)
    return f"{told}; {advice}" if advice else told


def unavailable(path: Path, cause: BaseException) -> LedgerUnavailable:
    """Build the error of one caller; each caller gets its own, chained to the same cause."""
    error = LedgerUnavailable(f"ledger {path}: the write is not confirmed: {cause_text(cause)}")
    error.__cause__ = cause
    return error


def unreadable(path: Path, cause: BaseException) -> LedgerUnavailable:
    """Build the error of a read that the world cut short."""
    error = LedgerUnavailable(f"ledger {path}: cannot be read: {cause_text(cause)}")
    error.__cause__ = cause
    return error
