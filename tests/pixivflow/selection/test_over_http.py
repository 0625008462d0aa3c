"""Selection with the real client against a look-alike of Pixiv over real HTTP."""

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
import trio

from pixivflow.pixiv.client import PixivClient, open_pixiv_client
from pixivflow.pixiv.credentials import TokenStore
from pixivflow.pixiv.errors import PaginationError, RateLimited, WorkDeleted
from pixivflow.pixiv.settings import PixivSettings
from pixivflow.selection.candidates import open_candidates
from pixivflow.selection.errors import ScanInterrupted
from pixivflow.selection.recovery import recover
from pixivflow.selection.scan import Chosen, Nothing, SkipCode, TakeAnswer, scan
from pixivflow.simulator.catalogue import Catalogue
from pixivflow.simulator.faults import Fault
from pixivflow.simulator.server import Simulator, open_simulator
from protocol.reasons import Reason
from protocol.specs import Filters, Source
from protocol.works import WorkRef

MORNING = datetime(2026, 10, 6, 0, 30, tzinfo=UTC)
"""09:30 JST: yesterday's ranking is not out."""


class Frozen:
    def now_ms(self) -> int:
        return round(MORNING.timestamp() * 1000)


@pytest.fixture
def catalogue() -> Catalogue:
    return Catalogue(works=0, now=MORNING - timedelta(days=3))


@pytest.fixture
def opened(tmp_path, catalogue):
    """Open simulator and client together, in the test's own task."""

    @asynccontextmanager
    async def pair() -> AsyncGenerator[tuple[Simulator, PixivClient]]:
        wall = Frozen()
        async with open_simulator(catalogue=catalogue, wall=wall) as simulator:
            settings = PixivSettings(
                api_url=simulator.api_url, oauth_url=simulator.oauth_url, pace_s=0.0, timeout_s=10.0
            )
            store = TokenStore(tmp_path)
            token, rng = simulator.refresh_token, random.Random(1)
            async with open_pixiv_client("main", token, store, settings, wall=wall, rng=rng) as client:
                yield simulator, client

    return pair


@pytest.fixture
def run(spec):
    async def go(client: PixivClient, source: Source, filters: Filters | None = None, had=frozenset()):
        cell = spec(source=source, filters=filters)
        now_ms = Frozen().now_ms()

        async def already_had(illust) -> bool:
            await trio.lowlevel.checkpoint()
            return illust.id in had

        async def take(_) -> TakeAnswer:
            await trio.lowlevel.checkpoint()
            return TakeAnswer.TAKEN_BY_US

        with trio.fail_after(20):
            return await scan(
                open_candidates(client, cell.source, cell.filters, now_ms),
                cell,
                now_ms=now_ms,
                already_had=already_had,
                take=take,
            )

    return go


async def test_a_search_goes_on_to_the_page_with_the_first_fitting_work(opened, run, catalogue):
    fitting = catalogue.make_work(bookmarks=900, created=MORNING - timedelta(hours=40))
    catalogue.add(fitting)
    for hours in range(1, 36):
        catalogue.add(catalogue.make_work(bookmarks=3, created=MORNING - timedelta(hours=hours)))
    async with opened() as (_, client):
        search = Source(mode="search", tags=("風景", "灯台"))
        result = await run(client, search, Filters(min_bookmarks=500, since="LAST_N_DAYS:3"))
    assert isinstance(result, Chosen)
    assert result.illust.id == fitting.id
    assert (result.report.listed, result.report.attempted) == (36, 1)


async def test_any_of_the_tags_finds_works_of_each(opened, run, catalogue):
    for tag in ("夜", "海", "猫"):
        catalogue.add(catalogue.make_work(tags=(tag,)))
    async with opened() as (_, client):
        source = Source(mode="search", tags=("夜", "海"), tags_match="any", match="exact")
        result = await run(client, source, had=set(catalogue.works))
    assert isinstance(result, Nothing)
    assert result.reason is Reason.DUPLICATE_EXHAUSTED
    assert result.report.listed == 2


