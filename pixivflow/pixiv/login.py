"""Getting a first refresh token: by the browser (PKCE), or by checking one that the user has."""

import base64
import hashlib
import re
import secrets
from collections.abc import Callable
from typing import ClassVar
from urllib.parse import parse_qs, urlencode

import httpx

from pixivflow.clock import SystemWall
from pixivflow.pixiv import oauth
from pixivflow.pixiv.redaction import Secretive
from pixivflow.pixiv.settings import PixivSettings
from pixivflow.pixiv.transport import open_http

VERIFIER_BYTES = 32
LONGEST_TOKEN = 512
_CODE = re.compile(r"[A-Za-z0-9\-._~]{1,512}", re.ASCII)
_QUOTES = "\"'`<>"


class PkceAttempt(Secretive, frozen=True):
    """One try to sign in: ``url`` is for the browser, ``verifier`` stays here."""

    secret_fields: ClassVar[frozenset[str]] = frozenset({"verifier"})

    verifier: str
    url: str


def begin_pkce(
    settings: PixivSettings, random_bytes: Callable[[int], bytes] = secrets.token_bytes
) -> PkceAttempt:
    """Start a try to sign in."""
    verifier = _unpadded(random_bytes(VERIFIER_BYTES))
    query = urlencode(
        {
            "code_challenge": _unpadded(hashlib.sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
            "client": "pixiv-android",
        }
    )
    return PkceAttempt(verifier, f"{settings.api_url.rstrip('/')}/web/v1/login?{query}")


def _unpadded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def code_from(pasted: str) -> str:
    """Return the code in what the user pasted: the code itself, its query, or a whole address of either form.

    Raises ValueError, whose text never repeats what was pasted.
    """
    text = pasted.strip().strip(_QUOTES).strip()
    code = text
    if "=" in text or "?" in text:
        query = text.partition("?")[2] or text
        code = parse_qs(query.partition("#")[0]).get("code", [""])[0]
    if not _CODE.fullmatch(code):
        raise ValueError(
            "no code found in what was pasted: expected the code itself, or the whole address that starts with"
            " pixiv://account/login?code=... or https://app-api.pixiv.net/web/v1/users/auth/pixiv/callback?..."
        )
    return code


def clean_refresh_token(text: str) -> str:
    """Return the token without what surrounds it. Raises ValueError, which never shows the token."""
    token = text.strip().strip("\"'").strip()
    if not token:
        raise ValueError("the refresh token is empty")
    if len(token) > LONGEST_TOKEN or not oauth.TOKEN.fullmatch(token):
        raise ValueError(
            "this is no refresh token: expected one line of letters, digits and the signs - . _ ~ + / ="
            f" of at most {LONGEST_TOKEN} characters"
        )
    return token


async def exchange_code(
    code: str,
    attempt: PkceAttempt,
    settings: PixivSettings,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
) -> oauth.TokenAnswer:
    """Trade the code for tokens; a code works once, within about 30 seconds.

    Raises AuthFailed when Pixiv refuses the code, another Outage when the way is disturbed.
    """
    now_ms = SystemWall().now_ms()
    request = oauth.code_request(code, attempt.verifier, settings, now_ms)
    async with open_http(settings.proxy, settings.timeout_s, transport) as http:
        return await oauth.ask(request, http, settings, now_ms)


async def try_refresh(
    refresh_token: str, settings: PixivSettings, *, transport: httpx.AsyncBaseTransport | None = None
) -> oauth.TokenAnswer:
    """Refresh once with a token the user gave; the answer holds the refresh token to store.

    Raises AuthFailed when Pixiv refuses the token, another Outage when the way is disturbed.
    """
    now_ms = SystemWall().now_ms()
    request = oauth.refresh_request(refresh_token, settings, now_ms)
    async with open_http(settings.proxy, settings.timeout_s, transport) as http:
        return await oauth.ask(request, http, settings, now_ms)
