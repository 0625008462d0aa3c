"""What an answer, or its absence, means for a delivery.

Classes come from status codes, business words and types of errors; never from digits or words inside a text.
"""

import errno
import os
import socket
import ssl
from collections.abc import Iterator, Mapping

import httpx
import msgspec
import trio

from pixivflow.delivery.answers import (
    GENERIC_FAILURES,
    MAX_TEXT,
    WORDS,
    Answer,
    decoded,
    parse_answer,
    plain_answer,
)
from pixivflow.delivery.retry_after import retry_after
from pixivflow.delivery.wording import one_line
from protocol.verdicts import Verdict, VerdictKind

PAUSING = frozenset({401, 403, 404, 405, 407})
"""Statuses under which nothing on the route can succeed before somebody acts on its settings."""

CREDENTIALS = frozenset({401, 407})
"""Statuses about who asks, not about the work: under them no word refuses it."""

CONFLICT, TOO_LARGE, TOO_MANY, UNAVAILABLE = 409, 413, 429, 503
_SUCCESS, _REDIRECT, _CLIENT = 2, 3, 4
_RETRIED = frozenset({408, CONFLICT, 425, TOO_MANY})
"""4xx that say "not now". A 409 without a word is about our own key, which may still be in work."""

_NOT_SENT: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str, str], ...] = (
    (socket.gaierror, "name_resolution", "the receiver's name could not be resolved; check url and DNS"),
    (ssl.SSLError, "tls", "no TLS connection{because}; check certificate and url"),
    (httpx.ProxyError, "proxy", "the proxy did not connect; check the proxy of the route"),
    (httpx.ConnectTimeout, "connect_timeout", "no connection in time; check address and network"),
    (httpx.ConnectError, "connect", "no connection{because}; is the receiver running?"),
    (
        (trio.TooSlowError, httpx.TimeoutException),
        "upload_timeout",
        "the request was not complete before the deadline; raise the timeout if files are large",
    ),
    (
        (httpx.NetworkError, httpx.RemoteProtocolError),
        "upload_broken",
        "the connection ended before the request was complete{because}",
    ),
)
"""What the first matching type among an error and its causes says, in this order."""


def read_answer(
    status: int, headers: Mapping[str, str], body: bytes, *, now_ms: int | None = None
) -> Verdict:
    """Return what an answer means; a business word in its JSON outranks the status.

    ``now_ms`` is the wall clock, for a Retry-After that is a date in an answer without a Date of its own.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    body = decoded(body, lowered.get("content-encoding", ""))
    answer = parse_answer(body)
    said = one_line((answer.text if answer else "") or plain_answer(body), MAX_TEXT)
    verdict = _by_status(status)
    if answer is not None:
        verdict = _by_word(verdict, status, answer)
    details = [
        f"HTTP {status}",
        *([answer.word] if answer and answer.word else []),
        *([said] if said else []),
    ]
    if verdict.error_class == "redirect":
        details.append("redirects are not followed; configure the final address")
    return msgspec.structs.replace(
        verdict,
        detail=one_line(": ".join(details)),
        retry_after_s=retry_after(lowered, now_ms) if verdict.kind is VerdictKind.RETRY else None,
    )


def _by_status(status: int) -> Verdict:
    code = f"http_{status}"
    redirect = _family(status) == _REDIRECT
    pauses = redirect or status in PAUSING
    if _family(status) == _SUCCESS:
        return Verdict(VerdictKind.ACCEPTED)
    if _family(status) == _CLIENT and not pauses and status not in _RETRIED:
        known = "payload_too_large" if status == TOO_LARGE else code
        return Verdict(VerdictKind.REJECTED, error_class=known)
    spends = not pauses and status not in (TOO_MANY, UNAVAILABLE)
    return Verdict(
        VerdictKind.RETRY,
        error_class="redirect" if redirect else code,
        spends_attempt=spends,
        feeds_breaker=status == UNAVAILABLE or (spends and status != CONFLICT),
        pauses_route=pauses,
    )


def _family(status: int) -> int:
    return status // 100


def _by_word(verdict: Verdict, status: int, answer: Answer) -> Verdict:
    """Let the business word of ``answer`` correct what the status alone means."""
    word = answer.word
    kind = verdict.kind if word is None else WORDS.get(word)
    if kind is VerdictKind.ACCEPTED:
        kind = answer.flagged or kind
    match kind:
        case None:
            return _unknown_word(verdict, word in GENERIC_FAILURES)
        case VerdictKind.ACCEPTED | VerdictKind.REPLAYED | VerdictKind.DUPLICATE:
            return Verdict(kind, remote_id=answer.named_id)
        case VerdictKind.REJECTED if word is not None and status not in CREDENTIALS:
            known = "payload_too_large" if status == TOO_LARGE else "answer_rejected"
            return Verdict(kind, error_class=known)
        case VerdictKind.RETRY if word is not None and status not in (TOO_MANY, UNAVAILABLE, *CREDENTIALS):
            return Verdict(kind, error_class="answer_processing", spends_attempt=True)
        case _:
            return verdict


def _unknown_word(verdict: Verdict, generic: bool) -> Verdict:
    """Take a word we don't know for no end; a mere "error" leaves a failing status as it is."""
    if verdict.kind is VerdictKind.RETRY or (generic and verdict.kind is VerdictKind.REJECTED):
        return verdict
    error_class = "answer_failed" if generic else "answer_unknown"
    return Verdict(VerdictKind.RETRY, error_class=error_class, spends_attempt=True)


