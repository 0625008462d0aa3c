import sqlite3

import msgspec
import pytest

from pixivflow.ledger.outbox import (
    Committed,
    Postponed,
    Settled,
    commit_delivery,
    end_row_unleased,
    heal_cell,
    make_due,
    next_due,
    settle_row,
)
from pixivflow.ledger.slots import refresh_slot
from protocol.payloads import Payload
from protocol.reasons import Reason
from protocol.states import CellStatus, IntentStatus

DELIVERED, DUPLICATE, FAILED = IntentStatus.DELIVERED, IntentStatus.DUPLICATE, IntentStatus.FAILED


def settle(book, status, route="r", reason=None, **options):
    lease = book.claim_row(route).lease
    return book.do(settle_row, lease, Settled(status, reason, **options), book.now)


def everything(book):
    return [
        book.rows(f"SELECT * FROM {table}")
        for table in ("cells", "slots", "deliveries", "outbox", "artifacts")
    ]


# commit


def test_the_commit_writes_an_intent_and_a_row_for_each_route_and_moves_the_cell(book):
    book.slot(routes=("r", "q"))
    lease = book.lease()
    book.store(lease, 1, ("r", "q"))
    assert book.commit(lease, 1, ("r", "q")) == Committed(CellStatus.DELIVERY_PENDING, ("r", "q"))
    assert book.rows("SELECT route, work, revision, cell_id, slot_id, target_id, status FROM deliveries") == [
        (route, "illustration:1", "v1", lease.id, "s", "t", "pending") for route in ("r", "q")
    ]
    assert book.rows("SELECT route, state, due_at, max_attempts, attempts FROM outbox") == [
        (route, "pending", book.now, 3, 0) for route in ("r", "q")
    ]
    row = book.cell_row(lease.id)
    assert (row["status"], row["state"], row["lease_until"], row["ended_at"]) == (
        "delivery_pending",
        "done",
        None,
        None,
    )


def test_a_second_commit_of_one_cell_makes_no_second_intent(book):
    book.slot()
    lease = book.lease()
    book.store(lease)
    book.commit(lease)
    assert book.commit(lease) is None
    assert book.value("SELECT count(*) FROM deliveries") == 1
    assert book.value("SELECT count(*) FROM outbox") == 1


def test_a_cell_without_routes_ends_at_its_commit(book):
    book.slot(routes=())
    lease = book.lease()
    book.store(lease, 1, ())
    assert book.commit(lease, 1, ()) == Committed(CellStatus.SUBMITTED)
    assert book.rows("SELECT status, business_status FROM slots") == [("success", "success")]


@pytest.mark.parametrize("routes", [("r",), ()])
def test_nothing_is_committed_before_the_files_are(book, routes):
    book.slot(routes=routes)
    lease = book.lease()
    book.bind(lease, 1, routes)
    book.plan(lease)
    assert book.commit(lease, 1, routes) is None
    assert book.cell_row(lease.id)["status"] == "selected"
    assert book.events("illegal_move") == [f"cells:{lease.id}"]


def test_no_other_work_than_the_cells_own_is_committed(book):
    book.slot()
    lease = book.lease()
    book.store(lease)
    assert book.commit(lease, 2) is None
    assert book.value("SELECT count(*) FROM deliveries") == 0


def test_a_route_that_had_the_work_is_reported_and_not_sent_to_again(book):
    book.slot("s1", routes=("r",))
    book.delivering(1)
    settle(book, DELIVERED)
    book.slot("s2", routes=("r", "q"), schedule="other")
    lease = book.lease()
    book.store(lease, 1, ("r", "q"), paths=("1.jpg",))
    assert book.commit(lease, 1, ("r", "q")) == Committed(CellStatus.DELIVERY_PENDING, ("q",), ("r",))
    settle(book, DELIVERED, "q")
    assert book.cell_row(lease.id)["status"] == "submitted"


