"""The client against the look-alike of Pixiv."""

import random

import pytest

from pixivflow.clock import SystemWall
from pixivflow.pixiv.client import SearchQuery, open_pixiv_client
from pixivflow.pixiv.errors import OwnerGone, WorkDeleted
from pixivflow.pixiv.images import open_image_host
from pixivflow.pixiv.login import try_refresh
from pixivflow.pixiv.settings import PixivSettings
from pixivflow.simulator.server import SimulatorOptions, open_simulator


@pytest.fixture
async def simulator():
    async with open_simulator(
        seed=3, works=90, options=SimulatorOptions(rotate_refresh_tokens=True)
    ) as opened:
        yield opened


@pytest.fixture
def addresses(simulator):
    urls = {"api_url": simulator.api_url, "oauth_url": simulator.oauth_url, "image_url": simulator.image_url}
    return PixivSettings(**urls, pace_s=0.0, retry_base_s=0.0)


@pytest.fixture
async def collector(simulator, addresses, store):
    wall, rng = SystemWall(), random.Random(7)
    async with open_pixiv_client(
        "main", simulator.refresh_token, store, addresses, wall=wall, rng=rng
    ) as opened:
        yield opened


async def works_of(walk):
    found = []
    while (works := await walk.next_page()) is not None:
        found.extend(works)
    return found


async def test_an_artists_works_are_found_again_by_detail_and_by_search(collector, simulator):
    ranked = await works_of(collector.ranking("day", None))
    work = next(work for work in ranked if not work.restricted and work.tags)
    listed = await works_of(collector.artist_works(work.user.id))
    assert work.id in {other.id for other in listed}
    assert (await collector.illust_detail(work.id)).title == work.title
    found = await works_of(collector.search(SearchQuery(work.tags[0].name, target="exact")))
    assert work.id in {other.id for other in found}


async def test_a_walk_goes_on_when_all_tokens_expire(collector, simulator, store):
    ranked = await works_of(collector.ranking("day", None))
    simulator.accounts.expire_all()
    assert [work.id for work in await works_of(collector.ranking("day", None))] == [
        work.id for work in ranked
    ]
    assert store.load("main").refresh_token == simulator.refresh_token


async def test_what_does_not_exist_is_gone(collector):
    with pytest.raises(WorkDeleted):
        await collector.illust_detail(1)
    with pytest.raises(OwnerGone):
        await collector.artist_works(1).next_page()


async def test_a_picture_comes_from_the_image_host(collector, addresses):
    ranked = await works_of(collector.ranking("day", None))
    work = next(work for work in ranked if not work.restricted and work.type == "illust")
    async with open_image_host(addresses) as host, host.stream(work.original_urls[0]) as response:
        assert response.status_code == 200
        content = await response.aread()
    assert len(content) == int(response.headers["content-length"])


async def test_a_refresh_token_is_tried(simulator, addresses):
    assert (await try_refresh(simulator.refresh_token, addresses)).refresh_token == simulator.refresh_token
