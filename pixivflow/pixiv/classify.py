"""What an answer that is not a success means, by status and envelope; pure."""

from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import msgspec

from pixivflow.pixiv.errors import (
    AccessDenied,
    AccessTokenRefused,
    AuthFailed,
    NotFound,
    PixivError,
    RateLimited,
    RequestRefused,
    ServerFailed,
)

OAUTH_SENTENCE = "error occurred at the oauth process"
LONGEST_PAUSE_S = 86_400.0
_TEXT_LIMIT = 160


class Fault(msgspec.Struct, frozen=True):
    """The two texts of Pixiv's error envelope: for machines, and for people in the account's language."""

    message: str = ""
    user_message: str = ""


def classify(
    status: int, content_type: str, body: bytes, *, retry_after_s: float | None = None
) -> PixivError:
    """Return the error that an answer stands for. The texts never hold what the request carried."""
    fault = read_fault(body)
    if status == HTTPStatus.TOO_MANY_REQUESTS or (
        fault is not None and "rate limit" in fault.message.lower()
    ):
        return RateLimited(f"Pixiv asks for a pause (answer {status})", retry_after_s=retry_after_s)
    if fault is None:
        return _without_envelope(status, is_html(content_type, body))
    return _with_envelope(status, fault)


def read_fault(body: bytes) -> Fault | None:
    """Return the error envelope of ``body``; None when there is none."""
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not isinstance(answer, dict) or not answer.get("error"):
        return None
    inner: Any = answer["error"] if isinstance(answer["error"], dict) else answer
    return Fault(_text(inner.get("message")), _text(inner.get("user_message")))


def is_client_error(status: int) -> bool:
    """Whether the status is one of the 4xx."""
    return HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR


def is_html(content_type: str, body: bytes) -> bool:
    """Whether the answer is a page for people."""
    return "html" in content_type.lower() or body.lstrip()[:1] == b"<"


def parse_retry_after(value: str | None, now_ms: int) -> float | None:
    """Return the seconds a ``Retry-After`` header asks for, at most a day; None when it says nothing usable."""
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return min(float(value), LONGEST_PAUSE_S)
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return min(max(0.0, until.timestamp() - now_ms / 1000), LONGEST_PAUSE_S)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _without_envelope(status: int, html: bool) -> PixivError:
    if html:
        return ServerFailed(
            f"answer {status} is an HTML page, not JSON: a challenge page or a blocked route, not bad"
            " credentials; check the network and the proxy",
            blocked=status < HTTPStatus.INTERNAL_SERVER_ERROR,
        )
    if status in {HTTPStatus.NOT_FOUND, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE}:
        return RequestRefused(f"answer {status} without Pixiv's error envelope", status=status)
    return ServerFailed(f"answer {status} without a readable JSON body")


def _with_envelope(status: int, fault: Fault) -> PixivError:
    if status == HTTPStatus.BAD_REQUEST and OAUTH_SENTENCE in fault.message.lower():
        return AccessTokenRefused("Pixiv does not take the access token")
    if status == HTTPStatus.UNAUTHORIZED:
        return AuthFailed("Pixiv does not take the credentials (answer 401)")
    if status == HTTPStatus.FORBIDDEN:
        return AccessDenied("Pixiv withholds this from the account (answer 403)")
    if status == HTTPStatus.NOT_FOUND:
        return _not_found(fault)
    if not is_client_error(status) or status == HTTPStatus.REQUEST_TIMEOUT:
        return ServerFailed(f"Pixiv answers {status} with an error: {_short(fault.message) or 'no text'}")
    return _refused(status, fault)


def _not_found(fault: Fault) -> PixivError:
    # A retired endpoint must not make every work look deleted.
    if "end-point" in (fault.message + fault.user_message).lower():
        return RequestRefused("Pixiv does not know this endpoint (any more)", status=404)
    return NotFound("Pixiv says it does not exist (answer 404)", status=404)


def _refused(status: int, fault: Fault) -> RequestRefused:
    """Read the validation texts that Pixiv packs as JSON into a string."""
    try:
        texts = msgspec.json.decode(fault.message, type=dict[str, list[str]])
    except msgspec.DecodeError:
        return RequestRefused(
            f"Pixiv refuses the request (answer {status}): {_short(fault.message) or 'no text'}",
            status=status,
        )
    said = "; ".join(f"{name}: {', '.join(lines)}" for name, lines in texts.items())
    return RequestRefused(
        f"Pixiv refuses the request: {_short(said)}", status=status, parameters=tuple(texts)
    )


def _short(text: str) -> str:
    return text[:_TEXT_LIMIT]
