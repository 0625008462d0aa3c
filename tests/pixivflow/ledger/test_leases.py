from functools import partial

import pytest

from pixivflow.ledger.binding import Lost, unbind
from pixivflow.ledger.cells import CellFailure, claim_cell, end_cell, fail_cell
from pixivflow.ledger.leases import (
    CRASH_LIMIT,
    LEASE_MS,
    Lease,
    Queue,
    acquire,
    fenced_update,
    reclaim,
    release,
    release_unowned,
    renew,
)
from pixivflow.ledger.outbox import Postponed, Settled, settle_row
from pixivflow.ledger.sweep import reclaim_orphaned, sweep
from protocol.reasons import Reason
from protocol.states import CellStatus, IntentStatus
from protocol.works import WorkRef

WORK = WorkRef.parse("illustration:1")
RETRY = CellFailure(Reason.NETWORK_ERROR, "no answer", retry_at=9_999_999_999_999)


def generation(book, cell_id):
    return book.cell_row(cell_id)["lease_generation"]


def lost_and_claimed_again(book):
    """A lease that expired, and the one of who came after."""
    book.slot()
    old = book.lease(owner="a")
    book.now += LEASE_MS[Queue.CELLS] + 1
    new = book.lease(owner="b")
    assert new.id == old.id
    return old, new


def test_every_acquire_release_unowned_release_and_reclaim_raises_the_generation(book):
    [cell_id] = book.slot()
    seen = [generation(book, cell_id)]
    lease = book.lease()
    seen.append(generation(book, cell_id))
    assert book.do(release, lease, book.now)
    seen.append(generation(book, cell_id))
    book.lease()
    assert book.do(release_unowned, Queue.CELLS, cell_id, book.now)
    seen.append(generation(book, cell_id))
    book.lease()
    assert book.do(reclaim, Queue.CELLS, book.now, (), everyone=True)
    seen.append(generation(book, cell_id))
    assert seen == [0, 1, 2, 4, 6]


def test_a_lease_names_the_generation_that_the_row_has(book):
    book.slot()
    lease = book.lease()
    assert generation(book, lease.id) == lease.generation


def test_a_running_row_is_not_acquired_twice(book):
    book.slot()
    lease = book.lease()
    assert book.do(acquire, Queue.CELLS, lease.id, "b", book.now) is None


STALE_WRITES = {
    "success": lambda lease, now: partial(end_cell, lease=lease, status=CellStatus.SUBMITTED, now=now),
    "failure": lambda lease, now: partial(fail_cell, lease=lease, failure=RETRY, now=now),
    "final failure": lambda lease, now: partial(
        fail_cell, lease=lease, failure=CellFailure(Reason.INTERNAL_ERROR, "", None), now=now
    ),
    "release": lambda lease, now: partial(release, lease=lease, now=now),
    "unbind": lambda lease, now: partial(unbind, lease=lease, work=WORK, now=now),
}


@pytest.mark.parametrize("write", STALE_WRITES.values(), ids=STALE_WRITES)
def test_a_late_write_of_a_stale_holder_changes_nothing_and_leaves_an_event(book, write):
    old, _ = lost_and_claimed_again(book)
    before = book.cell_row(old.id)
    assert book.do(write(old, book.now)) is False
    assert book.cell_row(old.id) == before
    assert book.events("stale_write") == [f"cells:{old.id}"]


def test_a_late_renewal_is_told_that_it_is_lost_and_leaves_an_event(book):
    old, _ = lost_and_claimed_again(book)
    before = book.cell_row(old.id)
    assert book.do(renew, [(old, book.now)], book.now) == {old: None}
    assert book.cell_row(old.id) == before
    assert book.events("stale_write") == [f"cells:{old.id}"]


def test_a_late_bind_is_lost_and_leaves_an_event(book):
    old, new = lost_and_claimed_again(book)
    book.bind(new, 2)
    before = book.cell_row(old.id)
    assert book.bind(old, 1) == Lost(WorkRef.parse("illustration:2"))
    assert book.cell_row(old.id) == before
    assert book.events("stale_write") == [f"cells:{old.id}"]


