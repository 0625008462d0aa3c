"""What a receiver's answer says for itself: its business word, its id, its text."""

import zlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from protocol.verdicts import VerdictKind

MAX_TEXT = 200
MAX_ANSWER = 256 * 1024
"""So many bytes of an answer are read."""
MAX_REMOTE_ID = 200
_BOM = b"\xef\xbb\xbf"

WORDS: Mapping[str, VerdictKind] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "accepted", "created", "queued", "enqueued", "ok", "success", "succeeded", "done", "completed",
                "submitted", "scheduled", "posted", "published", "delivered", "stored", "received",
            ),
            VerdictKind.ACCEPTED,
        ),
        **dict.fromkeys(
            ("replayed", "replay", "already_accepted", "already_processed", "already_submitted"),
            VerdictKind.REPLAYED,
        ),
        **dict.fromkeys(
            ("duplicate", "duplicated", "historical_duplicate", "reused", "already_exists"), VerdictKind.DUPLICATE
        ),
        **dict.fromkeys(
            ("rejected", "refused", "denied", "invalid", "unsupported", "conflict"), VerdictKind.REJECTED
        ),
        **dict.fromkeys(
            ("processing", "pending", "in_progress", "running", "busy", "locked", "retry", "retry_later"),
            VerdictKind.RETRY,
        ),
    }
)  # fmt: skip
"""The business words that are understood, after `normal`."""

GENERIC_FAILURES = frozenset({"error", "fail", "failed", "failure"})
"""Words that add nothing to a status code that is itself a failure."""


class Answer(msgspec.Struct, frozen=True):
    """The members of a JSON answer that mean something here; all others are ignored."""

    status: Any = None
    replayed: Any = None
    duplicate: Any = None
    reused: Any = None
    id: Any = None
    remote_id: Any = None
    submission_id: Any = None
    post_id: Any = None
    message_id: Any = None
    message: Any = None
    detail: Any = None
    reason: Any = None
    error: Any = None

    @property
    def word(self) -> str | None:
        """The business word in its normal form; None if there is none (a number is no word)."""
        return (normal(self.status) or None) if isinstance(self.status, str) else None

    @property
    def flagged(self) -> VerdictKind | None:
        """What the yes/no members say beside a success."""
        if self.duplicate is True or self.reused is True:
            return VerdictKind.DUPLICATE
        return VerdictKind.REPLAYED if self.replayed is True else None

    @property
    def named_id(self) -> str | None:
        """The receiver's own name for what it took."""
        for value in (self.remote_id, self.submission_id, self.post_id, self.message_id, self.id):
            if isinstance(value, int | str) and not isinstance(value, bool) and value != "":
                return str(value)[:MAX_REMOTE_ID]
        return None

    @property
    def text(self) -> str:
        """What it says to a person."""
        said = (self.message, self.detail, self.reason, self.error)
        return next((text for text in said if isinstance(text, str) and text.strip()), "")


def normal(word: str) -> str:
    """Return a word in lower case with ``_`` between its parts."""
    return "_".join(word.casefold().replace("-", " ").replace("_", " ").split())[:MAX_TEXT]


def parse_answer(body: bytes) -> Answer | None:
    """Return the members of a JSON object; None for anything else."""
    try:
        return msgspec.json.decode(body.removeprefix(_BOM), type=Answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def decoded(body: bytes, encoding: str) -> bytes:
    """Undo a compression that was not asked for, within `MAX_ANSWER` bytes; what can't be undone stays."""
    if encoding.strip().lower() not in {"gzip", "x-gzip", "deflate"}:
        return body
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, MAX_ANSWER)
    except zlib.error:
        return body


def plain_answer(body: bytes) -> str:
    """Return what an answer that is not JSON says, for a person; nothing of a web page."""
    text = body[: MAX_TEXT * 4].decode("utf-8", "replace").strip()
    return "" if text.startswith(("<", "{", "[")) else text[:MAX_TEXT]
