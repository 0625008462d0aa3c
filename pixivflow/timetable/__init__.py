"""The pure rules of time: which instants a schedule names, what is due, and what a trigger means.

`cron` reads expressions, `zones` cuts real time where a zone's clock changes, `occurrences` owns the rule of clock
changes, `due` the policies of catch-up, `triggers` the rule of grace and lead, `slots` the names of slots.
"""

from pixivflow.timetable.cron import Cron, CronRefused, parse_cron
from pixivflow.timetable.due import CatchUp, Due, due, watermark_is_ahead
from pixivflow.timetable.notes import shift_note
from pixivflow.timetable.occurrences import (
    count_occurrences,
    latest_occurrence,
    newest_occurrences,
    next_occurrence,
    occurrences,
)
from pixivflow.timetable.slots import manual_slot_id, slot_id
from pixivflow.timetable.triggers import Accepted, Refused, resolve_trigger

__all__ = [
    "Accepted",
    "CatchUp",
    "Cron",
    "CronRefused",
    "Due",
    "Refused",
    "count_occurrences",
    "due",
    "latest_occurrence",
    "manual_slot_id",
    "newest_occurrences",
    "next_occurrence",
    "occurrences",
    "parse_cron",
    "resolve_trigger",
    "shift_note",
    "slot_id",
    "watermark_is_ahead",
]
