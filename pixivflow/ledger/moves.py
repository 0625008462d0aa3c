"""Pure decisions of the state machines: may this cell move, what is this slot, where does a delivery stand."""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from protocol.reasons import Reason
from protocol.states import BusinessStatus, CellStatus, IntentStatus, SlotStatus


def read_reason(text: str | None) -> Reason | None:
    """Read a stored reason; one that this program does not know is a fault of its own, never an exception."""
    return None if text is None else Reason(text) if text in frozenset(Reason) else Reason.INTERNAL_ERROR


def read_status(text: str) -> CellStatus | None:
    """Read a cell's stored status; None for one that this program does not know."""
    return CellStatus(text) if text in frozenset(CellStatus) else None


_TERMINAL: Final = frozenset(status for status in CellStatus if status.terminal)
_ALLOWED: Final[dict[CellStatus, frozenset[CellStatus]]] = {
    CellStatus.PENDING: frozenset(CellStatus),
    CellStatus.SELECTED: frozenset(CellStatus) - {CellStatus.PENDING},
    CellStatus.ARTIFACT_READY: frozenset(
        {CellStatus.DELIVERY_PENDING, CellStatus.SUBMITTED, CellStatus.DUPLICATE, CellStatus.FAILED}
    ),
    CellStatus.DELIVERY_PENDING: _TERMINAL,
}


def may_move(origin: CellStatus, destination: CellStatus, *, owns_work: bool) -> bool:
    """Whether a cell may go from ``origin`` to ``destination``; a cell that owns a work never ends ``no_candidate``."""
    if destination is CellStatus.NO_CANDIDATE and owns_work:
        return False
    return destination in _ALLOWED.get(origin, frozenset())


class CellFacts(msgspec.Struct, frozen=True):
    """What a slot's status depends on."""

    status: CellStatus
    reason: Reason | None = None
    started: bool = False


def slot_status(cells: Collection[CellFacts]) -> SlotStatus:
    """Derive a slot's status from its cells."""
    if any(not cell.status.terminal for cell in cells):
        return SlotStatus.RUNNING if any(cell.started for cell in cells) else SlotStatus.PENDING
    if cells and all(cell.status is CellStatus.SUBMITTED for cell in cells):
        return SlotStatus.SUCCESS
    if any(cell.status in {CellStatus.SUBMITTED, CellStatus.PARTIAL} for cell in cells):
        return SlotStatus.PARTIAL
    return SlotStatus.FAILED


_WITHDRAWN: Final = frozenset({Reason.CANCELLED_BY_OPERATOR, Reason.OVERLAP_SKIPPED})


def business_status(cells: Collection[CellFacts]) -> BusinessStatus | None:
    """Say what an ended slot came to, for reports; None while a cell is open."""
    match slot_status(cells):
        case SlotStatus.SUCCESS:
            return BusinessStatus.SUCCESS
        case SlotStatus.PARTIAL:
            return BusinessStatus.PARTIAL_SUCCESS
        case SlotStatus.FAILED:
            return _without_success(cells)
        case _:
            return None


def _without_success(cells: Collection[CellFacts]) -> BusinessStatus:
    if all(cell.reason in _WITHDRAWN for cell in cells):
        return BusinessStatus.CANCELLED
    if any(cell.status is CellStatus.FAILED and cell.reason not in _WITHDRAWN for cell in cells):
        return BusinessStatus.FAILED
    if any(
        cell.status is CellStatus.DUPLICATE or cell.reason is Reason.DUPLICATE_EXHAUSTED for cell in cells
    ):
        return BusinessStatus.DUPLICATE_ONLY
    return BusinessStatus.NO_CANDIDATE


class DeliveryState(StrEnum):
    """Where the delivery of one cell's work stands."""

    LIVE = "live"
    DUPLICATE = "duplicate"
    CONFIRMED = "confirmed"
    PARTIAL = "partial"
    LOST = "lost"


class IntentFacts(msgspec.Struct, frozen=True):
    """An intent, and whether a row that may still send it is open."""

    status: IntentStatus
    open_row: bool


def delivery_state(intents: Sequence[IntentFacts]) -> DeliveryState:
    """Judge a cell's delivery by its intents and their rows alone."""
    if any(intent.open_row for intent in intents):
        return DeliveryState.LIVE
    good = [intent for intent in intents if intent.status in {IntentStatus.DELIVERED, IntentStatus.DUPLICATE}]
    if intents and all(intent.status is IntentStatus.DUPLICATE for intent in intents):
        return DeliveryState.DUPLICATE
    if intents and len(good) == len(intents):
        return DeliveryState.CONFIRMED
    return DeliveryState.PARTIAL if good else DeliveryState.LOST


CELL_AFTER_DELIVERY: Final[dict[DeliveryState, CellStatus | None]] = {
    DeliveryState.LIVE: None,
    DeliveryState.DUPLICATE: CellStatus.DUPLICATE,
    DeliveryState.CONFIRMED: CellStatus.SUBMITTED,
    DeliveryState.PARTIAL: CellStatus.PARTIAL,
    DeliveryState.LOST: CellStatus.FAILED,
}
