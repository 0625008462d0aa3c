from datetime import timedelta

import pytest

ADMIN = "/_simulator"


@pytest.mark.parametrize("side", ["api_url", "receiver_url"])
async def test_faults_come_in_by_either_door(driver, side):
    url = getattr(driver.simulator, side) + f"{ADMIN}/faults"
    added = await driver.http.post(url, json={"match": "/v1/", "kind": "status", "status": 503})
    answers = [(await driver.get("/v1/illust/ranking")).status_code for _ in range(2)]

    assert added.status_code == 201
    assert answers == [503, 200]


async def test_faults_are_cleared_by_the_door(driver):
    url = f"{driver.simulator.api_url}{ADMIN}/faults"
    await driver.http.post(url, json={"match": "/", "kind": "status", "times": None})
    shown = (await driver.http.get(url)).json()
    await driver.http.delete(url)

    assert shown[0]["match"] == "/"
    assert driver.simulator.faults.active == ()


@pytest.mark.parametrize(
    "body", [b"{}", b"no json", b'{"match":"/","kind":"miracle"}', b'{"match":"/","x":1}']
)
async def test_a_fault_that_is_none_is_refused(driver, body):
    answer = await driver.http.post(f"{driver.simulator.api_url}{ADMIN}/faults", content=body)

    assert answer.status_code == 400
    assert "expected a fault" in answer.json()["message"]


async def test_the_log_can_be_read(driver):
    await driver.get("/v1/illust/ranking")
    log = (await driver.http.get(f"{driver.simulator.api_url}{ADMIN}/requests")).json()

    assert log["paths"] == {"/v1/illust/ranking": 1}
    assert log["hosts"]["api"] == {"total": 1, "peak": 1}
    assert log["requests"][0]["method"] == "GET"


async def test_a_work_comes_in_changes_and_goes(driver):
    url = f"{driver.simulator.api_url}{ADMIN}/works"
    work_id = (await driver.http.post(url, json={"bookmarks": 99999, "tags": ["門"], "title": "新"})).json()[
        "id"
    ]
    found = await driver.ids("/v1/search/illust", word="門")
    await driver.http.patch(f"{url}/{work_id}", json={"title": "改"})
    changed = (await driver.get("/v1/illust/detail", illust_id=work_id)).json()["illust"]
    gone = await driver.http.delete(f"{url}/{work_id}")

    assert found == [work_id]
    assert (changed["title"], changed["total_bookmarks"]) == ("改", 99999)
    assert gone.status_code == 204
    assert await driver.ids("/v1/search/illust", word="門") == []


async def test_a_work_without_a_time_is_created_now(driver):
    driver.wall.now += timedelta(minutes=30)
    answer = await driver.http.post(f"{driver.simulator.api_url}{ADMIN}/works", json={})

    assert driver.simulator.catalogue.works[answer.json()["id"]].created == driver.wall.now


@pytest.mark.parametrize("body", [{"bookmarks": "many"}, {"colour": 1}])
async def test_changes_that_no_work_has_are_refused(driver, body):
    work_id = next(iter(driver.simulator.catalogue.works))
    answer = await driver.http.patch(f"{driver.simulator.api_url}{ADMIN}/works/{work_id}", json=body)

    assert answer.status_code == 400


@pytest.mark.parametrize(
    "body", [{"colour": "red"}, {"bookmarks": "many"}, {"created": "2026-11-20T00:00:00"}, {"extensions": []}]
)
async def test_fields_that_no_work_has_are_refused(driver, body):
    answer = await driver.http.post(f"{driver.simulator.api_url}{ADMIN}/works", json=body)

    assert answer.status_code == 400
    assert "expected fields of a work" in answer.json()["message"]


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_an_unknown_work_is_not_found(driver, method):
    answer = await driver.http.request(method, f"{driver.simulator.api_url}{ADMIN}/works/5")

    assert answer.status_code == 404
