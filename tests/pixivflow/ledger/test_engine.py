import random
import resource
import sqlite3
import subprocess
import sys
import textwrap
import threading
from contextlib import closing, contextmanager, suppress

import pytest
import trio
from outcome import Value
from sqlite_utils.db import NoTable
from trio.testing import MockClock

from pixivflow.ledger.batch import BatchLost, commit_together
from pixivflow.ledger.connection_thread import serving
from pixivflow.ledger.engine import (
    LedgerDamaged,
    LedgerRefused,
    LedgerUnavailable,
    connect_inline,
    open_ledger,
    sqlite_version_text,
)
from pixivflow.ledger.guard import GuardedDatabase
from pixivflow.ledger.migrate import Migration


def first_tables(db):
    db.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT")
    db.execute("CREATE TABLE tags (note INTEGER NOT NULL REFERENCES notes(id)) STRICT")


MIGRATIONS = (Migration(version=1, name="first tables", apply=first_tables),)


def full_error():
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    error.sqlite_errorname = "SQLITE_FULL"
    return error


class FaultyConnection(sqlite3.Connection):
    """A real connection that fails when told to."""

    commit_fault = None
    statement_fault = None

    def execute(self, sql, *args):
        if self.statement_fault is not None and "/* faulty */" in sql:
            self.statement_fault()
        return super().execute(sql, *args)

    def commit(self):
        fault, self.commit_fault = self.commit_fault, None
        if fault is not None:
            fault()
        super().commit()

    def really_roll_back(self):
        self.set_authorizer(None)
        super().rollback()
        raise full_error()


class Faults:
    """The seam: opens faulty connections and remembers the newest."""

    connection: FaultyConnection

    def __call__(self, path):
        self.connection = sqlite3.connect(path, isolation_level=None, factory=FaultyConnection)
        return self.connection


def opened(path, **kwargs):
    return open_ledger(path, MIGRATIONS, now_ms=lambda: 1_700_000_000_000, **kwargs)


def add(db, note, text="a"):
    db.execute("INSERT INTO notes (id, text) VALUES (?, ?)", (note, text))
    return note


def add_faulty(db, note):
    db.execute("INSERT /* faulty */ INTO notes (id, text) VALUES (?, 'a')", (note,))


def notes(db):
    return tuple(row[0] for row in db.execute("SELECT id FROM notes ORDER BY id").fetchall())


def stored(path):
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return tuple(row[0] for row in connection.execute("SELECT id FROM notes ORDER BY id"))


class Gate:
    """A write that holds the ledger's thread until it is let go."""

    def __init__(self):
        self.entered, self.release = threading.Event(), threading.Event()

    def __call__(self, db):
        self.entered.set()
        self.release.wait(20)

    @contextmanager
    def opened_at_end(self):
        try:
            yield
        finally:
            self.release.set()


async def in_one_batch(ledger, *calls):
    """Queue the calls while the thread is held, let it go, and return each one's result or error."""
    results = [None] * len(calls)

    async def run(index, call):
        try:
            results[index] = await ledger.write(*call)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            results[index] = error
        await trio.lowlevel.checkpoint()

    gate = Gate()
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            with gate.opened_at_end():
                nursery.start_soon(ledger.write, gate)
                await trio.to_thread.run_sync(gate.entered.wait, 20)
                for index, call in enumerate(calls):
                    nursery.start_soon(run, index, call)
                    await trio.testing.wait_all_tasks_blocked()
    return results


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite3"


async def test_a_write_returns_what_its_function_returned_and_is_there(path):
    async with opened(path) as ledger:
        assert await ledger.write(add, 1, text="b") == 1
        assert await ledger.read(notes) == (1,)
    assert stored(path) == (1,)


async def test_writes_queued_behind_a_busy_thread_share_one_commit(path):
    async with opened(path) as ledger:
        before = ledger.statistics()
        results = await in_one_batch(ledger, *((add, note) for note in range(10)))
        after = ledger.statistics()
    assert results == list(range(10))
    assert after.batches - before.batches == 2
    assert after.largest_batch == 10
    assert after.opened_at == 1_700_000_000_000


