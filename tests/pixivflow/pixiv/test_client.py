import gc
import random

import httpx
import msgspec
import pytest
import structlog.testing
import trio

from pixivflow.clock import SystemWall
from pixivflow.pixiv.api import worth_retrying
from pixivflow.pixiv.client import SearchQuery, open_pixiv_client
from pixivflow.pixiv.errors import (
    AuthFailed,
    BadAddress,
    NetworkFailed,
    OwnerGone,
    PaginationError,
    PixivError,
    RateLimited,
    RequestRefused,
    ServerFailed,
    WorkDeleted,
    WorkRestricted,
)
from pixivflow.pixiv.settings import PixivSettings

DETAIL, SEARCH, RANKING, ARTIST = (
    "/v1/illust/detail",
    "/v1/search/illust",
    "/v1/illust/ranking",
    "/v1/user/illusts",
)
GONE = "The artwork has been deleted or the artwork ID does not exist."
STUB_URL = "https://s.pximg.net/common/images/limit_unknown_360.png"


async def ids_of(walk):
    found = []
    while (works := await walk.next_page()) is not None:
        found += [work.id for work in works]
    return found


def opened(store, settings, **kwargs):
    return open_pixiv_client(
        "main", "refresh-0", store, settings, wall=SystemWall(), rng=random.Random(7), **kwargs
    )


async def test_a_work_is_fetched_by_its_id(client, pixiv):
    pixiv.on(
        DETAIL, pixiv.json({"illust": {"id": 5, "title": "硝子の灯台", "user": {"id": 9}, "visible": True}})
    )
    illust = await client.illust_detail(5)
    assert (illust.id, illust.title, illust.user.id) == (5, "硝子の灯台", 9)
    assert pixiv.asked[-1].target == "/v1/illust/detail?illust_id=5"


async def test_a_request_looks_like_the_application(client, pixiv, settings):
    pixiv.on(DETAIL, pixiv.json({"illust": {"id": 5}}))
    await client.illust_detail(5)
    headers = pixiv.asked[-1].headers
    assert headers["authorization"] == "Bearer access-1"
    assert headers["user-agent"] == settings.user_agent
    assert headers["accept-language"] == "en"
    assert headers["app-os"] == "ios"
    assert {"x-client-time", "x-client-hash", "app-version", "app-os-version"} <= headers.keys()


async def test_a_clear_404_means_deleted(client, pixiv):
    pixiv.on(DETAIL, pixiv.error(404, user_message=GONE))
    with pytest.raises(WorkDeleted, match="5"):
        await client.illust_detail(5)


@pytest.mark.parametrize("kind", ["retired", "html", "text"])
async def test_an_unclear_404_never_means_deleted(client, pixiv, kind):
    answers = {
        "retired": pixiv.error(404, user_message="Specified end-point doesn't exist"),
        "html": pixiv.html(404),
        "text": pixiv.answer(status=404, body=b"nothing here", content_type="text/plain"),
    }
    pixiv.on(DETAIL, answers[kind])
    with pytest.raises((RequestRefused, ServerFailed)):
        await client.illust_detail(5)


async def test_a_403_with_envelope_means_withheld(client, pixiv):
    pixiv.on(DETAIL, pixiv.error(403, user_message="Your access is currently restricted."))
    with pytest.raises(WorkRestricted):
        await client.illust_detail(5)


@pytest.mark.parametrize(
    "stub",
    [
        {"visible": False},
        {"meta_single_page": {"original_image_url": STUB_URL}},
        {"image_urls": {"large": STUB_URL.replace("limit_unknown", "limit_r18-")}},
        {
            "meta_pages": [
                {"image_urls": {"original": "https://i.pximg.net/a.png"}},
                {"image_urls": {"original": STUB_URL}},
            ]
        },
    ],
)
async def test_a_stub_means_withheld(client, pixiv, stub):
    pixiv.on(DETAIL, pixiv.json({"illust": {"id": 5, **stub}}))
    with pytest.raises(WorkRestricted):
        await client.illust_detail(5)


async def test_another_work_than_asked_for_is_a_server_fault(client, pixiv):
    pixiv.on(DETAIL, pixiv.json({"illust": {"id": 6}}))
    with pytest.raises(ServerFailed, match="instead of 5"):
        await client.illust_detail(5)


