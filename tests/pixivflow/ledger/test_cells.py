import msgspec
import pytest

from pixivflow.ledger.binding import Bound, Lost, Taken, already_had, unbind
from pixivflow.ledger.cells import CellFailure, end_cell, end_unleased, fail_cell
from pixivflow.ledger.health import account_refused, account_renewed, cool_down
from pixivflow.ledger.leases import release
from pixivflow.ledger.outbox import Settled, settle_row
from pixivflow.ledger.slots import NewCell, add_adhoc_cell
from protocol.reasons import Reason
from protocol.states import CellStatus, IntentStatus
from protocol.works import WorkRef

WORK = WorkRef.parse("illustration:1")
OTHER = WorkRef.parse("illustration:2")


def retry(at, **options):
    return CellFailure(Reason.NETWORK_ERROR, "no answer", at, **options)


def settle(book, status, reason=None, route="r"):
    return book.do(settle_row, book.claim_row(route).lease, Settled(status, reason), book.now)


# claim


def test_cells_are_claimed_by_priority_then_due_time_then_insertion(book):
    book.slot(targets=("a", "b", "c", "d", "e"))
    book.change("UPDATE cells SET due_at = due_at - 10 WHERE id IN (3, 4)")
    book.change("UPDATE cells SET priority = 1 WHERE id = 5")
    assert [book.lease().id for _ in range(5)] == [5, 3, 4, 1, 2]


def test_a_claim_gives_all_that_a_run_needs(book):
    [cell_id] = book.slot(occurrence_at=book.now - 5, retry_until=book.now + 77)
    claimed = book.claim()
    assert (claimed.lease.id, claimed.slot_id, claimed.target_id, claimed.account) == (
        cell_id,
        "s",
        "t",
        "main",
    )
    assert (claimed.status, claimed.work, claimed.attempts) == (CellStatus.PENDING, None, 0)
    assert (claimed.retry_until, claimed.occurrence_at) == (book.now + 77, book.now - 5)
    assert claimed.spec == '{"routes":["r"]}'
    assert len(claimed.correlation_id) == 16


def test_a_logged_out_account_keeps_its_cells_waiting_until_it_is_renewed(book):
    book.slot()
    book.do(account_refused, "main", "invalid_grant", None, book.now)
    assert book.claim() is None
    book.do(account_renewed, "main", book.now)
    assert book.claim() is not None


def test_a_cooling_account_keeps_its_cells_waiting_until_it_has_cooled(book):
    book.slot()
    book.do(cool_down, "main", book.now + 1000)
    assert book.claim() is None
    book.now += 1000
    assert book.claim() is not None


def test_cells_of_other_accounts_run_past_the_waiting_ones(book):
    book.slot("s1", account="main")
    [other] = book.slot("s2", account="second", schedule="other")
    book.do(cool_down, "main", book.now + 1000)
    assert book.claim(selecting=("main", "second")).lease.id == other


def test_cells_of_slots_that_are_not_admitted_wait(book):
    book.slot(admitted=False)
    assert book.claim() is None


def test_a_cell_without_a_slot_waits_for_no_admission(book):
    cell_id = book.do(add_adhoc_cell, NewCell("t", "main", "{}", book.now + 1000), book.now)
    claimed = book.claim()
    assert (claimed.lease.id, claimed.slot_id, claimed.occurrence_at, claimed.correlation_id) == (
        cell_id,
        None,
        None,
        None,
    )


def test_an_account_without_free_capacity_selects_nothing_but_its_bound_cells_are_resumed(book):
    book.slot(targets=("bound", "unbound"))
    lease = book.lease()
    book.bind(lease)
    book.do(release, lease, book.now)
    assert book.claim(selecting=()).lease.id == lease.id
    assert book.claim(selecting=()) is None
    assert book.claim(selecting=("main",)) is not None


def test_a_cell_of_an_unknown_account_is_claimed_only_where_the_known_ones_are_named(book):
    book.slot(account="gone")
    assert book.claim() is None
    assert book.claim(known=("main",)).account == "gone"


def test_only_narrows_a_claim_to_certain_cells(book):
    book.slot(targets=("a", "b"))
    assert book.claim(only=(2,)).lease.id == 2
    assert book.claim(only=(2,)) is None


def test_a_cell_past_its_time_is_not_run_any_more(book):
    book.slot(retry_until=book.now + 1000)
    book.now += 1000
    assert book.claim() is None


def test_a_cell_whose_status_cannot_be_read_is_ended_and_the_next_one_claimed(book):
    book.slot(targets=("a", "b"))
    book.change("UPDATE cells SET status = 'from tomorrow' WHERE id = 1")
    assert book.claim().lease.id == 2
    ended = book.cell_row(1)
    assert (ended["status"], ended["state"], ended["reason_code"]) == ("failed", "done", "internal_error")


def test_an_unreadable_neighbour_stops_neither_the_claim_nor_the_end_of_a_cell(book):
    book.slot(targets=("a", "b"))
    book.change("UPDATE cells SET status = 'from tomorrow', state = 'done' WHERE id = 1")
    lease = book.lease()
    assert book.do(end_cell, lease, CellStatus.NO_CANDIDATE, book.now, Reason.NO_CANDIDATE)


