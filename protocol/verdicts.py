"""What a route's answer means for an intent."""

from enum import StrEnum

import msgspec


class VerdictKind(StrEnum):
    """The six things an answer can come to."""

    ACCEPTED = "accepted"
    """The receiver took it now."""
    REPLAYED = "replayed"
    """The receiver had taken this very key before."""
    DUPLICATE = "duplicate"
    """The receiver has the work from elsewhere and did not post it again."""
    RETRY = "retry"
    REJECTED = "rejected"
    """It will never be taken; asking again is pointless."""
    UNCERTAIN = "uncertain"
    """It may or may not have been posted, and the route can't tell."""


class Verdict(msgspec.Struct, frozen=True):
    """A verdict with what the settlement needs to know."""

    kind: VerdictKind
    remote_id: str | None = None
    error_class: str | None = None
    """A short machine word for the failure, such as ``http_503`` or ``connect``; None on success."""
    detail: str = ""
    """One line for a person; no secrets."""
    retry_after_s: float | None = None
    spends_attempt: bool = False
    """Whether the failure is about this row, and not about the way to the receiver."""
    feeds_breaker: bool = False
    """Whether the failure speaks against the route as a whole."""
    pauses_route: bool = False
    """401, 403, 404: nothing on this route can succeed before somebody acts."""
