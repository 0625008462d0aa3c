import contextlib

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from pixivflow.pixiv.errors import NetworkFailed, NotFound, PaginationError, RequestRefused
from pixivflow.pixiv.models import Illust
from pixivflow.pixiv.pages import Page
from pixivflow.pixiv.walk import BARREN_PAGES, MOST_PAGES, Walk, checked_next, cursor_of

API = "https://app-api.pixiv.net"
LIST = f"{API}/v1/search/illust?word=a"


def walk_over(steps, **kwargs):
    """A walk over a script of pages and errors; the addresses asked for are in ``.urls``."""
    script = iter(steps)
    urls = []

    async def fetch(url):
        await trio.lowlevel.checkpoint()
        urls.append(url)
        step = next(script)
        if isinstance(step, Exception):
            raise step
        return step

    walk = Walk(fetch, LIST, API, **kwargs)
    walk.urls = urls
    return walk


def page(*ids, offset=None, next_url=None, unreadable=0):
    following = next_url if offset is None else f"{LIST}&offset={offset}"
    return Page(tuple(Illust(number) for number in ids), following, unreadable)


async def ids_of(walk):
    found = []
    while (works := await walk.next_page()) is not None:
        found.append([work.id for work in works])
    return found


async def test_a_walk_ends_where_there_is_no_next_url():
    walk = walk_over([page(1, 2, offset=30), page(3)])
    assert await ids_of(walk) == [[1, 2], [3]]
    assert await walk.next_page() is None
    assert not walk.truncated


async def test_an_empty_next_url_is_the_end():
    assert await ids_of(walk_over([page(1, next_url="")])) == [[1]]


async def test_short_and_empty_pages_are_not_the_end():
    walk = walk_over([page(1, offset=30), page(offset=60), page(2)])
    assert await ids_of(walk) == [[1], [], [2]]


async def test_next_url_is_followed_unchanged():
    odd = f"{API}/v2/illust/related?illust_id=1&viewed%5B0%5D=11&viewed[1]=12&seed_illust_ids[0]=1&word=%E7%81%AF+x"
    walk = walk_over([page(1, next_url=odd), page(2)])
    await ids_of(walk)
    assert walk.urls == [LIST, odd]


async def test_a_cursor_that_repeats_raises():
    walk = walk_over([page(1, offset=30), page(2, offset=30)])
    assert await walk.next_page()
    assert await walk.next_page()
    with pytest.raises(PaginationError, match="leads back"):
        await walk.next_page()
    with pytest.raises(PaginationError):
        await walk.next_page()
    assert len(walk.urls) == 2


async def test_a_cycle_of_cursors_raises():
    walk = walk_over([page(1, offset=30), page(2, offset=60), page(3, offset=30)])
    for _ in range(3):
        await walk.next_page()
    with pytest.raises(PaginationError, match="leads back"):
        await walk.next_page()


async def test_the_first_address_with_its_parameters_in_another_order_is_a_repeat():
    walk = walk_over([page(1, next_url=f"{API}/v1/search/illust?b=2&word=a"), page(2, next_url=LIST)])
    await walk.next_page()
    await walk.next_page()
    with pytest.raises(PaginationError):
        await walk.next_page()


async def test_endless_empty_pages_are_ended():
    walk = walk_over([page(offset=30 * step) for step in range(1, 1000)])
    with pytest.raises(PaginationError, match="nothing new"):
        await ids_of(walk)
    assert len(walk.urls) == BARREN_PAGES


async def test_endless_pages_of_known_works_are_ended():
    walk = walk_over([page(1, 2, offset=30 * step) for step in range(1, 1000)])
    with pytest.raises(PaginationError, match="nothing new"):
        await ids_of(walk)
    assert len(walk.urls) == BARREN_PAGES + 1


async def test_endless_pages_of_new_works_are_ended():
    walk = walk_over([page(step, offset=step) for step in range(1, MOST_PAGES + 2)])
    with pytest.raises(PaginationError, match="does not end"):
        await ids_of(walk)