def from_failure(exc: BaseException, request_written: bool) -> Verdict:
    """Return what it means that no answer came; ``request_written``: the receiver may have the whole request.

    Before that it is a fault of the way there and spends nothing; after it, only silence is known.
    """
    if isinstance(exc, httpx.LocalProtocolError | httpx.UnsupportedProtocol | httpx.InvalidURL):
        return Verdict(
            VerdictKind.RETRY,
            error_class="configuration",
            detail="the request could not be written; check url, headers and proxy of the route",
            pauses_route=True,
        )
    if request_written:
        error_class, detail = _silence(exc)
    else:
        error_class, detail = _not_sent(exc)
    return Verdict(
        VerdictKind.RETRY,
        error_class=error_class,
        detail=detail,
        spends_attempt=request_written,
        feeds_breaker=True,
    )


def _silence(exc: BaseException) -> tuple[str, str]:
    if isinstance(exc, trio.TooSlowError | httpx.TimeoutException):
        return "answer_timeout", "no answer before the deadline; the same key is sent again"
    return (
        "answer_lost",
        f"the connection ended without a whole answer{_because(exc)}; the same key is sent again",
    )


def _not_sent(exc: BaseException) -> tuple[str, str]:
    causes = tuple(_causes(exc))
    for types, error_class, text in _NOT_SENT:
        if any(isinstance(cause, types) for cause in causes):
            return error_class, text.format(because=_because(exc))
    return "proxy", "no connection through the proxy; check the proxy of the route"


def _because(exc: BaseException) -> str:
    """Name the cause by its type and number; texts of errors may hold addresses."""
    for cause in _causes(exc):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f" ({getattr(cause, 'verify_message', 'certificate not trusted')})"
        if isinstance(cause, OSError) and cause.errno is not None and cause.errno in errno.errorcode:
            return f" ({os.strerror(cause.errno)})"
    return ""


def _causes(exc: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting = [exc]
    while waiting:
        here = waiting.pop(0)
        if id(here) in seen:
            continue
        seen.add(id(here))
        yield here
        if isinstance(here, BaseExceptionGroup):
            waiting.extend(here.exceptions)
        waiting.extend(cause for cause in (here.__cause__, here.__context__) if cause is not None)
