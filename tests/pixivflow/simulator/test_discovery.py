async def test_autocomplete_knows_tags_and_translations(driver):
    answer = (await driver.get("/v2/search/autocomplete", word="灯")).json()

    assert answer == {"tags": [{"name": "灯台", "translated_name": "lighthouse"}]}


async def test_trending_tags_come_with_a_work_that_has_them(driver):
    trends = (await driver.get("/v1/trending-tags/illust")).json()["trend_tags"]

    assert trends
    for trend in trends:
        assert trend["tag"] in [tag["name"] for tag in trend["illust"]["tags"]]


async def test_the_newest_are_walked_by_id(driver):
    found = await driver.walk("/v1/illust/new", content_type="illust")
    works = driver.simulator.catalogue.works.values()

    assert found == sorted((w.id for w in works if w.type == "illust" and not w.deleted), reverse=True)


async def test_recommended_works_are_popular_and_paged(driver):
    found = await driver.walk("/v1/illust/recommended")
    works = driver.simulator.catalogue.works
    bookmarks = [works[work_id].bookmarks for work_id in found]

    assert len(found) == sum(not work.deleted for work in works.values())
    assert bookmarks == sorted(bookmarks, reverse=True)
