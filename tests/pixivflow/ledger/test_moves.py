import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pixivflow.ledger.moves import (
    CELL_AFTER_DELIVERY,
    CellFacts,
    IntentFacts,
    business_status,
    delivery_state,
    may_move,
    read_reason,
    read_status,
    slot_status,
)
from protocol.reasons import Reason
from protocol.states import BusinessStatus, CellStatus, IntentStatus, SlotStatus

OPEN = [status for status in CellStatus if not status.terminal]
TERMINAL = [status for status in CellStatus if status.terminal]
INTENTS = st.lists(st.builds(IntentFacts, st.sampled_from(IntentStatus), st.booleans()), min_size=1)


def cell(status, reason=None, *, started=True):
    return CellFacts(CellStatus(status), reason, started)


@pytest.mark.parametrize(("origin", "destination"), list(itertools.product(TERMINAL, CellStatus)))
def test_nothing_leaves_a_terminal_status(origin, destination):
    assert not may_move(origin, destination, owns_work=False)


@pytest.mark.parametrize("origin", OPEN)
@pytest.mark.parametrize("destination", list(CellStatus))
def test_an_open_cell_moves_as_the_table_says(origin, destination):
    allowed = {
        "pending": set(CellStatus),
        "selected": set(CellStatus) - {CellStatus.PENDING},
        "artifact_ready": {"delivery_pending", "submitted", "duplicate", "failed"},
        "delivery_pending": set(TERMINAL),
    }
    assert may_move(origin, destination, owns_work=False) is (destination in allowed[origin])


@pytest.mark.parametrize("origin", list(CellStatus))
def test_a_cell_that_owns_a_work_never_ends_without_a_candidate(origin):
    assert not may_move(origin, CellStatus.NO_CANDIDATE, owns_work=True)


@pytest.mark.parametrize(
    ("cells", "status", "business"),
    [
        ([cell("pending", started=False)], SlotStatus.PENDING, None),
        ([cell("pending")], SlotStatus.RUNNING, None),
        ([cell("delivery_pending")], SlotStatus.RUNNING, None),
        ([cell("submitted"), cell("pending", started=False)], SlotStatus.RUNNING, None),
        ([cell("submitted"), cell("submitted")], SlotStatus.SUCCESS, BusinessStatus.SUCCESS),
        ([cell("submitted"), cell("failed")], SlotStatus.PARTIAL, BusinessStatus.PARTIAL_SUCCESS),
        ([cell("submitted"), cell("no_candidate")], SlotStatus.PARTIAL, BusinessStatus.PARTIAL_SUCCESS),
        ([cell("partial")], SlotStatus.PARTIAL, BusinessStatus.PARTIAL_SUCCESS),
        ([cell("no_candidate", Reason.NO_CANDIDATE)], SlotStatus.FAILED, BusinessStatus.NO_CANDIDATE),
        (
            [cell("no_candidate", Reason.DUPLICATE_EXHAUSTED)],
            SlotStatus.FAILED,
            BusinessStatus.DUPLICATE_ONLY,
        ),
        ([cell("duplicate")], SlotStatus.FAILED, BusinessStatus.DUPLICATE_ONLY),
        ([cell("failed", Reason.NETWORK_ERROR)], SlotStatus.FAILED, BusinessStatus.FAILED),
        (
            [cell("failed", Reason.NETWORK_ERROR), cell("duplicate")],
            SlotStatus.FAILED,
            BusinessStatus.FAILED,
        ),
        ([cell("failed", Reason.OVERLAP_SKIPPED)], SlotStatus.FAILED, BusinessStatus.CANCELLED),
        ([cell("failed", Reason.CANCELLED_BY_OPERATOR)], SlotStatus.FAILED, BusinessStatus.CANCELLED),
        (
            [cell("failed", Reason.CANCELLED_BY_OPERATOR), cell("no_candidate", Reason.NO_CANDIDATE)],
            SlotStatus.FAILED,
            BusinessStatus.NO_CANDIDATE,
        ),
    ],
)
def test_a_slot_is_what_its_cells_are(cells, status, business):
    assert (slot_status(cells), business_status(cells)) == (status, business)


CELLS = st.lists(
    st.builds(CellFacts, st.sampled_from(CellStatus), st.none() | st.sampled_from(Reason), st.booleans())
)


@given(CELLS)
def test_a_slot_has_a_business_status_exactly_when_no_cell_is_open(cells):
    assert (business_status(cells) is None) == any(not cell.status.terminal for cell in cells)


@given(CELLS)
def test_the_order_of_cells_does_not_matter(cells):
    assert slot_status(cells) == slot_status(cells[::-1])
    assert business_status(cells) == business_status(cells[::-1])


@given(INTENTS)
def test_a_delivery_is_live_exactly_while_a_row_is_open(intents):
    live = any(intent.open_row for intent in intents)
    assert (CELL_AFTER_DELIVERY[delivery_state(intents)] is None) is live


@given(INTENTS)
def test_a_cell_is_submitted_only_when_every_route_has_the_work(intents):
    if CELL_AFTER_DELIVERY[delivery_state(intents)] is CellStatus.SUBMITTED:
        assert {intent.status for intent in intents} <= {IntentStatus.DELIVERED, IntentStatus.DUPLICATE}
        assert IntentStatus.DELIVERED in {intent.status for intent in intents}


def test_words_of_a_newer_program_are_read_without_an_exception():
    assert read_reason("from tomorrow") is Reason.INTERNAL_ERROR
    assert read_reason(None) is None
    assert read_reason("disk_full") is Reason.DISK_FULL
    assert read_status("from tomorrow") is None
    assert read_status("selected") is CellStatus.SELECTED
