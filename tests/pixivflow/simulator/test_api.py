from datetime import datetime, timedelta

import msgspec
import pytest

from pixivflow.pixiv.models import Illust
from pixivflow.simulator.catalogue import JST, Catalogue, SimUser

NOW = datetime(2026, 11, 20, 15, tzinfo=JST)


class Detail(msgspec.Struct):
    illust: Illust


class Listing(msgspec.Struct):
    illusts: tuple[Illust, ...]
    next_url: str | None


def message(answer):
    return answer.json()["error"]["message"]


def user_message(answer):
    return answer.json()["error"]["user_message"]


async def test_a_call_without_a_token_is_refused_with_the_oauth_sentence(driver):
    answer = await driver.http.get(f"{driver.simulator.api_url}/v1/illust/detail?illust_id=1")

    assert answer.status_code == 400
    assert message(answer).endswith("Error Message: invalid_request")


async def test_an_unknown_token_is_an_invalid_grant(driver):
    driver.token = "not-a-token"
    answer = await driver.get("/v1/illust/detail", illust_id=1)

    assert answer.status_code == 400
    assert message(answer).endswith("Error Message: invalid_grant")


async def test_a_token_ends_with_its_lifetime(driver):
    driver.wall.now += timedelta(seconds=3600)
    answer = await driver.get("/v1/illust/ranking")

    assert message(answer).endswith("Error Message: invalid_grant")


async def test_an_unknown_path_is_told_in_an_envelope(driver):
    answer = await driver.get("/v9/nothing")

    assert (answer.status_code, user_message(answer)) == (404, "Specified end-point doesn't exist")


async def test_detail_has_the_whole_work(driver):
    work = next(
        work for work in driver.simulator.catalogue.works.values() if work.page_count == 5 and not work.stub
    )
    answer = await driver.get("/v1/illust/detail", illust_id=work.id)
    illust = msgspec.json.decode(answer.content, type=Detail).illust

    assert (illust.title, illust.page_count, len(illust.original_urls)) == (work.title, 5, 5)
    assert {url.rpartition(".")[2] for url in illust.original_urls} == {"jpg", "png"}
    assert illust.revision == work.created.strftime("%Y/%m/%d/%H/%M/%S")
    assert answer.json()["illust"]["total_comments"] == work.comments
    assert answer.json()["illust"]["create_date"].endswith("+09:00")


async def test_lists_lack_the_number_of_comments(driver):
    page = (await driver.get("/v1/search/illust", word="風景")).json()

    assert all("total_comments" not in illust for illust in page["illusts"])


async def test_a_caption_may_be_missing_from_lists_only(driver):
    work = driver.simulator.catalogue.make_work(caption="words", caption_in_lists=False, tags=("題",))
    driver.simulator.catalogue.add(work)
    listed = (await driver.get("/v1/search/illust", word="題")).json()["illusts"][0]
    detail = (await driver.get("/v1/illust/detail", illust_id=work.id)).json()["illust"]

    assert (listed["caption"], detail["caption"]) == ("", "words")


async def test_a_work_of_one_page_has_no_meta_pages(driver):
    work = driver.simulator.catalogue.make_work()
    driver.simulator.catalogue.add(work)
    illust = (await driver.get("/v1/illust/detail", illust_id=work.id)).json()["illust"]

    assert illust["meta_pages"] == []
    assert illust["meta_single_page"]["original_image_url"].startswith(driver.simulator.image_url)


@pytest.mark.parametrize("change", [{"deleted": True}, {"stub": "unknown"}])
async def test_the_detail_of_a_gone_work_is_not_found(driver, change):
    work = driver.simulator.catalogue.make_work(**change)
    driver.simulator.catalogue.add(work)
    answer = await driver.get("/v1/illust/detail", illust_id=work.id)

    assert answer.status_code == 404
    assert user_message(answer) == "The artwork has been deleted or the artwork ID does not exist."


async def test_a_removed_work_leaves_lists_and_detail(driver):
    work = driver.simulator.catalogue.make_work(tags=("ただ一つ",))
    driver.simulator.catalogue.add(work)
    before = await driver.ids("/v1/search/illust", word="ただ一つ")
    driver.simulator.catalogue.remove(work.id)

    assert before == [work.id]
    assert await driver.ids("/v1/search/illust", word="ただ一つ") == []
    assert (await driver.get("/v1/illust/detail", illust_id=work.id)).status_code == 404