# bind


def test_a_free_work_is_bound_before_anything_else(book):
    book.slot()
    lease = book.lease()
    assert book.bind(lease) == Bound()
    row = book.cell_row(lease.id)
    assert (row["status"], row["work"], row["bound_generation"]) == (
        "selected",
        "illustration:1",
        lease.generation,
    )


def test_a_cell_that_owns_a_work_loses_every_other(book):
    book.slot()
    lease = book.lease()
    book.bind(lease, 1)
    assert book.bind(lease, 2) == Lost(WORK)
    assert book.cell_row(lease.id)["work"] == "illustration:1"


def test_of_two_runs_of_one_cell_the_one_with_the_lease_binds(book):
    book.slot()
    old = book.lease()
    book.do(release, old, book.now)
    new = book.lease()
    assert book.bind(old, 1) == Lost(None)
    assert book.bind(new, 2) == Bound()
    assert book.bind(old, 1) == Lost(OTHER)


def test_two_cells_with_one_route_that_choose_one_work_are_bound_and_taken(book):
    book.slot(targets=("a", "b"))
    assert [book.bind(book.lease()), book.bind(book.lease())] == [Bound(), Taken()]


def test_a_second_cell_with_a_route_of_its_own_is_bound_to_the_same_work(book):
    book.slot("s1", routes=("r",))
    book.slot("s2", routes=("r", "q"), schedule="other")
    assert book.bind(book.lease()) == Bound()
    assert book.bind(book.lease(), routes=("r", "q")) == Bound()


def test_a_cell_that_ended_without_a_post_frees_its_work(book):
    book.slot(targets=("a", "b"))
    first = book.lease()
    book.bind(first)
    book.do(fail_cell, first, retry(None), book.now)
    assert book.bind(book.lease()) == Bound()


@pytest.mark.parametrize(
    ("status", "reason", "answer"),
    [
        (None, None, Taken()),
        (IntentStatus.DELIVERED, None, Taken()),
        (IntentStatus.DUPLICATE, None, Taken()),
        (IntentStatus.FAILED, Reason.DELIVERY_REJECTED, Taken()),
        (IntentStatus.FAILED, Reason.DELIVERY_ABANDONED, Bound()),
        (IntentStatus.FAILED, Reason.DELIVERY_FAILED, Bound()),
    ],
)
def test_an_intent_decides_if_its_work_is_a_candidate_again(book, status, reason, answer):
    book.slot(targets=("a", "b"))
    book.delivering(1)
    if status is not None:
        settle(book, status, reason)
    had = isinstance(answer, Taken)
    assert book.do(already_had, WORK, "another revision", ("r",)) is had
    assert book.bind(book.lease(), 1, revision="another revision") == answer


def test_a_work_that_one_of_two_routes_has_is_a_candidate_for_the_other(book):
    book.slot(targets=("a",))
    book.delivering(1)
    settle(book, IntentStatus.DELIVERED)
    book.slot("s2", routes=("r", "q"))
    assert not book.do(already_had, WORK, "v1", ("r", "q"))
    assert book.bind(book.lease(), 1, ("r", "q")) == Bound()


def test_without_routes_a_stored_revision_is_no_candidate_and_a_new_one_is(book):
    book.slot(targets=("a", "b", "c"), routes=())
    first = book.lease()
    book.store(first, 1, ())
    book.commit(first, 1, ())
    second = book.lease()
    assert book.bind(second, 1, ()) == Taken()
    assert book.bind(second, 1, (), revision="v2") == Bound()
    assert book.do(already_had, WORK, "v1", ())
    assert not book.do(already_had, WORK, "v2", ())


def test_without_routes_a_work_that_another_open_cell_stores_now_is_taken(book):
    book.slot(targets=("a", "b"), routes=())
    assert [book.bind(book.lease(), 1, ()), book.bind(book.lease(), 1, ())] == [Bound(), Taken()]


def test_a_stored_work_is_still_a_candidate_for_a_route(book):
    book.slot("s1", routes=())
    first = book.lease()
    book.store(first, 1, ())
    book.commit(first, 1, ())
    book.slot("s2", schedule="other")
    assert book.bind(book.lease()) == Bound()


def test_a_holder_whose_spec_cannot_be_read_counts_for_every_route(book):
    book.slot(targets=("a", "b"))
    first = book.lease()
    book.bind(first)
    book.change("UPDATE cells SET spec = '{' WHERE id = ?", first.id)
    assert book.bind(book.lease()) == Taken()


@pytest.mark.parametrize("status", [status for status in CellStatus if status.terminal])
def test_a_cell_that_has_ended_refuses_every_bind(book, status):
    book.slot()
    lease = book.lease()
    if status is not CellStatus.NO_CANDIDATE:
        book.bind(lease)
    assert book.do(end_cell, lease, status, book.now)
    assert not isinstance(book.bind(lease), Bound)
    assert book.cell_row(lease.id)["status"] == status


