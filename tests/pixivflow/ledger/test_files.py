import pytest

from pixivflow.ledger.binding import unbind
from pixivflow.ledger.cells import CellFailure, fail_cell
from pixivflow.ledger.files import (
    PathTaken,
    artifacts_of_cell,
    discardable,
    expire_failed_caches,
    forget_discarded,
    path_in_use,
    read_facts,
)
from pixivflow.ledger.leases import release
from pixivflow.ledger.outbox import Settled, settle_row
from protocol.reasons import Reason
from protocol.states import IntentStatus
from protocol.works import WorkRef

WORK = WorkRef.parse("illustration:1")
FINAL = CellFailure(Reason.DOWNLOAD_FAILED, "gone", retry_at=None)
CACHE = {"root": "state", "owner": "cell:1"}


@pytest.fixture
def bound(book):
    """A lease on a cell that owns work 1."""
    book.slot()
    lease = book.lease()
    book.bind(lease)
    return lease


def statuses(book):
    return book.rows("SELECT path, status FROM artifacts ORDER BY id")


def settle(book, status, route="r"):
    book.do(settle_row, book.claim_row(route).lease, Settled(status), book.now)


def test_every_file_has_a_row_before_its_first_byte(book, bound):
    files = book.plan(bound, paths=("p0.jpg", "p1.jpg"))
    assert [(file.page, file.path, file.status, file.sha256) for file in files] == [
        (0, "p0.jpg", "planned", None),
        (1, "p1.jpg", "planned", None),
    ]
    assert book.do(artifacts_of_cell, bound.id) == files


def test_files_are_stored_only_together_with_the_whole_work(book, bound):
    first, second = book.plan(bound, paths=("p0.jpg", "p1.jpg"))
    book.record(bound, first)
    assert not book.commit_files(bound)
    assert book.cell_row(bound.id)["status"] == "selected"
    assert book.do(read_facts, WORK) is None
    book.record(bound, second)
    assert book.commit_files(bound)
    assert book.cell_row(bound.id)["status"] == "artifact_ready"
    assert statuses(book) == [("p0.jpg", "stored"), ("p1.jpg", "stored")]
    assert book.do(read_facts, WORK).title == "work 1"


def test_a_file_that_was_let_go_keeps_its_work_from_being_committed(book, bound):
    [file] = book.plan(bound)
    book.record(bound, file)
    book.change("UPDATE artifacts SET status = 'discard'")
    assert not book.record(bound, file)
    assert not book.commit_files(bound)
    assert book.cell_row(bound.id)["status"] == "selected"


def test_a_work_without_any_file_is_not_complete(book, bound):
    assert not book.commit_files(bound)


def test_only_the_cells_own_work_is_planned_and_committed(book, bound):
    assert book.plan(bound, work=2) is None
    [file] = book.plan(bound)
    book.record(bound, file)
    assert not book.commit_files(bound, work=2)
    assert book.events("illegal_move") == ["cells:1", "cells:1"]


def test_only_the_cells_own_file_is_recorded(book, bound):
    book.plan(bound)
    book.slot("s2", schedule="other")
    other = book.lease()
    book.bind(other, 2)
    [foreign] = book.plan(other, work=2, paths=("b.jpg",))
    assert not book.record(bound, foreign)
    assert book.rows("SELECT sha256 FROM artifacts") == [(None,), (None,)]


def test_a_stored_file_that_is_made_anew_is_recorded_as_it_is_now(book, bound):
    [file] = book.plan(bound)
    book.record(bound, file)
    book.commit_files(bound)
    assert book.record(bound, file, sha="f" * 64)
    assert book.do(artifacts_of_cell, bound.id)[0].sha256 == "f" * 64


def test_a_resumed_run_finds_its_plan_and_what_was_recorded(book, bound):
    planned = book.plan(bound, paths=("p0.jpg", "p1.jpg"))
    book.record(bound, planned[0])
    book.do(release, bound, book.now)
    again = book.plan(book.lease(), paths=("p0.jpg", "p1.jpg"))
    assert [file.id for file in again] == [file.id for file in planned]
    assert [file.sha256 is None for file in again] == [False, True]