@pytest.mark.parametrize("kind", ["sanity_level", "unviewable", "mypixiv"])
async def test_a_withheld_work_is_a_stub_with_status_200(driver, kind):
    work = driver.simulator.catalogue.make_work(stub=kind)
    driver.simulator.catalogue.add(work)
    answer = await driver.get("/v1/illust/detail", illust_id=work.id)
    illust = msgspec.json.decode(answer.content, type=Detail).illust

    assert illust.restricted
    assert not illust.visible
    assert illust.title == ""
    assert illust.original_urls[0].endswith(f"/common/images/limit_{kind}_360.png")


async def test_an_edited_work_gets_another_revision(driver):
    catalogue = driver.simulator.catalogue
    work = catalogue.make_work()
    catalogue.add(work)
    first = (await driver.get("/v1/illust/detail", illust_id=work.id)).json()["illust"]
    catalogue.edit(work.id, uploaded=work.created + timedelta(days=1), page_count=2)
    second = (await driver.get("/v1/illust/detail", illust_id=work.id)).json()["illust"]

    assert (first["page_count"], second["page_count"]) == (1, 2)
    assert first["create_date"] == second["create_date"]
    assert first["image_urls"] != second["image_urls"]


async def test_works_appear_as_the_clock_moves(driver):
    catalogue = driver.simulator.catalogue
    work = catalogue.make_work(created=driver.wall.now + timedelta(minutes=5), tags=("あした",))
    catalogue.add(work)
    before = await driver.ids("/v1/search/illust", word="あした")
    driver.wall.now += timedelta(minutes=5)

    assert before == []
    assert await driver.ids("/v1/search/illust", word="あした") == [work.id]


async def test_an_upcoming_catalogue_grows(drive):
    async with drive(Catalogue(3, works=10, upcoming=10, now=NOW)) as driver:
        works = list(driver.simulator.catalogue.works.values())

    assert [work.created for work in works] == sorted(work.created for work in works)
    assert sum(work.created > driver.simulator.catalogue.now for work in works) == 10


async def test_user_illusts_are_newest_first_and_carry_the_author(driver):
    author = driver.simulator.catalogue.authors[0]
    page = (await driver.get("/v1/user/illusts", user_id=author.id)).json()
    dates = [illust["create_date"] for illust in page["illusts"]]

    assert page["user"]["id"] == author.id
    assert dates
    assert dates == sorted(dates, reverse=True)


async def test_user_illusts_can_be_narrowed_by_type(driver):
    author = driver.simulator.catalogue.authors[0]
    page = (await driver.get("/v1/user/illusts", user_id=author.id, type="manga")).json()

    assert {illust["type"] for illust in page["illusts"] if illust["visible"]} <= {"manga"}


async def test_the_list_of_a_gone_user_succeeds_with_nobody(driver):
    page = (await driver.get("/v1/user/illusts", user_id=1)).json()

    assert (page["user"]["id"], page["illusts"], page["next_url"]) == (None, [], None)


async def test_user_detail_knows_the_author(driver):
    author = driver.simulator.catalogue.authors[1]
    answer = (await driver.get("/v1/user/detail", user_id=author.id)).json()

    assert answer["user"]["name"] == author.name
    assert answer["profile"]["total_illusts"] > 0


async def test_the_detail_of_a_gone_user_is_not_found(driver):
    answer = await driver.get("/v1/user/detail", user_id=1)

    assert (answer.status_code, user_message(answer)) == (
        404, "User has left pixiv or the user ID does not exist.",
    )  # fmt: skip


async def test_related_works_share_a_tag_and_exclude_the_seed(driver):
    seed = driver.simulator.catalogue.make_work(tags=("灯台",))
    driver.simulator.catalogue.add(seed)
    found = await driver.walk("/v2/illust/related", illust_id=seed.id)
    works = driver.simulator.catalogue.works

    assert found
    assert seed.id not in found
    assert all("灯台" in works[work_id].tags for work_id in found)


async def test_related_ends_after_150_works(drive):
    async with drive(Catalogue(2, works=400, now=NOW)) as driver:
        seed = next(iter(driver.simulator.catalogue.works))
        found = await driver.walk("/v2/illust/related", illust_id=seed)

    assert 140 < len(found) <= 150


async def test_bookmarks_are_walked_by_bookmark_id(drive):
    catalogue = Catalogue(1, works=0, now=NOW)
    for number in range(70):
        catalogue.add(catalogue.make_work(bookmark_id=1000 + number * 3))
    async with drive(catalogue) as driver:
        params = {"user_id": 90000001, "restrict": "public"}
        page = (await driver.get("/v1/user/bookmarks/illust", **params)).json()
        found = await driver.walk("/v1/user/bookmarks/illust", **params)

    assert "max_bookmark_id=" in page["next_url"]
    assert found == sorted(catalogue.works, reverse=True)


