"""Which accounts can work: no token, a refused one, a new one. The ledger keeps it, so that cells can wait for it."""

from collections.abc import Mapping

import structlog
import trio

from actors.core import Core
from pixivflow.ledger.health import account_refused, account_renewed, read_accounts
from pixivflow.pixiv.credentials import TokenStore, choose_token, fingerprint
from pixivflow.pixiv.errors import CredentialsDamaged
from protocol.messages import RunCell

log = structlog.get_logger(__name__)


class AccountWatch:
    """Compares each account's newest token with the one that was refused."""

    def __init__(self, core: Core, store: TokenStore, configured: Mapping[str, str | None]) -> None:
        self._core = core
        self._store = store
        self._configured = configured
        self.fingerprints: dict[str, str] = {}

    async def check(self) -> tuple[str, ...]:
        """Let accounts with a new token work again; return the names of those that need a login."""
        rows = {row.name: row for row in await self._core.ledger.read(read_accounts)}
        needed: list[str] = []
        for name, configured in self._configured.items():
            token, problem = await self._newest(name, configured)
            row = rows.get(name)
            refused = row is not None and row.auth_expired_at is not None
            if token is None:
                needed.append(name)
                if not refused:
                    await self._core.ledger.write(account_refused, name, problem, None, self._core.now())
            elif refused and row is not None and row.fingerprint != fingerprint(token):
                await self._core.ledger.write(account_renewed, name, self._core.now())
                log.info("account_renewed", account=name)
                self._core.ring(RunCell(0))
            elif refused:
                needed.append(name)
        return tuple(needed)

    async def _newest(self, name: str, configured: str | None) -> tuple[str | None, str]:
        try:
            stored = await trio.to_thread.run_sync(self._store.load, name)
        except CredentialsDamaged as error:
            return None, str(error)
        token = choose_token(configured, stored)
        if token is None:
            self.fingerprints.pop(name, None)
            return None, f"account {name!r} has no login; run: pixivflow login {name}"
        self.fingerprints[name] = fingerprint(token)
        return token, ""
