import sqlite3
from contextlib import closing

import pytest
from sqlite_utils import Database

from pixivflow.ledger.faults import LedgerRefused
from pixivflow.ledger.migrate import Migration, migrate


@pytest.fixture
def db(tmp_path):
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite3", isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        yield Database(connection, execute_plugins=False, strict=True)


def step(version, *statements):
    def apply(db):
        for statement in statements:
            db.execute(statement)

    return Migration(version=version, name=f"step {version}", apply=apply)


FIRST = step(1, "CREATE TABLE notes (id INTEGER PRIMARY KEY)", "INSERT INTO notes VALUES (1)")
SECOND = step(2, "ALTER TABLE notes ADD COLUMN text TEXT")


def version(db):
    return db.execute("PRAGMA user_version").fetchone()[0]


def test_pending_steps_are_applied_in_order(db):
    assert migrate(db, (FIRST, SECOND)) == 2
    assert version(db) == 2
    assert list(db.query("SELECT * FROM notes")) == [{"id": 1, "text": None}]


def test_applied_steps_are_not_applied_again(db):
    migrate(db, (FIRST,))
    assert migrate(db, (FIRST, SECOND)) == 2
    assert migrate(db, (FIRST, SECOND)) == 2
    assert db["notes"].count == 1


def test_a_failing_step_leaves_the_schema_before_it(db):
    broken = step(2, "ALTER TABLE notes ADD COLUMN text TEXT", "INSERT INTO nowhere VALUES (1)")
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(db, (FIRST, broken))
    assert version(db) == 1
    assert not db.conn.in_transaction
    assert [column.name for column in db["notes"].columns] == ["id"]


def test_a_newer_ledger_is_refused(db):
    db.execute("PRAGMA user_version = 7")
    with pytest.raises(LedgerRefused, match=r"newer pixivflow \(schema 7, this program knows 2\)"):
        migrate(db, (FIRST, SECOND))


@pytest.mark.parametrize("steps", [(SECOND,), (FIRST, FIRST), (SECOND, FIRST)])
def test_versions_with_gaps_or_out_of_order_are_refused(db, steps):
    with pytest.raises(ValueError, match="numbered"):
        migrate(db, steps)


def test_a_step_that_commits_by_itself_is_found(db):
    with pytest.raises(RuntimeError, match="ended its own transaction"):
        migrate(db, (step(1, "CREATE TABLE notes (id)", "COMMIT"),))


def test_a_rebuilt_table_keeps_what_refers_to_it(db):
    before = step(
        2,
        "CREATE TABLE tags (note INTEGER REFERENCES notes(id) ON DELETE CASCADE)",
        "INSERT INTO tags VALUES (1)",
    )
    rebuild = step(
        3,
        "CREATE TABLE fresh (id INTEGER PRIMARY KEY, text TEXT)",
        "INSERT INTO fresh (id) SELECT id FROM notes",
        "DROP TABLE notes",
        "ALTER TABLE fresh RENAME TO notes",
    )
    migrate(db, (FIRST, before, rebuild))
    assert db["tags"].count == 1
    assert db.execute("PRAGMA foreign_keys").fetchone()[0] == 1


def test_a_step_that_leaves_dangling_references_is_undone(db):
    dangling = step(
        2, "CREATE TABLE tags (note INTEGER REFERENCES notes(id))", "INSERT INTO tags VALUES (99)"
    )
    with pytest.raises(sqlite3.IntegrityError, match="refer to nothing in notes"):
        migrate(db, (FIRST, dangling))
    assert version(db) == 1
    assert not db["tags"].exists()
