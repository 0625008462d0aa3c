"""What a scan came to, work by work: stored as JSON with the cell and shown to a person."""

from enum import StrEnum

import msgspec

REFUSALS_KEPT = 40
"""Refusals by facts of the list that a report names; the others are only counted."""


class SkipCode(StrEnum):
    """Why a candidate was passed over for good."""

    DUPLICATE = "duplicate"
    DELETED = "deleted"
    ACCESS_DENIED = "access_denied"
    RESTRICTED = "restricted"
    UNSUPPORTED_MEDIA = "unsupported_media"
    INVALID_METADATA = "invalid_metadata"
    FILTERED = "filtered"


class Ended(StrEnum):
    """What ended a scan."""

    TAKEN = "taken"
    LOST = "lost"
    SOURCE_END = "source_end"
    SCAN_LIMIT = "scan_limit"
    LISTED_LIMIT = "listed_limit"
    OUTAGE = "outage"


class Skipped(msgspec.Struct, frozen=True):
    """A candidate that was passed over, and why."""

    work: str
    """``illustration:123``, or the source (``artist:123``) where the verdict is about no work."""
    code: SkipCode
    detail: str = ""


class Unavailable(msgspec.Struct, frozen=True):
    """A candidate that could not be had this time; another time it may."""

    work: str
    detail: str


class ScanReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """The count of a scan. ``listed`` = skipped + more + unavailable + the one taken, lost or cut off by an outage."""

    attempted: int = 0
    """Candidates that passed the filters: those that the scan limit counts."""
    skipped: tuple[Skipped, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()
    outage: str | None = None
    """Why the source could not be read to its end; None when it could."""
    listed: int = 0
    """Candidates seen, each work once."""
    more: dict[SkipCode, int] = {}
    """Skipped candidates that are counted but not named, by code."""
    ended: Ended = Ended.SOURCE_END
    unreadable: int = 0
    """Entries of the lists that could not be read; they are not among ``listed``."""

    def count(self, *codes: SkipCode) -> int:
        """How many candidates were skipped with one of these codes."""
        named = sum(1 for skip in self.skipped if skip.code in codes)
        return named + sum(self.more.get(code, 0) for code in codes)


class Tally:
    """Counts while a scan runs; it belongs to that one scan."""

    def __init__(self) -> None:
        self.listed = 0
        self.attempted = 0
        self._skipped: list[Skipped] = []
        self._unavailable: list[Unavailable] = []
        self._more: dict[SkipCode, int] = {}
        self._refusals = 0

    def refuse(self, work: str, code: SkipCode, detail: str) -> None:
        """Count a candidate that facts of the list refused; beyond the first ones without its name."""
        self._refusals += 1
        if self._refusals > REFUSALS_KEPT:
            self._more[code] = self._more.get(code, 0) + 1
        else:
            self._skipped.append(Skipped(work, code, detail))

    def skip(self, work: str, code: SkipCode, detail: str) -> None:
        """Count a definite verdict about an attempted candidate."""
        self._skipped.append(Skipped(work, code, detail))

    def unavailable(self, work: str, detail: str) -> None:
        """Count an attempted candidate that may be had another time."""
        self._unavailable.append(Unavailable(work, detail))

    def report(self, ended: Ended, *, unreadable: int = 0, outage: str | None = None) -> ScanReport:
        """Sum up what was counted so far."""
        return ScanReport(
            attempted=self.attempted,
            skipped=tuple(self._skipped),
            unavailable=tuple(self._unavailable),
            outage=outage,
            listed=self.listed,
            more=dict(self._more),
            ended=ended,
            unreadable=unreadable,
        )