async def test_stubs_stay_in_lists(client, pixiv):
    pixiv.on(
        SEARCH, pixiv.json({"illusts": [{"id": 5, "visible": False, "user": {"id": 0}}], "next_url": None})
    )
    works = await client.search(SearchQuery("a")).next_page()
    assert works[0].restricted


async def test_a_search_sends_its_word_once_encoded(client, pixiv):
    pixiv.on(SEARCH, pixiv.list_of(1))
    query = SearchQuery("レム(リゼロ) -a&b", "exact", "popular", "2026-11-01", "2026-11-30")
    await client.search(query).next_page()
    assert dict(httpx.QueryParams(pixiv.asked[-1].query)) == {
        "word": "レム(リゼロ) -a&b",
        "search_target": "exact_match_for_tags",
        "sort": "popular_desc",
        "start_date": "2026-11-01",
        "end_date": "2026-11-30",
    }


async def test_a_search_walks_to_the_end(client, pixiv):
    pixiv.on(SEARCH, pixiv.list_of(1, 2, next_target=f"{SEARCH}?word=a&offset=30"), pixiv.list_of(2, 3))
    assert await ids_of(client.search(SearchQuery("a"))) == [1, 2, 2, 3]


async def test_next_url_goes_over_the_wire_unchanged(client, pixiv):
    target = "/v1/search/illust?word=%E7%81%AF+x&viewed%5B0%5D=1&viewed[1]=2&offset=30"
    pixiv.on(SEARCH, pixiv.list_of(1, next_target=target), pixiv.list_of(2))
    await ids_of(client.search(SearchQuery("a")))
    assert pixiv.asked[-1].target == target


async def test_a_next_url_on_the_published_host_stays_on_the_configured_one(client, pixiv):
    pixiv.on(
        SEARCH,
        pixiv.json(
            {"illusts": [{"id": 1}], "next_url": "https://app-api.pixiv.net/v1/search/illust?offset=30"}
        ),
        pixiv.list_of(2),
    )
    assert await ids_of(client.search(SearchQuery("a"))) == [1, 2]


async def test_a_next_url_on_a_foreign_host_gets_no_token(client, pixiv, image_server):
    pixiv.on(SEARCH, pixiv.json({"illusts": [{"id": 1}], "next_url": image_server.url + "/v1/search/illust"}))
    with pytest.raises(PaginationError):
        await ids_of(client.search(SearchQuery("a")))
    assert image_server.asked == []


async def test_a_redirect_is_not_followed(client, pixiv, image_server):
    pixiv.on(DETAIL, pixiv.answer(status=302, headers=[("Location", image_server.url + "/v1")]))
    with pytest.raises(ServerFailed):
        await client.illust_detail(5)
    assert image_server.asked == []


async def test_an_answer_without_list_is_not_read_as_the_end(client, pixiv):
    pixiv.on(SEARCH, pixiv.json({}))
    with pytest.raises(ServerFailed):
        await client.search(SearchQuery("a")).next_page()


async def test_a_search_behind_the_cap_is_truncated(client, pixiv):
    pixiv.on(SEARCH, pixiv.list_of(1, next_target=f"{SEARCH}?word=a&offset=5010"))
    walk = client.search(SearchQuery("a"))
    assert await ids_of(walk) == [1]
    assert walk.truncated


async def test_a_ranking_is_asked_by_mode_and_day(client, pixiv):
    pixiv.on(RANKING, pixiv.list_of(3, 1, 2))
    assert await ids_of(client.ranking("day", "2026-11-29")) == [3, 1, 2]
    assert pixiv.asked[-1].query == "mode=day&date=2026-11-29"


async def test_the_newest_ranking_names_no_day(client, pixiv):
    pixiv.on(RANKING, pixiv.list_of())
    assert await client.ranking("week", None).next_page() == ()
    assert pixiv.asked[-1].query == "mode=week"


async def test_an_artists_works_are_walked(client, pixiv):
    owner = {"user": {"id": 9}}
    pixiv.on(
        ARTIST,
        pixiv.list_of(5, next_target=f"{ARTIST}?user_id=9&offset=30", **owner),
        pixiv.list_of(4, **owner),
    )
    assert await ids_of(client.artist_works(9)) == [5, 4]


