"""Real time in a zone, cut where its clock changes. Plain seconds: since 1970 in UTC, and as the local clock shows."""

from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec

PROBE_S = 12 * 3600
"""No zone changes its clock twice within this time."""


class Piece(msgspec.Struct, frozen=True):
    """Seconds ``[start, end)`` of UTC through which the local clock runs evenly."""

    start: int
    end: int
    offset: int
    shown_until: int
    """The local second up to which the clock has shown every time before this piece.

    Above the first local second, what lies between is repeated; below it, what lies between was left out.
    """

    @property
    def local_start(self) -> int:
        """What the local clock shows at the start."""
        return self.start + self.offset

    @property
    def local_end(self) -> int:
        """What the local clock would show at the end."""
        return self.end + self.offset


def utc_offset(zone: ZoneInfo, at: int) -> int:
    """Return by how many seconds the local clock is ahead of UTC at an instant."""
    offset = datetime.fromtimestamp(at, zone).utcoffset()
    return 0 if offset is None else offset.days * 86400 + offset.seconds


def pieces(zone: ZoneInfo, start: int) -> Iterator[Piece]:
    """Yield the pieces from ``start`` on, one after another, without end."""
    offset = utc_offset(zone, start)
    shown_until = start + offset
    while True:
        probe = start + PROBE_S
        after = utc_offset(zone, probe)
        end = probe if after == offset else _first_change(zone, start, probe, offset)
        yield Piece(start=start, end=end, offset=offset, shown_until=shown_until)
        shown_until = max(shown_until, end + offset)
        if after != offset:
            offset = utc_offset(zone, end)
        start = end


def _first_change(zone: ZoneInfo, low: int, high: int, offset: int) -> int:
    """Return the first second in ``(low, high]`` at which the offset is not ``offset`` any more."""
    while high - low > 1:
        middle = (low + high) // 2
        if utc_offset(zone, middle) == offset:
            low = middle
        else:
            high = middle
    return high