@pytest.mark.parametrize(("status", "reason"), [(DELIVERED, None), (FAILED, Reason.DELIVERY_REJECTED)])
def test_a_new_revision_is_not_sent_to_a_route_that_had_or_refused_an_older_one(book, status, reason):
    book.slot("s1", routes=("r",))
    book.delivering(1)
    settle(book, status, reason=reason)
    book.slot("s2", routes=("r", "q"), schedule="other")
    lease = book.lease()
    book.store(lease, 1, ("r", "q"), paths=("1.jpg",))
    assert book.commit(lease, 1, ("r", "q"), revision="v2").had == ("r",)


def test_a_route_stays_with_the_cell_that_bound_the_work_first_whoever_commits_first(book):
    book.slot("s1", routes=("r",))
    book.slot("s2", routes=("r", "q"), schedule="other")
    first, second = book.lease(), book.lease()
    book.store(first, 1, ("r",), paths=("1.jpg",))
    book.store(second, 1, ("r", "q"), paths=("1.jpg",))
    assert book.commit(second, 1, ("r", "q")) == Committed(CellStatus.DELIVERY_PENDING, ("q",), had=("r",))
    assert book.commit(first, 1, ("r",)).routes == ("r",)
    assert book.value("SELECT count(*) FROM deliveries") == 2


def test_a_cell_whose_every_route_had_the_work_lets_its_cache_go(book):
    book.slot("s1", routes=("r",))
    first = book.lease()
    book.store(first, 1, ("r",), paths=("cached.jpg",), root="state", owner="cell:1")
    book.change(
        """INSERT INTO deliveries (idempotency_key, route, work, revision, target_id, status, created_at)
           VALUES ('imported', 'r', 'illustration:1', 'v1', 't', 'delivered', 1)"""
    )
    assert book.commit(first, 1, ("r",)) == Committed(CellStatus.DUPLICATE, had=("r",))
    assert book.rows("SELECT path, status FROM artifacts") == [("cached.jpg", "discard")]


def test_an_intent_that_failed_is_taken_up_again_under_its_key(book):
    cell = book.adhoc()
    lease = book.lease()
    book.store(lease, 1, ("r",))
    book.commit(lease, 1, ("r",))
    dead = book.claim_row()
    failed = Settled(
        IntentStatus.FAILED, Reason.DELIVERY_FAILED, error_class="http_500", detail="no", spends=True
    )
    book.do(settle_row, dead.lease, failed, book.now)
    assert book.cell_row(cell)["status"] == "failed"

    again = book.adhoc()
    lease = book.lease()
    book.store(lease, 1, ("r",))
    assert book.commit(lease, 1, ("r",)).routes == ("r",)

    row = book.claim_row()
    assert (row.lease.id, row.attempts) == (dead.lease.id, 0)
    assert book.do(settle_row, dead.lease, Settled(IntentStatus.DELIVERED), book.now) is None
    book.do(settle_row, row.lease, Settled(IntentStatus.DELIVERED), book.now)
    assert book.cell_row(again)["status"] == "submitted"
    assert book.rows("SELECT status, cell_id FROM deliveries") == [("delivered", again)]
    assert book.events("intent_revived")


class FullAfter:
    """A database whose disk is full from a certain statement on."""

    def __init__(self, db, statements):
        self._db = db
        self._left = statements

    def execute(self, *args):
        if self._left == 0:
            raise sqlite3.OperationalError("database or disk is full")
        self._left -= 1
        return self._db.execute(*args)


def full_after(statements, fn):
    return lambda db, *args, **kwargs: fn(FullAfter(db, statements), *args, **kwargs)


def statements_of(book, fn, *args):
    """How many statements a call executes; nothing of it stays."""

    class Undo(Exception):
        pass

    seen = []

    def counted(db):
        db.conn.set_trace_callback(seen.append)
        try:
            fn(db, *args)
        finally:
            db.conn.set_trace_callback(None)
        raise Undo

    with pytest.raises(Undo):
        book.do(counted)
    return len(seen)


