"""What to tell about an occurrence that a change of the clock moved, merged or could repeat."""

from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

from pixivflow.timetable.cron import Cron
from pixivflow.timetable.occurrences import swallowed_times


def shift_note(cron: Cron, zone: ZoneInfo, occurrence_ms: int) -> str | None:
    """Return a remark on an occurrence at a change of the clock, None on an ordinary day."""
    at = datetime.fromtimestamp(occurrence_ms // 1000, zone)
    lost = tuple(islice(swallowed_times(cron, zone, occurrence_ms), 3))
    if lost:
        names = " and ".join(_clock(datetime.fromtimestamp(local, UTC)) for local in lost[:2])
        if len(lost) == 1:
            return f"{names} does not exist; runs at {_clock(at)}"
        more = " and later" if len(lost) > 2 else ""  # noqa: PLR2004 - two times are named
        return f"{names}{more} do not exist; runs once at {_clock(at)}"
    if at.utcoffset() == at.replace(fold=1 - at.fold).utcoffset():
        return None
    return f"repeated hour: {'second' if at.fold else 'first'} pass"


def _clock(at: datetime) -> str:
    return f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}"
