"""The idempotency key: the name by which a receiver knows a message in every attempt."""

import hashlib
from urllib.parse import quote

from protocol.works import WorkRef

_HEADER_SAFE = ":@/+=,;!*()~"


def idempotency_key(route: str, work: WorkRef, slot_id: str | None, target_id: str) -> str:
    """Return ``pixivflow:<route>:<kind>:<work>:<slot>:<target>``, or ``...:adhoc`` for a work without a slot."""
    origin = "adhoc" if slot_id is None else f"{slot_id}:{target_id}"
    return f"pixivflow:{route}:{work}:{origin}"


def header_value(key: str) -> str:
    """Return the key as a header may carry it: itself, with anything outside plain ASCII percent-encoded."""
    return quote(key, safe=_HEADER_SAFE)


def key_digest(key: str) -> str:
    """Return 32 hexadecimal digits that stand for the key in a file name."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]
