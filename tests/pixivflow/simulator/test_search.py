from datetime import date, datetime, timedelta

import msgspec
import pytest

from pixivflow.simulator.catalogue import JST, Catalogue
from pixivflow.simulator.server import SimulatorOptions

NOW = datetime(2026, 11, 20, 15, tzinfo=JST)
PATH = "/v1/search/illust"
PREMIUM = SimulatorOptions(premium=True)


def catalogue_of(count, **overrides):
    catalogue = Catalogue(1, works=0, now=NOW)
    for number in range(count):
        created = NOW - timedelta(minutes=count - number)
        catalogue.add(catalogue.make_work(created=created, bookmarks=number, **overrides))
    return catalogue


async def test_a_walk_finds_every_visible_work_once(driver):
    found = await driver.walk(PATH, word="風景", search_target="exact_match_for_tags")
    works = driver.simulator.catalogue.works.values()

    assert sorted(found) == sorted(work.id for work in works if "風景" in work.tags and not work.deleted)


async def test_the_newest_come_first_unless_asked_otherwise(driver):
    newest = await driver.walk(PATH, word="風景")
    oldest = await driver.walk(PATH, word="風景", sort="date_asc")

    assert newest == oldest[::-1]
    assert newest == sorted(newest, reverse=True)


async def test_the_popular_are_one_page_without_premium(drive):
    async with drive(catalogue_of(50)) as driver:
        page = (await driver.get(PATH, word="風景", sort="popular_desc")).json()

    assert len(page["illusts"]) == 30
    assert page["next_url"] is None
    assert page["illusts"][0]["total_bookmarks"] == 49


async def test_the_popular_can_all_be_walked_with_premium(drive):
    async with drive(catalogue_of(50), PREMIUM) as driver:
        assert len(await driver.walk(PATH, word="風景", sort="popular_desc")) == 50


async def test_a_more_popular_work_takes_the_first_place(driver):
    work = driver.simulator.catalogue.make_work(bookmarks=99_999)
    driver.simulator.catalogue.add(work)

    assert (await driver.ids(PATH, word="風景", sort="popular_desc"))[0] == work.id


async def test_days_are_japanese_and_inclusive(drive):
    catalogue = Catalogue(1, works=0, now=NOW)
    edges = [(18, 23, 59), (19, 0, 0), (19, 23, 59), (20, 0, 0)]
    ids = []
    for day, hour, minute in edges:
        work = catalogue.make_work(created=datetime(2026, 11, day, hour, minute, tzinfo=JST))
        catalogue.add(work)
        ids.append(work.id)
    async with drive(catalogue) as driver:
        found = await driver.ids(
            PATH, word="風景", start_date="2026-11-19", end_date="2026-11-19", sort="date_asc"
        )

    assert found == ids[1:3]


async def test_a_span_counts_back_from_now(driver):
    found = await driver.walk(PATH, word="オリジナル", duration="within_last_day")
    works = driver.simulator.catalogue.works

    assert found
    assert all(works[work_id].created > NOW - timedelta(days=1) for work_id in found)


async def test_works_made_by_ai_can_be_hidden(driver):
    driver.simulator.catalogue.add(driver.simulator.catalogue.make_work(tags=("機械",), ai_type=2))

    assert len(await driver.ids(PATH, word="機械")) == 1
    assert await driver.ids(PATH, word="機械", search_ai_type=0) == []


async def test_bookmark_limits_work_with_premium_only(drive):
    limits = {"bookmark_num_min": 5, "bookmark_num_max": 6}
    async with drive(catalogue_of(10), PREMIUM) as driver:
        assert len(await driver.ids(PATH, word="風景", **limits)) == 2
    async with drive(catalogue_of(10)) as driver:
        assert len(await driver.ids(PATH, word="風景", **limits)) == 10


async def test_offsets_past_the_cap_are_refused_though_the_server_hands_one_out(drive):
    async with drive(catalogue_of(5040)) as driver:
        last = (await driver.get(PATH, word="風景", offset=4980)).json()
        refused = await driver.get(last["next_url"])

    assert "offset=5010" in last["next_url"]
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == '{"offset":["offset must be no more than 5000"]}'


@pytest.mark.parametrize(
    ("parameter", "value", "text"),
    [
        ("search_target", "somewhere", "Search Target contains invalid value"),
        ("sort", "best", "Sort contains invalid value"),
        ("start_date", "2026-13-01", "start_date is not a valid date, expected YYYY-MM-DD"),
        ("end_date", "20261101", "end_date is not a valid date, expected YYYY-MM-DD"),
        ("offset", "ten", "offset must be an integer"),
    ],
)
async def test_bad_values_do_not_validate(driver, parameter, value, text):
    answer = await driver.get(PATH, word="風景", **{parameter: value})

    assert answer.status_code == 400
    assert msgspec.json.decode(answer.json()["error"]["message"]) == {parameter: [text]}


async def test_the_word_is_required(driver):
    assert (await driver.get(PATH)).status_code == 400


async def test_the_answer_says_the_span_limit(driver):
    page = (await driver.get(PATH, word="風景", start_date=str(date(2026, 11, 1)))).json()

    assert page["search_span_limit"] == 31_536_000
    assert page["show_ai"] is True
