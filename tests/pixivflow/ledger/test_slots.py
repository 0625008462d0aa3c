import pytest

from pixivflow.ledger.cells import end_cell
from pixivflow.ledger.outbox import Settled, settle_row
from pixivflow.ledger.slots import (
    NewSlot,
    admit,
    materialise,
    move_watermark,
    read_schedules,
    record_missed,
    refresh_slot,
    set_watermark_back,
    slots_waiting,
    sync_schedules,
)
from protocol.reasons import Reason
from protocol.states import CellStatus, IntentStatus, Trigger

DAILY = ("daily", "0 8 * * *", "UTC")
HOUR = 3_600_000


def watermark(book):
    return book.do(read_schedules)["daily"].last_occurrence_at


def waiting(book, slot_id, **options):
    return book.slot(slot_id, admitted=False, **options)


def finish(book, cell_id):
    lease = book.lease(only=(cell_id,))
    book.do(end_cell, lease, CellStatus.NO_CANDIDATE, book.now, Reason.NO_CANDIDATE)


def test_a_slot_is_made_once_with_its_cells_and_the_watermark(book):
    book.do(sync_schedules, [DAILY], book.now)
    made = book.slot("s", ("a", "b"), watermark=book.now + 5, admitted=False)
    again = book.slot("s", ("a", "b", "c"), watermark=book.now + 5, admitted=False)
    assert made == again == (1, 2)
    assert book.rows("SELECT target_id, status, state FROM cells") == [
        ("a", "pending", "pending"),
        ("b", "pending", "pending"),
    ]
    assert book.rows("SELECT status, business_status, ended_at FROM slots") == [("pending", None, None)]
    assert watermark(book) == book.now + 5


def test_a_second_trigger_is_told_that_the_slot_was_there(book):
    slot = NewSlot("s", Trigger.CRON, ())
    assert [book.do(materialise, slot, book.now).created for _ in range(2)] == [True, False]


def test_a_full_disk_while_a_slot_is_made_leaves_neither_slot_nor_watermark(book):
    book.do(sync_schedules, [DAILY], book.now)

    def fails(db):
        move_watermark(db, "daily", book.now + 5)
        db.execute(
            "INSERT INTO slots (slot_id, trigger, status, correlation_id, created_at) VALUES ('s','cron','pending','',0)"
        )
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        book.do(fails)
    assert watermark(book) == book.now
    assert book.value("SELECT count(*) FROM slots") == 0


def test_the_watermark_never_falls(book):
    book.do(sync_schedules, [DAILY], book.now)
    for at in (5, 3, 4):
        book.do(move_watermark, "daily", book.now + at)
    assert watermark(book) == book.now + 5


def test_only_a_wrong_clocks_watermark_is_set_back_and_the_audit_says_so(book):
    book.do(sync_schedules, [DAILY], book.now)
    book.do(move_watermark, "daily", book.now + 10**9)
    book.do(set_watermark_back, "daily", book.now, book.now)
    assert watermark(book) == book.now
    assert book.events("watermark_set_back") == ["schedule:daily"]


def test_a_new_schedule_starts_now(book):
    row = book.do(sync_schedules, [DAILY], book.now)["daily"]
    assert (row.effective_from, row.last_occurrence_at, row.paused_at) == (book.now, book.now, None)


def test_an_unchanged_schedule_keeps_its_watermark_over_a_restart(book):
    book.do(sync_schedules, [DAILY], book.now)
    row = book.do(sync_schedules, [DAILY], book.now + HOUR)["daily"]
    assert (row.effective_from, row.last_occurrence_at) == (book.now, book.now)


@pytest.mark.parametrize("edited", [("daily", "0 9 * * *", "UTC"), ("daily", "0 8 * * *", "Asia/Tokyo")])
def test_an_edited_schedule_starts_at_its_edit(book, edited):
    book.do(sync_schedules, [DAILY], book.now)
    row = book.do(sync_schedules, [edited], book.now + HOUR)["daily"]
    assert (row.cron, row.timezone) == edited[1:]
    assert (row.effective_from, row.last_occurrence_at) == (book.now + HOUR, book.now + HOUR)


def test_a_missed_occurrence_is_a_slot_of_its_own_and_raises_the_watermark(book):
    book.do(sync_schedules, [DAILY], book.now - HOUR)
    book.do(record_missed, "daily", "s", book.now, book.now + 1, count=7, watermark=book.now)
    assert book.rows("SELECT status, missed_count, occurrence_at, ended_at FROM slots") == [
        ("missed", 7, book.now, book.now + 1)
    ]
    assert watermark(book) == book.now
    assert book.events("missed") == ["slot:s"]


def test_a_slot_that_ran_is_not_said_to_be_missed(book):
    book.do(sync_schedules, [DAILY], book.now)
    book.slot("s")
    book.do(record_missed, "daily", "s", book.now, book.now, watermark=book.now)
    assert book.rows("SELECT status FROM slots") == [("pending",)]
    assert book.events("missed") == []