def test_a_late_plan_record_or_commit_of_files_changes_nothing_and_leaves_events(book):
    book.slot()
    old = book.lease()
    book.bind(old)
    [file] = book.plan(old)
    book.now += LEASE_MS[Queue.CELLS] + 1
    book.lease(owner="b")
    before = book.rows("SELECT * FROM artifacts"), book.cell_row(old.id)
    assert book.plan(old, paths=("other.jpg",)) is None
    assert not book.record(old, file)
    assert not book.commit_files(old)
    assert book.commit(old) is None
    assert (book.rows("SELECT * FROM artifacts"), book.cell_row(old.id)) == before
    assert book.events("stale_write") == [f"cells:{old.id}"] * 4


@pytest.mark.parametrize(
    "settlement",
    [Settled(IntentStatus.DELIVERED), Postponed(0, True, "timeout", "late")],
    ids=["delivered", "postponed"],
)
def test_a_late_settlement_changes_nothing_and_leaves_an_event(book, settlement):
    book.slot()
    book.delivering()
    old = book.claim_row(owner="a").lease
    book.now += LEASE_MS[Queue.OUTBOX] + 1
    assert book.claim_row(owner="b").lease.id == old.id
    before = book.outbox_row(old.id), book.rows("SELECT * FROM deliveries"), book.rows("SELECT * FROM cells")
    assert book.do(settle_row, old, settlement, book.now) is None
    assert (
        book.outbox_row(old.id),
        book.rows("SELECT * FROM deliveries"),
        book.rows("SELECT * FROM cells"),
    ) == before
    assert book.events("stale_write") == [f"outbox:{old.id}"]


@pytest.mark.parametrize("distance", [-2, -1, 1, 2])
def test_the_fence_compares_for_equality_in_both_directions(book, distance):
    """Neither ``>=`` nor ``<=`` in place of ``=`` passes: an older and a newer generation are refused alike."""
    book.slot()
    held = book.lease()
    stranger = Lease(held.queue, held.id, held.generation + distance, held.owner, held.until)
    assert not book.do(fenced_update, stranger, book.now, "priority = 99")
    assert not book.do(release, stranger, book.now)
    assert book.do(renew, [(stranger, book.now)], book.now) == {stranger: None}
    assert book.cell_row(held.id)["priority"] == 0
    assert book.cell_row(held.id)["state"] == "running"


def test_a_write_with_the_right_generation_needs_a_running_row(book):
    [cell_id] = book.slot()
    idle = Lease(Queue.CELLS, cell_id, generation(book, cell_id), "a", book.now + 1)
    assert not book.do(fenced_update, idle, book.now, "priority = 99")
    assert book.events("stale_write") == [f"cells:{cell_id}"]


def test_a_write_that_does_not_find_the_expected_status_is_an_illegal_move(book):
    book.slot()
    lease = book.lease()
    assert not book.do(fenced_update, lease, book.now, "priority = 99", expected="status = 'selected'")
    assert book.events("illegal_move") == [f"cells:{lease.id}"]
    assert book.events("stale_write") == []


def test_of_a_finish_and_a_reclaim_at_once_exactly_one_stands(book):
    book.slot()
    lease = book.lease()
    assert book.do(end_cell, lease, CellStatus.NO_CANDIDATE, book.now, Reason.NO_CANDIDATE, "nothing")
    assert book.do(reclaim, Queue.CELLS, book.now + 10**9, (), everyone=True) == ()
    assert book.cell_row(lease.id)["status"] == "no_candidate"


