from datetime import timedelta

import pytest
import trio

from pixivflow.pixiv.client import SearchQuery
from pixivflow.pixiv.errors import NetworkFailed, PaginationError, WorkDeleted, WorkRestricted
from pixivflow.selection.candidates import (
    PAGES_LIMIT,
    POPULAR_PAGES,
    Candidates,
    open_candidates,
    search_word,
)
from pixivflow.selection.errors import NotPublishedYet
from protocol.specs import Filters, Source

SEARCH = Source(mode="search", tags=("風景",))


@pytest.fixture
def candidates(shelf, now_ms):
    def make(source: Source = SEARCH, filters: Filters | None = None) -> Candidates:
        return open_candidates(shelf, source, filters or Filters(), now_ms)

    return make


@pytest.fixture
def days_ago(illust, now_ms):
    base = illust(1).create_date

    def make(work: int, days: int, **facts):
        return illust(work, create_date=base - timedelta(days=days), **facts)

    return make


async def ids(candidates: Candidates) -> list[int]:
    found = []
    while (work := await candidates.next()) is not None:
        found.append(work.id)
    return found


@pytest.mark.parametrize(
    ("source", "word"),
    [
        (Source(mode="search", tags=("風景",)), "風景"),
        (Source(mode="search", tags=("風景", "夜")), "風景 夜"),
        (Source(mode="search", tags=("風景", "夜"), tags_match="any"), "風景 OR 夜"),
        (Source(mode="search", tags=("blue sky", "夜"), tags_match="any"), "(blue sky) OR 夜"),
        (Source(mode="search", tags=("blue sky",), tags_match="any"), "blue sky"),
        (Source(mode="search", tags=(" blue\u3000sky ", "", "夜")), "blue sky 夜"),
        (Source(mode="search", tags=("レム(リゼロ)",)), "レム(リゼロ)"),
    ],
)
def test_tags_become_the_word_of_a_search(source, word):
    assert search_word(source) == word


@pytest.mark.parametrize("tags", [(), ("",), (" ",)])
def test_a_search_without_tags_is_refused_before_anything_is_asked(candidates, tags):
    with pytest.raises(ValueError, match="needs at least one of tags"):
        candidates(Source(mode="search", tags=tags))


@pytest.mark.parametrize(("mode", "key"), [("artist", "artist_id"), ("work", "work")])
def test_a_mode_without_its_key_is_refused_and_the_key_named(candidates, mode, key):
    with pytest.raises(ValueError, match=f"mode = {mode} needs {key}"):
        candidates(Source(mode=mode))


def test_a_search_is_asked_with_its_match_its_order_and_its_days(candidates, shelf):
    source = Source(mode="search", tags=("風景",), match="title_caption", sort="oldest")
    candidates(source, Filters(since="LAST_N_DAYS:3", until="TODAY"))
    assert shelf.queries == [
        SearchQuery(
            word="風景",
            target="title_caption",
            sort="oldest",
            start_date="2025-12-31",
            end_date="2026-01-02",
        )
    ]


def test_an_open_window_sends_no_days(candidates, shelf):
    candidates()
    assert (shelf.queries[0].start_date, shelf.queries[0].end_date) == (None, None)


def test_excluded_tags_are_not_sent(candidates, shelf):
    candidates(SEARCH, Filters(exclude_tags=("猫",)))
    assert shelf.queries[0].word == "風景"


async def test_newest_works_come_first(candidates, shelf, days_ago):
    shelf.add(days_ago(1, 3), days_ago(2, 1), days_ago(3, 2))
    assert await ids(candidates()) == [2, 3, 1]


async def test_oldest_works_come_first_on_request(candidates, shelf, days_ago):
    shelf.add(days_ago(1, 3), days_ago(2, 1), days_ago(3, 2))
    assert await ids(candidates(Source(mode="search", tags=("風景",), sort="oldest"))) == [1, 3, 2]


