"""The scan: candidates one by one, until one is bound.

What counts as an attempt: ``scan_limit`` (at least 1) bounds the candidates that cost something, a request or a
binding. A candidate that the list's own facts refuse (``filtered``, ``restricted``, ``unsupported_media``,
``invalid_metadata``), or that the ledger knows as posted or stored, costs neither and is no attempt: else a channel
on a quiet tag would end after five days, with unposted works further down the list. Such candidates are bounded by
``LISTED_LIMIT`` and by the page limit of the walk. Duplicates that ``take`` finds and deleted works are attempts:
with ``scan_limit = 3`` the scan stops at the third.
"""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import NamedTuple

import msgspec
import trio

from pixivflow.pixiv.errors import Outage, WorkRestricted, WorkUnavailable
from pixivflow.pixiv.models import Illust
from pixivflow.selection.candidates import Candidates
from pixivflow.selection.errors import CandidateUnavailable, NotPublishedYet, ScanInterrupted
from pixivflow.selection.filters import refusal
from pixivflow.selection.outcome import is_retryable, reason_of
from pixivflow.selection.report import Ended, ScanReport, SkipCode, Skipped, Tally, Unavailable
from protocol.reasons import Reason
from protocol.specs import CellSpec, Source

__all__ = [
    "LISTED_LIMIT",
    "Chosen",
    "Ended",
    "Lost",
    "Nothing",
    "ScanReport",
    "SkipCode",
    "Skipped",
    "TakeAnswer",
    "Unavailable",
    "scan",
]

LISTED_LIMIT = 300
"""Candidates looked at in one scan, whatever becomes of them."""

AlreadyHad = Callable[[Illust], Awaitable[bool]]


class TakeAnswer(StrEnum):
    """What the attempt to bind a candidate came to."""

    TAKEN_BY_US = "bound"
    DUPLICATE = "taken"
    LOST = "lost"


Take = Callable[[Illust], Awaitable[TakeAnswer]]


class Chosen(msgspec.Struct, frozen=True):
    """The cell owns this work now."""

    illust: Illust
    report: ScanReport


class Nothing(msgspec.Struct, frozen=True):
    """No candidate was bound."""

    reason: Reason
    report: ScanReport
    retryable: bool


class _Questions(NamedTuple):
    already_had: AlreadyHad
    take: Take


class Lost(msgspec.Struct, frozen=True):
    """The cell owns another work than the one tried: nothing of this scan may be used."""

    report: ScanReport


async def scan(
    candidates: Candidates,
    spec: CellSpec,
    *,
    now_ms: int,
    already_had: AlreadyHad,
    take: Take,
) -> Chosen | Nothing | Lost:
    """Try candidates until ``take`` binds one, the bounds are reached, or the source ends.

    A ranking that is not published yet ends as a retryable Nothing whose report has the text as ``outage``.
    Raises ScanInterrupted for an Outage of Pixiv. Everything else passes through unchanged:
    PaginationError, RequestRefused, what the ledger raises in ``already_had`` and ``take``.
    A verdict (WorkUnavailable) or CandidateUnavailable raised by these two is about their candidate.
    """
    await trio.lowlevel.checkpoint()
    tally = Tally()
    try:
        ended, illust = await _walk(candidates, spec, now_ms, tally, _Questions(already_had, take))
    except NotPublishedYet as early:
        return _nothing(tally.report(Ended.OUTAGE, unreadable=candidates.unreadable, outage=str(early)))
    except Outage as outage:
        text = f"{type(outage).__name__}: {outage}"
        report = tally.report(Ended.OUTAGE, unreadable=candidates.unreadable, outage=text)
        raise ScanInterrupted(report, outage) from outage
    report = tally.report(ended, unreadable=candidates.unreadable)
    if ended is Ended.LOST:
        return Lost(report)
    return _nothing(report) if illust is None else Chosen(illust, report)


async def _walk(
    candidates: Candidates, spec: CellSpec, now_ms: int, tally: Tally, ask: _Questions
) -> tuple[Ended, Illust | None]:
    """Go through the candidates; a work comes with TAKEN only."""
    await trio.lowlevel.checkpoint()
    limit = max(spec.scan_limit, 1)
    while tally.attempted < limit and tally.listed < LISTED_LIMIT:
        try:
            illust = await candidates.next()
        except WorkUnavailable as verdict:
            _count_source_verdict(tally, spec.source, verdict)
            return Ended.SOURCE_END, None
        if illust is None:
            return Ended.SOURCE_END, None
        tally.listed += 1
        if refused := refusal(illust, spec.filters, now_ms):
            tally.refuse(str(illust.ref), refused.code, refused.detail)
            continue
        answer = await _try(illust, tally, ask)
        if answer is TakeAnswer.TAKEN_BY_US:
            return Ended.TAKEN, illust
        if answer is TakeAnswer.LOST:
            return Ended.LOST, None
    return Ended.SCAN_LIMIT if tally.attempted >= limit else Ended.LISTED_LIMIT, None


async def _try(illust: Illust, tally: Tally, ask: _Questions) -> TakeAnswer | None:
    """Attempt one candidate; None when it was passed over and counted."""
    await trio.lowlevel.checkpoint()
    work = str(illust.ref)
    try:
        if await ask.already_had(illust):
            tally.refuse(work, SkipCode.DUPLICATE, "posted or stored before")
            return None
        tally.attempted += 1
        answer = await ask.take(illust)
        if answer is not TakeAnswer.DUPLICATE:
            return answer
        tally.skip(work, SkipCode.DUPLICATE, "held by another cell or job")
    except WorkUnavailable as verdict:
        tally.skip(work, _code_of(verdict), str(verdict))
    except CandidateUnavailable as passing:
        tally.unavailable(work, str(passing))
    return None


def _count_source_verdict(tally: Tally, source: Source, verdict: WorkUnavailable) -> None:
    """Count a verdict while listing: it is about the named work, or about the artist who is gone."""
    names = {"work": f"illustration:{source.work}", "artist": f"artist:{source.artist_id}"}
    tally.listed += 1
    tally.attempted += 1
    tally.skip(names.get(source.mode, source.mode), _code_of(verdict), str(verdict))


def _code_of(verdict: WorkUnavailable) -> SkipCode:
    return SkipCode.RESTRICTED if isinstance(verdict, WorkRestricted) else SkipCode.DELETED


def _nothing(report: ScanReport) -> Nothing:
    return Nothing(reason_of(report), report, is_retryable(report))
