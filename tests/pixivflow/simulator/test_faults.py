import httpx
import msgspec
import pytest
import trio

from pixivflow.pixiv.models import Illust
from pixivflow.simulator.faults import Fault, Faults
from pixivflow.simulator.server import SimulatorOptions

RANKING = "/v1/illust/ranking"
SEARCH = "/v1/search/illust"


class Detail(msgspec.Struct):
    illust: Illust


class Listing(msgspec.Struct):
    illusts: tuple[Illust, ...]
    next_url: str | None


def test_a_fault_waits_hits_and_ends():
    faults = Faults()
    fault = Fault("/a", "status", times=2, skip=1)
    faults.add(fault)
    hits = [faults.take("GET", path) is not None for path in ("/b", "/a", "/ab", "/a/c", "/a")]

    assert hits == [False, False, True, True, False]
    assert faults.active == ()


def test_a_fault_for_ever_ends_when_cleared():
    faults = Faults()
    faults.add(Fault("/a", "status", times=None))
    assert all(faults.take("GET", "/a") for _ in range(5))
    faults.clear()
    assert faults.take("GET", "/a") is None


def test_the_oldest_due_fault_goes_first():
    faults = Faults()
    faults.add(Fault("/a", "status", status=500))
    faults.add(Fault("/a", "status", status=503))

    assert [faults.take("GET", "/a").status for _ in range(2)] == [500, 503]


def test_a_fault_may_name_a_method():
    faults = Faults()
    faults.add(Fault("/a", "status", method="POST"))

    assert faults.take("GET", "/a") is None
    assert faults.take("POST", "/a") is not None


async def test_a_server_error_is_html(driver):
    driver.simulator.faults.add(Fault("/v1/", "status", status=502))
    answer = await driver.get(RANKING)

    assert (answer.status_code, answer.headers["content-type"]) == (502, "text/html; charset=UTF-8")
    assert (await driver.get(RANKING)).status_code == 200


async def test_a_client_error_has_the_envelope(driver):
    driver.simulator.faults.add(Fault("/v1/", "status", status=403, user_message="restricted"))
    answer = await driver.get(RANKING)

    assert answer.json()["error"]["user_message"] == "restricted"


async def test_an_answer_can_be_given_word_for_word(driver):
    driver.simulator.faults.add(Fault("/v1/", "status", status=200, body='{"error":true,"body":[]}'))

    assert (await driver.get(RANKING)).json() == {"error": True, "body": []}


@pytest.mark.parametrize(("given", "answered"), [({}, 403), ({"status": 429}, 429), ({"status": 400}, 400)])
async def test_a_rate_limit_says_so_under_any_status(driver, given, answered):
    driver.simulator.faults.add(Fault("/v1/", "rate_limit", retry_after="7", **given))
    answer = await driver.get(RANKING)

    assert (answer.status_code, answer.json()["error"]["message"]) == (answered, "Rate Limit")
    assert answer.headers["retry-after"] == "7"


async def test_a_bot_wall_answers_a_page(driver):
    driver.simulator.faults.add(Fault("/auth/token", "html"))
    answer = await driver.http.post(f"{driver.simulator.oauth_url}/auth/token", data={})

    assert answer.status_code == 403
    assert answer.text.startswith("<!DOCTYPE html>")


async def test_a_reset_gives_no_answer(driver):
    driver.simulator.faults.add(Fault(RANKING, "reset"))
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
        await driver.get(RANKING)

    assert (await driver.get(RANKING)).status_code == 200