async def test_a_page_is_asked_for_only_when_the_one_before_is_used_up(candidates, shelf, days_ago):
    shelf.add(*(days_ago(number, number) for number in range(1, 10)))
    walk = candidates()
    assert shelf.pages_served == 0
    served = []
    for _ in range(4):
        await walk.next()
        served.append(shelf.pages_served)
    assert served == [1, 1, 1, 2]


async def test_a_work_that_slid_onto_the_next_page_comes_once(shelf, candidates, illust):
    shelf.rankings["day", None] = [illust(n) for n in (5, 4, 3, 3, 2, 4, 1)]
    assert await ids(candidates(Source(mode="ranking"))) == [5, 4, 3, 2, 1]


async def test_after_the_end_nothing_is_asked_again(candidates, shelf, illust):
    shelf.add(illust(1))
    walk = candidates()
    await ids(walk)
    shelf.faults[shelf.pages_served + 1] = NetworkFailed("nobody may come here")
    assert await walk.next() is None


async def test_the_page_limit_ends_a_list_without_end(candidates, shelf, days_ago):
    shelf.page_size = 1
    shelf.add(*(days_ago(number, number) for number in range(1, PAGES_LIMIT + 5)))
    assert len(await ids(candidates())) == PAGES_LIMIT
    assert shelf.pages_served == PAGES_LIMIT


async def test_empty_pages_without_end_are_an_error_and_not_the_end_of_the_list():
    class Endless:
        unreadable = 0

        async def next_page(self):
            await trio.lowlevel.checkpoint()
            return ()

    with pytest.raises(PaginationError, match="4 pages in a row without any work"):
        await Candidates(Endless(), pages_limit=4).next()


async def test_an_empty_page_in_between_is_passed_over(illust):
    class Holey:
        unreadable = 0

        def __init__(self):
            self.pages = [(illust(1),), (), (illust(2),)]

        async def next_page(self):
            await trio.lowlevel.checkpoint()
            return self.pages.pop(0) if self.pages else None

    assert await ids(Candidates(Holey())) == [1, 2]


async def test_a_pagination_error_passes_through(candidates, shelf, days_ago):
    shelf.add(*(days_ago(number, number) for number in range(1, 6)))
    shelf.faults[2] = PaginationError("the cursor repeats")
    walk = candidates()
    with pytest.raises(PaginationError, match="repeats"):
        await ids(walk)


async def test_after_an_outage_the_walk_goes_on_where_it_was(candidates, shelf, days_ago):
    shelf.add(*(days_ago(number, number) for number in range(1, 6)))
    shelf.faults[2] = NetworkFailed("reset")
    walk = candidates()
    with pytest.raises(NetworkFailed):
        await ids(walk)
    shelf.faults.clear()
    assert await ids(walk) == [4, 5]


async def test_an_artists_works_come_newest_first(candidates, shelf, illust):
    shelf.add(illust(3), illust(9), illust(5))
    assert await ids(candidates(Source(mode="artist", artist_id=7))) == [9, 5, 3]


async def test_an_artists_walk_stops_after_the_page_that_went_past_the_window(candidates, shelf, days_ago):
    shelf.add(*(days_ago(10 - days, days) for days in range(9)))
    walk = candidates(Source(mode="artist", artist_id=7), Filters(since="LAST_N_DAYS:3"))
    assert await ids(walk) == [10, 9, 8, 7, 6, 5]
    assert shelf.pages_served == 2


async def test_a_stub_does_not_end_a_walk_by_its_meaningless_date(candidates, shelf, days_ago):
    shelf.add(days_ago(9, 0), days_ago(8, 900, visible=False), days_ago(7, 1), days_ago(6, 1))
    walk = candidates(Source(mode="artist", artist_id=7), Filters(since="LAST_N_DAYS:3"))
    assert await ids(walk) == [9, 8, 7, 6]


