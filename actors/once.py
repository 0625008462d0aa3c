"""Cells outside any slot that somebody waits for: run by the daemon or, where none runs, right here."""

import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec
import trio

from actors.assembly import lanes
from actors.heartbeat import run_heartbeat
from actors.outbox import run_outbox
from actors.parts import Parts, open_parts
from actors.supervisor import first_error, supervise
from pixivflow.clock import Wall
from pixivflow.config.model import Config
from pixivflow.operations.desk import Desk
from protocol.reasons import Reason

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Asks by a request's name and returns plain JSON data."""

STOPPING: Final = (signal.SIGINT, signal.SIGTERM)
CLEAN_S: Final = 5.0
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 1.0


class RunFailed(Exception):
    """What runs cells here failed too often; the cells stay open in the ledger."""


class Waited(msgspec.Struct, frozen=True):
    """What became of an order: an answer of ``cells.get`` for each cell, in the order of the cells."""

    cells: tuple[Any, ...]
    logins_needed: tuple[str, ...] = ()


class _Now(msgspec.Struct, frozen=True):
    account: str
    state: str
    due_at: int
    ended_at: int | None
    reason_code: str | None = None

    def waits_longer(self, until: int, logins_needed: tuple[str, ...]) -> bool:
        """Whether nothing can happen to the cell before ``until`` (ms UTC)."""
        if self.state != "pending":
            return False
        logged_out = self.account in logins_needed or self.reason_code == Reason.AUTH_FAILED
        return logged_out or self.due_at > until


async def order_through(ask: Ask, method: str, params: Mapping[str, Any]) -> tuple[int, ...]:
    """Give an order and return the ids of its cells."""
    return msgspec.convert(await ask(method, params), tuple[int, ...])


async def wait_through(ask: Ask, cell_ids: tuple[int, ...], wait_s: float, wall: Wall) -> Waited:
    """Wait until the cells have ended, nothing more can happen in time, or a signal to stop comes.

    Call it in the main thread. Raises what ``ask`` raises.
    """
    failure: Exception | None = None
    with trio.open_signal_receiver(*STOPPING) as signals:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_at_signal, signals, nursery.cancel_scope)
                await _wait(ask, cell_ids, wait_s, wall)
                nursery.cancel_scope.cancel("the waiting is over")
        except* Exception as group:  # noqa: BLE001 - the nursery is an inner detail: its error leaves as it is
            failure = first_error(group)
    if failure is not None:
        raise failure
    return await _look(ask, cell_ids)


async def run_here(
    config: Config, wall: Wall, method: str, params: Mapping[str, Any], wait_s: float
) -> Waited:
    """Give an order to the ledger and run its cells, theirs alone, in this process; what is left stays open.

    Call it in the main thread: SIGINT and SIGTERM end it early. Raises `LedgerLocked`, `LedgerRefused`,
    `OrderRefused`, `RunFailed`.
    """
    with trio.open_signal_receiver(*STOPPING) as signals:
        async with open_parts(config, wall) as parts:
            ask = asking(parts)
            cell_ids = await order_through(ask, method, params)
            try:
                await _run(parts, ask, cell_ids, wait_s, signals)
            except* Exception as group:
                raise RunFailed(str(first_error(group))) from group
            with trio.move_on_after(CLEAN_S):
                await parts.sweeper().clean()
            return await _look(ask, cell_ids)


def asking(parts: Parts) -> Ask:
    """Answer requests from the parts themselves, as the control socket would."""
    core = parts.core
    methods = Desk(core.ledger, core.wall, parts.config, core.ring).methods()

    async def ask(method: str, params: Mapping[str, Any]) -> Any:
        if method == "accounts.check":
            return {"logins_needed": await parts.watch.check()}
        return msgspec.json.decode(msgspec.json.encode(await methods[method](params)))

    return ask


async def _run(
    parts: Parts, ask: Ask, cell_ids: tuple[int, ...], wait_s: float, signals: AsyncIterator[int]
) -> None:
    """Run the actors that the cells need. The heartbeat outlives the workers, for they give their leases back."""
    core = parts.core
    pool = parts.handler_pool(cell_ids)
    async with trio.open_nursery() as services:
        services.start_soon(supervise, "heartbeat", partial(run_heartbeat, core))
        async with trio.open_nursery() as workers:
            workers.start_soon(_cancel_at_signal, signals, workers.cancel_scope)
            workers.start_soon(supervise, "handlers", lambda: pool.run(core.bells.cells.clone()))
            routes = lanes(parts.config, core.wall)
            workers.start_soon(supervise, "outbox", lambda: run_outbox(core, routes, cell_ids))
            await _wait(ask, cell_ids, wait_s, core.wall)
            workers.cancel_scope.cancel("the waiting is over")
        services.cancel_scope.cancel("the workers have ended")


async def _wait(ask: Ask, cell_ids: tuple[int, ...], wait_s: float, wall: Wall) -> None:
    pause_s = FIRST_PAUSE_S
    until = wall.now_ms() + round(wait_s * 1000)
    with trio.move_on_after(wait_s):
        while True:
            seen = await _look(ask, cell_ids)
            cells = [msgspec.convert(answer["cell"], _Now) for answer in seen.cells]
            waiting = [cell for cell in cells if cell.ended_at is None]
            if all(cell.waits_longer(until, seen.logins_needed) for cell in waiting):
                return
            await trio.sleep(pause_s)
            pause_s = min(LONGEST_PAUSE_S, pause_s * 1.3)


async def _look(ask: Ask, cell_ids: tuple[int, ...]) -> Waited:
    await trio.lowlevel.checkpoint()
    answers = tuple([await ask("cells.get", {"cell_id": cell_id}) for cell_id in cell_ids])
    if all(answer["cell"]["ended_at"] is not None for answer in answers):
        return Waited(answers)
    needed = (await ask("accounts.check", {}))["logins_needed"]
    return Waited(answers, tuple(needed))


async def _cancel_at_signal(signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
    async for number in signals:
        scope.cancel(f"signal {signal.Signals(number).name}")
