"""Faults on request: which request goes wrong, and how.

===============  ==========================================================================================
status           answer ``status`` with Pixiv's envelope, an HTML page for 5xx, or ``body``
rate_limit       "Rate Limit": ``status`` if 4xx, else 403 from the API and 429 from everybody else
html             a bot wall's HTML page: ``status``, 403 unless set
delay            wait ``delay_s``, then answer as usual (every other kind waits too when it is set)
hang             never answer; ends when the client leaves or the server closes
reset            close the connection hard, without an answer
truncate         announce the full length, send half of the body (or ``keep_bytes``), close
stall            the same, but keep the connection open and silent
corrupt          the usual answer with the second half of its body (or all after ``keep_bytes``) zeroed
wrong_type       the usual answer, announced as ``text/html``
repeat_cursor    a list whose ``next_url`` is the request's own address
empty_page       a list without works that keeps its ``next_url``
repeat_work      a list that ends with its first work once more
sparse           works without optional fields, and with a user whose id is null
extra_fields     works and answer with keys that nobody knows
expire_token     the access token of the request ends now, so this request is refused by the bearer check
refuse_refresh   the token endpoint says that the refresh token is invalid
lose_answer      the request takes effect, then the connection closes without an answer
conflict         the receiver answers 409 and stores nothing
not_ready        the receiver's ``/ready`` answers 503
===============  ==========================================================================================
"""

from typing import Literal

import msgspec

DEFAULT_STATUS = 500

FaultKind = Literal[
    "status", "rate_limit", "html", "delay", "hang", "reset", "truncate", "stall", "corrupt", "wrong_type",
    "repeat_cursor", "empty_page", "repeat_work", "sparse", "extra_fields",
    "expire_token", "refuse_refresh", "lose_answer", "conflict", "not_ready",
]  # fmt: skip


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One fault; the module's docstring lists the kinds.

    ``match`` is a prefix of the path. The first ``skip`` matching requests pass, then ``times`` requests
    (None: all) are hit.
    """

    match: str
    kind: FaultKind
    times: int | None = 1
    skip: int = 0
    status: int = DEFAULT_STATUS
    delay_s: float = 0.0
    retry_after: str | None = None
    keep_bytes: int | None = None
    message: str = ""
    user_message: str = ""
    body: str | None = None
    media_type: str = "application/json"
    method: str | None = None


class Faults:
    """The faults in force, oldest first; a request meets the first one that is due."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    @property
    def active(self) -> tuple[Fault, ...]:
        """What is still to come, with the remaining counts."""
        return tuple(self._faults)

    def add(self, fault: Fault) -> None:
        """Put a fault in force."""
        self._faults.append(fault)

    def clear(self) -> None:
        """End all faults; answers that hang already keep hanging."""
        self._faults.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """Give the fault that this request meets; counts it."""
        hit: Fault | None = None
        kept: list[Fault] = []
        for fault in self._faults:
            left: Fault | None = fault
            if path.startswith(fault.match) and fault.method in (None, method):
                if fault.skip > 0:
                    left = msgspec.structs.replace(fault, skip=fault.skip - 1)
                elif hit is None:
                    hit, left = fault, _spent(fault)
            if left is not None:
                kept.append(left)
        self._faults = kept
        return hit


def _spent(fault: Fault) -> Fault | None:
    if fault.times is None:
        return fault
    return msgspec.structs.replace(fault, times=fault.times - 1) if fault.times > 1 else None