def all_or_nothing(book, fn, *args):
    """Fail each statement of the call in turn: nothing stays, and the whole call succeeds afterwards."""
    before = everything(book)
    for number in range(statements_of(book, fn, *args)):
        with pytest.raises(sqlite3.OperationalError, match="full"):
            book.do(full_after(number, fn), *args)
        assert everything(book) == before
    assert book.do(fn, *args) is not None
    assert everything(book) != before


def test_a_full_disk_at_any_statement_of_the_commit_leaves_nothing_of_it(book):
    book.slot(routes=("r", "q"))
    lease = book.lease()
    book.store(lease, 1, ("r", "q"))
    intents = [book.intent(lease, 1, route) for route in ("r", "q")]
    all_or_nothing(book, commit_delivery, lease, "v1", intents, book.now)


def test_a_full_disk_at_any_statement_of_a_settlement_leaves_nothing_of_it(book):
    book.slot()
    book.delivering(1, root="state", owner="cell:1")
    lease = book.claim_row().lease
    all_or_nothing(book, settle_row, lease, Settled(DELIVERED, remote_id="77"), book.now)
    assert book.rows("SELECT cells.status, slots.status FROM cells JOIN slots USING (slot_id)") == [
        ("submitted", "success")
    ]


# claim


def test_rows_are_claimed_by_priority_then_due_time_then_insertion(book):
    book.slot(targets=[f"t{number}" for number in range(4)])
    for number in range(4):
        book.delivering(number)
    book.change("UPDATE outbox SET due_at = due_at - 5 WHERE id = 3")
    book.change("UPDATE outbox SET priority = 1 WHERE id = 4")
    assert [book.claim_row().lease.id for _ in range(4)] == [4, 3, 1, 2]
    assert book.claim_row() is None


def test_a_claim_gives_the_raw_payload_and_what_a_send_needs(book):
    book.slot()
    cell_id = book.delivering(1, expires_at=book.now + 1000)
    row = book.claim_row()
    payload = msgspec.json.decode(row.payload, type=Payload)
    assert (payload.key, payload.route) == ("pixivflow:r:illustration:1:s:t", "r")
    assert (row.route, row.slot_id, row.target_id) == ("r", "s", "t")
    assert (row.attempts, row.max_attempts, row.expires_at) == (0, 3, book.now + 1000)
    assert book.value("SELECT cell_id FROM deliveries WHERE id = ?", row.delivery_id) == cell_id


def test_a_lane_claims_its_own_route_alone(book):
    book.slot(routes=("r", "q"))
    book.delivering(1, ("r", "q"))
    assert book.claim_row("q").route == "q"
    assert book.claim_row("q") is None
    assert book.claim_row("r").route == "r"


def test_only_narrows_a_claim_to_the_intents_of_certain_cells(book):
    book.slot(targets=("a", "b"))
    book.delivering(1)
    second = book.delivering(2)
    assert book.claim_row(only=()) is None
    assert book.claim_row(only=(second,)).target_id == "b"
    assert book.claim_row(only=(second,)) is None


def test_a_row_past_its_expiry_is_not_sent_any_more(book):
    book.slot()
    book.delivering(1, expires_at=book.now + 1000)
    book.now += 1000
    assert book.claim_row() is None


# settle


def test_a_delivery_ends_row_intent_cell_and_slot(book):
    book.slot()
    cell_id = book.delivering(1)
    book.now += 5
    result = settle(book, DELIVERED, remote_id="77", detail="HTTP 201")
    assert (result.cell_id, result.slot_id, result.cell_status) == (cell_id, "s", CellStatus.SUBMITTED)
    assert book.rows("SELECT status, remote_id, settled_at FROM deliveries") == [
        ("delivered", "77", book.now)
    ]
    assert book.rows("SELECT state, attempts, last_error, ended_at, lease_owner FROM outbox") == [
        ("done", 0, "HTTP 201", book.now, None)
    ]
    assert book.rows("SELECT status, business_status, ended_at FROM slots") == [
        ("success", "success", book.now)
    ]
    assert book.events("slot_ended") == ["slot:s"]