@pytest.mark.parametrize(
    "foreign",
    [
        "https://evil.example/v1/search/illust?offset=30",
        "http://app-api.pixiv.net/v1/search/illust?offset=30",
        "https://app-api.pixiv.net@evil.example/v1",
        "https://user:pass@app-api.pixiv.net/v1",
        "https://app-api.pixiv.net:8443/v1",
        "https://app-api.pixiv.net.evil.example/v1",
        "https://evil.example\\@app-api.pixiv.net/v1",
        "//evil.example/v1",
        "/v1/search/illust?offset=30",
        "https://[broken/v1",
        "https://app-api.pixiv.net:port/v1",
    ],
)
async def test_a_next_url_elsewhere_is_not_followed(foreign):
    walk = walk_over([page(1, next_url=foreign)])
    assert await walk.next_page()
    with pytest.raises(PaginationError, match="host"):
        await walk.next_page()
    assert walk.urls == [LIST]


def test_the_published_host_is_asked_through_the_configured_address():
    given_url = f"{API}/v1/search/illust?word=%E7%81%AF&offset=30"
    assert (
        checked_next(given_url, "http://127.0.0.1:9/")
        == "http://127.0.0.1:9/v1/search/illust?word=%E7%81%AF&offset=30"
    )


async def test_a_search_past_offset_5000_ends_cleanly_and_says_so():
    walk = walk_over([page(1, offset=5000), page(2, offset=5030)], offset_cap=5000)
    assert await ids_of(walk) == [[1], [2]]
    assert walk.truncated


async def test_a_refused_offset_ends_the_list_and_says_so():
    refusal = RequestRefused("no", parameters=("offset",))
    walk = walk_over([page(1, offset=4990), refusal])
    assert await ids_of(walk) == [[1]]
    assert walk.truncated


@pytest.mark.parametrize("refusal", [NotFound("gone", status=404), RequestRefused("no", status=416)])
async def test_a_page_past_the_last_full_one_is_a_clean_end(refusal):
    walk = walk_over([page(1, offset=30), page(2, offset=60), refusal])
    assert await ids_of(walk) == [[1], [2]]
    assert not walk.truncated


@pytest.mark.parametrize(
    "refusal", [RequestRefused("no", parameters=("offset",)), NotFound("gone", status=404)]
)
async def test_a_refused_first_page_is_an_error(refusal):
    with pytest.raises(RequestRefused):
        await walk_over([refusal]).next_page()


async def test_another_refusal_later_is_an_error():
    walk = walk_over([page(1, offset=30), RequestRefused("no", parameters=("word",))])
    with pytest.raises(RequestRefused):
        await ids_of(walk)


async def test_unreadable_entries_are_counted():
    walk = walk_over([page(1, offset=30, unreadable=2), page(2, unreadable=1)])
    await ids_of(walk)
    assert walk.unreadable == 3


async def test_a_failed_step_can_be_tried_again():
    walk = walk_over([page(1, offset=30), NetworkFailed("cut"), page(2)])
    await walk.next_page()
    with pytest.raises(NetworkFailed):
        await walk.next_page()
    assert [work.id for work in await walk.next_page()] == [2]
    assert walk.urls[1] == walk.urls[2]


@given(
    st.lists(st.tuples(st.lists(st.integers(1, 4), max_size=3), st.integers(0, 6)), max_size=30),
    st.integers(0, 6),
)
def test_every_walk_ends_and_asks_for_no_page_twice(steps, offset):
    async def run():
        pages = [page(*ids, offset=following) for ids, following in steps]
        walk = walk_over([*pages, *(page(offset=offset) for _ in range(20)), page()])
        with contextlib.suppress(PaginationError):
            await ids_of(walk)
        cursors = [cursor_of(url) for url in walk.urls]
        assert len(cursors) == len(set(cursors))

    trio.run(run)
