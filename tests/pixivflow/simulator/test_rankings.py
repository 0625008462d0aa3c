from datetime import datetime, timedelta

import pytest

from pixivflow.simulator.catalogue import JST, Catalogue

PATH = "/v1/illust/ranking"


@pytest.mark.parametrize(("hour", "minute", "published"), [(11, 59, False), (12, 0, True)])
async def test_a_days_ranking_appears_at_noon_of_the_next_day(driver, hour, minute, published):
    driver.wall.now = datetime(2026, 11, 20, hour, minute, tzinfo=JST)
    await driver.sign_in()
    page = (await driver.get(PATH, mode="day", date="2026-11-19")).json()

    assert bool(page["illusts"]) is published
    assert page["next_url"] is None or published


async def test_without_a_date_the_newest_published_one_comes(driver):
    driver.wall.now = datetime(2026, 11, 20, 9, tzinfo=JST)
    await driver.sign_in()

    assert await driver.walk(PATH) == await driver.walk(PATH, mode="day", date="2026-11-18")


async def test_the_order_is_the_same_each_time_and_popular_works_lead(driver):
    work = driver.simulator.catalogue.make_work(
        bookmarks=99_999, created=driver.wall.now - timedelta(days=1, hours=2)
    )
    driver.simulator.catalogue.add(work)
    first = await driver.walk(PATH, date="2026-11-19")

    assert first[0] == work.id
    assert first == await driver.walk(PATH, date="2026-11-19")


async def test_a_ranking_is_paged(drive):
    catalogue = Catalogue(5, works=300, now=datetime(2026, 11, 20, 15, tzinfo=JST))
    async with drive(catalogue) as driver:
        page = (await driver.get(PATH, mode="week", date="2026-11-19")).json()
        found = await driver.walk(PATH, mode="week", date="2026-11-19")

    assert "offset=30" in page["next_url"]
    assert len(found) == len(set(found)) > 30


@pytest.mark.parametrize(
    ("mode", "fits"),
    [
        ("day", lambda work: work.x_restrict == 0 and work.ai_type != 2),
        ("week_manga", lambda work: work.type == "manga"),
        ("day_r18", lambda work: work.x_restrict == 1),
        ("week_r18g", lambda work: work.x_restrict == 2),
        ("day_ai", lambda work: work.ai_type == 2),
    ],
)
async def test_each_mode_has_its_own_works(drive, mode, fits):
    catalogue = Catalogue(5, works=300, now=datetime(2026, 11, 20, 15, tzinfo=JST))
    async with drive(catalogue) as driver:
        found = await driver.walk(PATH, mode=mode)

    assert found
    assert all(fits(catalogue.works[work_id]) for work_id in found)


async def test_no_stub_is_ranked(driver):
    found = await driver.walk(PATH, mode="month")

    assert all(driver.simulator.catalogue.works[work_id].stub is None for work_id in found)


@pytest.mark.parametrize(
    ("parameter", "value"), [("mode", "hourly"), ("date", "20261119"), ("date", "2026-02-30")]
)
async def test_bad_modes_and_dates_do_not_validate(driver, parameter, value):
    answer = await driver.get(PATH, **{parameter: value})

    assert answer.status_code == 400
    assert parameter in answer.json()["error"]["message"]
