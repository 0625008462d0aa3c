"""What a failed run means for its cell: reason, whether to try again, whether it spends an attempt. Pure."""

from typing import Final

import msgspec

from pixivflow.delivery.templates import TemplateRefused as FieldTemplateRefused
from pixivflow.download.errors import (
    DiskFull,
    DownloadError,
    IntegrityFailed,
    PathRefused,
)
from pixivflow.download.templates import TemplateRefused as PathTemplateRefused
from pixivflow.ledger.files import PathTaken
from pixivflow.pixiv.errors import (
    AccessDenied,
    AuthFailed,
    NetworkFailed,
    PixivError,
    RateLimited,
    ServerFailed,
    WorkUnavailable,
)
from protocol.reasons import Reason

COOLDOWN_S: Final = 60.0


class LeaseGone(Exception):
    """The lease is stale or about to end: the holder writes nothing more."""


class Failure(msgspec.Struct, frozen=True):
    """A verdict on a run's exception. ``cooldown_s`` keeps the whole account waiting."""

    reason: Reason
    text: str
    retryable: bool = True
    spends: bool = True
    cooldown_s: float | None = None
    logged_out: bool = False


def failure_of(error: Exception) -> Failure:
    """Judge an exception by its type alone."""
    text = str(error) or type(error).__name__
    match error:
        case RateLimited(retry_after_s=after):
            return Failure(Reason.RATE_LIMITED, text, spends=False, cooldown_s=max(COOLDOWN_S, after or 0.0))
        case AuthFailed():
            denied = isinstance(error, AccessDenied)  # about what was asked for; a new login is no help
            return Failure(Reason.AUTH_FAILED, text, spends=denied, logged_out=not denied)
        case WorkUnavailable():
            return Failure(Reason.LOCKED_WORK_UNAVAILABLE, text, retryable=False)
        case PathTaken() | PathRefused() | PathTemplateRefused() | FieldTemplateRefused():
            return Failure(Reason.CONFIGURATION_ERROR, text, retryable=False)
        case _:
            return Failure(_passing_reason(error), text)


_PASSING: Final[tuple[tuple[type[Exception], Reason], ...]] = (
    (NetworkFailed, Reason.NETWORK_ERROR),
    (ServerFailed, Reason.REMOTE_HTTP_ERROR),
    (PixivError, Reason.METADATA_FAILED),
    (DiskFull, Reason.DISK_FULL),
    (IntegrityFailed, Reason.INTEGRITY_FAILED),
    (DownloadError, Reason.DOWNLOAD_FAILED),
)


def _passing_reason(error: Exception) -> Reason:
    return next((reason for kind, reason in _PASSING if isinstance(error, kind)), Reason.INTERNAL_ERROR)
