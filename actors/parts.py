"""The composition root: builds every part once, in order of dependency, and closes them in reverse."""

import dataclasses
import os
import random
import secrets
import socket
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import structlog
import trio

from actors.accounts import AccountWatch
from actors.assembly import pixiv_settings, retention, roots_of, route_terms
from actors.bells import Doorbells, FlightRecorder
from actors.collecting import Account, Collector
from actors.core import Core, Pulse
from actors.fetching import Fetcher
from actors.handlers import HandlerPool
from actors.sweeper import Sweeper
from pixivflow.clock import Wall
from pixivflow.config.model import BaseConfig, Config
from pixivflow.download.store import Store
from pixivflow.ledger.engine import Ledger, open_ledger
from pixivflow.ledger.faults import LedgerRefused
from pixivflow.ledger.held import HeldLeases
from pixivflow.ledger.lockfile import ledger_lock
from pixivflow.ledger.opening import sqlite_version_text
from pixivflow.ledger.schema import MIGRATIONS
from pixivflow.ledger.sweep import reclaim_orphaned
from pixivflow.pixiv.client import open_pixiv_client
from pixivflow.pixiv.credentials import TokenStore
from pixivflow.pixiv.images import open_image_host

log = structlog.get_logger(__name__)
LEAST_EXTRA_HANDS: Final = 4


def lock_file(state_dir: Path) -> Path:
    """The lock that the ledger's one owner holds."""
    return state_dir / "ledger.lock"


def token_folder(state_dir: Path) -> Path:
    """Where logins are kept."""
    return state_dir / "tokens"


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """What the actors are made of."""

    core: Core
    config: Config
    watch: AccountWatch
    accounts: Mapping[str, Account]
    store: Store
    naming: trio.Lock
    """Held while a path is planned or removed."""

    def handler_pool(self, only: Collection[int] | None = None) -> HandlerPool:
        """The hands; ``only`` narrows them to certain cells."""
        fetcher = Fetcher(self.core, self.store, roots_of(self.config), self.naming)
        collector = Collector(self.core, fetcher, route_terms(self.config))
        # as many as keep every connection busy, for a hand holds one work from its selection to its commit
        extra = max(LEAST_EXTRA_HANDS, self.config.storage.page_concurrency)
        return HandlerPool(
            self.core, collector, self.accounts, self.watch.fingerprints, extra_hands=extra, only=only
        )

    def sweeper(self) -> Sweeper:
        """The sweeper, which also looks after logins."""
        roots = roots_of(self.config)
        return Sweeper(self.core, self.store, roots, retention(self.config), self.watch.check, self.naming)


@asynccontextmanager
async def open_state(config: Config | BaseConfig, wall: Wall) -> AsyncGenerator[Ledger]:
    """Hold the ledger's lock and open it. Raises `LedgerLocked`, `LedgerRefused` and their kin."""
    state_dir = config.storage.state_dir
    try:
        await trio.to_thread.run_sync(lambda: state_dir.mkdir(mode=0o700, parents=True, exist_ok=True))
    except OSError as error:
        raise LedgerRefused(
            f"storage.state_dir: {state_dir} can't be made: {error.strerror}; create it, or name a folder that the "
            "daemon may write to"
        ) from error
    with ledger_lock(lock_file(state_dir)):
        async with open_ledger(config.storage.ledger_file, MIGRATIONS, now_ms=wall.now_ms) as ledger:
            yield ledger


@asynccontextmanager
async def open_parts(config: Config, wall: Wall) -> AsyncGenerator[Parts]:
    """Build everything that acts on the ledger; what another boot left running is taken back first."""
    rng = random.Random()  # noqa: S311 - jitter, no secrets
    async with AsyncExitStack() as stack:
        ledger = await stack.enter_async_context(open_state(config, wall))
        taken = await ledger.write(reclaim_orphaned, wall.now_ms(), {}, everyone=True)
        log.info("ledger_open", sqlite=sqlite_version_text(), taken_back=len(taken))
        bells = Doorbells(config.routes, FlightRecorder())
        stack.callback(bells.close)
        owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        core = Core(ledger, HeldLeases(), bells, wall, rng, owner, Pulse())
        tokens = TokenStore(token_folder(config.storage.state_dir))
        watch = AccountWatch(
            core, tokens, {name: account.refresh_token for name, account in config.accounts.items()}
        )
        await watch.check()
        settings = pixiv_settings(config)
        accounts: dict[str, Account] = {}
        for name, section in config.accounts.items():
            client = open_pixiv_client(name, section.refresh_token, tokens, settings, wall=wall, rng=rng)
            pixiv = await stack.enter_async_context(client)
            accounts[name] = Account(name, pixiv, trio.CapacityLimiter(section.capacity))
        images = await stack.enter_async_context(open_image_host(settings))
        pages = trio.CapacityLimiter(config.storage.page_concurrency)
        store = Store(images, pages, min_free=config.storage.min_free)
        yield Parts(core, config, watch, accounts, store, trio.Lock())
