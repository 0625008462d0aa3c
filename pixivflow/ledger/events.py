"""The append-only audit: what happened to which row, for people and for `doctor`."""

from sqlite_utils import Database


def record_event(db: Database, now: int, kind: str, subject: str, detail: str = "") -> None:
    """Append one event. ``subject`` is like ``cell:12``; ``detail`` is one line without secrets."""
    db.execute(
        "INSERT INTO events (at, kind, subject, detail) VALUES (?, ?, ?, ?)", (now, kind, subject, detail)
    )