async def test_a_popular_search_takes_the_most_bookmarked_of_the_sample(opened, run, catalogue):
    for number in range(1, 80):
        work = catalogue.make_work(created=MORNING - timedelta(hours=number), bookmarks=number % 60)
        catalogue.add(work)
    async with opened() as (_, client):
        result = await run(client, Source(mode="search", tags=("風景",), sort="popular"))
    assert isinstance(result, Chosen)
    assert result.illust.total_bookmarks == 59


async def test_a_stub_in_a_list_is_passed_over_and_named(opened, run, catalogue):
    plain = catalogue.make_work(created=MORNING - timedelta(hours=2))
    catalogue.add(plain)
    stub = catalogue.make_work(created=MORNING - timedelta(hours=1), stub="sanity_level")
    catalogue.add(stub)
    async with opened() as (_, client):
        result = await run(client, Source(mode="artist", artist_id=plain.author.id))
    assert isinstance(result, Chosen)
    assert result.illust.id == plain.id
    assert [(skip.work, skip.code) for skip in result.report.skipped] == [
        (f"illustration:{stub.id}", SkipCode.RESTRICTED)
    ]


async def test_yesterdays_ranking_before_noon_is_tried_again_later(opened, run, catalogue):
    catalogue.add(catalogue.make_work(created=MORNING - timedelta(days=1)))
    async with opened() as (_, client):
        result = await run(client, Source(mode="ranking", ranking_date="YESTERDAY"))
    assert isinstance(result, Nothing)
    assert (result.reason, result.retryable) == (Reason.NO_CANDIDATE, True)


async def test_the_newest_ranking_gives_its_first_rank_that_was_not_had(opened, run, catalogue):
    works = [catalogue.make_work(created=MORNING - timedelta(days=4), bookmarks=10**n) for n in (4, 2, 3)]
    for number, work in enumerate(works):
        catalogue.add(catalogue.make_work(created=work.created, bookmarks=work.bookmarks, title=str(number)))
    ids = list(catalogue.works)
    async with opened() as (_, client):
        result = await run(client, Source(mode="ranking"), had={ids[0]})
    assert isinstance(result, Chosen)
    assert result.illust.id == ids[2]


async def test_an_artist_who_is_gone_leaves_no_candidate_and_is_named(opened, run):
    async with opened() as (_, client):
        result = await run(client, Source(mode="artist", artist_id=5))
    assert isinstance(result, Nothing)
    assert (result.reason, result.retryable) == (Reason.NO_CANDIDATE, False)
    assert [(skip.work, skip.code) for skip in result.report.skipped] == [("artist:5", SkipCode.DELETED)]


async def test_an_outage_on_the_second_page_keeps_what_the_first_one_showed(opened, run, catalogue):
    for number in range(40):
        catalogue.add(catalogue.make_work(ai_type=2, created=MORNING - timedelta(hours=number)))
    async with opened() as (simulator, client):
        simulator.faults.add(Fault(match="/v1/search/illust", kind="rate_limit", skip=1, times=None))
        with pytest.raises(ScanInterrupted) as caught:
            await run(client, Source(mode="search", tags=("風景",)), Filters(ai="exclude"))
    assert isinstance(caught.value.outage, RateLimited)
    assert caught.value.report.listed == caught.value.report.count(SkipCode.FILTERED) == 30


async def test_a_list_that_does_not_move_on_is_an_error_and_not_an_empty_one(opened, run, catalogue):
    for number in range(40):
        catalogue.add(catalogue.make_work(ai_type=2, created=MORNING - timedelta(hours=number)))
    async with opened() as (simulator, client):
        simulator.faults.add(Fault(match="/v1/user/illusts", kind="repeat_cursor", times=None))
        artist = Source(mode="artist", artist_id=catalogue.authors[0].id)
        with pytest.raises(PaginationError):
            await run(client, artist, Filters(ai="exclude"))


async def test_a_bound_work_is_recovered_and_one_that_is_gone_is_not_replaced(opened, catalogue):
    for _ in range(2):
        catalogue.add(catalogue.make_work())
    kept, gone = catalogue.works
    catalogue.edit(gone, deleted=True)
    async with opened() as (_, client):
        assert (await recover(client, WorkRef.parse(f"illustration:{kept}"))).id == kept
        with pytest.raises(WorkDeleted):
            await recover(client, WorkRef.parse(f"illustration:{gone}"))
