"""What the daemon says about itself and does when told: the methods that no ledger alone can answer."""

import os
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import msgspec
import trio

from actors.accounts import AccountWatch
from actors.control import MethodRefused
from actors.core import Core
from pixivflow.config.model import Config
from pixivflow.ledger.engine import LedgerUnavailable
from pixivflow.ledger.health import AccountRow, RouteRow, read_accounts, read_routes
from pixivflow.ledger.leases import Queue
from pixivflow.ledger.reports import Counts, count_all
from pixivflow.operations.desk import Method
from pixivflow.operations.orders import OrderRefused


class DaemonStatus(msgspec.Struct, frozen=True):
    """The live status."""

    version: str
    pid: int
    config: str
    started_at: int
    now: int
    state: str
    logins_needed: tuple[str, ...]
    counts: Counts
    held_cells: tuple[int, ...]
    held_rows: tuple[int, ...]
    accounts: tuple[AccountRow, ...]
    routes: tuple[RouteRow, ...]
    unknown_routes: tuple[str, ...]
    """Routes that rows wait for, but the configuration does not have."""
    ledger_batches: int
    ledger_largest_batch: int


class DaemonDoor:
    """Answers ``daemon.*`` and ``accounts.check``."""

    def __init__(self, core: Core, config: Config, watch: AccountWatch, stop: trio.Event) -> None:
        self._core = core
        self._config = config
        self._watch = watch
        self._stop = stop
        self._started_at = core.now()

    def methods(self) -> Mapping[str, Method]:
        """Return every request that needs the daemon itself."""
        return {"daemon.status": self._status, "daemon.stop": self._order_stop, "accounts.check": self._check}

    async def _status(self, _: Mapping[str, Any]) -> DaemonStatus:
        counts = await self._core.ledger.read(count_all)
        statistics = self._core.ledger.statistics()
        return DaemonStatus(
            version=version("pixivflow"),
            pid=os.getpid(),
            config=str(self._config.path),
            started_at=self._started_at,
            now=self._core.now(),
            state="stopping" if self._stop.is_set() else "running",
            logins_needed=await self._watch.check(),
            counts=counts,
            held_cells=self._core.held.ids(Queue.CELLS),
            held_rows=self._core.held.ids(Queue.OUTBOX),
            accounts=await self._core.ledger.read(read_accounts),
            routes=tuple(
                row for row in await self._core.ledger.read(read_routes) if row.name in self._config.routes
            ),
            unknown_routes=tuple(name for name in counts.outbox_pending if name not in self._config.routes),
            ledger_batches=statistics.batches,
            ledger_largest_batch=statistics.largest_batch,
        )

    async def _order_stop(self, _: Mapping[str, Any]) -> Mapping[str, Any]:
        await trio.lowlevel.checkpoint()
        self._stop.set()
        return {"stopping": True, "pid": os.getpid()}

    async def _check(self, _: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"logins_needed": await self._watch.check()}


def refusing(methods: Mapping[str, Method]) -> Mapping[str, Method]:
    """Let an order that can't be carried out, or can't be made durable, reach the caller as a refusal."""
    return {name: _refusing(method) for name, method in methods.items()}


def _refusing(method: Method) -> Method:
    async def answer(params: Mapping[str, Any]) -> Any:
        try:
            return await method(params)
        except (OrderRefused, LedgerUnavailable) as refusal:
            raise MethodRefused(str(refusal)) from refusal

    return answer