def test_a_trigger_takes_a_missed_slot_up_again(book):
    book.do(sync_schedules, [DAILY], book.now)
    book.do(record_missed, "daily", "s", book.now, book.now, watermark=book.now)
    cells = book.slot("s", ("a", "b"), trigger=Trigger.MANUAL)
    assert len(cells) == 2
    assert book.rows("SELECT status, trigger, missed_count, ended_at FROM slots") == [
        ("pending", "manual", 0, None)
    ]
    assert book.claim() is not None


def test_a_row_that_stands_for_many_missed_occurrences_is_not_taken_up(book):
    book.do(sync_schedules, [DAILY], book.now)
    book.do(record_missed, "daily", "s", book.now, book.now, count=200, watermark=book.now)
    assert book.slot("s") == ()


# admission


def test_waiting_slots_are_admitted_oldest_first_with_their_cells(book):
    waiting(book, "late", schedule="one", occurrence_at=20)
    waiting(book, "early", schedule="two", occurrence_at=10)
    assert book.do(slots_waiting)
    admission = book.do(admit, {}, book.now)
    assert (admission.admitted, admission.cell_ids, admission.skipped) == (("early", "late"), (2, 1), ())
    assert not book.do(slots_waiting)


@pytest.mark.parametrize("overlap", [{}, {"daily": "queue"}])
def test_queue_lets_exactly_one_slot_wait_and_skips_the_ones_after_it(book, overlap):
    for number in range(4):
        waiting(book, f"s{number}", occurrence_at=number)
    admission = book.do(admit, overlap, book.now)
    assert (admission.admitted, admission.skipped) == (("s0",), ("s2", "s3"))
    assert book.rows("SELECT slot_id, status, reason_code, business_status FROM slots ORDER BY slot_id") == [
        ("s0", "pending", None, None),
        ("s1", "pending", None, None),
        ("s2", "failed", "overlap_skipped", "cancelled"),
        ("s3", "failed", "overlap_skipped", "cancelled"),
    ]
    finish(book, 1)
    assert book.do(admit, overlap, book.now).admitted == ("s1",)


def test_skip_lets_none_wait(book):
    waiting(book, "s0", occurrence_at=0)
    waiting(book, "s1", occurrence_at=1, targets=("a", "b"))
    assert book.do(admit, {"daily": "skip"}, book.now).skipped == ("s1",)
    assert (
        book.rows("SELECT status, state, reason_code FROM cells WHERE slot_id = 's1'")
        == [("failed", "done", "overlap_skipped")] * 2
    )
    assert not book.do(slots_waiting)


def test_a_slot_of_another_schedule_is_no_overlap(book):
    waiting(book, "s0", schedule="one")
    waiting(book, "s1", schedule="two")
    assert book.do(admit, {"one": "skip", "two": "skip"}, book.now).admitted == ("s0", "s1")


def test_manual_slots_overlap_nothing_and_hold_up_nothing(book):
    waiting(book, "s0", occurrence_at=0)
    waiting(book, "m1", occurrence_at=1, trigger=Trigger.MANUAL)
    assert book.do(admit, {"daily": "skip"}, book.now).admitted == ("s0", "m1")
    finish(book, 1)
    waiting(book, "s2", occurrence_at=2)
    assert book.do(admit, {"daily": "skip"}, book.now).admitted == ("s2",)


def test_a_slot_that_waits_for_a_retry_still_runs(book):
    waiting(book, "s0")
    book.do(admit, {}, book.now)
    book.change("UPDATE cells SET due_at = ?", book.now + HOUR)
    waiting(book, "s1")
    assert book.do(admit, {"daily": "skip"}, book.now).skipped == ("s1",)


def test_a_slot_that_waits_for_its_deliveries_holds_up_no_occurrence(book):
    waiting(book, "s0")
    book.do(admit, {}, book.now)
    book.delivering(1)
    waiting(book, "s1")
    assert book.do(admit, {"daily": "skip"}, book.now).admitted == ("s1",)


# the derived status


def test_a_slot_runs_from_its_first_claim_until_its_last_cell_ends(book):
    book.slot(targets=("a", "b"))
    seen = [book.value("SELECT status FROM slots")]
    book.lease(only=(1,))
    seen.append(book.value("SELECT status FROM slots"))
    book.change("UPDATE cells SET state = 'pending' WHERE id = 1")
    finish(book, 1)
    seen.append(book.value("SELECT status FROM slots"))
    finish(book, 2)
    seen.append(book.value("SELECT status FROM slots"))
    assert seen == ["pending", "running", "running", "failed"]
    assert book.value("SELECT business_status FROM slots") == "no_candidate"
    assert book.events("slot_ended") == ["slot:s"]


def test_one_delivered_cell_of_two_makes_a_slot_partial(book):
    book.slot(targets=("a", "b"))
    book.delivering(1)
    book.do(settle_row, book.claim_row().lease, Settled(IntentStatus.DELIVERED), book.now)
    assert book.value("SELECT status FROM slots") == "running"
    finish(book, 2)
    assert book.rows("SELECT status, business_status FROM slots") == [("partial", "partial_success")]


def test_a_cell_without_a_slot_has_nothing_to_recompute(book):
    assert book.do(refresh_slot, None, book.now) is None
