"""The Retry-After header: seconds, or a date."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_S = 86_400.0
_MAX_DIGITS = 12


def retry_after(headers: Mapping[str, str], now_ms: int | None = None) -> float | None:
    """Return the seconds to wait, at most 24 h; None where the header is missing or can't be read.

    ``headers`` have lower-case names. A date is measured from the answer's own Date, else from ``now_ms``.
    """
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return min(LONGEST_S, float(text[:_MAX_DIGITS]))
    until = _instant(text)
    since = _instant(headers.get("date", ""))
    if since is None and now_ms is not None:
        since = datetime.fromtimestamp(now_ms / 1000, UTC)
    if until is None or since is None:
        return None
    return min(LONGEST_S, max(0.0, (until - since).total_seconds()))


def _instant(text: str) -> datetime | None:
    try:
        parsed = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed
