"""Works and authors made up from a seed: mostly plain ones, and some of every peculiar kind."""

import random
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Literal

import msgspec

from pixivflow.simulator.vocabulary import AUTHORS, HOSTILE_TITLES, MOMENTS, PLACES, SCENERY, SUBJECTS
from pixivflow.simulator.works import SimUser, SimWork, StubKind

FIRST_WORK = 190_000_001
FIRST_AUTHOR = 90_000_011
DAYS = 14
SIZES = ((720, 1018), (960, 640), (800, 800), (1024, 576), (640, 900))


def invent_authors() -> tuple[SimUser, ...]:
    """Give the authors; every second one is followed by the account."""
    return tuple(
        SimUser(FIRST_AUTHOR + number, name, account, followed=_followed(number))
        for number, (name, account) in enumerate(AUTHORS)
    )


def invent_works(
    seed: int, now: datetime, authors: tuple[SimUser, ...], *, past: int, upcoming: int
) -> Iterator[SimWork]:
    """Give works in order of their creation, in the fortnights before and after an instant."""
    rng = random.Random(seed)  # noqa: S311  invented works, no secrets
    ages = sorted((rng.random() ** 1.4 * DAYS for _ in range(past)), reverse=True)
    future = sorted(rng.random() * DAYS for _ in range(upcoming))
    for number, days in enumerate([-age for age in ages] + future):
        created = now + timedelta(seconds=int(days * 86_400))
        yield _invent(FIRST_WORK + number, created, authors, rng)


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