async def test_private_bookmarks_are_a_list_of_their_own(driver):
    public = await driver.walk("/v1/user/bookmarks/illust", user_id=90000001, restrict="public")
    private = await driver.walk("/v1/user/bookmarks/illust", user_id=90000001, restrict="private")

    assert public
    assert private
    assert not set(public) & set(private)


async def test_bookmarks_hold_stubs(driver):
    page = (await driver.get("/v1/user/bookmarks/illust", user_id=90000001, restrict="public")).json()
    work = driver.simulator.catalogue.make_work(stub="unknown", bookmark_id=99_000_000_000)
    driver.simulator.catalogue.add(work)
    page = (await driver.get("/v1/user/bookmarks/illust", user_id=90000001, restrict="public")).json()

    assert page["illusts"][0]["visible"] is False
    assert page["illusts"][0]["user"]["id"] == 0


async def test_bookmarks_can_be_narrowed_by_tag(driver):
    params = {"user_id": 90000001, "restrict": "public"}
    everything = await driver.walk("/v1/user/bookmarks/illust", **params)
    untagged = await driver.walk("/v1/user/bookmarks/illust", **params, tag="未分類")

    assert 0 < len(untagged) < len(everything)


async def test_a_bad_restrict_does_not_validate(driver):
    answer = await driver.get("/v1/user/bookmarks/illust", user_id=1, restrict="everything")

    assert answer.status_code == 400
    assert msgspec.json.decode(message(answer)) == {"restrict": ["restrict contains invalid value"]}


async def test_the_follow_feed_holds_followed_authors_only(driver):
    found = await driver.walk("/v2/illust/follow", restrict="all")
    works = driver.simulator.catalogue.works

    assert found
    assert all(works[work_id].author.followed for work_id in found)


async def test_an_added_author_can_be_followed(driver):
    author = SimUser(5, "新人", "newcomer", followed="public")
    work = driver.simulator.catalogue.make_work(author=author)
    driver.simulator.catalogue.add(work)

    assert (await driver.ids("/v2/illust/follow", restrict="public"))[0] == work.id


async def test_ugoira_metadata_names_zip_and_delays(driver):
    work = next(work for work in driver.simulator.catalogue.works.values() if work.type == "ugoira")
    answer = (await driver.get("/v1/ugoira/metadata", illust_id=work.id)).json()["ugoira_metadata"]

    assert answer["zip_urls"]["medium"].endswith(f"/{work.id}_ugoira600x600.zip")
    assert [frame["delay"] for frame in answer["frames"]] == list(work.delays)
    assert answer["frames"][0]["file"] == "000000.jpg"


async def test_other_works_have_no_ugoira_metadata(driver):
    work = driver.simulator.catalogue.make_work()
    driver.simulator.catalogue.add(work)

    assert (await driver.get("/v1/ugoira/metadata", illust_id=work.id)).status_code == 404


async def test_a_missing_number_does_not_validate(driver):
    answer = await driver.get("/v1/illust/detail")

    assert (answer.status_code, msgspec.json.decode(message(answer))) == (
        400, {"illust_id": ["illust_id is required"]},
    )  # fmt: skip


async def test_the_next_page_carries_every_parameter_and_our_own_address(driver):
    params = {"word": "オリジナル", "filter": "for_ios", "viewed[]": ["1", "2"]}
    page = msgspec.json.decode((await driver.get("/v1/search/illust", **params)).content, type=Listing)

    assert page.next_url is not None
    assert page.next_url.startswith(f"{driver.simulator.api_url}/v1/search/illust?")
    assert "filter=for_ios&viewed%5B0%5D=1&viewed%5B1%5D=2&offset=30" in page.next_url


async def test_a_deleted_work_leaves_a_short_page_with_a_next(driver):
    catalogue = driver.simulator.catalogue
    catalogue.add(catalogue.make_work(tags=("風景",), deleted=True))
    page = (await driver.get("/v1/search/illust", word="風景")).json()

    assert len(page["illusts"]) < 30
    assert page["next_url"]


async def test_dates_are_told_in_japanese_time(driver):
    work = driver.simulator.catalogue.make_work(created=driver.wall.now - timedelta(hours=1))
    driver.simulator.catalogue.add(work)
    illust = (await driver.get("/v1/illust/detail", illust_id=work.id)).json()["illust"]

    assert illust["create_date"] == work.created.astimezone(JST).isoformat()
