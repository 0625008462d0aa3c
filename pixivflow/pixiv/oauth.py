"""Requests to the token endpoint and their answers; `ask` alone touches the network."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar

import httpx
import msgspec
import trio

from pixivflow.pixiv.classify import classify, is_client_error, is_html, parse_retry_after
from pixivflow.pixiv.errors import AuthFailed, NetworkFailed, PixivError, RateLimited, ServerFailed
from pixivflow.pixiv.headers import app_headers
from pixivflow.pixiv.redaction import Secretive
from pixivflow.pixiv.settings import PixivSettings
from pixivflow.pixiv.transport import typed_failures

TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*", re.ASCII)
"""What a token may be made of (the bearer grammar of HTTP)."""

REFRESH_REFUSED = "Pixiv refuses the refresh token"
CODE_REFUSED = (
    "the code is mistyped, has expired (it lives about 30 seconds) or was used before; start the login again"
)
_SHORTEST_LIFE_S = 1


class TokenRequest(Secretive, frozen=True):
    """One POST to the token endpoint."""

    secret_fields: ClassVar[frozenset[str]] = frozenset({"form"})

    url: str
    headers: Mapping[str, str]
    form: Mapping[str, str]


class TokenAnswer(Secretive, frozen=True):
    """What the token endpoint grants; the mail address in the answer is never read."""

    secret_fields: ClassVar[frozenset[str]] = frozenset({"access_token", "refresh_token"})

    access_token: str
    refresh_token: str
    expires_in: int
    user_id: str | None = None
    user_name: str = ""
    is_premium: bool = False
    x_restrict: int = 0


class _Account(msgspec.Struct, frozen=True):
    id: str | int | None = None
    name: str | None = None
    is_premium: bool | None = None
    x_restrict: int | None = None


class _Grant(msgspec.Struct, frozen=True):
    access_token: str
    expires_in: int = 3600
    refresh_token: str | None = None
    user: _Account | None = None


def refresh_request(refresh_token: str, settings: PixivSettings, now_ms: int) -> TokenRequest:
    """Build the request that trades a refresh token for an access token."""
    return _request({"grant_type": "refresh_token", "refresh_token": refresh_token}, settings, now_ms)


def code_request(code: str, verifier: str, settings: PixivSettings, now_ms: int) -> TokenRequest:
    """Build the request that trades a login code for tokens."""
    grant = {
        "grant_type": "authorization_code",
        "code": code,
        "code_verifier": verifier,
        "redirect_uri": settings.redirect_uri,
    }
    return _request(grant, settings, now_ms)


def _request(grant: Mapping[str, str], settings: PixivSettings, now_ms: int) -> TokenRequest:
    application = {
        "client_id": settings.client_id,
        "client_secret": settings.client_secret,
        "include_policy": "true",
    }
    url = settings.oauth_url.rstrip("/") + "/auth/token"
    return TokenRequest(url, app_headers(settings, now_ms), {**application, **grant})


def read_answer(body: bytes, request: TokenRequest) -> TokenAnswer:
    """Read a success; the fields stand at the top, under ``response``, or both.

    An answer without refresh token keeps the one that was sent. Raises ServerFailed for anything unusable.
    """
    try:
        grant = _grant_in(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ServerFailed("the token endpoint answers 200 without readable tokens") from None
    refresh_token = grant.refresh_token or request.form.get("refresh_token", "")
    if not (TOKEN.fullmatch(grant.access_token) and TOKEN.fullmatch(refresh_token)):
        raise ServerFailed("the token endpoint answers 200 with tokens that can't be used")
    user = grant.user or _Account()
    return TokenAnswer(
        access_token=grant.access_token,
        refresh_token=refresh_token,
        expires_in=max(_SHORTEST_LIFE_S, grant.expires_in),
        user_id=None if user.id is None else str(user.id),
        user_name=user.name or "",
        is_premium=bool(user.is_premium),
        x_restrict=user.x_restrict or 0,
    )


def _grant_in(body: bytes) -> _Grant:
    answer: Any = msgspec.json.decode(body)
    if isinstance(answer, dict) and "access_token" not in answer and isinstance(answer.get("response"), dict):
        answer = answer["response"]
    return msgspec.convert(answer, _Grant, strict=False)


def read_refusal(
    status: int, content_type: str, body: bytes, request: TokenRequest, retry_after_s: float | None
) -> PixivError:
    """Say what an answer other than 200 means; AuthFailed only for a refused credential.

    Everything else passes: server faults, pages of a bot wall, refused application constants.
    """
    word = _error_word(body)
    if status == HTTPStatus.BAD_REQUEST and word == "invalid_grant":
        return AuthFailed(CODE_REFUSED if "code" in request.form else REFRESH_REFUSED)
    if word is not None and is_client_error(status) and status != HTTPStatus.TOO_MANY_REQUESTS:
        return ServerFailed(f"the token endpoint refuses the request ({status} {word})", blocked=True)
    known = classify(status, content_type, body, retry_after_s=retry_after_s)
    if isinstance(known, RateLimited):
        return known
    if is_html(content_type, body):
        return ServerFailed(f"the token endpoint: {known}", blocked=is_client_error(status))
    return ServerFailed(f"the token endpoint answers {status}, which says nothing about the credentials")


def _error_word(body: bytes) -> str | None:
    """Return the OAuth error word of an answer, if it has one."""
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    word = answer.get("error") if isinstance(answer, dict) else None
    return word if isinstance(word, str) and re.fullmatch(r"[a-z_]{1,40}", word) else None


async def ask(
    request: TokenRequest, http: httpx.AsyncClient, settings: PixivSettings, now_ms: int
) -> TokenAnswer:
    """Send ``request``. Raises AuthFailed for a refused credential, another Outage for everything else."""
    host = httpx.URL(request.url).host
    try:
        with trio.fail_after(settings.total_s), typed_failures(host):
            response = await http.post(request.url, data=dict(request.form), headers=dict(request.headers))
    except trio.TooSlowError as exc:
        raise NetworkFailed(f"{host}: no whole answer within {settings.total_s:g} s") from exc
    content_type = response.headers.get("content-type", "")
    if response.status_code == HTTPStatus.OK and not is_html(content_type, response.content):
        return read_answer(response.content, request)
    retry_after_s = parse_retry_after(response.headers.get("retry-after"), now_ms)
    raise read_refusal(response.status_code, content_type, response.content, request, retry_after_s)