def test_plans_that_a_new_plan_has_no_use_for_may_go(book, bound):
    book.plan(bound, paths=("old.jpg", "both.jpg"))
    book.plan(bound, paths=("new.jpg",))
    assert statuses(book) == [("old.jpg", "discard"), ("both.jpg", "discard"), ("new.jpg", "planned")]


def test_a_path_of_another_work_is_refused_before_anything_is_written(book, bound):
    book.plan(bound)
    book.slot("s2", schedule="other")
    other = book.lease()
    book.bind(other, 2)
    with pytest.raises(PathTaken, match=r"a\.jpg belongs to illustration:1 page 0"):
        book.plan(other, work=2)
    assert book.do(artifacts_of_cell, other.id) == ()


def test_two_pages_cannot_have_one_path(book, bound):
    with pytest.raises(PathTaken, match="page 0"):
        book.plan(bound, paths=("same.jpg", "same.jpg"))
    assert statuses(book) == []


def test_two_cells_share_the_persistent_files_of_a_work(book, bound):
    book.slot("s2", routes=("q",), schedule="other")
    other = book.lease()
    book.bind(other, 1, ("q",))
    mine, theirs = book.plan(bound), book.plan(other)
    assert mine == theirs
    book.record(bound, mine[0])
    book.commit_files(bound)
    assert book.plan(other)[0].status == "stored"
    assert book.commit_files(other)


def test_a_page_of_another_revision_gets_its_revision_in_the_name(book, bound):
    [file] = book.plan(bound, paths=("folder.d/p0.jpg",))
    book.record(bound, file)
    book.commit_files(bound)
    book.commit(bound)
    book.slot("s2", routes=("q",), schedule="other")
    other = book.lease()
    book.bind(other, 1, ("q",), revision="2026/11/30")
    [newer] = book.plan(other, paths=("folder.d/p0.jpg",), revision="2026/11/30")
    assert newer.path == "folder.d/p0_r20261130.jpg"
    assert statuses(book)[0] == ("folder.d/p0.jpg", "stored")


def test_a_name_without_an_extension_takes_the_revision_at_its_end(book, bound):
    [file] = book.plan(bound, paths=("folder.d/page",))
    book.record(bound, file)
    [newer] = book.plan(bound, paths=("folder.d/page",), revision="v2")
    assert newer.path == "folder.d/page_rv2"


def test_a_failed_cell_lets_its_unfinished_files_go(book, bound):
    files = book.plan(bound, paths=("p0.jpg", "p1.jpg"))
    book.record(bound, files[0])
    book.do(fail_cell, bound, FINAL, book.now)
    assert statuses(book) == [("p0.jpg", "discard"), ("p1.jpg", "discard")]


def test_a_failed_cell_with_a_shared_stored_file_still_lets_its_unfinished_ones_go(book, bound):
    [shared] = book.plan(bound, paths=("p0.jpg",))
    book.record(bound, shared)
    book.commit_files(bound)
    book.slot("s2", routes=("q",), schedule="other")
    other = book.lease()
    book.bind(other, 1, ("q",))
    book.plan(other, paths=("p0.jpg", "p1.jpg"))
    book.do(fail_cell, other, FINAL, book.now)
    assert statuses(book) == [("p0.jpg", "stored"), ("p1.jpg", "discard")]


@pytest.mark.parametrize("end", ["failure", "unbind"])
def test_a_file_that_another_open_cell_shares_stays(book, bound, end):
    book.slot("s2", routes=("q",), schedule="other")
    other = book.lease()
    book.bind(other, 1, ("q",))
    book.plan(bound, paths=("shared.jpg",))
    book.plan(other, paths=("shared.jpg", "own.jpg"))
    if end == "failure":
        book.do(fail_cell, other, FINAL, book.now)
    else:
        assert book.do(unbind, other, WORK, book.now)
    assert statuses(book) == [("shared.jpg", "planned"), ("own.jpg", "discard")]
    book.do(fail_cell, bound, FINAL, book.now)
    assert statuses(book) == [("shared.jpg", "discard"), ("own.jpg", "discard")]