@pytest.mark.parametrize("how", ["null", "404", "error"])
async def test_a_missing_artist_is_gone(client, pixiv, how):
    answers = {
        "null": pixiv.json({"user": {"id": None}, "illusts": [], "next_url": None}),
        "404": pixiv.error(404, user_message="User has left pixiv or the user ID does not exist."),
        "error": pixiv.json({"error": {"message": "", "user_message": "x"}, "user": None}),
    }
    pixiv.on(ARTIST, answers[how])
    with pytest.raises(OwnerGone, match="artist 9"):
        await client.artist_works(9).next_page()


async def test_a_token_that_expires_in_the_middle_of_a_walk_costs_one_refresh(client, pixiv):
    def expire(asked):
        pixiv.valid.clear()
        return pixiv.list_of(1, next_target=f"{SEARCH}?word=a&offset=30")

    pixiv.on(SEARCH, expire, pixiv.list_of(2))
    assert await ids_of(client.search(SearchQuery("a"))) == [1, 2]
    assert pixiv.refreshes == 2
    assert [asked.headers["authorization"] for asked in pixiv.asked_for(SEARCH)] == [
        "Bearer access-1",
        "Bearer access-1",
        "Bearer access-2",
    ]


async def test_a_token_refused_again_after_the_refresh_ends_in_one_error(client, pixiv):
    oauth = "Error occurred at the OAuth process. Please check your Access Token to fix this."
    pixiv.on(DETAIL, pixiv.error(400, oauth))
    with pytest.raises(AuthFailed, match="'main'"):
        await client.illust_detail(5)
    assert pixiv.refreshes == 2
    assert len(pixiv.asked_for(DETAIL)) == 2


async def test_a_bad_offset_is_not_answered_by_a_refresh(client, pixiv):
    pixiv.on(SEARCH, pixiv.error(400, '{"offset":["offset must be no more than 5000"]}'))
    with pytest.raises(RequestRefused, match="offset must be no more"):
        await client.search(SearchQuery("a")).next_page()
    assert pixiv.refreshes == 1
    assert len(pixiv.asked_for(SEARCH)) == 1


@pytest.mark.parametrize("status", [400, 403, 429])
async def test_a_rate_limit_is_not_retried_and_carries_retry_after(client, pixiv, status):
    pixiv.on(DETAIL, pixiv.error(status, "Rate Limit", headers=[("Retry-After", "90")]))
    with pytest.raises(RateLimited) as caught:
        await client.illust_detail(5)
    assert caught.value.retry_after_s == 90.0
    assert len(pixiv.asked_for(DETAIL)) == 1
    assert pixiv.refreshes == 1


@pytest.mark.parametrize("kind", ["500", "502 html", "cut", "half json", "empty"])
async def test_a_passing_failure_is_retried(client, pixiv, kind):
    answers = {
        "500": pixiv.error(500, "oops"),
        "502 html": pixiv.html(502),
        "cut": pixiv.answer(body=b'{"illust": {"id": 5', cut=True),
        "half json": pixiv.answer(body=b'{"illust": {"id": 5'),
        "empty": pixiv.answer(),
    }
    pixiv.on(DETAIL, answers[kind], answers[kind], pixiv.json({"illust": {"id": 5}}))
    assert (await client.illust_detail(5)).id == 5
    assert len(pixiv.asked_for(DETAIL)) == 3


async def test_a_failure_that_stays_is_raised_after_two_retries(client, pixiv):
    pixiv.on(DETAIL, pixiv.answer(body=b'{"illust"', cut=True))
    with pytest.raises(NetworkFailed):
        await client.illust_detail(5)
    assert len(pixiv.asked_for(DETAIL)) == 3


@pytest.mark.parametrize("status", [200, 403])
async def test_a_challenge_page_is_not_retried(client, pixiv, status):
    pixiv.on(DETAIL, pixiv.html(status))
    with pytest.raises(ServerFailed, match="challenge page"):
        await client.illust_detail(5)
    assert len(pixiv.asked_for(DETAIL)) == 1


def test_only_passing_failures_are_worth_a_retry():
    assert worth_retrying(NetworkFailed("x"))
    assert worth_retrying(ServerFailed("x"))
    assert not worth_retrying(ServerFailed("x", blocked=True))
    assert not worth_retrying(RateLimited("x"))