async def test_a_batch_is_never_larger_than_256(path):
    async with opened(path) as ledger:
        await in_one_batch(ledger, *((add, note) for note in range(300)))
        assert ledger.statistics().largest_batch == 256
    assert stored(path) == tuple(range(300))


async def test_a_failing_write_is_undone_alone(path):
    def half(db):
        add(db, 2)
        raise LookupError("no such cell")

    async with opened(path) as ledger:
        first, failed, last = await in_one_batch(ledger, (add, 1), (half,), (add, 3))
    assert (first, last) == (1, 3)
    assert isinstance(failed, LookupError)
    assert stored(path) == (1, 3)


async def test_a_violated_constraint_comes_back_as_it_is_to_its_caller_alone(path):
    async with opened(path) as ledger:
        _, failed, last = await in_one_batch(ledger, (add, 1), (add, 1), (add, 3))
    assert isinstance(failed, sqlite3.IntegrityError)
    assert last == 3
    assert stored(path) == (1, 3)


async def test_foreign_keys_are_enforced(path):
    async with opened(path) as ledger:
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            await ledger.write(lambda db: db.execute("INSERT INTO tags (note) VALUES (9)").rowcount)


async def test_an_error_that_keeps_a_cursor_alive_does_not_block_the_others(path):
    def returning(db):
        cursor = db.execute("INSERT INTO notes (id, text) VALUES (5, 'a'), (6, 'a') RETURNING id")
        raise LookupError(cursor.fetchone()[0])

    async with opened(path) as ledger:
        _, failed, last = await in_one_batch(ledger, (add, 1), (returning,), (add, 3))
    assert failed.args == (5,)
    assert last == 3
    assert stored(path) == (1, 3)


async def test_a_write_that_raises_a_base_exception_does_not_end_the_thread(path):
    def leave(db):
        add(db, 1)
        raise SystemExit(3)

    async with opened(path) as ledger:
        with pytest.raises(SystemExit):
            await ledger.write(leave)
        assert await ledger.write(add, 2) == 2
    assert stored(path) == (2,)


async def test_a_full_disk_that_leaves_the_transaction_alive_fails_its_caller_alone(path):
    faults = Faults()
    async with opened(path, connect=faults) as ledger:

        def fault():
            raise full_error()

        faults.connection.statement_fault = fault
        first, failed, last = await in_one_batch(ledger, (add, 1), (add_faulty, 2), (add, 3))
    assert (first, last) == (1, 3)
    assert isinstance(failed, LedgerUnavailable)
    assert "disk is full" in str(failed)
    assert str(path) in str(failed)
    assert stored(path) == (1, 3)


async def test_a_full_disk_that_ends_the_transaction_confirms_nobodys_write(path):
    faults = Faults()
    async with opened(path, connect=faults) as ledger:
        faults.connection.statement_fault = faults.connection.really_roll_back
        results = await in_one_batch(ledger, (add, 1), (add_faulty, 2), (add, 3))
        assert ledger.statistics().lost_batches == 1
        assert await ledger.read(notes) == ()
        assert await ledger.write(add, 4) == 4
    assert all(isinstance(result, LedgerUnavailable) for result in results)
    assert len({id(result) for result in results}) == 3
    assert all("disk is full" in str(result.__cause__) for result in results)
    assert stored(path) == (4,)


async def test_a_transaction_that_sqlite_itself_ended_confirms_nobodys_write(path):
    def conflicting(db):
        db.execute("INSERT OR ROLLBACK INTO notes (id, text) VALUES (1, 'again')")

    async with opened(path) as ledger:
        results = await in_one_batch(ledger, (add, 1), (conflicting,), (add, 3))
    assert all(isinstance(result, LedgerUnavailable) for result in results)
    assert stored(path) == ()