@pytest.mark.parametrize(
    ("outcomes", "status", "reason"),
    [
        ((DELIVERED, DELIVERED), "submitted", None),
        ((DELIVERED, DUPLICATE), "submitted", None),
        ((DUPLICATE, DUPLICATE), "duplicate", None),
        ((DELIVERED, FAILED), "partial", "delivery_rejected"),
        ((FAILED, DUPLICATE), "partial", "delivery_rejected"),
        ((FAILED, FAILED), "failed", "delivery_rejected"),
    ],
)
def test_a_cells_end_tells_the_truth_about_every_route(book, outcomes, status, reason):
    book.slot(routes=("r", "q"))
    cell_id = book.delivering(1, ("r", "q"))
    for route, outcome in zip(("r", "q"), outcomes, strict=True):
        assert book.cell_row(cell_id)["status"] == "delivery_pending"
        settle(
            book, outcome, route, Reason.DELIVERY_REJECTED if outcome is FAILED else None, detail="HTTP 400"
        )
    row = book.cell_row(cell_id)
    assert (row["status"], row["reason_code"], row["ended_at"]) == (status, reason, book.now)
    assert row["reason"] == ("HTTP 400" if reason else None)
    assert book.events("slot_ended") == ["slot:s"]


def test_a_refusal_ends_row_intent_and_cell_at_once(book):
    book.slot()
    cell_id = book.delivering(1)
    settle(book, FAILED, reason=Reason.DELIVERY_REJECTED, error_class="http_400", spends=True)
    assert book.rows("SELECT state, attempts, error_class FROM outbox") == [("dead", 1, "http_400")]
    assert book.rows("SELECT status, reason FROM deliveries") == [("failed", "delivery_rejected")]
    assert book.cell_row(cell_id)["status"] == "failed"


@pytest.mark.parametrize("spends", [True, False])
def test_a_postponed_row_waits_and_spends_an_attempt_only_when_told(book, spends):
    book.slot()
    cell_id = book.delivering(1)
    lease = book.claim_row().lease
    result = book.do(settle_row, lease, Postponed(book.now + 500, spends, "http_500", "oops"), book.now)
    assert result.cell_status is None
    assert book.rows("SELECT state, due_at, attempts, error_class, last_error, lease_until FROM outbox") == [
        ("pending", book.now + 500, int(spends), "http_500", "oops", None)
    ]
    assert book.rows("SELECT status FROM deliveries") == [("pending",)]
    assert book.cell_row(cell_id)["status"] == "delivery_pending"
    assert book.claim_row() is None


def test_a_settlement_clears_the_mark_of_the_wire_and_the_count_of_crashes(book):
    book.slot()
    book.delivering(1)
    lease = book.claim_row().lease
    book.change("UPDATE outbox SET on_wire_at = 5, crashes = 2")
    book.do(settle_row, lease, Postponed(book.now, False, None, ""), book.now)
    assert book.rows("SELECT on_wire_at, crashes FROM outbox") == [(None, 0)]


def test_an_intent_that_was_settled_before_is_not_settled_otherwise(book):
    book.slot()
    book.delivering(1)
    lease = book.claim_row().lease
    book.change("UPDATE deliveries SET status = 'delivered', remote_id = '77'")
    book.do(settle_row, lease, Settled(FAILED, Reason.DELIVERY_FAILED), book.now)
    assert book.rows("SELECT status, remote_id, reason FROM deliveries") == [("delivered", "77", None)]
    assert book.events("illegal_move") == ["deliveries:1"]
    assert book.cell_row(1)["status"] == "submitted"


def test_a_row_that_nobody_holds_is_ended_with_all_that_hangs_on_it(book):
    book.slot()
    cell_id = book.delivering(1)
    settled = Settled(FAILED, Reason.DELIVERY_ABANDONED, detail="too old")
    assert book.do(end_row_unleased, 1, settled, book.now).cell_status is CellStatus.FAILED
    assert book.do(end_row_unleased, 1, settled, book.now) is None
    assert book.cell_row(cell_id)["reason_code"] == "delivery_abandoned"


