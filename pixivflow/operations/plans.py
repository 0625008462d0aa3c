"""From configuration to what the ledger stores: slots and cells to be."""

import msgspec

from pixivflow.config.model import Config, ScheduleSection
from pixivflow.config.resolve import cell_spec
from pixivflow.ledger.slots import NewCell, NewSlot
from pixivflow.timetable import manual_slot_id, slot_id
from protocol.specs import CellSpec
from protocol.states import Trigger


def encode_spec(spec: CellSpec) -> str:
    """A spec as the ledger keeps it."""
    return msgspec.json.encode(spec).decode()


def new_cell(spec: CellSpec, now: int) -> NewCell:
    """A cell for ``spec``, to be retried for the target's time from ``now`` (ms UTC) on."""
    return NewCell(spec.target_id, spec.account, encode_spec(spec), now + round(spec.retry_for_s * 1000))


def due_slot(
    config: Config, schedule: ScheduleSection, occurrence_at: int, trigger: Trigger, now: int
) -> NewSlot:
    """The slot of one occurrence, with a cell for each enabled target."""
    return NewSlot(
        slot_id=slot_id(schedule.id, occurrence_at),
        trigger=trigger,
        cells=_cells(config, schedule, schedule.targets, now),
        schedule_id=schedule.id,
        occurrence_at=occurrence_at,
        watermark=occurrence_at,
    )


def manual_slot(
    config: Config, schedule: ScheduleSection, targets: tuple[str, ...], key: str, now: int
) -> NewSlot:
    """A slot made by hand: it consumes no occurrence."""
    return NewSlot(
        slot_id=manual_slot_id(schedule.id, key),
        trigger=Trigger.MANUAL,
        cells=_cells(config, schedule, targets, now),
        schedule_id=schedule.id,
        occurrence_at=now,
        label=key,
    )


def _cells(
    config: Config, schedule: ScheduleSection, targets: tuple[str, ...], now: int
) -> tuple[NewCell, ...]:
    return tuple(
        new_cell(cell_spec(config, target, timeout_s=schedule.timeout_s), now)
        for target in targets
        if config.target(target).enabled
    )