def test_a_reclaim_looks_again_when_it_writes(book):
    """Between the list and their turn the second row's holder finishes, and the third's renews."""
    book.slot(targets=("t1", "t2", "t3"))
    held = []
    for _ in range(3):
        held.append(book.lease())
        book.now += 1
    dead, finishing, renewing = held
    book.change("UPDATE cells SET crashes = ? WHERE id = ?", CRASH_LIMIT - 1, dead.id)
    book.now += LEASE_MS[Queue.CELLS]

    def reclaimed(db):
        def meddle(row):
            assert row.id == dead.id
            end_cell(db, finishing, CellStatus.NO_CANDIDATE, book.now, Reason.NO_CANDIDATE)
            renew(db, [(renewing, book.now)], book.now)

        return reclaim(db, Queue.CELLS, book.now, (), end=meddle)

    assert [row.id for row in book.do(reclaimed)] == [dead.id]
    assert book.cell_row(finishing.id)["status"] == "no_candidate"
    assert generation(book, renewing.id) == renewing.generation


def test_a_reclaim_reaches_expired_rows_behind_any_number_of_longer_leases(book):
    book.slot(targets=[f"t{number}" for number in range(400)])
    held = [book.lease() for _ in range(400)]
    longer = held[:399]
    book.now += LEASE_MS[Queue.CELLS] - 1000
    assert None not in book.do(renew, [(lease, book.now) for lease in longer], book.now).values()
    book.now += 2000
    assert [row.id for row in book.do(reclaim, Queue.CELLS, book.now, ())] == [held[399].id]


def test_an_unreadable_row_stops_neither_the_reclaim_nor_its_neighbours(book):
    book.slot(targets=[f"t{number}" for number in range(5)])
    for lease in [book.lease() for _ in range(5)]:
        book.change("UPDATE cells SET crashes = 2 WHERE id = ?", lease.id)
    book.change("UPDATE cells SET spec = '{', work = 'novel:x', reason_code = 'from tomorrow' WHERE id = 2")
    book.change("UPDATE cells SET status = 'from tomorrow' WHERE id = 3")
    taken = book.do(reclaim_orphaned, book.now, {}, everyone=True)
    assert [row.id for row in taken] == [1, 2, 3, 4, 5]
    assert book.rows("SELECT DISTINCT status, reason_code FROM cells") == [("failed", "crashed_repeatedly")]
    assert book.events("slot_ended") == ["slot:s"]


def test_a_row_whose_end_fails_is_left_as_it_was_and_the_others_are_taken_back(book):
    book.slot(targets=("t1", "t2", "t3"))
    for _ in range(3):
        book.lease()
    book.change("UPDATE cells SET crashes = 2 WHERE id = 2")

    def broken(row):
        raise ValueError(f"{row.id} can't be read")

    taken = book.do(reclaim, Queue.CELLS, book.now, (), everyone=True, end=broken)
    assert [row.id for row in taken] == [1, 3]
    assert book.cell_row(2)["state"] == "running"
    assert book.events("unreadable_row") == ["cells:2"]


def test_the_end_of_a_lease_never_moves_back(book):
    book.slot()
    lease = book.lease()
    ends = [book.do(renew, [(lease, book.now)], book.now + shift)[lease] for shift in (1000, -120_000, 500)]
    assert ends == [book.now + 1000 + LEASE_MS[Queue.CELLS]] * 3


def test_progress_never_moves_back(book):
    book.slot()
    lease = book.lease()
    book.do(renew, [(lease, book.now + 500)], book.now)
    book.do(renew, [(lease, book.now - 500)], book.now)
    assert book.cell_row(lease.id)["progress_at"] == book.now + 500


def test_a_lease_is_not_usable_near_its_end():
    lease = Lease(Queue.CELLS, 1, 1, "a", until=100_000)
    assert [lease.usable(now) for now in (94_999, 95_000, 100_000)] == [True, False, False]


def test_held_rows_are_neither_claimed_nor_reclaimed_whatever_the_clock(book):
    book.slot()
    lease = book.lease()
    book.now += 10**10
    book.change("UPDATE cells SET retry_until = ?", book.now + 1)
    assert book.do(reclaim, Queue.CELLS, book.now, (lease.id,)) == ()
    assert book.claim(held=(lease.id,)) is None
    assert book.do(sweep, book.now + 10**10, {Queue.CELLS: (lease.id,)}).reclaimed == ()
    assert generation(book, lease.id) == lease.generation


