"""``/v1/search/illust``: which works, in which order."""

from collections import OrderedDict
from collections.abc import Callable
from datetime import date, datetime, timedelta

import msgspec

from pixivflow.simulator.catalogue import JST, SimWork
from pixivflow.simulator.parameters import PAGE, Parameters
from pixivflow.simulator.words import TARGETS, matcher
from pixivflow.simulator.world import World

SORTS = ("date_desc", "date_asc", "popular_desc", "popular_male_desc", "popular_female_desc")
_SPANS = {
    "within_last_day": timedelta(days=1),
    "within_last_week": timedelta(days=7),
    "within_last_month": timedelta(days=31),
}
_AI = 2
_REMEMBERED = 16


class Wanted(msgspec.Struct, frozen=True):
    """A search without its place in the list."""

    word: str
    target: str
    sort: str
    duration: str | None
    start: date | None
    end: date | None
    hide_ai: bool
    kinds: frozenset[str]
    bookmarks_min: int
    bookmarks_max: int | None


def wanted(parameters: Parameters, *, premium: bool) -> Wanted:
    """Read a search. Raises the validation `Refusal`."""
    kind = parameters.given("content_type")
    most = parameters.given("bookmark_num_max")
    duration = parameters.given("duration")
    return Wanted(
        word=parameters.text("word"),
        target=parameters.choice("search_target", TARGETS, TARGETS[0]),
        sort=parameters.choice("sort", SORTS, SORTS[0]),
        duration=parameters.choice("duration", _SPANS) if duration else None,
        start=parameters.day("start_date"),
        end=parameters.day("end_date"),
        hide_ai=parameters.integer("search_ai_type", 1) == 0,
        kinds=frozenset(name for name in ("illust", "manga", "ugoira") if kind is None or name in kind),
        bookmarks_min=parameters.integer("bookmark_num_min", 0) if premium else 0,
        bookmarks_max=parameters.integer("bookmark_num_max") if most and premium else None,
    )


class Search:
    """Finds works; remembers the last searches, because a walk asks for the same one page by page."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._remembered: OrderedDict[tuple[object, ...], tuple[SimWork, ...]] = OrderedDict()

    def find(self, search: Wanted) -> tuple[SimWork, ...]:
        """All hits in order; of the popular ones only the first page, unless the account is premium."""
        timeline = self._world.timeline()
        # a span moves with the clock: its result is only good for the same instant
        instant = self._world.now if search.duration else None
        key = (search, self._world.catalogue.version, len(timeline), instant)
        if key not in self._remembered:
            self._remembered[key] = self._ordered(search, timeline)
            if len(self._remembered) > _REMEMBERED:
                self._remembered.popitem(last=False)
        return self._remembered[key]

    def _ordered(self, search: Wanted, timeline: tuple[SimWork, ...]) -> tuple[SimWork, ...]:
        fits = _filter(search, self._world.now)
        hits = [work for work in timeline if fits(work)]
        if search.sort == "date_asc":
            return tuple(hits)
        if search.sort == "date_desc":
            return tuple(reversed(hits))
        hits.sort(key=lambda work: (-work.bookmarks, work.id))
        return tuple(hits if self._world.premium else hits[:PAGE])


def _filter(search: Wanted, now: datetime) -> Callable[[SimWork], bool]:
    matches = matcher(search.word, search.target)
    since = now - _SPANS[search.duration] if search.duration else None

    def fits(work: SimWork) -> bool:
        day = work.created.astimezone(JST).date()
        in_days = (search.start is None or day >= search.start) and (search.end is None or day <= search.end)
        in_span = since is None or work.created >= since
        shown = work.type in search.kinds and not (search.hide_ai and work.ai_type == _AI)
        return matches(work) and in_days and in_span and shown and _popular(work, search)

    return fits


def _popular(work: SimWork, search: Wanted) -> bool:
    most = search.bookmarks_max
    return work.bookmarks >= search.bookmarks_min and (most is None or work.bookmarks <= most)
