import re
import sqlite3

import pytest

from pixivflow.ledger.binding import already_had
from pixivflow.ledger.cells import claim_cell, end_unleased
from pixivflow.ledger.files import discardable, expire_failed_caches, path_in_use
from pixivflow.ledger.leases import LEASE_MS, Lease, Queue, reclaim, suspect_running
from pixivflow.ledger.outbox import Settled, claim_row, expired_rows, make_due, next_due, settle_row
from pixivflow.ledger.reports import count_all
from pixivflow.ledger.schema import MIGRATIONS
from pixivflow.ledger.slots import admit, refresh_slot, slots_waiting
from pixivflow.ledger.sweep import prune, reclaim_orphaned, sweep
from protocol.states import CellStatus, IntentStatus
from protocol.works import WorkRef

WORK = WorkRef.parse("illustration:1")
CLAIMS = {
    "cell": lambda book: book.plan_of(claim_cell, "a", book.now, selecting=("main",), held=(7, 8)),
    "cell, known": lambda book: book.plan_of(
        claim_cell, "a", book.now, selecting=("main", "b"), known=("main", "b")
    ),
    "row": lambda book: book.plan_of(claim_row, "r", "a", book.now, held=(7, 8)),
}


@pytest.fixture
def busy(book):
    """A ledger with something in every state."""
    book.slot("s0", targets=("a", "b", "c", "d"), routes=("r",))
    for number in range(3):
        book.delivering(number, root="state", owner=f"cell:{number}")
    book.do(settle_row, book.claim_row().lease, Settled(IntentStatus.DELIVERED), book.now)
    book.claim_row()
    book.slot("s1", schedule="other", targets=("a", "b"))
    book.lease()
    book.slot("s2", schedule="other", admitted=False)
    return book


def partial_indexes(book):
    rows = book.rows("SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '% WHERE %'")
    return {name for (name,) in rows}


def whole_table_scans(book, plans):
    """Steps that read a whole table: a scan by a partial index reads only what is open."""
    partial = partial_indexes(book)
    found = []
    for sql, steps in plans:
        for step in steps:
            scan = re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?$", step)
            if scan is not None and scan[2] not in partial:
                found.append((step, sql))
    return found


@pytest.mark.parametrize("plans", CLAIMS.values(), ids=CLAIMS)
def test_no_claim_scans_a_table(busy, plans):
    assert whole_table_scans(busy, plans(busy)) == []


@pytest.mark.parametrize("plans", CLAIMS.values(), ids=CLAIMS)
def test_a_claim_takes_the_next_row_from_an_index_of_pending_ones_in_order(busy, plans):
    """Neither 10,000 due rows nor 100,000 finished ones are sorted or read for it."""
    [(_, steps)] = [(sql, steps) for sql, steps in plans(busy) if "ORDER BY" in sql and "priority" in sql]
    assert not any("TEMP B-TREE" in step for step in steps)
    assert re.search(r"(SCAN|SEARCH) (cells USING INDEX cells_next|outbox USING INDEX outbox_next)", steps[0])


REST = {
    "reclaim": lambda book: book.plan_of(reclaim, Queue.CELLS, book.now + LEASE_MS[Queue.CELLS] + 1, ()),
    "reclaim at start": lambda book: book.plan_of(reclaim_orphaned, book.now, {}, everyone=True),
    "suspects": lambda book: book.plan_of(suspect_running),
    "sweep": lambda book: book.plan_of(sweep, book.now + 10**9, {}),
    "expired rows": lambda book: book.plan_of(expired_rows, book.now + 10**9),
    "prune": lambda book: book.plan_of(prune, events_before=book.now, payloads_before=book.now),
    "discard": lambda book: book.plan_of(discardable, 10),
    "expired caches": lambda book: book.plan_of(expire_failed_caches, book.now + 10**9),
    "path": lambda book: book.plan_of(path_in_use, "state", "1.jpg"),
    "due": lambda book: book.plan_of(next_due, "r"),
    "make due": lambda book: book.plan_of(make_due, "r", book.now),
    "admission": lambda book: book.plan_of(admit, {}, book.now),
    "waiting": lambda book: book.plan_of(slots_waiting),
    "slot": lambda book: book.plan_of(refresh_slot, "s0", book.now),
    "end": lambda book: book.plan_of(end_unleased, 6, CellStatus.FAILED, None, None, book.now),
    "dedup by route": lambda book: book.plan_of(already_had, WORK, "v1", ("r", "q")),
    "dedup by file": lambda book: book.plan_of(already_had, WORK, "v1", ()),
    "status": lambda book: book.plan_of(count_all),
}