@pytest.mark.parametrize(("kept", "length"), [(None, None), (100, 100)])
async def test_a_truncated_picture_is_shorter_than_announced(driver, kept, length):
    work = driver.simulator.catalogue.make_work(width=80, height=80)
    driver.simulator.catalogue.add(work)
    url = (await driver.get("/v1/illust/detail", illust_id=work.id)).json()["illust"]["meta_single_page"]
    driver.simulator.faults.add(Fault("/img-original/", "truncate", keep_bytes=kept))
    received = bytearray()

    async def read():
        headers = {"Referer": "https://app-api.pixiv.net/"}
        async with driver.http.stream("GET", url["original_image_url"], headers=headers) as answer:
            announced.append(int(answer.headers["content-length"]))
            async for piece in answer.aiter_bytes():
                received.extend(piece)

    announced = []
    with pytest.raises(httpx.RemoteProtocolError):
        await read()

    assert len(received) == (length or announced[0] // 2)


async def test_a_truncated_list_is_an_error_for_the_client(driver):
    driver.simulator.faults.add(Fault(SEARCH, "truncate"))
    with pytest.raises(httpx.RemoteProtocolError):
        await driver.get(SEARCH, word="風景")


async def test_a_stalled_body_stays_silent(driver):
    driver.simulator.faults.add(Fault(SEARCH, "stall"))
    with pytest.raises(httpx.ReadTimeout):
        await driver.http.get(
            driver.simulator.api_url + SEARCH + "?word=a",
            headers={"Authorization": f"Bearer {driver.token}"},
            timeout=0.1,
        )


async def test_a_corrupt_answer_has_its_length_and_no_sense(driver):
    driver.simulator.faults.add(Fault(SEARCH, "corrupt"))
    answer = await driver.get(SEARCH, word="風景")

    assert answer.content.endswith(bytes(50))
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(answer.content)


async def test_a_wrong_type_is_announced(driver):
    driver.simulator.faults.add(Fault(SEARCH, "wrong_type"))
    answer = await driver.get(SEARCH, word="風景")

    assert answer.headers["content-type"] == "text/html"
    assert answer.json()["illusts"]


async def test_a_repeated_cursor_leads_back_to_the_same_page(driver):
    driver.simulator.faults.add(Fault(SEARCH, "repeat_cursor"))
    url = f"{driver.simulator.api_url}{SEARCH}?word=%E9%A2%A8%E6%99%AF&offset=0"
    page = (await driver.get(url)).json()

    assert page["next_url"] == url
    assert page["illusts"]


async def test_an_empty_page_promises_more(driver):
    driver.simulator.faults.add(Fault(SEARCH, "empty_page"))
    page = (await driver.get(SEARCH, word="オリジナル")).json()

    assert page["illusts"] == []
    assert "offset=30" in page["next_url"]


async def test_a_page_can_repeat_a_work(driver):
    driver.simulator.faults.add(Fault(SEARCH, "repeat_work"))
    ids = await driver.ids(SEARCH, word="風景")

    assert ids[-1] == ids[0]


@pytest.mark.parametrize("kind", ["sparse", "extra_fields"])
async def test_lists_and_details_can_lack_fields_or_have_more(driver, kind):
    work = driver.simulator.catalogue.make_work()
    driver.simulator.catalogue.add(work)
    driver.simulator.faults.add(Fault("/v1/", kind, times=2))
    listed = msgspec.json.decode((await driver.get(SEARCH, word="風景")).content, type=Listing).illusts
    answer = await driver.get("/v1/illust/detail", illust_id=work.id)
    detail = msgspec.json.decode(answer.content, type=Detail).illust

    assert {illust.id for illust in listed} >= {work.id}
    assert detail.original_urls
    assert (detail.user.id is None) is (kind == "sparse")
    assert ("seasonal_effect" in answer.json()["illust"]) is (kind == "extra_fields")


async def test_a_token_can_end_in_the_middle(driver):
    driver.simulator.faults.add(Fault("/v1/", "expire_token"))
    answers = [(await driver.get(RANKING)).status_code for _ in range(2)]
    await driver.sign_in()

    assert answers == [400, 400]
    assert (await driver.get(RANKING)).status_code == 200


async def test_a_refresh_can_be_refused(driver):
    driver.simulator.faults.add(Fault("/auth/token", "refuse_refresh"))
    body = await driver.sign_in()

    assert body["error"] == "invalid_grant"
    assert "access_token" in await driver.sign_in()


async def test_a_delay_comes_before_the_answer(driver):
    driver.simulator.faults.add(Fault(RANKING, "delay", delay_s=0.05))
    before = trio.current_time()
    answer = await driver.get(RANKING)

    assert answer.status_code == 200
    assert trio.current_time() - before >= 0.05


async def test_a_hanging_request_ends_when_the_client_leaves(driver):
    driver.simulator.faults.add(Fault(RANKING, "hang"))
    with pytest.raises(httpx.ReadTimeout):
        await driver.http.get(
            driver.simulator.api_url + RANKING,
            headers={"Authorization": f"Bearer {driver.token}"},
            timeout=0.05,
        )
    await driver.simulator.requests.until(lambda log: log.running("api") == 0)


async def test_the_log_counts_and_knows_headers(driver):
    await driver.get(RANKING)
    await driver.get(SEARCH, word="風景")
    await driver.image("/img-original/nothing.jpg")
    log = driver.simulator.requests

    assert (log.count("/v1/"), log.count("/v1/illust"), log.total("api"), log.total("image")) == (2, 1, 2, 1)
    assert log.matching(RANKING)[0].headers["authorization"] == f"Bearer {driver.token}"
    assert log.matching(role="image")[0].headers["referer"] == "https://app-api.pixiv.net/"


async def test_the_log_knows_the_peak_of_concurrency(drive):
    async with drive(options=SimulatorOptions(api_latency_s=0.05)) as driver:
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(driver.get, RANKING)

        assert driver.simulator.requests.peak("api") == 4
        assert driver.simulator.requests.running("api") == 0


async def test_faulted_requests_are_counted_too(driver):
    driver.simulator.faults.add(Fault("/v1/", "status", times=3))
    for _ in range(4):
        await driver.get(RANKING)

    assert driver.simulator.requests.count(RANKING) == 4
