import msgspec

from pixivflow.ledger.health import account_refused, cool_down
from pixivflow.ledger.outbox import Settled, settle_row
from pixivflow.ledger.reports import (
    Counts,
    count_all,
    files_of_work,
    get_cell,
    get_outbox,
    get_slot,
    list_cells,
    list_deliveries,
    list_outbox,
    list_slots,
)
from protocol.payloads import Payload
from protocol.reasons import Reason
from protocol.states import IntentStatus


def settle(book, status, reason=None):
    book.do(settle_row, book.claim_row().lease, Settled(status, reason), book.now)


def test_lists_show_the_newest_first_and_no_more_than_asked_for(book):
    for number in range(3):
        book.now += 1
        book.slot(f"s{number}", schedule=f"p{number % 2}")
        book.delivering(number)
    assert [slot.slot_id for slot in book.do(list_slots, 2)] == ["s2", "s1"]
    assert [slot.slot_id for slot in book.do(list_slots, 9, "p0")] == ["s2", "s0"]
    assert [cell.id for cell in book.do(list_cells, 2)] == [3, 2]
    assert [row.id for row in book.do(list_deliveries, 2)] == [3, 2]
    assert [row.id for row in book.do(list_deliveries, 9, "illustration:1")] == [2]
    assert [row.id for row in book.do(list_outbox, 2)] == [3, 2]


def test_open_cells_are_listed_alone_when_asked_for(book):
    book.slot(targets=("a", "b"))
    book.delivering(1)
    settle(book, IntentStatus.DELIVERED)
    assert [cell.id for cell in book.do(list_cells, open_only=True)] == [2]


def test_a_cell_tells_what_its_account_waits_for(book):
    book.slot()
    book.do(cool_down, "main", 77)
    resting = book.do(get_cell, 1).cell
    book.do(account_refused, "main", "refused", None, 1)
    assert (resting.login_needed, resting.cooldown_until) == (False, 77)
    assert book.do(list_cells)[0].login_needed


def test_outbox_rows_are_narrowed_by_state_and_route(book):
    book.slot(targets=("a", "b"), routes=("r", "q"))
    book.delivering(1, ("r", "q"))
    settle(book, IntentStatus.FAILED, Reason.DELIVERY_REJECTED)
    assert [row.route for row in book.do(list_outbox, state="dead")] == ["r"]
    assert [row.route for row in book.do(list_outbox, route="q")] == ["q"]
    assert book.do(list_outbox, state="dead", route="q") == ()


def test_a_slot_is_shown_with_its_cells_files_and_deliveries(book):
    book.slot(targets=("a", "b"))
    book.delivering(1)
    settle(book, IntentStatus.DELIVERED)
    shown = book.do(get_slot, "s")
    assert (shown.slot.cells, shown.slot.submitted, shown.slot.status) == (2, 1, "running")
    first, second = shown.cells
    assert (first.cell.title, first.cell.status) == ("work 1", "submitted")
    assert [file.path for file in first.files] == ["1.jpg"]
    assert [(row.route, row.status) for row in first.deliveries] == [("r", "delivered")]
    assert (second.cell.work, second.files, second.deliveries) == (None, (), ())


def test_what_does_not_exist_is_none(book):
    assert book.do(get_slot, "s") is None
    assert book.do(get_cell, 1) is None
    assert book.do(get_outbox, 1) is None
    assert book.do(files_of_work, "illustration:1") is None


def test_a_scans_report_is_given_as_json(book):
    book.slot()
    book.change("""UPDATE cells SET report = '{"attempted":3}'""")
    assert msgspec.json.encode(book.do(list_cells)[0].report) == b'{"attempted":3}'


def test_an_outbox_row_comes_with_its_frozen_payload(book):
    book.slot()
    book.delivering(1)
    row, payload = book.do(get_outbox, 1)
    assert (row.work, row.slot_id, row.target_id, row.kind) == ("illustration:1", "s", "t", "delivery")
    assert msgspec.json.decode(payload, type=Payload).key == row.idempotency_key


def test_the_files_of_a_work_are_those_of_its_newest_revision(book):
    book.slot()
    book.delivering(1)
    found = book.do(files_of_work, "illustration:1")
    assert (found.revision, found.title, [file.path for file in found.files]) == ("v1", "work 1", ["1.jpg"])


def test_the_counts_tell_what_is_open(book):
    empty = Counts(0, 0, 0, 0, {}, 0, None)
    assert book.do(count_all) == empty
    book.slot("s1", targets=("a", "b", "c", "d"))
    book.slot("s2", schedule="other", admitted=False)
    for number in (1, 2):
        book.delivering(number)
    settle(book, IntentStatus.FAILED, Reason.DELIVERY_REJECTED)
    book.claim_row()
    book.lease()
    assert book.do(count_all) == Counts(
        slots_open=2,
        cells_pending=2,
        cells_running=1,
        cells_in_delivery=1,
        outbox_pending={"r": 1},
        outbox_dead=1,
        next_due_at=book.now,
    )