async def test_an_oldest_first_walk_stops_past_the_last_day(shelf, illust, now_ms, days_ago):
    shelf.add(*(days_ago(days, days) for days in range(9)))

    class Unbounded(type(shelf)):
        """It heeds no dates."""

        def search(self, query):
            return shelf.search(type(query)(word=query.word, sort=query.sort))

    source = Source(mode="search", tags=("風景",), sort="oldest")
    walk = open_candidates(Unbounded(), source, Filters(until="2025-12-29"), now_ms)
    assert await ids(walk) == [8, 7, 6, 5, 4, 3]


async def test_an_empty_window_asks_nothing(candidates, shelf, illust):
    shelf.add(illust(1))
    assert await ids(candidates(SEARCH, Filters(since="TODAY", until="YESTERDAY"))) == []
    assert shelf.pages_served == 0


async def test_popular_orders_a_sample_of_the_newest_pages_by_bookmarks(candidates, shelf, days_ago):
    shelf.page_size = 2
    bookmarks = [5, 90, None, 7, 300, 7, 1, 2, 4, 3, 9999]
    shelf.add(*(days_ago(20 - n, n, total_bookmarks=count) for n, count in enumerate(bookmarks)))
    walk = candidates(Source(mode="search", tags=("風景",), sort="popular"))
    assert await ids(walk) == [16, 19, 17, 15, 20, 12, 11, 13, 14, 18]
    assert shelf.pages_served == POPULAR_PAGES
    assert shelf.queries[0].sort == "newest"


async def test_popular_keeps_what_it_had_sampled_before_an_outage(candidates, shelf, days_ago):
    shelf.add(*(days_ago(20 - n, n, total_bookmarks=n) for n in range(5)))
    shelf.faults[2] = NetworkFailed("reset")
    walk = candidates(Source(mode="search", tags=("風景",), sort="popular"))
    with pytest.raises(NetworkFailed):
        await walk.next()
    shelf.faults.clear()
    assert await ids(walk) == [16, 17, 18, 19, 20]
    assert shelf.pages_served == 2


async def test_a_ranking_comes_in_the_order_of_rank(candidates, shelf, illust):
    shelf.rankings["week", "2026-01-01"] = [illust(4), illust(9), illust(2), illust(7)]
    walk = candidates(Source(mode="ranking", ranking="week", ranking_date="YESTERDAY"))
    assert await ids(walk) == [4, 9, 2, 7]


@pytest.mark.parametrize("day", [None, "TODAY", "YESTERDAY", "2026-01-01"])
async def test_an_empty_ranking_of_the_newest_possible_day_is_not_published_yet(candidates, day):
    walk = candidates(Source(mode="ranking", ranking="day", ranking_date=day))
    with pytest.raises(NotPublishedYet, match="12:00 JST"):
        await walk.next()


async def test_an_empty_ranking_of_a_day_long_past_is_just_empty(candidates):
    assert await ids(candidates(Source(mode="ranking", ranking_date="2025-12-31"))) == []


async def test_a_ranking_of_entries_that_can_not_be_read_is_published(candidates, shelf):
    shelf.unreadable = 30
    walk = candidates(Source(mode="ranking"))
    assert await ids(walk) == []
    assert walk.unreadable == 30


async def test_a_published_ranking_just_ends(candidates, shelf, illust):
    shelf.rankings["day", None] = [illust(1)]
    assert await ids(candidates(Source(mode="ranking"))) == [1]


async def test_a_named_work_is_the_only_candidate(candidates, shelf, illust):
    shelf.add(illust(1), illust(42))
    assert await ids(candidates(Source(mode="work", work=42))) == [42]


async def test_a_named_work_that_is_gone_says_so(candidates):
    with pytest.raises(WorkDeleted):
        await candidates(Source(mode="work", work=42)).next()


async def test_a_named_work_that_is_a_stub_is_restricted(candidates, shelf, illust):
    shelf.add(illust(42, visible=False))
    with pytest.raises(WorkRestricted):
        await candidates(Source(mode="work", work=42)).next()
