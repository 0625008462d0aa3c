"""Scheduler: sleeps to the next occurrence, makes slots of what is due, records what was missed."""

from typing import Final
from zoneinfo import ZoneInfo

import structlog
import trio

from actors.core import Core
from pixivflow.config.model import Config, ScheduleSection
from pixivflow.ledger.engine import LedgerUnavailable
from pixivflow.ledger.slots import (
    NewSlot,
    ScheduleRow,
    materialise,
    read_schedules,
    record_missed,
    set_watermark_back,
    sync_schedules,
)
from pixivflow.operations.plans import due_slot
from pixivflow.timetable import Cron, Due, due, next_occurrence, parse_cron, slot_id, watermark_is_ahead
from protocol.messages import SlotDue
from protocol.states import Trigger

log = structlog.get_logger(__name__)
SLICE_S: Final = 60.0
ON_TIME_S: Final = 60.0


class Scheduler:
    """Turns the timetable into slots. It keeps nothing that the ledger lacks."""

    def __init__(self, core: Core, config: Config) -> None:
        self._core = core
        self._config = config
        self._enabled = tuple(schedule for schedule in config.schedules if schedule.enabled)
        self._crons: dict[str, Cron] = {schedule.id: parse_cron(schedule.cron) for schedule in self._enabled}
        self._next: dict[str, int | None] = {}

    async def run(self) -> None:
        """Register the schedules, then make slots for ever."""
        self._next.clear()
        while True:
            self._core.pulse.beat("scheduler")
            pause_s = self._core.idle_s()
            try:
                await self._look()
                pause_s = self._until_next()
            except LedgerUnavailable as error:
                log.warning("ledger_unavailable", actor="scheduler", error=str(error))
            await trio.sleep(pause_s)

    async def _look(self) -> None:
        """Make slots of what is due; a schedule is looked at for the first time when it is registered."""
        if self._enabled and not self._next:
            entries = [(schedule.id, schedule.cron, schedule.timezone) for schedule in self._enabled]
            rows = await self._core.ledger.write(sync_schedules, entries, self._core.now())
        else:
            rows = await self._core.ledger.read(read_schedules)
        for schedule in self._enabled:
            if self._wants_a_look(schedule, rows[schedule.id]):
                await self._catch_up(schedule, rows[schedule.id])

    def _wants_a_look(self, schedule: ScheduleSection, row: ScheduleRow) -> bool:
        now = self._core.now()
        if schedule.id not in self._next or watermark_is_ahead(
            row.last_occurrence_at, now, self._config.scheduler.lead_s
        ):
            return True
        at = self._next[schedule.id]
        return at is not None and at <= now

    def _until_next(self) -> float:
        known = [at for at in self._next.values() if at is not None]
        return SLICE_S if not known else min(SLICE_S, max(0.0, (min(known) - self._core.now()) / 1000))

    async def _catch_up(self, schedule: ScheduleSection, row: ScheduleRow) -> None:
        now = self._core.now()
        watermark = await self._sane_watermark(schedule, row, now)
        cron, zone = self._crons[schedule.id], ZoneInfo(schedule.timezone)
        found = due(
            cron,
            zone,
            watermark_ms=watermark,
            now_ms=now,
            catch_up=schedule.catch_up,
            window_s=schedule.catch_up_window_s,
            on_time_s=ON_TIME_S,
        )
        await self._record_missed(schedule, found, now)
        for occurrence_at in found.run:
            await self._materialise(schedule, occurrence_at, now)
        self._next[schedule.id] = next_occurrence(cron, zone, max(found.watermark_ms, watermark))

    async def _sane_watermark(self, schedule: ScheduleSection, row: ScheduleRow, now: int) -> int:
        if not watermark_is_ahead(row.last_occurrence_at, now, self._config.scheduler.lead_s):
            return row.last_occurrence_at
        log.warning(
            "watermark_set_back", schedule=schedule.id, ahead_s=(row.last_occurrence_at - now) // 1000
        )
        await self._core.ledger.write(set_watermark_back, schedule.id, now, now)
        return now

    async def _record_missed(self, schedule: ScheduleSection, found: Due, now: int) -> None:
        folded = (
            [(found.missed_more_until_ms, found.missed_more)]
            if found.missed_more_until_ms is not None
            else []
        )
        for occurrence_at, count in (*folded, *((at, 1) for at in found.missed)):
            log.warning("occurrence_missed", schedule=schedule.id, occurrence_at=occurrence_at, count=count)
            await self._core.ledger.write(
                record_missed,
                schedule.id,
                slot_id(schedule.id, occurrence_at),
                occurrence_at,
                now,
                count=count,
                watermark=occurrence_at,
            )

    async def _materialise(self, schedule: ScheduleSection, occurrence_at: int, now: int) -> None:
        late = now - occurrence_at > ON_TIME_S * 1000
        trigger = Trigger.CATCH_UP if late else Trigger.CRON
        slot: NewSlot = due_slot(self._config, schedule, occurrence_at, trigger, now)
        made = await self._core.ledger.write(materialise, slot, now)
        log.info("slot_due", slot=made.slot_id, trigger=str(trigger), created=made.created)
        self._core.ring(SlotDue(made.slot_id))
