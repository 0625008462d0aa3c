"""The names of slots."""

from pixivflow.timetable import manual_slot_id, slot_id


def test_a_slot_is_named_by_its_instant_in_utc() -> None:
    assert slot_id("morning", 1_796_079_600_000) == "morning@20261130T230000Z"


def test_a_slot_made_by_hand_is_named_by_its_key() -> None:
    assert manual_slot_id("morning", "k1") == "morning@manual-k1"