# The HTTP library leaves this to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_an_answer_in_broken_compression_is_a_network_failure(client, pixiv):
    pixiv.on(DETAIL, pixiv.answer(body=b"not gzip", headers=[("Content-Encoding", "gzip")]))
    with pytest.raises(NetworkFailed):
        await client.illust_detail(5)
    gc.collect()


async def test_a_body_that_drips_for_ever_meets_the_total_deadline(store, settings, autojump_clock):
    class Drip(httpx.AsyncByteStream):
        async def __aiter__(self):
            while True:
                await trio.sleep(5)
                yield b" "

    class Dripping(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request):
            if request.url.path == "/auth/token":
                return httpx.Response(200, json={"access_token": "a", "expires_in": 3600})
            return httpx.Response(200, stream=Drip())

    async with opened(store, PixivSettings(retry_base_s=0.0), transport=Dripping()) as client:
        with pytest.raises(NetworkFailed, match="within 60 s"):
            await client.illust_detail(5)


async def test_requests_keep_the_pace(store, pixiv, settings):
    paced = msgspec.structs.replace(settings, pace_s=0.05)
    times = []

    def note(asked):
        times.append(trio.current_time())
        return pixiv.json({"illust": {"id": 5}})

    pixiv.on(DETAIL, note)
    async with opened(store, paced) as client, trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(client.illust_detail, 5)
    assert len(times) == 3
    assert times[2] - times[0] >= 0.05


async def test_a_walk_cancelled_at_any_await_leaves_client_and_walk_usable(client, pixiv):
    target = f"{SEARCH}?word=a&offset=30"

    def first_or_second(asked):
        return pixiv.list_of(2) if "offset" in asked.query else pixiv.list_of(1, next_target=target)

    pixiv.on(SEARCH, first_or_second)
    for steps in range(0, 400, 3):
        walk = client.search(SearchQuery("a"))
        pixiv.valid.clear()
        found = await run_for(steps, walk)
        assert found + await ids_of(walk) == [1, 2]


async def run_for(steps, walk):
    """Walk, cancelled when the loop has gone round `steps` times."""
    found = []

    async def walking(scope):
        with scope:
            while (works := await walk.next_page()) is not None:
                found.extend(work.id for work in works)

    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()
        nursery.start_soon(walking, scope)
        for _ in range(steps):
            await trio.lowlevel.checkpoint()
        scope.cancel()
    return found


async def test_environment_proxies_are_ignored(store, settings, pixiv, monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "socks://127.0.0.1:1")
    pixiv.on(DETAIL, pixiv.json({"illust": {"id": 5}}))
    async with opened(store, settings) as client:
        assert (await client.illust_detail(5)).id == 5


async def test_a_bad_proxy_is_reported_when_the_client_opens(store, settings):
    with pytest.raises(BadAddress, match="socks5"):
        async with opened(store, msgspec.structs.replace(settings, proxy="socks://user:SECRET@127.0.0.1:1")):
            pass


async def test_an_account_without_login_makes_no_request(store, settings, pixiv):
    wall, rng = SystemWall(), random.Random(7)
    async with open_pixiv_client("second", None, store, settings, wall=wall, rng=rng) as client:
        assert client.account == "second"
        with pytest.raises(AuthFailed, match="pixivflow login second"):
            await client.illust_detail(5)
    assert pixiv.asked == []


async def test_no_log_and_no_error_shows_a_secret(store, settings, pixiv, caplog):
    caplog.set_level("DEBUG")
    secrets = ["SECRETREFRESH", "access-1", "access-2", "Bearer", "collector@example.invalid"]
    pixiv.refresh_token = "SECRETREFRESH"
    oauth = "Error occurred at the OAuth process. Please check your Access Token to fix this."
    pixiv.on(DETAIL, pixiv.error(500, "x"), pixiv.answer(body=b"{", cut=True), pixiv.error(400, oauth))
    wall, rng = SystemWall(), random.Random(7)
    with structlog.testing.capture_logs() as events:
        async with open_pixiv_client("main", "SECRETREFRESH", store, settings, wall=wall, rng=rng) as client:
            with pytest.raises(PixivError) as caught:
                await client.illust_detail(5)
    shown = str(events) + caplog.text + str(caught.value) + repr(caught.value) + repr(client)
    assert not [secret for secret in secrets if secret in shown]
    assert {event["event"] for event in events} == {"access_token_renewed", "request_retried"}
