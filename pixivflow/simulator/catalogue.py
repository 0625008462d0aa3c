"""The works and authors of the simulated Pixiv, grown from a seed."""

import random
from bisect import bisect_right
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from pixivflow.simulator.vocabulary import AUTHORS, HOSTILE_TITLES, MOMENTS, PLACES, SCENERY, SUBJECTS

JST = timezone(timedelta(hours=9), "JST")
FIRST_WORK = 190_000_001
FIRST_AUTHOR = 90_000_011
DAYS = 14
SIZES = ((720, 1018), (960, 640), (800, 800), (1024, 576), (640, 900))

StubKind = Literal["unknown", "sanity_level", "unviewable", "mypixiv", "r18", "r18g"]


class SimUser(msgspec.Struct, frozen=True):
    """An author; ``followed`` says how the signed-in account follows them."""

    id: int
    name: str
    account: str
    comment: str = "架空の作者です。\r\nAn invented author."
    followed: Literal["public", "private"] | None = None


class SimWork(msgspec.Struct, frozen=True, kw_only=True):
    """One work. Extensions repeat when there are fewer of them than pages.

    ``stub`` withholds the content from the account; ``deleted`` leaves a gap: lists drop the work after
    they were cut into pages, everything else answers 404. ``uploaded`` (default: ``created``) is the time
    in the addresses, so another one means another revision.
    """

    id: int
    title: str
    author: SimUser
    created: datetime
    type: Literal["illust", "manga", "ugoira"] = "illust"
    tags: tuple[str, ...] = ()
    caption: str = ""
    caption_in_lists: bool = True
    page_count: int = 1
    width: int = 720
    height: int = 1018
    restrict: int = 0
    x_restrict: int = 0
    ai_type: int = 1
    bookmarks: int = 100
    views: int = 1000
    comments: int = 3
    stub: StubKind | None = None
    extensions: tuple[str, ...] = ("jpg",)
    deleted: bool = False
    muted: bool = False
    uploaded: datetime | None = None
    hashed: bool = False
    delays: tuple[int, ...] = ()
    bookmark_id: int | None = None
    bookmark_restrict: Literal["public", "private"] = "public"

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of every page, in pixels."""
        return self.width, self.height

    @property
    def upload_time(self) -> datetime:
        """When the files were last put up, in JST."""
        return (self.uploaded or self.created).astimezone(JST)

    def extension(self, page: int) -> str:
        """Give the extension of the original of a page, without the dot."""
        return self.extensions[page % len(self.extensions)]


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
        self.authors = tuple(
            SimUser(FIRST_AUTHOR + number, name, account, followed=_followed(number))
            for number, (name, account) in enumerate(AUTHORS)
        )
        self._works: dict[int, SimWork] = {}
        self._timeline: tuple[SimWork, ...] = ()
        self._stale = True
        self.version = 0
        self._grow(works, upcoming)

    def _grow(self, works: int, upcoming: int) -> None:
        rng = random.Random(self.seed)  # noqa: S311  invented works, no secrets
        ages = sorted((rng.random() ** 1.4 * DAYS for _ in range(works)), reverse=True)
        future = sorted(rng.random() * DAYS for _ in range(upcoming))
        for number, days in enumerate([-age for age in ages] + future):
            created = self.now + timedelta(seconds=int(days * 86_400))
            self.add(_invent(FIRST_WORK + number, created, self.authors, rng))

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


def _followed(number: int) -> Literal["public", "private"] | None:
    if number % 2:
        return None
    return "private" if number == 4 else "public"  # noqa: PLR2004  one of the followed ones, whichever


def _invent(work_id: int, created: datetime, authors: tuple[SimUser, ...], rng: random.Random) -> SimWork:
    number = work_id - FIRST_WORK
    width, height = rng.choice(SIZES)
    bookmarks = int(20 * (1 + rng.paretovariate(0.9)))
    plain = SimWork(
        id=work_id,
        title=f"{rng.choice(PLACES)}の{rng.choice(MOMENTS)}",
        author=rng.choice(authors),
        created=created,
        tags=_tags(number, rng),
        caption="" if _chance(rng, 40) else 'Study.<br />See <a href="pixiv://users/90000011">user</a>',
        caption_in_lists=number % 4 != 0,
        width=width,
        height=height,
        bookmarks=min(bookmarks, 20_000),
        views=min(bookmarks, 20_000) * rng.randint(4, 30),
        comments=rng.randint(0, 20),
        extensions=("png",) if _chance(rng, 30) else ("jpg",),
        bookmark_id=41_000_000_000 + work_id * 7 if _chance(rng, 25) else None,
        bookmark_restrict="private" if _chance(rng, 20) else "public",
    )
    for (every, at), change in _PECULIAR.items():
        if number % every == at:
            plain = change(plain, number)
    return plain


def _chance(rng: random.Random, percent: int) -> bool:
    return rng.randrange(100) < percent


def _tags(number: int, rng: random.Random) -> tuple[str, ...]:
    scenery = ("風景",) if number % 3 == 0 else ()
    extra = rng.sample(SCENERY, rng.randint(1, 3))
    return ("オリジナル", *scenery, *extra, rng.choice(SUBJECTS))


def _several_pages(work: SimWork, number: int) -> SimWork:
    kind: Literal["manga", "illust"] = "manga" if number % 2 else "illust"
    return msgspec.structs.replace(
        work, type=kind, page_count=2 + number % 4, extensions=("jpg", "png"), tags=("漫画", *work.tags)
    )


def _ugoira(work: SimWork, number: int) -> SimWork:
    delays = (80, 80, 120, 80, 80, 640)[: 4 + number % 3]
    return msgspec.structs.replace(
        work, type="ugoira", extensions=("jpg",), delays=delays, width=600, height=600, page_count=1,
        tags=("うごイラ", *work.tags),
    )  # fmt: skip


def _adult(work: SimWork, number: int) -> SimWork:
    return msgspec.structs.replace(work, x_restrict=2 if number % 5 == 0 else 1, tags=("R-18", *work.tags))


def _artificial(work: SimWork, _number: int) -> SimWork:
    return msgspec.structs.replace(work, ai_type=2, tags=(*work.tags, "AIイラスト"))


def _withheld(work: SimWork, number: int) -> SimWork:
    kinds: tuple[StubKind, ...] = ("unknown", "sanity_level", "unviewable", "mypixiv")
    kind = kinds[number // 40 % len(kinds)]
    return msgspec.structs.replace(
        work, stub=kind, bookmark_id=work.bookmark_id or 41_000_000_000 + work.id * 7
    )


def _hostile(work: SimWork, number: int) -> SimWork:
    return msgspec.structs.replace(work, title=HOSTILE_TITLES[number // 11 % len(HOSTILE_TITLES)])


def _gone(work: SimWork, _number: int) -> SimWork:
    return msgspec.structs.replace(work, deleted=True)


def _two_hundred_pages(work: SimWork, _number: int) -> SimWork:
    return msgspec.structs.replace(
        work, type="manga", page_count=200, extensions=("jpg",), width=240, height=340
    )


def _still_gif(work: SimWork, _number: int) -> SimWork:
    return msgspec.structs.replace(work, extensions=("gif",), hashed=True)


_PECULIAR: Mapping[tuple[int, int], Callable[[SimWork, int], SimWork]] = MappingProxyType(
    {
        (5, 3): _several_pages,
        (12, 7): _adult,
        (13, 5): _artificial,
        (11, 6): _hostile,
        (90, 41): _two_hundred_pages,
        (50, 26): _still_gif,
        (23, 8): _ugoira,
        (40, 19): _withheld,
        (45, 35): _gone,
    }
)