@pytest.mark.parametrize("plans", REST.values(), ids=REST)
def test_no_recurring_query_scans_a_table(busy, plans):
    assert whole_table_scans(busy, plans(busy)) == []


def test_a_settlement_scans_no_table(busy):
    busy.change("UPDATE outbox SET state = 'running', lease_generation = 9, lease_until = 1")
    lease = Lease(Queue.OUTBOX, 2, 9, "a", busy.now)
    plans = busy.plan_of(settle_row, lease, Settled(IntentStatus.DELIVERED), busy.now)
    assert whole_table_scans(busy, plans) == []


def test_the_scan_check_sees_a_scan(busy):
    plans = busy.plan_of(lambda db: db.execute("SELECT count(*) FROM cells WHERE target_id = 'a'").fetchone())
    assert len(whole_table_scans(busy, plans)) == 1


def test_every_table_is_strict(book):
    strict = book.rows("SELECT name FROM pragma_table_list WHERE schema = 'main' AND NOT strict")
    assert [name for (name,) in strict if not name.startswith("sqlite_")] == []


@pytest.mark.parametrize("status", ["pending", "delivered", "duplicate"])
def test_a_route_never_has_two_living_intents_for_one_revision_of_a_work(book, status):
    insert = """INSERT INTO deliveries (idempotency_key, route, work, revision, target_id, status, created_at)
                VALUES (?, 'r', 'illustration:1', 'v1', 't', ?, 0)"""
    book.change(insert, "k0", "failed")
    book.change(insert, "k1", "pending")
    with pytest.raises(sqlite3.IntegrityError):
        book.change(insert, "k2", status)


def test_a_failed_intent_and_one_asked_for_again_make_room_for_another(book):
    insert = """INSERT INTO deliveries (idempotency_key, route, work, revision, target_id, status, again, created_at)
                VALUES (?, 'r', 'illustration:1', 'v1', 't', 'pending', ?, 0)"""
    book.change(insert, "k1", 0)
    book.change(insert, "k2", 1)
    book.change("UPDATE deliveries SET status = 'failed' WHERE idempotency_key = 'k1'")
    book.change(insert, "k3", 0)
    assert book.value("SELECT count(*) FROM deliveries") == 3


def test_a_key_names_one_outbox_row_of_its_kind(book):
    insert = """INSERT INTO outbox (kind, idempotency_key, route, created_at, expires_at, due_at)
                VALUES (?, 'k', 'r', 0, 1, 0)"""
    book.change(insert, "delivery")
    book.change(insert, "notification")
    with pytest.raises(sqlite3.IntegrityError):
        book.change(insert, "delivery")


def test_a_path_has_one_living_file(book):
    insert = """INSERT INTO artifacts (owner, work, revision, variant, page, root, path, status, created_at)
                VALUES ('archive', 'illustration:1', 'v1', 'original', 0, 'download', 'a.jpg', ?, 0)"""
    book.change(insert, "discard")
    book.change(insert, "stored")
    with pytest.raises(sqlite3.IntegrityError):
        book.change(insert, "planned")


def test_a_slot_has_one_cell_for_a_target(book):
    book.slot()
    with pytest.raises(sqlite3.IntegrityError):
        book.change(
            """INSERT INTO cells (slot_id, target_id, account, spec, retry_until, created_at, due_at)
               SELECT slot_id, target_id, account, spec, retry_until, created_at, due_at FROM cells"""
        )


def test_the_migrations_are_numbered_from_one():
    assert [migration.version for migration in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))