def test_a_row_in_hand_is_not_ended_from_outside(book):
    book.slot()
    book.delivering(1)
    book.claim_row()
    assert book.do(end_row_unleased, 1, Settled(FAILED), book.now) is None


def test_a_cell_that_failed_otherwise_keeps_its_status_when_a_late_row_is_delivered(book):
    book.slot()
    cell_id = book.delivering(1)
    settle(book, FAILED, reason=Reason.DELIVERY_FAILED)
    book.change("UPDATE outbox SET state = 'pending'")
    book.change("UPDATE deliveries SET status = 'pending'")
    settle(book, DELIVERED)
    assert book.cell_row(cell_id)["status"] == "failed"
    assert book.rows("SELECT status FROM deliveries") == [("delivered",)]
    assert book.events("slot_ended") == ["slot:s"]


def test_a_submitted_cell_is_never_downgraded(book):
    book.slot()
    cell_id = book.delivering(1)
    settle(book, DELIVERED)
    before = book.cell_row(cell_id)
    book.change("UPDATE deliveries SET status = 'failed'")
    assert book.do(heal_cell, cell_id, book.now) is None
    assert book.cell_row(cell_id) == before


def test_the_end_of_a_slot_is_recorded_once_however_often_it_is_recomputed(book):
    book.slot()
    book.delivering(1)
    settle(book, DELIVERED)
    ended_at = book.value("SELECT ended_at FROM slots")
    for _ in range(3):
        book.do(refresh_slot, "s", book.now + 99)
    assert book.events("slot_ended") == ["slot:s"]
    assert book.value("SELECT ended_at FROM slots") == ended_at


def test_an_unreadable_reason_of_a_neighbour_never_keeps_a_sent_row_from_being_settled(book):
    book.slot(targets=("a", "b"))
    book.delivering(1)
    book.change("UPDATE cells SET reason_code = 'from tomorrow', status = 'from tomorrow' WHERE id = 2")
    assert settle(book, DELIVERED).cell_status is CellStatus.SUBMITTED


# heal, due


@pytest.mark.parametrize(
    ("status", "healed"), [(DELIVERED, "submitted"), (DUPLICATE, "duplicate"), (FAILED, "failed")]
)
def test_a_cell_in_delivery_is_healed_from_its_intents_alone(book, status, healed):
    book.slot()
    cell_id = book.delivering(1)
    book.change("UPDATE deliveries SET status = ?", status)
    assert book.do(heal_cell, cell_id, book.now) is None
    book.change("UPDATE outbox SET state = 'done'")
    assert book.do(heal_cell, cell_id, book.now) == healed
    assert book.cell_row(cell_id)["status"] == healed


def test_an_uncertain_row_keeps_its_cell_in_delivery(book):
    book.slot()
    cell_id = book.delivering(1)
    book.change("UPDATE outbox SET state = 'uncertain'")
    assert book.do(heal_cell, cell_id, book.now) is None


def test_a_cell_in_delivery_without_any_intent_is_left_for_people(book):
    book.slot()
    cell_id = book.delivering(1)
    book.change("UPDATE deliveries SET cell_id = NULL")
    assert book.do(heal_cell, cell_id, book.now) is None
    assert book.cell_row(cell_id)["status"] == "delivery_pending"


def test_a_route_that_works_again_makes_its_waiting_rows_due(book):
    book.slot(targets=("a", "b"), routes=("r", "q"))
    book.delivering(1, ("r", "q"))
    book.change("UPDATE outbox SET due_at = ?", book.now + 500)
    assert book.do(next_due, "r") == book.now + 500
    assert book.do(make_due, "r", book.now) == 1
    assert (book.do(next_due, "r"), book.do(next_due, "q")) == (book.now, book.now + 500)
    assert book.do(next_due, "unknown") is None
