"""The tokens of one account: refreshed ahead of time, one refresh at a time, saved before use."""

import copy

import httpx
import msgspec
import structlog
import trio

from pixivflow.clock import Wall
from pixivflow.failpoints import reach
from pixivflow.pixiv import oauth
from pixivflow.pixiv.credentials import StoredToken, TokenStore, choose_token, fingerprint
from pixivflow.pixiv.errors import AuthFailed, PixivError
from pixivflow.pixiv.grace import finish
from pixivflow.pixiv.settings import PixivSettings

log = structlog.get_logger()

MARGIN_S = 300.0
MARGIN_PART = 0.1
GRACE_S = 1.0
"""How long a refresh on the wire may outlive its cancelled caller: a rotated token must not get lost."""


class _Access:
    """An access token and when to get the next one."""

    __slots__ = ("renew_at_ms", "token")

    def __init__(self, token: str, renew_at_ms: int) -> None:
        self.token = token
        self.renew_at_ms = renew_at_ms


class _Flight:
    """A refresh under way, and how it ended; neither token nor error means that it was cancelled."""

    __slots__ = ("error", "landed", "token")

    def __init__(self) -> None:
        self.landed = trio.Event()
        self.token: str | None = None
        self.error: PixivError | None = None


def renewal_at(now_ms: int, expires_in_s: int) -> int:
    """Return when to refresh a token that was granted now: five minutes early, less for short lifetimes."""
    margin_s = min(MARGIN_S, expires_in_s * MARGIN_PART)
    return now_ms + round((expires_in_s - margin_s) * 1000)


class AccountSession:
    """Gives access tokens of one account to any number of tasks."""

    def __init__(  # noqa: PLR0917 - six collaborators, each of another type
        self,
        account: str,
        configured_token: str | None,
        store: TokenStore,
        settings: PixivSettings,
        http: httpx.AsyncClient,
        wall: Wall,
    ) -> None:
        self._account = account
        self._configured = configured_token
        self._store = store
        self._settings = settings
        self._http = http
        self._wall = wall
        self._access: _Access | None = None
        self._flight: _Flight | None = None
        self._unsaved: StoredToken | None = None

    async def access_token(self) -> str:
        """Return a token that is good for a while, refreshing when it is not.

        Raises AuthFailed when the account must log in, another Outage when the way is disturbed.
        """
        access = self._access
        if access is not None and self._wall.now_ms() < access.renew_at_ms:
            await trio.lowlevel.checkpoint()
            return access.token
        return await self._shared_renewal()

    async def renew_after(self, refused_access_token: str) -> str:
        """Return a token other than the refused one, refreshing unless somebody did meanwhile."""
        if self._access is not None and self._access.token == refused_access_token:
            self._access = None
        return await self.access_token()

    async def _shared_renewal(self) -> str:
        flight = self._flight
        if flight is None:
            return await self._lead()
        await flight.landed.wait()
        if flight.error is not None:
            raise copy.copy(flight.error) from flight.error
        # A leader that was cancelled leaves neither; the next one to ask leads.
        return flight.token if flight.token is not None else await self.access_token()

    async def _lead(self) -> str:
        flight = self._flight = _Flight()
        try:
            await finish(self._renew, grace_s=GRACE_S)
            if self._access is None:
                raise AuthFailed(f"account {self._account!r}: a refresh gave no access token")
            flight.token = self._access.token
        except PixivError as exc:
            flight.error = exc
            raise
        finally:
            self._flight = None
            flight.landed.set()
        return flight.token

    async def _renew(self) -> None:
        stored, token = await self._newest()
        answer = await self._ask(token)
        if answer is None:
            # A login beside us may have replaced the token while ours was on the wire.
            self._unsaved = None
            stored, newer = await self._newest()
            answer = None if newer == token else await self._ask(newer)
        if answer is None:
            raise AuthFailed(
                f"account {self._account!r}: {oauth.REFRESH_REFUSED}; run: pixivflow login {self._account}"
            )
        await self._keep(answer, stored)
        self._access = _Access(answer.access_token, renewal_at(self._wall.now_ms(), answer.expires_in))
        log.info("access_token_renewed", account=self._account)

    async def _newest(self) -> tuple[StoredToken | None, str]:
        stored = await trio.to_thread.run_sync(self._store.load, self._account)
        token = choose_token(self._configured, self._unsaved or stored)
        if token is None:
            raise AuthFailed(f"account {self._account!r} has no login; run: pixivflow login {self._account}")
        return stored, token

    async def _ask(self, token: str) -> oauth.TokenAnswer | None:
        """Refresh with ``token``; None when Pixiv refuses it."""
        now_ms = self._wall.now_ms()
        request = oauth.refresh_request(token, self._settings, now_ms)
        try:
            return await oauth.ask(request, self._http, self._settings, now_ms)
        except AuthFailed:
            log.warning("refresh_token_refused", account=self._account)
        await trio.lowlevel.checkpoint()
        return None

    async def _keep(self, answer: oauth.TokenAnswer, stored: StoredToken | None) -> None:
        """Make the refresh token durable. Until that succeeds nothing of the answer is used."""
        token = StoredToken(
            refresh_token=answer.refresh_token,
            obtained_at_ms=self._wall.now_ms(),
            configured_fingerprint=None if self._configured is None else fingerprint(self._configured),
            user_id=answer.user_id,
            user_name=answer.user_name,
            is_premium=answer.is_premium,
            x_restrict=answer.x_restrict,
        )
        if (
            stored is not None
            and msgspec.structs.replace(token, obtained_at_ms=stored.obtained_at_ms) == stored
        ):
            await trio.lowlevel.checkpoint()
            return
        self._unsaved = token
        await trio.to_thread.run_sync(self._store.save, self._account, token)
        self._unsaved = None
        reach("pixiv.token_saved")