def test_a_held_row_that_was_released_is_not_claimed_while_it_is_held(book):
    book.slot()
    lease = book.lease()
    book.do(release_unowned, Queue.CELLS, lease.id, book.now)
    assert book.claim(held=(lease.id,)) is None
    assert book.claim().lease.id == lease.id


def test_a_lease_that_has_not_expired_is_nobodys(book):
    book.slot()
    lease = book.lease()
    book.now = lease.until
    assert book.do(reclaim, Queue.CELLS, book.now, ()) == ()
    assert book.claim() is None


def test_a_claim_takes_a_row_whose_lease_expired(book):
    old, new = lost_and_claimed_again(book)
    assert (new.id, new.generation) == (old.id, old.generation + 2)


def test_a_claim_takes_an_outbox_row_whose_lease_expired_with_its_attempts(book):
    book.slot()
    book.delivering()
    old = book.claim_row(owner="a")
    book.now += LEASE_MS[Queue.OUTBOX] + 1
    again = book.claim_row(owner="b")
    assert (again.lease.id, again.attempts, again.payload) == (old.lease.id, 0, old.payload)


def test_at_start_everybodys_row_is_taken_back_whatever_its_owner_and_end(book):
    book.slot(targets=("t1", "t2"))
    book.delivering(1)
    row = book.claim_row(owner="another-host:1:aa")
    cell = book.lease(owner="this-host:2:bb")
    taken = book.do(reclaim_orphaned, book.now - 10**9, {}, everyone=True)
    assert {(item.queue, item.id) for item in taken} == {
        (Queue.CELLS, cell.id),
        (Queue.OUTBOX, row.lease.id),
    }
    for found in (book.cell_row(cell.id), book.outbox_row(row.lease.id)):
        assert (found["state"], found["lease_owner"], found["lease_until"]) == ("pending", None, None)
    assert book.events("reclaimed") == [f"cells:{cell.id}", f"outbox:{row.lease.id}"]


def test_release_and_reclaim_spend_no_attempt_and_leave_the_row_due(book):
    book.slot()
    lease = book.lease()
    before = book.cell_row(lease.id)
    book.do(release, lease, book.now)
    released = book.cell_row(lease.id)
    assert (released["attempts"], released["due_at"], released["crashes"]) == (0, before["due_at"], 0)
    book.lease()
    book.do(reclaim, Queue.CELLS, book.now, (), everyone=True)
    reclaimed = book.cell_row(lease.id)
    assert (reclaimed["attempts"], reclaimed["due_at"], reclaimed["crashes"]) == (0, before["due_at"], 1)


def crash(book):
    """The process dies: at the next start everything is taken back."""
    return book.do(reclaim_orphaned, book.now, {}, everyone=True)


def test_a_poison_cell_ends_as_crashed_repeatedly_beside_49_innocent_ones(book):
    book.slot(targets=[f"t{number}" for number in range(50)])
    poison, deaths = 17, 0
    while book.cell_row(poison)["state"] != "done":
        finished = []
        while (claimed := book.claim()) is not None and claimed.lease.id != poison:
            finished.append(claimed.lease)
        if claimed is not None:
            deaths += 1
            crash(book)
            continue
        for lease in finished:  # the poison was not among them: they run to their end
            book.do(end_cell, lease, CellStatus.NO_CANDIDATE, book.now, Reason.NO_CANDIDATE)
    while (claimed := book.claim()) is not None:
        book.do(end_cell, claimed.lease, CellStatus.NO_CANDIDATE, book.now, Reason.NO_CANDIDATE)
    assert deaths == 3
    assert book.rows("SELECT status, count(*) FROM cells GROUP BY status ORDER BY status") == [
        ("failed", 1),
        ("no_candidate", 49),
    ]
    assert book.cell_row(poison)["reason_code"] == "crashed_repeatedly"


