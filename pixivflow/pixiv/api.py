"""One authorised request to the API: pace, token, deadline, a replay after the OAuth 400, short retries."""

import random
from collections.abc import Callable
from http import HTTPStatus
from typing import TypeVar

import httpx
import msgspec
import structlog
import trio

from pixivflow.backoff import retry_delay
from pixivflow.clock import Wall
from pixivflow.pixiv.classify import classify, parse_retry_after
from pixivflow.pixiv.errors import AccessTokenRefused, AuthFailed, NetworkFailed, PixivError, ServerFailed
from pixivflow.pixiv.headers import app_headers
from pixivflow.pixiv.pace import Pace
from pixivflow.pixiv.session import AccountSession
from pixivflow.pixiv.settings import PixivSettings
from pixivflow.pixiv.transport import typed_failures

log = structlog.get_logger()

RETRIES = 2
RETRY_CAP_S = 2.0

T = TypeVar("T")


def worth_retrying(error: PixivError) -> bool:
    """Whether asking again at once may help."""
    return isinstance(error, NetworkFailed) or (isinstance(error, ServerFailed) and not error.blocked)


class ApiCaller:
    """Asks the API in the name of one account."""

    def __init__(
        self,
        account: str,
        session: AccountSession,
        http: httpx.AsyncClient,
        settings: PixivSettings,
        *,
        wall: Wall,
        rng: random.Random,
    ) -> None:
        self._account = account
        self._session = session
        self._http = http
        self._settings = settings
        self._wall = wall
        self._rng = rng
        self._pace = Pace(settings.pace_s, rng)

    async def get(self, url: str, read: Callable[[bytes], T]) -> T:
        """Return what ``read`` makes of the answer to a GET of ``url``, which is sent unchanged.

        ``read`` raises msgspec.DecodeError for a body it can't use. Raises the PixivError that the answer,
        or its absence, stands for; passing failures after two more tries.
        """
        for attempt in range(RETRIES):
            try:
                return await self._authorised(url, read)
            except (NetworkFailed, ServerFailed) as exc:
                if not worth_retrying(exc):
                    raise
                log.info("request_retried", account=self._account, reason=str(exc))
            await trio.sleep(retry_delay(attempt, self._settings.retry_base_s, RETRY_CAP_S, self._rng))
        return await self._authorised(url, read)

    async def _authorised(self, url: str, read: Callable[[bytes], T]) -> T:
        token = await self._session.access_token()
        try:
            return await self._once(url, token, read)
        except AccessTokenRefused:
            token = await self._session.renew_after(token)
        try:
            return await self._once(url, token, read)
        except AccessTokenRefused:
            raise AuthFailed(
                f"account {self._account!r}: Pixiv refuses an access token it has just given"
            ) from None

    async def _once(self, url: str, token: str, read: Callable[[bytes], T]) -> T:
        await self._pace.turn()
        headers = {**app_headers(self._settings, self._wall.now_ms()), "Authorization": f"Bearer {token}"}
        response = await self._send(self._http.build_request("GET", url, headers=headers))
        if response.status_code == HTTPStatus.OK:
            try:
                return read(response.content)
            except (msgspec.DecodeError, UnicodeDecodeError):
                pass
        raise self._failure(response)

    async def _send(self, request: httpx.Request) -> httpx.Response:
        host, total_s = request.url.host, self._settings.total_s
        try:
            with trio.fail_after(total_s), typed_failures(host):
                return await self._http.send(request)
        except trio.TooSlowError as exc:
            raise NetworkFailed(f"{host}: no whole answer within {total_s:g} s") from exc

    def _failure(self, response: httpx.Response) -> PixivError:
        retry_after_s = parse_retry_after(response.headers.get("retry-after"), self._wall.now_ms())
        content_type = response.headers.get("content-type", "")
        return classify(response.status_code, content_type, response.content, retry_after_s=retry_after_s)
