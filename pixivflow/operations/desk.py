"""The desk: one table of requests, answered from a ledger, whoever asks and however."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from pixivflow.clock import Wall
from pixivflow.config.model import Config
from pixivflow.ledger import reports
from pixivflow.ledger.engine import Ledger
from pixivflow.ledger.slots import read_schedules
from pixivflow.operations import requests
from pixivflow.operations.orders import OrderRefused, get_works, run_once, trigger_schedule
from protocol.messages import Message, RunCell, SlotDue

Method = Callable[[Mapping[str, Any]], Awaitable[Any]]
R = TypeVar("R", bound=requests.Request)


class Desk:
    """Answers requests. ``ring`` wakes actors after an order; without a daemon there is nobody to wake."""

    def __init__(
        self, ledger: Ledger, wall: Wall, config: Config | None, ring: Callable[[Message], None]
    ) -> None:
        self._ledger = ledger
        self._wall = wall
        self._config = config
        self._ring = ring

    def methods(self) -> Mapping[str, Method]:
        """Return every request that needs a ledger and nothing else, by name."""
        return {
            "slots.list": _taking(requests.ListSlots, self._list_slots),
            "slots.get": _taking(requests.GetSlot, self._get_slot),
            "cells.list": _taking(requests.ListCells, self._list_cells),
            "cells.get": _taking(requests.GetCell, self._get_cell),
            "cells.once": _taking(requests.RunOnce, self._run_once),
            "cells.get_works": _taking(requests.Get, self._get_works),
            "outbox.list": _taking(requests.ListOutbox, self._list_outbox),
            "outbox.get": _taking(requests.GetOutbox, self._get_outbox),
            "deliveries.list": _taking(requests.ListDeliveries, self._list_deliveries),
            "works.files": _taking(requests.FindFiles, self._find_files),
            "ledger.counts": _taking(requests.Nothing, self._counts),
            "schedules.list": _taking(requests.Nothing, self._list_schedules),
            "schedules.trigger": _taking(requests.TriggerSchedule, self._trigger),
        }

    async def _list_slots(self, request: requests.ListSlots) -> Any:
        return await self._ledger.read(reports.list_slots, request.limit, request.schedule)

    async def _get_slot(self, request: requests.GetSlot) -> Any:
        found = await self._ledger.read(reports.get_slot, request.slot_id)
        return _required(found, f"no slot {request.slot_id!r}; see: pixivflow slots list")

    async def _list_cells(self, request: requests.ListCells) -> Any:
        return await self._ledger.read(reports.list_cells, request.limit, open_only=request.open)

    async def _get_cell(self, request: requests.GetCell) -> Any:
        found = await self._ledger.read(reports.get_cell, request.cell_id)
        return _required(found, f"no cell {request.cell_id}; see: pixivflow cells")

    async def _list_outbox(self, request: requests.ListOutbox) -> Any:
        return await self._ledger.read(reports.list_outbox, request.limit, request.state, request.route)

    async def _get_outbox(self, request: requests.GetOutbox) -> Any:
        found = await self._ledger.read(reports.get_outbox, request.row_id)
        row, payload = _required(found, f"no outbox row {request.row_id}; see: pixivflow outbox list")
        return {"row": row, "payload": None if payload is None else msgspec.Raw(payload.encode())}

    async def _list_deliveries(self, request: requests.ListDeliveries) -> Any:
        return await self._ledger.read(reports.list_deliveries, request.limit, request.work)

    async def _find_files(self, request: requests.FindFiles) -> Any:
        return await self._ledger.read(reports.files_of_work, request.work)

    async def _counts(self, _: requests.Nothing) -> Any:
        return await self._ledger.read(reports.count_all)

    async def _list_schedules(self, _: requests.Nothing) -> Any:
        return await self._ledger.read(read_schedules)

    async def _trigger(self, request: requests.TriggerSchedule) -> Any:
        made = await trigger_schedule(self._ledger, self._known_config(), request, self._wall.now_ms())
        self._ring(SlotDue(made.slot_id))
        return made

    async def _run_once(self, request: requests.RunOnce) -> Any:
        return self._woken(await run_once(self._ledger, self._known_config(), request, self._wall.now_ms()))

    async def _get_works(self, request: requests.Get) -> Any:
        return self._woken(await get_works(self._ledger, self._known_config(), request, self._wall.now_ms()))

    def _woken(self, cell_ids: tuple[int, ...]) -> tuple[int, ...]:
        for cell_id in cell_ids:
            self._ring(RunCell(cell_id))
        return cell_ids

    def _known_config(self) -> Config:
        if self._config is None:
            raise OrderRefused("this needs the whole configuration; run: pixivflow config check")
        return self._config


def _taking(kind: type[R], answer: Callable[[R], Awaitable[Any]]) -> Method:
    async def method(params: Mapping[str, Any]) -> Any:
        return await answer(msgspec.convert(dict(params), kind))

    return method


def _required(found: Any, otherwise: str) -> Any:
    if found is None:
        raise OrderRefused(otherwise)
    return found
