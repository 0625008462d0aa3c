"""From a route's verdict to what is written: pure."""

import random

import msgspec

from pixivflow.backoff import retry_delay
from pixivflow.ledger.outbox import ClaimedRow, Postponed, Settled, Settlement
from protocol.reasons import Reason
from protocol.states import IntentStatus
from protocol.verdicts import Verdict, VerdictKind


class RetryTerms(msgspec.Struct, frozen=True):
    """How a route's failed sends are repeated; seconds."""

    base_s: float
    cap_s: float


def settlement_of(
    row: ClaimedRow, verdict: Verdict, terms: RetryTerms, now: int, rng: random.Random, *, breaker_open: bool
) -> Settlement:
    """Decide what a verdict writes. No attempt is spent while the route's breaker is open."""
    match verdict.kind:
        case VerdictKind.ACCEPTED | VerdictKind.REPLAYED:
            return Settled(IntentStatus.DELIVERED, remote_id=verdict.remote_id, detail=verdict.detail)
        case VerdictKind.DUPLICATE:
            return Settled(IntentStatus.DUPLICATE, remote_id=verdict.remote_id, detail=verdict.detail)
        case VerdictKind.REJECTED:
            reason = (
                Reason.PAYLOAD_TOO_LARGE
                if verdict.error_class == "payload_too_large"
                else Reason.DELIVERY_REJECTED
            )
            return _dead(reason, verdict, spends=True)
        case VerdictKind.RETRY | VerdictKind.UNCERTAIN:  # every route of this release knows a repeated key
            return _retry(row, verdict, terms, now, rng, spends=verdict.spends_attempt and not breaker_open)


def _retry(
    row: ClaimedRow, verdict: Verdict, terms: RetryTerms, now: int, rng: random.Random, *, spends: bool
) -> Settlement:
    if spends and row.attempts + 1 >= row.max_attempts:
        return _dead(Reason.DELIVERY_FAILED, verdict, spends=True)
    delay = retry_delay(row.attempts, terms.base_s, terms.cap_s, rng, at_least_s=verdict.retry_after_s or 0.0)
    return Postponed(now + round(delay * 1000), spends, verdict.error_class, verdict.detail)


def _dead(reason: Reason, verdict: Verdict, *, spends: bool) -> Settled:
    return Settled(
        IntentStatus.FAILED, reason, error_class=verdict.error_class, detail=verdict.detail, spends=spends
    )