def test_a_later_bind_of_its_own_work_takes_nothing_back_and_is_no_new_binding(book):
    book.slot()
    first = book.lease()
    book.store(first)
    book.do(release, first, book.now)
    second = book.lease()
    assert book.bind(second) == Bound()
    row = book.cell_row(first.id)
    assert (row["status"], row["bound_generation"]) == ("artifact_ready", first.generation)


# unbind


def test_the_run_that_bound_a_work_may_unbind_it_and_choose_again(book):
    book.slot()
    lease = book.lease()
    book.bind(lease)
    book.plan(lease)
    assert book.do(unbind, lease, WORK, book.now)
    row = book.cell_row(lease.id)
    assert (row["status"], row["work"], row["bound_generation"]) == ("pending", None, None)
    assert book.rows("SELECT status FROM artifacts") == [("discard",)]
    assert book.bind(lease, 2) == Bound()


def test_only_its_own_work_is_unbound(book):
    book.slot()
    lease = book.lease()
    book.bind(lease)
    assert not book.do(unbind, lease, OTHER, book.now)
    assert book.cell_row(lease.id)["work"] == "illustration:1"


def test_nothing_is_unbound_once_a_file_is_recorded(book):
    book.slot()
    lease = book.lease()
    book.bind(lease)
    [file] = book.plan(lease)
    book.record(lease, file)
    assert not book.do(unbind, lease, WORK, book.now)
    assert book.cell_row(lease.id)["work"] == "illustration:1"


def test_a_retry_never_unbinds_what_an_earlier_run_bound(book):
    book.slot()
    first = book.lease()
    book.bind(first)
    book.do(release, first, book.now)
    second = book.lease()
    book.bind(second)
    assert not book.do(unbind, second, WORK, book.now)
    assert book.cell_row(first.id)["work"] == "illustration:1"


# retry and end


def test_a_retryable_failure_keeps_status_and_binding_and_spends_an_attempt(book):
    book.slot()
    lease = book.lease()
    book.bind(lease)
    assert book.do(fail_cell, lease, retry(book.now + 1000, report='{"attempted":1}'), book.now)
    row = book.cell_row(lease.id)
    assert (row["state"], row["status"], row["work"]) == ("pending", "selected", "illustration:1")
    assert (row["attempts"], row["due_at"]) == (1, book.now + 1000)
    assert (row["reason_code"], row["reason"], row["report"]) == (
        "network_error",
        "no answer",
        '{"attempted":1}',
    )


def test_an_outages_wait_spends_no_attempt_and_keeps_an_earlier_report(book):
    book.slot()
    lease = book.lease()
    book.change("UPDATE cells SET report = 'old'")
    book.do(fail_cell, lease, retry(book.now + 1000, spends=False), book.now)
    row = book.cell_row(lease.id)
    assert (row["attempts"], row["report"]) == (0, "old")


def test_a_final_failure_ends_the_cell_and_its_slot(book):
    book.slot()
    lease = book.lease()
    assert book.do(fail_cell, lease, retry(None), book.now)
    row = book.cell_row(lease.id)
    assert (row["status"], row["state"], row["ended_at"], row["attempts"]) == ("failed", "done", book.now, 1)
    assert book.rows("SELECT status, business_status FROM slots") == [("failed", "failed")]


def test_no_candidate_is_refused_where_the_cell_owns_a_work(book):
    book.slot()
    lease = book.lease()
    book.bind(lease)
    before = book.cell_row(lease.id)
    assert not book.do(end_cell, lease, CellStatus.NO_CANDIDATE, book.now, Reason.NO_CANDIDATE)
    assert book.cell_row(lease.id) == before
    assert book.events("illegal_move") == [f"cells:{lease.id}"]


@pytest.mark.parametrize("status", [status for status in CellStatus if status.terminal])
@pytest.mark.parametrize("again", list(CellStatus))
def test_nothing_leaves_a_terminal_status(book, status, again):
    [cell_id] = book.slot()
    book.do(end_unleased, cell_id, status, None, None, book.now)
    before = book.cell_row(cell_id)
    assert not book.do(end_unleased, cell_id, again, None, None, book.now)
    assert book.cell_row(cell_id) == before


def test_a_running_cell_is_not_ended_from_outside(book):
    book.slot()
    lease = book.lease()
    assert not book.do(end_unleased, lease.id, CellStatus.FAILED, Reason.QUEUED_TOO_LONG, "", book.now)
    assert book.cell_row(lease.id)["state"] == "running"


def test_an_end_from_outside_raises_the_generation_and_keeps_the_last_reason(book):
    book.slot()
    lease = book.lease()
    book.do(fail_cell, lease, retry(book.now + 1000), book.now)
    book.do(end_unleased, lease.id, CellStatus.FAILED, None, None, book.now)
    row = book.cell_row(lease.id)
    assert (row["lease_generation"], row["reason_code"], row["reason"]) == (
        lease.generation + 1,
        "network_error",
        "no answer",
    )


def test_the_spec_stays_as_it_was_whatever_happens(book):
    book.slot()
    book.delivering(1)
    settle(book, IntentStatus.DELIVERED)
    assert msgspec.json.decode(book.value("SELECT spec FROM cells")) == {"routes": ["r"]}