async def test_a_write_that_swallows_the_end_of_its_transaction_commits_nothing_behind_it(path):
    def stubborn(db):
        for statement in (
            "INSERT OR ROLLBACK INTO notes (id, text) VALUES (1, 'b')",
            "INSERT INTO notes VALUES (7, 'b')",
        ):
            try:
                db.execute(statement)
            except sqlite3.Error:
                continue
        return "fine"

    async with opened(path) as ledger:
        results = await in_one_batch(ledger, (add, 1), (stubborn,), (add, 3))
    assert all(isinstance(result, LedgerUnavailable) for result in results)
    assert stored(path) == ()


async def test_a_commit_that_fails_confirms_nobodys_write(path):
    faults = Faults()

    def fault():
        raise full_error()

    def arm(db):
        faults.connection.commit_fault = fault

    async with opened(path, connect=faults) as ledger:
        results = await in_one_batch(ledger, (add, 1), (arm,), (add, 3))
        assert await ledger.read(notes) == ()
        assert await ledger.write(add, 4) == 4
    assert all(isinstance(result, LedgerUnavailable) for result in results)
    assert stored(path) == (4,)


async def test_a_disk_that_takes_no_more_bytes_fails_the_commit_and_later_writes_go_on(path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with opened(path) as ledger:
        await ledger.write(add, 1)
        log_bytes = path.with_name(path.name + "-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (log_bytes + 100, hard))
        try:
            with pytest.raises(LedgerUnavailable, match="disk"):
                await ledger.write(add, 2)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert await ledger.write(add, 3) == 3
        assert await ledger.read(notes) == (1, 3)
    assert stored(path) == (1, 3)


async def test_sqlites_own_full_fails_the_write_that_met_it_and_keeps_the_file_sound(path):
    def connect(target):
        connection = sqlite3.connect(target, isolation_level=None)
        connection.execute("PRAGMA max_page_count = 20")
        return connection

    async with opened(path, connect=connect) as ledger:
        small, large, other = await in_one_batch(ledger, (add, 1), (add, 2, "x" * 200_000), (add, 3))
    assert isinstance(large, LedgerUnavailable)
    confirmed = tuple(result for result in (small, other) if isinstance(result, int))
    assert stored(path) == confirmed


def test_a_transaction_that_can_be_neither_committed_nor_rolled_back_costs_only_its_batch(path):
    class Stuck(sqlite3.Connection):
        stuck = False

        def commit(self):
            if self.stuck:
                raise full_error()
            super().commit()

        def rollback(self):
            if self.stuck:
                raise full_error()
            super().rollback()

    made = []

    def connect(target):
        made.append(sqlite3.connect(target, isolation_level=None, factory=Stuck))
        return made[-1]

    async def scenario(ledger):
        made[0].stuck = True
        with pytest.raises(LedgerUnavailable):
            await ledger.write(add, 1)
        assert await ledger.write(add, 2) == 2

    with connect_inline(path, MIGRATIONS, connect=connect) as ledger:
        trio.run(scenario, ledger)
    assert len(made) == 2
    assert stored(path) == (2,)


async def test_a_locked_file_fails_the_write_and_the_next_one_succeeds(path):
    def connect(target):
        return sqlite3.connect(target, isolation_level=None)

    async with opened(path, connect=connect) as ledger:
        await ledger.write(lambda db: db.execute("PRAGMA busy_timeout = 1").fetchone())
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(LedgerUnavailable, match="locked"):
                await ledger.write(add, 1)
        assert await ledger.write(add, 2) == 2
    assert stored(path) == (2,)


@pytest.mark.parametrize("statement", ["COMMIT", "ROLLBACK", "BEGIN", "END", "COMMIT /* mine */"])
async def test_a_write_may_not_end_or_begin_a_transaction(path, statement):
    async with opened(path) as ledger:
        first, failed, last = await in_one_batch(
            ledger, (add, 1), (lambda db: db.execute(statement).rowcount,), (add, 3)
        )
    assert isinstance(failed, sqlite3.DatabaseError)
    assert (first, last) == (1, 3)
    assert stored(path) == (1, 3)


async def test_a_write_may_not_commit_through_the_connection(path):
    async with opened(path) as ledger:
        with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
            await ledger.write(lambda db: db.conn.commit())


async def test_a_mistyped_table_is_refused_and_not_created(path):
    async with opened(path) as ledger:
        with pytest.raises(NoTable, match="notez"):
            await ledger.write(lambda db: db["notez"].insert({"id": 1}))
        with pytest.raises(NoTable, match="notez"):
            await ledger.read(lambda db: list(db["notez"].rows))
        assert await ledger.read(lambda db: db.table_names()) == ["notes", "tags"]


async def test_a_write_may_not_change_the_schema(path):
    async with opened(path) as ledger:
        with pytest.raises(sqlite3.DatabaseError) as caught:
            await ledger.write(lambda db: db.execute("CREATE TABLE more (id INTEGER)").rowcount)
    assert caught.value.__notes__ == ["a ledger call may not use: create table more"]


async def test_insert_and_upsert_of_sqlite_utils_work_on_known_tables(path):
    def store(db):
        db["notes"].insert({"id": 1, "text": "a"})
        db["notes"].upsert({"id": 1, "text": "b"}, pk="id")
        with suppress(LookupError), db.atomic():
            add(db, 2)
            raise LookupError

    async with opened(path) as ledger:
        await ledger.write(store)
        assert await ledger.read(lambda db: list(db.query("SELECT * FROM notes"))) == [{"id": 1, "text": "b"}]


async def test_a_result_that_would_keep_a_statement_running_is_refused(path):
    async with opened(path) as ledger:
        with pytest.raises(TypeError, match="plain values"):
            await ledger.read(lambda db: db.query("SELECT * FROM notes"))
        with pytest.raises(TypeError, match="plain values"):
            await ledger.write(lambda db: db.execute("SELECT * FROM notes"))


async def test_a_reader_cannot_write(path):
    async with opened(path) as ledger:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            await ledger.read(add, 1)


async def test_a_reader_sees_one_snapshot_and_only_what_is_committed(path):
    gate = Gate()
    seen = []

    def look_twice(db):
        seen.append(notes(db))
        gate(db)
        seen.append(notes(db))

    async with opened(path) as ledger:
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                with gate.opened_at_end():
                    nursery.start_soon(ledger.read, look_twice)
                    await trio.to_thread.run_sync(gate.entered.wait, 20)
                    await ledger.write(add, 1)
        seen.append(await ledger.read(notes))
    assert seen == [(), (), (1,)]


async def test_a_reader_holds_no_snapshot_between_calls(path):
    def fail_in_the_middle(db):
        rows = db.query("SELECT id FROM notes")
        raise LookupError(next(rows))

    async with opened(path) as ledger:
        for note in range(3):
            await ledger.write(add, note)
        with pytest.raises(LookupError) as kept:
            await ledger.read(fail_in_the_middle)
        await ledger.write(add, 3)
        with closing(sqlite3.connect(path)) as other:
            busy, _, _ = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert kept.value is not None
    assert busy == 0


async def test_the_wait_for_a_read_can_be_cancelled(path):
    gate = Gate()
    async with opened(path) as ledger:
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                with gate.opened_at_end():
                    nursery.start_soon(ledger.read, gate)
                    await trio.to_thread.run_sync(gate.entered.wait, 20)
                    nursery.cancel_scope.cancel()
        assert nursery.cancel_scope.cancelled_caught
        assert await ledger.read(notes) == ()


async def test_a_cancelled_callers_queued_write_is_run_and_answered(path):
    answers = []
    gate = Gate()

    async def write(ledger, scope):
        with scope:
            answers.append(await ledger.write(add, 1))
            await trio.lowlevel.checkpoint()
            answers.append("never reached")
        await trio.lowlevel.checkpoint()

    async with opened(path) as ledger:
        scope = trio.CancelScope()
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                with gate.opened_at_end():
                    nursery.start_soon(ledger.write, gate)
                    await trio.to_thread.run_sync(gate.entered.wait, 20)
                    nursery.start_soon(write, ledger, scope)
                    await trio.testing.wait_all_tasks_blocked()
                    scope.cancel()
                    await trio.testing.wait_all_tasks_blocked()
        assert await ledger.read(notes) == (1,)
    assert answers == [1]


async def test_a_write_in_a_cancelled_scope_does_not_run(path):
    async with opened(path) as ledger:
        with trio.CancelScope() as scope:
            scope.cancel()
            await ledger.write(add, 1)
        assert await ledger.read(notes) == ()


async def test_a_thousand_random_cancels_lose_no_write_and_invent_none(path):
    dice = random.Random(7)
    answered = []

    async def write(ledger, note, scope):
        with scope:
            for _ in range(dice.randrange(3)):
                await trio.lowlevel.checkpoint()
            answered.append(await ledger.write(add, note))
        await trio.lowlevel.checkpoint()

    async def cancel(scope):
        for _ in range(dice.randrange(6)):
            await trio.lowlevel.checkpoint()
        scope.cancel()
        await trio.lowlevel.checkpoint()

    async with opened(path) as ledger, trio.open_nursery() as nursery:
        for note in range(1000):
            scope = trio.CancelScope()
            nursery.start_soon(write, ledger, note, scope)
            nursery.start_soon(cancel, scope)
            if note % 50 == 0:
                await trio.lowlevel.checkpoint()
    assert 0 < len(answered) < 1000
    assert stored(path) == tuple(sorted(answered))


async def test_the_end_of_the_block_runs_what_is_queued(path):
    gate = Gate()

    async def leave(nursery, entered):
        async with opened(path) as ledger:
            nursery.start_soon(ledger.write, gate)
            await trio.to_thread.run_sync(gate.entered.wait, 20)
            for note in range(5):
                nursery.start_soon(ledger.write, add, note)
            await trio.testing.wait_all_tasks_blocked()
            entered.set()

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            entered = trio.Event()
            with gate.opened_at_end():
                nursery.start_soon(leave, nursery, entered)
                await entered.wait()
                await trio.testing.wait_all_tasks_blocked()
    assert stored(path) == (0, 1, 2, 3, 4)


async def test_cancelling_the_block_still_closes_everything(path):
    before = threading.active_count()
    with trio.CancelScope() as scope:
        async with opened(path) as ledger:
            await ledger.write(add, 1)
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ledger-")]
    assert threading.active_count() <= before + 2
    assert sorted(entry.name for entry in path.parent.iterdir()) == [path.name]
    assert stored(path) == (1,)


async def test_a_write_after_the_end_raises_closed(path):
    async with opened(path) as ledger:
        pass
    with pytest.raises(trio.ClosedResourceError):
        await ledger.write(add, 1)
    with pytest.raises(trio.ClosedResourceError):
        await ledger.read(notes)


async def test_callers_of_a_thread_that_died_are_told_and_do_not_hang(path):
    class Dying:
        gate = Gate()
        closed = 0

        def open(self):
            pass

        def run(self, calls):
            self.gate(None)
            raise SystemExit("the thread ends")

        def interrupt(self):
            pass

        def close(self):
            self.closed += 1

    served = Dying()
    failures = []

    async def call(thread):
        try:
            await thread.call(notes, abandonable=False)
        except LedgerUnavailable as error:
            failures.append(error)
        await trio.lowlevel.checkpoint()

    with trio.fail_after(20):
        async with serving("dying", path, served, most=1, grace_s=1.0) as thread:
            async with trio.open_nursery() as nursery:
                with served.gate.opened_at_end():
                    for _ in range(3):
                        nursery.start_soon(call, thread)
                    await trio.to_thread.run_sync(served.gate.entered.wait, 20)
                    await trio.testing.wait_all_tasks_blocked()
            await call(thread)
    assert len(failures) == 4
    assert "the thread ends" in str(failures[0])
    assert served.closed == 1


async def test_a_statement_that_never_ends_is_interrupted_at_the_end(path):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    started = threading.Event()

    def count(db):
        started.set()
        return db.execute(endless).fetchone()

    with trio.fail_after(20):
        async with opened(path) as ledger, trio.open_nursery() as nursery:
            nursery.start_soon(ledger.read, count)
            await trio.to_thread.run_sync(started.wait, 20)
            nursery.cancel_scope.cancel()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ledger-")]


def test_the_writers_pragmas_are_set(path):
    names = ("journal_mode", "foreign_keys", "synchronous", "busy_timeout", "mmap_size", "wal_autocheckpoint")

    async def scenario(ledger):
        return [
            await ask(lambda db: [db.execute(f"PRAGMA {name}").fetchone()[0] for name in names])
            for ask in (ledger.write, ledger.read)
        ]

    with connect_inline(path, MIGRATIONS) as ledger:
        writer, reader = trio.run(scenario, ledger)
    assert writer == ["wal", 1, 2, 5000, 0, 1000]
    assert reader[0] == "wal"
    assert reader[-1] == 0


def test_an_inline_ledger_keeps_the_rules_under_a_virtual_clock(path):
    async def scenario(ledger):
        await ledger.write(add, 1)
        await trio.sleep(3600)
        with pytest.raises(sqlite3.IntegrityError):
            await ledger.write(add, 1)
        with trio.CancelScope() as scope:
            scope.cancel()
            await ledger.write(add, 2)
        return await ledger.read(notes)

    with connect_inline(path, MIGRATIONS, durable=False) as ledger:
        assert trio.run(scenario, ledger, clock=MockClock(autojump_threshold=0)) == (1,)
        assert ledger.statistics().batches == 2
    with pytest.raises(trio.ClosedResourceError):
        trio.run(ledger.write, add, 3)


def test_a_batch_without_engine_raises_when_its_transaction_is_lost(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.sqlite3", isolation_level=None)) as connection:
        db = GuardedDatabase(connection)
        first_tables(db)
        db.learn_tables()
        with pytest.raises(BatchLost):
            commit_together(db, [lambda db: connection.close()])


class CountedConnection(sqlite3.Connection):
    """A real connection whose k-th statement finds a full disk."""

    left = 0
    ends_transaction = False

    def execute(self, sql, *args):
        self._count()
        return super().execute(sql, *args)

    def commit(self):
        self._count()
        super().commit()

    def _count(self):
        self.left -= 1
        if self.left == 0:
            if self.ends_transaction:
                self.set_authorizer(None)
                super().rollback()
            raise full_error()


@pytest.mark.parametrize("ends_transaction", [False, True])
def test_a_full_disk_at_any_statement_never_confirms_what_is_not_stored(tmp_path, ends_transaction):
    k, fired = 0, True
    while fired:
        k += 1
        path = tmp_path / f"{k}.sqlite3"
        with closing(sqlite3.connect(path, isolation_level=None, factory=CountedConnection)) as connection:
            db = GuardedDatabase(connection)
            first_tables(db)
            db.learn_tables()
            connection.ends_transaction, connection.left = ends_transaction, k
            try:
                answers = commit_together(db, [lambda db, note=note: add(db, note) for note in range(4)])
                confirmed = tuple(answer.value for answer in answers if isinstance(answer, Value))
            except BatchLost:
                confirmed = ()
            fired = connection.left <= 0
            assert not connection.in_transaction
        assert stored(path) == confirmed
    assert k > 4 * 3


def damage(path, offset, length):
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(b"\xa5" * length)


async def fill(path):
    async with opened(path) as ledger:
        for note in range(50):
            await ledger.write(add, note, "x" * 500)


@pytest.mark.parametrize("place", [(4096, 4096), (0, 100)])
async def test_a_damaged_file_is_refused_and_left_as_it_was(path, place):
    await fill(path)
    damage(path, *place)
    before = path.read_bytes()
    with pytest.raises(LedgerDamaged, match="posted again") as caught:
        async with opened(path):
            pass
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before


async def test_a_file_that_is_no_database_is_refused(path):
    path.write_text("this is a shopping list, not a database\n" * 100)
    with pytest.raises(LedgerRefused, match="no SQLite database"):
        async with opened(path):
            pass


async def test_a_log_without_its_ledger_is_refused(path):
    path.with_name(path.name + "-wal").write_bytes(b"x" * 5000)
    with pytest.raises(LedgerDamaged, match="is still there"):
        async with opened(path):
            pass
    assert path.with_name(path.name + "-wal").stat().st_size == 5000


async def test_damage_beside_a_log_that_was_not_checkpointed_changes_neither(path, tmp_path):
    await fill(path)
    other = tmp_path / "crashed"
    other.mkdir()
    async with opened(path) as ledger:
        await ledger.write(add, 100)
        # Another process copies: reading the file in this one would drop SQLite's locks.
        await trio.run_process(["cp", str(path), f"{path}-wal", str(other)])
    assert (other / f"{path.name}-wal").stat().st_size > 0
    damage(other / path.name, 4096, 8000)
    before = [(other / name).read_bytes() for name in (path.name, path.name + "-wal")]
    with pytest.raises(LedgerDamaged):
        async with opened(other / path.name):
            pass
    assert [(other / name).read_bytes() for name in (path.name, path.name + "-wal")] == before


async def test_a_newer_schema_is_refused_and_left_as_it_was(path):
    await fill(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 7")
    before = path.read_bytes()
    with pytest.raises(LedgerRefused, match=r"newer pixivflow \(schema 7, this program knows 1\)") as caught:
        async with opened(path):
            pass
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before


async def test_another_programs_database_is_refused(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (id)")
    with pytest.raises(LedgerRefused, match="another program"):
        async with opened(path):
            pass


async def test_a_missing_folder_is_refused(path):
    with pytest.raises(LedgerRefused, match="make it first"):
        async with opened(path.parent / "missing" / "ledger.sqlite3"):
            pass


async def test_a_folder_in_place_of_the_file_is_refused(path):
    path.mkdir()
    with pytest.raises(LedgerRefused, match="it is a folder"):
        async with opened(path):
            pass


async def test_a_migration_that_meets_a_full_disk_refuses_and_leaves_the_old_schema(path):
    def full(db):
        first_tables(db)
        raise full_error()

    with pytest.raises(LedgerRefused, match="make room"):
        async with open_ledger(path, (Migration(1, "first", full),), now_ms=lambda: 0):
            pass
    async with opened(path) as ledger:
        assert await ledger.read(notes) == ()


def test_the_version_of_sqlite_is_named():
    assert sqlite_version_text() == sqlite3.sqlite_version


WRITING = textwrap.dedent(
    """
    import sys, trio
    from pathlib import Path
    from pixivflow.ledger.engine import open_ledger
    from pixivflow.ledger.migrate import Migration

    def tables(db):
        db.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT")

    def add(db, note):
        db.execute("INSERT INTO notes (id, text) VALUES (?, ?)", (note, "x" * 300))

    async def write(ledger, note):
        while True:
            await ledger.write(add, note)
            print(note, flush=True)
            note += 8

    async def main():
        async with open_ledger(Path(sys.argv[1]), (Migration(1, "first", tables),), now_ms=lambda: 0) as ledger:
            async with trio.open_nursery() as nursery:
                for note in range(8):
                    nursery.start_soon(write, ledger, note)

    trio.run(main)
    """
)


@pytest.mark.parametrize("lines", [1, 40, 700])
def test_a_killed_process_keeps_every_write_it_was_told_of(path, lines):
    with subprocess.Popen(
        [sys.executable, "-c", WRITING, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        told = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        told += process.stdout.readlines()
    acknowledged = {int(line) for line in told if line.endswith("\n")}
    assert len(acknowledged) >= lines
    with connect_inline(path, MIGRATIONS) as ledger:
        assert acknowledged <= set(trio.run(ledger.read, notes))
    assert acknowledged <= set(stored(path))
