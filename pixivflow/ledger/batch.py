"""Group commit: several calls in one transaction, each in its own savepoint. No threads, no event loop."""

import sqlite3
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from outcome import Error, Outcome, capture

from pixivflow.ledger.guard import GuardedDatabase

Call: TypeAlias = Callable[[GuardedDatabase], Any]


class BatchLost(Exception):
    """The transaction of a batch is gone or did not commit; ``__cause__`` says why."""


def commit_together(db: GuardedDatabase, calls: Sequence[Call]) -> list[Outcome[Any]]:
    """Run the calls in one transaction; return each one's outcome after COMMIT succeeded.

    A call that raises is rolled back alone. Raises `BatchLost` when nothing is known to be committed; the
    connection may then still be inside a transaction that cannot be rolled back.
    """
    answers: Outcome[list[Outcome[Any]]] = capture(_committed, db, calls)
    if isinstance(answers, Error):
        _roll_back(db.conn)
        broken = answers.error
        raise BatchLost from (broken.__cause__ if isinstance(broken, BatchLost) else broken)
    return answers.unwrap()


def read_alone(db: GuardedDatabase, call: Call) -> Outcome[Any]:
    """Run one reading call on one snapshot, and let go of the snapshot."""
    answer: Outcome[Any] = capture(_snapshot, db, call)
    if isinstance(answer, Error):
        traceback.clear_frames(answer.error.__traceback__)
    _roll_back(db.conn)
    return answer


def _committed(db: GuardedDatabase, calls: Sequence[Call]) -> list[Outcome[Any]]:
    db.conn.execute("BEGIN IMMEDIATE")
    answers = [_in_savepoint(db, call) for call in calls]
    db.conn.commit()
    return answers


def _snapshot(db: GuardedDatabase, call: Call) -> Any:
    db.conn.execute("BEGIN")
    return _guarded(db, call)


def _in_savepoint(db: GuardedDatabase, call: Call) -> Outcome[Any]:
    db.conn.execute("SAVEPOINT call")
    answer: Outcome[Any] = capture(_guarded, db, call)
    if not db.conn.in_transaction:
        raise BatchLost from _cause(answer)
    if isinstance(answer, Error):
        # A cursor kept alive by the traceback would keep its statement running and block the savepoint.
        traceback.clear_frames(answer.error.__traceback__)
        db.conn.execute("ROLLBACK TO call")
    db.conn.execute("RELEASE call")
    return answer


def _cause(answer: Outcome[Any]) -> BaseException:
    if isinstance(answer, Error):
        return answer.error
    return sqlite3.OperationalError("the transaction ended inside a call")


def _guarded(db: GuardedDatabase, call: Call) -> Any:
    with db.guarded():
        return _plain(call(db))


def _plain(value: Any) -> Any:
    if isinstance(value, sqlite3.Cursor | Iterator):
        raise TypeError(
            f"a ledger call must return plain values, not {type(value).__name__}: its rows end with it"
        )
    return value


def _roll_back(connection: sqlite3.Connection) -> None:
    try:
        connection.rollback()
    except sqlite3.Error:
        # The caller sees that the connection is still in its transaction, and replaces it.
        return
