"""The names of slots: a slot's identity is an instant, so no zone or offset appears in it."""

from datetime import UTC, datetime


def slot_id(schedule_id: str, occurrence_ms: int) -> str:
    """Return the id of a schedule's slot at an instant, like ``morning@20261130T230000Z``."""
    at = datetime.fromtimestamp(occurrence_ms // 1000, UTC)
    return f"{schedule_id}@{at:%Y%m%dT%H%M%SZ}"


def manual_slot_id(schedule_id: str, key: str) -> str:
    """Return the id of a slot made by hand, like ``morning@manual-k1``; it consumes no occurrence."""
    return f"{schedule_id}@manual-{key}"
