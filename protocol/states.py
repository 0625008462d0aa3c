"""The states of cells, slots, intents, leased rows and artifacts, by name."""

from enum import StrEnum


class LeaseState(StrEnum):
    """Where a leased row (cell, job or outbox row) stands in the lease machine."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    DEAD = "dead"
    CANCELLED = "cancelled"
    UNCERTAIN = "uncertain"


class CellStatus(StrEnum):
    """How far a cell has come with its work."""

    PENDING = "pending"
    SELECTED = "selected"
    ARTIFACT_READY = "artifact_ready"
    DELIVERY_PENDING = "delivery_pending"
    SUBMITTED = "submitted"
    PARTIAL = "partial"
    FAILED = "failed"
    NO_CANDIDATE = "no_candidate"
    DUPLICATE = "duplicate"

    @property
    def terminal(self) -> bool:
        """Whether the cell has ended."""
        return self not in OPEN_CELL_STATUSES


OPEN_CELL_STATUSES = frozenset(
    {CellStatus.PENDING, CellStatus.SELECTED, CellStatus.ARTIFACT_READY, CellStatus.DELIVERY_PENDING}
)


class SlotStatus(StrEnum):
    """A slot's status, derived from its cells; ``missed`` slots never ran."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    PARTIAL = "partial"
    FAILED = "failed"
    MISSED = "missed"


class BusinessStatus(StrEnum):
    """What a slot came to, for reports; only ``failed`` is worth an alarm."""

    SUCCESS = "success"
    PARTIAL_SUCCESS = "partial_success"
    NO_CANDIDATE = "no_candidate"
    DUPLICATE_ONLY = "duplicate_only"
    CANCELLED = "cancelled"
    FAILED = "failed"


class IntentStatus(StrEnum):
    """What has become of an intent (table ``deliveries``)."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DUPLICATE = "duplicate"
    FAILED = "failed"


class ArtifactStatus(StrEnum):
    """Whether a file is being made, is kept, or may go."""

    PLANNED = "planned"
    STORED = "stored"
    DISCARD = "discard"


class Trigger(StrEnum):
    """What made a slot."""

    CRON = "cron"
    CATCH_UP = "catch_up"
    MANUAL = "manual"
