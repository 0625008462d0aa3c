"""The catalogue of the simulated Pixiv: works by id and by time, grown from a seed, changed at will."""

from bisect import bisect_right
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import msgspec

from pixivflow.simulator.invention import FIRST_WORK, invent_authors, invent_works
from pixivflow.simulator.works import JST, SimUser, SimWork

__all__ = ["JST", "Catalogue", "SimUser", "SimWork"]


class Catalogue:
    """Works in order of their creation. The same seed and ``now`` give the same works and the same bytes.

    ``works`` lie in the fortnight before ``now`` (default: the host's clock); ``upcoming`` more appear in
    the fortnight after it.
    """

    def __init__(
        self, seed: int = 1, *, works: int = 120, now: datetime | None = None, upcoming: int = 0
    ) -> None:
        self.seed = seed
        self.now = (now or datetime.now(UTC)).astimezone(JST).replace(microsecond=0)
        self.authors = invent_authors()
        self._works: dict[int, SimWork] = {}
        self._timeline: tuple[SimWork, ...] = ()
        self._stale = True
        self.version = 0
        for work in invent_works(seed, self.now, self.authors, past=works, upcoming=upcoming):
            self.add(work)

    @property
    def works(self) -> Mapping[int, SimWork]:
        """Every work by id, in order of being added."""
        return MappingProxyType(self._works)

    def add(self, work: SimWork) -> None:
        """Put a work in, or in the place of the one with its id."""
        self._works[work.id] = work
        self._changed()

    def remove(self, work_id: int) -> None:
        """Take a work away: lists close up, detail and pictures answer 404. Raises KeyError."""
        del self._works[work_id]
        self._changed()

    def make_work(self, **overrides: Any) -> SimWork:
        """Give a plain work with the next free id, created at the catalogue's ``now``; not yet added."""
        work_id = max(self._works, default=FIRST_WORK - 1) + 1
        plain = SimWork(
            id=work_id,
            title=f"新しい灯台 {work_id}",
            author=self.authors[0],
            created=self.now,
            tags=("風景", "オリジナル", "灯台"),
        )
        return msgspec.structs.replace(plain, **overrides)

    def edit(self, work_id: int, **changes: Any) -> SimWork:
        """Change fields of a work in place and answer the new form. Raises KeyError."""
        work = msgspec.structs.replace(self._works[work_id], **changes)
        self.add(work)
        return work

    def timeline(self, now: datetime) -> tuple[SimWork, ...]:
        """Give the works created until ``now``, oldest first, the deleted ones among them."""
        if self._stale:
            self._timeline = tuple(sorted(self._works.values(), key=_age))
            self._stale = False
        return self._timeline[: bisect_right(self._timeline, (now, 1 << 62), key=_age)]

    def author(self, user_id: int) -> SimUser | None:
        """Give the author with this id, also one that came with an added work."""
        known = (*self.authors, *(work.author for work in self._works.values()))
        return next((author for author in known if author.id == user_id), None)

    def _changed(self) -> None:
        self._stale = True
        self.version += 1


def _age(work: SimWork) -> tuple[datetime, int]:
    return work.created, work.id
