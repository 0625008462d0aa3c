"""Sweeper: every minute takes back what died, ends what is over its time, and removes files nobody needs."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import msgspec
import structlog
import trio

from actors.core import Core
from pixivflow.download.errors import DownloadError
from pixivflow.download.store import Store
from pixivflow.ledger.engine import LedgerUnavailable
from pixivflow.ledger.files import (
    Artifact,
    Root,
    discardable,
    expire_failed_caches,
    forget_discarded,
    path_in_use,
)
from pixivflow.ledger.leases import Queue
from pixivflow.ledger.sweep import Swept, prune, sweep
from protocol.messages import Changed, OutboxReady, RunCell

log = structlog.get_logger(__name__)
TICK_S: Final = 60.0
CLEAN_BATCH: Final = 200
PRUNE_EVERY_MS: Final = 3_600_000


class Retention(msgspec.Struct, frozen=True):
    """How long finished things are kept; seconds."""

    payloads_s: float
    events_s: float
    failed_cache_s: float


class Sweeper:
    """One tick a minute. ``also`` is run in each tick before the rest (the watch over logins).

    ``naming`` is shared with those who plan files: nobody plans a path between the look at it and its removal.
    """

    def __init__(
        self,
        core: Core,
        store: Store,
        roots: dict[Root, Path],
        retention: Retention,
        also: Callable[[], Awaitable[object]],
        naming: trio.Lock,
    ) -> None:
        self._core = core
        self._store = store
        self._roots = roots
        self._retention = retention
        self._also = also
        self._naming = naming
        self._pruned_at = 0

    async def run(self) -> None:
        """Tick until cancelled."""
        while True:
            self._core.pulse.beat("sweeper")
            try:
                await self._tick()
            except LedgerUnavailable as error:
                log.warning("ledger_unavailable", actor="sweeper", error=str(error))
            await trio.sleep(TICK_S * self._core.rng.uniform(0.9, 1.0))

    async def _tick(self) -> None:
        await self._also()
        held = {queue: self._core.held.ids(queue) for queue in Queue}
        swept = await self._core.ledger.write(sweep, self._core.now(), held, owner=self._core.owner)
        if swept != Swept():
            log.warning("swept", **msgspec.to_builtins(swept))
            self._core.ring(RunCell(0))
            for route in self._core.bells.lanes:
                self._core.ring(OutboxReady(route))
            for cell_id in (*swept.overdue_cells, *swept.healed_cells):
                self._core.ring(Changed("cell", str(cell_id)))
        await self._prune()
        await self.clean()

    async def _prune(self) -> None:
        now = self._core.now()
        if now - self._pruned_at < PRUNE_EVERY_MS:
            return
        self._pruned_at = now
        kept = self._retention
        await self._core.ledger.write(
            prune,
            events_before=now - round(kept.events_s * 1000),
            payloads_before=now - round(kept.payloads_s * 1000),
        )
        await self._core.ledger.write(expire_failed_caches, now - round(kept.failed_cache_s * 1000))

    async def clean(self) -> None:
        """Remove discarded files. A file is gone before its row, so that a crash between them is only repeated."""
        after = 0
        while batch := await self._core.ledger.read(discardable, CLEAN_BATCH, after):
            self._core.pulse.beat("sweeper")
            after = batch[-1].id
            gone = [artifact.id for artifact in batch if await self._remove(artifact)]
            if gone:
                await self._core.ledger.write(forget_discarded, gone)

    async def _remove(self, artifact: Artifact) -> bool:
        async with self._naming:
            if await self._core.ledger.read(path_in_use, artifact.root, artifact.path):
                return True
            try:
                await self._store.discard(self._roots[artifact.root], artifact.path)
            except DownloadError as error:
                log.warning("not_removed", path=artifact.path, error=str(error))
                return False
        return True