def test_a_discarded_path_is_free_for_a_new_plan_and_then_stays_on_disk(book, bound):
    book.plan(bound)
    book.do(fail_cell, bound, FINAL, book.now)
    assert not book.do(path_in_use, "download", "a.jpg")
    book.slot("s2", schedule="other")
    other = book.lease()
    book.bind(other)
    book.plan(other)
    assert book.do(path_in_use, "download", "a.jpg")
    book.do(forget_discarded, [row.id for row in book.do(discardable, 10)])
    assert statuses(book) == [("a.jpg", "planned")]
    assert len(book.do(artifacts_of_cell, other.id)) == 1


def test_discarded_files_are_listed_page_after_page(book, bound):
    book.plan(bound, paths=[f"p{number}.jpg" for number in range(5)])
    book.do(fail_cell, bound, FINAL, book.now)
    pages = [[file.id for file in book.do(discardable, 2, after)] for after in (0, 2, 4)]
    assert pages == [[1, 2], [3, 4], [5]]


def test_a_file_that_is_not_discarded_is_never_forgotten(book, bound):
    [file] = book.plan(bound)
    book.do(forget_discarded, [file.id])
    assert book.do(artifacts_of_cell, bound.id) == (file,)


def test_cache_files_go_at_the_settlement_of_the_last_good_intent_and_not_before(book):
    book.slot(routes=("r", "q"))
    book.delivering(1, ("r", "q"), **CACHE)
    settle(book, IntentStatus.DELIVERED, "r")
    assert statuses(book) == [("1.jpg", "stored")]
    settle(book, IntentStatus.DUPLICATE, "q")
    assert statuses(book) == [("1.jpg", "discard")]


def test_persistent_files_outlive_every_delivery(book):
    book.slot()
    book.delivering(1)
    settle(book, IntentStatus.DELIVERED)
    assert statuses(book) == [("1.jpg", "stored")]


@pytest.mark.parametrize("statuses_of_intents", [("failed", "failed"), ("delivered", "failed")])
def test_cache_files_of_a_failed_delivery_stay_until_they_expire(book, statuses_of_intents):
    book.slot(routes=("r", "q"))
    book.delivering(1, ("r", "q"), **CACHE)
    for route, status in zip(("r", "q"), statuses_of_intents, strict=True):
        settle(book, IntentStatus(status), route)
    assert book.do(expire_failed_caches, book.now) == 0
    assert statuses(book) == [("1.jpg", "stored")]
    assert book.do(expire_failed_caches, book.now + 1) == 1
    assert statuses(book) == [("1.jpg", "discard")]


def test_cache_files_that_an_open_row_needs_never_expire(book):
    book.slot()
    book.delivering(1, **CACHE)
    settle(book, IntentStatus.FAILED)
    book.change("UPDATE outbox SET state = 'pending'")
    assert book.do(expire_failed_caches, book.now + 10**9) == 0


def test_cache_files_of_an_open_cell_and_persistent_files_never_expire(book, bound):
    book.plan(bound, paths=("cached.jpg",), **CACHE)
    book.slot("s2", schedule="other")
    book.delivering(2)
    settle(book, IntentStatus.FAILED)
    assert book.do(expire_failed_caches, book.now + 10**9) == 0


def test_cache_files_of_a_revision_that_was_replaced_before_its_delivery_may_go(book, bound):
    [old] = book.plan(bound, paths=("old.jpg",), **CACHE)
    book.record(bound, old)
    book.commit_files(bound)
    book.plan(bound, paths=("new.jpg",), revision="v2", **CACHE)
    assert statuses(book) == [("old.jpg", "discard"), ("new.jpg", "planned")]