def test_a_lease_that_this_very_process_could_not_settle_is_no_crash(book):
    book.slot()
    lease = book.lease(owner="me")
    book.now += 10 * 60_000
    assert [row.crashes for row in book.do(reclaim_orphaned, book.now, {}, owner="me")] == [0]
    assert book.cell_row(lease.id)["state"] == "pending"
    book.lease(owner="another boot")
    book.now += 10 * 60_000
    assert [row.crashes for row in book.do(reclaim_orphaned, book.now, {}, owner="me")] == [1]


def test_a_poison_row_ends_as_crashed_repeatedly_beside_49_innocent_ones(book):
    book.slot(targets=[f"t{number}" for number in range(50)])
    for number in range(50):
        book.delivering(number)
    poison, deaths = 33, 0
    while book.outbox_row(poison)["state"] != "dead":
        claimed = []
        while (row := book.claim_row()) is not None and row.lease.id != poison:
            claimed.append(row.lease)
        if row is not None:
            deaths += 1
            crash(book)
            continue
        for lease in claimed:
            book.do(settle_row, lease, Settled(IntentStatus.DELIVERED), book.now)
    while (row := book.claim_row()) is not None:
        book.do(settle_row, row.lease, Settled(IntentStatus.DELIVERED), book.now)
    assert deaths == 3
    assert book.rows("SELECT state, count(*) FROM outbox GROUP BY state ORDER BY state") == [
        ("dead", 1),
        ("done", 49),
    ]
    assert book.rows("SELECT reason_code, count(*) FROM cells WHERE status = 'failed'") == [
        ("crashed_repeatedly", 1)
    ]


def test_at_most_one_suspect_runs_in_the_process_whatever_its_queue(book):
    book.slot(targets=("t1", "t2", "t3"))
    book.delivering(1)
    book.change("UPDATE cells SET crashes = 2 WHERE state = 'pending'")
    book.change("UPDATE outbox SET crashes = 2")
    suspect = book.claim()
    assert book.claim() is None
    assert book.claim_row() is None
    book.do(end_cell, suspect.lease, CellStatus.NO_CANDIDATE, book.now, Reason.NO_CANDIDATE)
    assert book.claim_row() is not None
    assert book.claim() is None


def test_an_innocent_row_runs_beside_a_suspect(book):
    book.slot(targets=("t1", "t2"))
    book.change("UPDATE cells SET crashes = 2 WHERE id = 1")
    assert [book.lease().id, book.lease().id] == [1, 2]


@pytest.mark.parametrize("progress", ["bind", "record", "commit files", "failure"])
def test_progress_and_settlements_clear_the_count_of_crashes(book, progress):
    book.slot()
    lease = book.lease()
    if progress in {"record", "commit files"}:
        book.bind(lease)
        [file] = book.plan(lease)
        if progress == "commit files":
            book.record(lease, file)
    book.change("UPDATE cells SET crashes = 2")
    match progress:
        case "bind":
            book.bind(lease)
        case "record":
            book.record(lease, file)
        case "commit files":
            assert book.commit_files(lease)
        case _:
            book.do(fail_cell, lease, RETRY, book.now)
    assert book.cell_row(lease.id)["crashes"] == 0


def test_what_is_due_later_is_not_leased(book):
    book.slot()
    lease = book.lease()
    book.do(fail_cell, lease, CellFailure(Reason.NETWORK_ERROR, "", retry_at=book.now + 1000), book.now)
    assert book.claim() is None
    book.now += 1000
    assert book.claim() is not None


def test_a_full_disk_in_one_call_leaves_no_half_of_it(book):
    book.slot()
    before = book.rows("SELECT * FROM cells")

    def claims_and_fails(db):
        claim_cell(db, "a", book.now, selecting=("main",))
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        book.do(claims_and_fails)
    assert book.rows("SELECT * FROM cells") == before
