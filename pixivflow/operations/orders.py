"""Orders that change the ledger: triggers, targets run once, works fetched by hand."""

import secrets
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import replace

from pixivflow.config.model import Config, ScheduleSection
from pixivflow.config.resolve import cell_spec
from pixivflow.ledger.engine import Ledger
from pixivflow.ledger.slots import NewSlot, join_adhoc_cell, materialise
from pixivflow.operations.plans import due_slot, manual_slot, new_cell
from pixivflow.operations.requests import Get, RunOnce, TriggerSchedule
from pixivflow.timetable import Accepted, parse_cron, resolve_trigger
from protocol.specs import CellSpec, Filters, Source
from protocol.states import Trigger

GET_TARGET = "get"


class OrderRefused(Exception):
    """The order can't be carried out; the text says why and what would be accepted."""


class Triggered(msgspec.Struct, frozen=True):
    """The slot that a trigger means; ``created`` is false when it existed already."""

    slot_id: str
    created: bool
    cell_ids: tuple[int, ...]


async def trigger_schedule(ledger: Ledger, config: Config, order: TriggerSchedule, now: int) -> Triggered:
    """Make the slot that the trigger means durable. Raises `OrderRefused`."""
    schedule = _schedule(config, order.schedule)
    targets = schedule.targets if order.target is None else (order.target,)
    if order.target is not None and order.target not in schedule.targets:
        raise OrderRefused(
            f"schedule {schedule.id!r} has no target {order.target!r}; it has: {', '.join(schedule.targets)}"
        )
    if order.now or order.target is not None or order.key is not None:
        slot = manual_slot(config, schedule, targets, order.key or secrets.token_hex(6), now)
    else:
        slot = _nearest_occurrence(config, schedule, now)
    if not slot.cells:
        raise OrderRefused(f"schedule {schedule.id!r}: every target is disabled")
    made = await ledger.write(materialise, slot, now)
    return Triggered(made.slot_id, made.created, made.cell_ids)


def _schedule(config: Config, schedule_id: str) -> ScheduleSection:
    try:
        return config.schedule(schedule_id)
    except KeyError:
        known = ", ".join(schedule.id for schedule in config.schedules) or "none"
        raise OrderRefused(f"no schedule {schedule_id!r} in {config.path}; known: {known}") from None


def _nearest_occurrence(config: Config, schedule: ScheduleSection, now: int) -> NewSlot:
    answer = resolve_trigger(
        parse_cron(schedule.cron),
        ZoneInfo(schedule.timezone),
        now_ms=now,
        grace_s=config.scheduler.grace_s,
        lead_s=config.scheduler.lead_s,
    )
    if not isinstance(answer, Accepted):
        raise OrderRefused(
            f"{answer.reason}; it would be accepted from {_instant(answer.earliest_ms)} to "
            f"{_instant(answer.latest_ms)}. For a slot outside the timetable add --now"
        )
    return due_slot(config, schedule, answer.occurrence_ms, Trigger.MANUAL, now)


def _instant(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


async def run_once(ledger: Ledger, config: Config, order: RunOnce, now: int) -> tuple[int, ...]:
    """Make a cell outside any slot for each target, or join an open one; return ids. Raises `OrderRefused`."""
    known = {target.id for target in config.targets}
    unknown = [target for target in order.targets if target not in known]
    if unknown:
        raise OrderRefused(
            f"no target {unknown[0]!r} in {config.path}; known: {', '.join(sorted(known)) or 'none'}"
        )
    enabled = tuple(target.id for target in config.targets if target.enabled)
    specs = [cell_spec(config, target) for target in order.targets or enabled]
    if not specs:
        raise OrderRefused(f"no target is enabled in {config.path}; name one, or add one under [[targets]]")
    if not order.deliver:
        specs = [replace(spec, routes=(), storage="persistent") for spec in specs]
    return await _add(ledger, specs, now)


async def get_works(ledger: Ledger, config: Config, order: Get, now: int) -> tuple[int, ...]:
    """Make a cell for each work named by hand; nothing filters it and nothing is delivered. Returns their ids."""
    account = next(iter(config.accounts), "main")
    return await _add(
        ledger,
        [
            CellSpec(
                target_id=GET_TARGET,
                account=account,
                source=Source(mode="work", work=work),
                filters=Filters(r18="include", r18g="include"),
                path=config.storage.path,
                names=config.storage.names,
                retry_for_s=config.scheduler.retry_for_s,
            )
            for work in order.works
        ],
        now,
    )


async def _add(ledger: Ledger, specs: list[CellSpec], now: int) -> tuple[int, ...]:
    return tuple([await ledger.write(join_adhoc_cell, new_cell(spec, now), now) for spec in specs])
