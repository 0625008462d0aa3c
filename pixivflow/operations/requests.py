"""The parameters of each request, as they are decoded from JSON. Unknown keys are refused."""

from typing import Annotated

import msgspec

Limit = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
WorkId = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
Key = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all requests."""


class ListSlots(Request, frozen=True):
    """``slots.list``."""

    limit: Limit = 50
    schedule: str | None = None


class GetSlot(Request, frozen=True):
    """``slots.get``."""

    slot_id: str


class ListCells(Request, frozen=True):
    """``cells.list``."""

    limit: Limit = 50
    open: bool = False


class GetCell(Request, frozen=True):
    """``cells.get``."""

    cell_id: int


class ListOutbox(Request, frozen=True):
    """``outbox.list``."""

    limit: Limit = 50
    state: str | None = None
    route: str | None = None


class GetOutbox(Request, frozen=True):
    """``outbox.get``."""

    row_id: int


class ListDeliveries(Request, frozen=True):
    """``deliveries.list``."""

    limit: Limit = 50
    work: str | None = None


class TriggerSchedule(Request, frozen=True):
    """``schedules.trigger``: the nearest occurrence, or with ``now`` a manual slot."""

    schedule: str
    target: str | None = None
    now: bool = False
    key: Key | None = None


class RunOnce(Request, frozen=True):
    """``cells.once``: targets to be run outside any slot; none named means all enabled ones."""

    targets: tuple[str, ...] = ()
    deliver: bool = True


class Get(Request, frozen=True):
    """``cells.get_works``: works to be stored, by id."""

    works: tuple[WorkId, ...]


class FindFiles(Request, frozen=True):
    """``works.files``: a work such as ``illustration:123``."""

    work: str


class Nothing(Request, frozen=True):
    """Requests without parameters."""
