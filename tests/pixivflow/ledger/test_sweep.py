import pytest

from pixivflow.ledger.cells import CellFailure, fail_cell
from pixivflow.ledger.events import record_event
from pixivflow.ledger.health import account_refused, cool_down
from pixivflow.ledger.leases import LEASE_MS, Queue
from pixivflow.ledger.outbox import Postponed, Settled, settle_row
from pixivflow.ledger.sweep import BATCH, Swept, prune, sweep
from protocol.reasons import Reason
from protocol.states import IntentStatus

HOUR = 3_600_000


def tick(book):
    return book.do(sweep, book.now, {})


def ended(book):
    return book.rows("SELECT status, reason_code, reason FROM cells WHERE ended_at IS NOT NULL")


def test_a_ledger_without_anything_to_do_is_swept_in_silence(book):
    book.slot()
    assert tick(book) == Swept()


def test_a_cell_that_never_had_its_turn_ends_as_queued_too_long(book):
    book.slot(retry_until=book.now + 1000, admitted=False)
    book.now += 1000
    assert tick(book).overdue_cells == (1,)
    assert ended(book)[0][:2] == ("failed", "queued_too_long")
    assert book.events("slot_ended") == ["slot:s"]


def test_a_cell_past_its_time_ends_with_the_reason_of_its_last_failure(book):
    book.slot(retry_until=book.now + 1000)
    failure = CellFailure(Reason.NETWORK_ERROR, "no answer", retry_at=book.now + 5000)
    book.do(fail_cell, book.lease(), failure, book.now)
    book.now += 1000
    tick(book)
    assert ended(book) == [("failed", "network_error", "no answer")]


def test_a_cell_whose_account_is_logged_out_ends_with_that_cause(book):
    book.slot(retry_until=book.now + 1000)
    book.do(account_refused, "main", "the token was revoked", None, book.now)
    book.now += 1000
    tick(book)
    assert ended(book) == [("failed", "auth_failed", "the token was revoked")]


def test_a_cell_whose_account_cools_down_ends_with_that_cause(book):
    book.slot(retry_until=book.now + 1000)
    book.do(cool_down, "main", book.now + HOUR)
    book.now += 1000
    tick(book)
    assert ended(book)[0][:2] == ("failed", "rate_limited")


def test_an_unreadable_reason_ends_as_an_internal_error(book):
    book.slot(retry_until=book.now + 1000, targets=("a", "b"))
    book.change("UPDATE cells SET reason_code = 'from tomorrow' WHERE id = 1")
    book.change("UPDATE cells SET status = 'from tomorrow' WHERE id = 2")
    book.now += 1000
    tick(book)
    assert [row[:2] for row in ended(book)] == [("failed", "internal_error"), ("failed", "queued_too_long")]


def test_a_running_cell_is_never_ended_for_its_time(book):
    book.slot(retry_until=book.now + 1000)
    book.lease()
    book.now += 1000
    assert tick(book) == Swept()


def test_a_cell_in_delivery_is_never_ended_for_its_time(book):
    book.slot(retry_until=book.now + 1000)
    book.delivering(1)
    book.now += HOUR
    assert tick(book) == Swept()


def test_what_was_taken_back_in_a_sweep_is_not_ended_in_it_but_in_the_next(book):
    book.slot(retry_until=book.now + 1000)
    book.lease()
    book.now += LEASE_MS[Queue.CELLS] + 1
    first, second = tick(book), tick(book)
    assert ([row.id for row in first.reclaimed], first.overdue_cells) == ([1], ())
    assert (second.reclaimed, second.overdue_cells) == ((), (1,))


def test_rows_that_were_just_taken_back_hide_none_of_the_overdue_ones(book):
    book.slot(targets=[f"t{number}" for number in range(BATCH + 20)], retry_until=book.now + 1000)
    for _ in range(BATCH):
        book.lease()
    book.now += LEASE_MS[Queue.CELLS] + 1
    assert tick(book).overdue_cells == tuple(range(BATCH + 1, BATCH + 21))


def test_a_sweep_ends_a_bounded_batch_and_the_next_goes_on(book):
    book.slot(targets=[f"t{number}" for number in range(BATCH + 5)], retry_until=book.now)
    assert [len(tick(book).overdue_cells) for _ in range(3)] == [BATCH, 5, 0]


def test_a_row_past_its_expiry_ends_as_abandoned_with_the_last_answer(book):
    book.slot()
    book.delivering(1, expires_at=book.now + 1000)
    book.do(settle_row, book.claim_row().lease, Postponed(book.now, True, "http_503", "busy"), book.now)
    book.now += 1000
    assert tick(book).expired_rows == (1,)
    assert book.rows("SELECT state, error_class FROM outbox") == [("dead", "expired")]
    assert ended(book) == [
        ("failed", "delivery_abandoned", "not delivered before it expired; last answer: busy")
    ]


def test_a_row_in_hand_is_never_ended_for_its_age(book):
    book.slot()
    book.delivering(1, expires_at=book.now + 1000)
    book.claim_row()
    book.now += 1000
    assert tick(book) == Swept()


def test_a_row_that_was_just_taken_back_is_not_ended_in_the_same_sweep(book):
    book.slot()
    book.delivering(1, expires_at=book.now + 1000)
    book.claim_row()
    book.now += LEASE_MS[Queue.OUTBOX] + 1
    assert [tick(book).expired_rows, tick(book).expired_rows] == [(), (1,)]


def test_a_cell_whose_intents_have_ended_without_it_is_healed(book):
    book.slot()
    book.delivering(1)
    book.change("UPDATE deliveries SET status = 'delivered'")
    book.change("UPDATE outbox SET state = 'done'")
    assert tick(book).healed_cells == (1,)
    assert ended(book) == [("submitted", None, None)]
    assert tick(book) == Swept()


def test_crashes_are_named_in_what_a_sweep_did(book):
    book.slot()
    book.lease()
    book.change("UPDATE cells SET crashes = 2")
    book.now += LEASE_MS[Queue.CELLS] + 1
    assert tick(book).crashed == ("cells:1",)


@pytest.mark.parametrize(("age", "left"), [(0, 1), (1, 0)])
def test_old_events_and_payloads_of_finished_rows_are_pruned_and_intents_never(book, age, left):
    book.slot(targets=("a", "b", "c"))
    for number in (1, 2, 3):
        book.delivering(number)
    for status in (IntentStatus.DELIVERED, IntentStatus.FAILED):
        book.do(settle_row, book.claim_row().lease, Settled(status), book.now)
    book.change("DELETE FROM events")
    book.do(record_event, book.now, "kind", "subject")
    book.do(prune, events_before=book.now + age, payloads_before=book.now + age)
    assert book.value("SELECT count(*) FROM events") == left
    kept = [payload is not None for (payload,) in book.rows("SELECT payload FROM outbox ORDER BY id")]
    assert kept == [bool(left), True, True]  # delivered, dead, still pending
    assert book.value("SELECT count(*) FROM deliveries") == 3
