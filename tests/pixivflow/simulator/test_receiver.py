import hashlib

import httpx
import pytest
import trio
from starlette.applications import Starlette

from pixivflow.simulator.faults import Fault
from pixivflow.simulator.receiver import Receiver
from pixivflow.simulator.server import SimulatorOptions

PNG = ("page.png", b"\x89PNG picture", "image/png")


async def post(driver, key="k1", fields=None, files=None, **headers):
    url = f"{driver.simulator.receiver_url}/submissions"
    headers |= {"Idempotency-Key": key} if key else {}
    return await driver.http.post(
        url, data=fields or {"text": "灯台"}, files=files or {"file": PNG}, headers=headers
    )


def outcomes(driver):
    return [(attempt.key, attempt.outcome) for attempt in driver.simulator.receiver.attempts]


async def test_a_new_key_becomes_a_visible_post(driver):
    answer = await post(driver, Authorization="Bearer secret")
    (seen,) = driver.simulator.receiver.posts
    (file,) = seen.files

    assert answer.status_code in (200, 201)
    assert answer.json() == {"status": "accepted", "id": seen.id}
    assert (seen.key, seen.fields, seen.authorization) == ("k1", {"text": "灯台"}, "Bearer secret")
    assert (file.name, file.media_type, file.bytes) == (PNG[0], PNG[2], PNG[1])
    assert file.sha256 == hashlib.sha256(PNG[1]).hexdigest()
    assert seen.at_ms == driver.wall.now_ms()


async def test_a_known_key_is_replayed_and_shows_nothing_new(driver):
    first = await post(driver)
    second = await post(driver)

    assert second.json() == {"status": "replayed", "id": first.json()["id"]}
    assert len(driver.simulator.receiver.posts) == 1
    assert outcomes(driver) == [("k1", "accepted"), ("k1", "replayed")]


@pytest.mark.parametrize(
    "other", [{"fields": {"text": "猫"}}, {"files": {"file": ("page.png", b"other", "image/png")}}]
)
async def test_a_known_key_with_other_content_is_a_conflict(driver, other):
    await post(driver)
    answer = await post(driver, **other)

    assert (answer.status_code, answer.json()["status"]) == (409, "conflict")
    assert len(driver.simulator.receiver.posts) == 1


async def test_a_missing_key_is_refused(driver):
    answer = await post(driver, key=None)

    assert answer.status_code == 400
    assert driver.simulator.receiver.posts == []


async def test_another_kind_of_body_is_refused(driver):
    url = f"{driver.simulator.receiver_url}/submissions"
    answer = await driver.http.post(url, json={}, headers={"Idempotency-Key": "k"})

    assert answer.status_code == 400


@pytest.mark.parametrize("dedup", [False, True])
async def test_a_work_posted_before_is_a_duplicate_when_asked_for(drive, dedup):
    async with drive(options=SimulatorOptions(dedup_work=dedup)) as driver:
        first = await post(driver, "k1", {"work": "illustration:1"})
        by_field = await post(driver, "k2", {"work": "illustration:1"})
        by_header = await post(driver, "k3", **{"X-Pixivflow-Work": "illustration:1"})
        word = "duplicate" if dedup else "accepted"

        assert [by_field.json()["status"], by_header.json()["status"]] == [word, word]
        assert (by_field.json()["id"] == first.json()["id"]) is dedup
        assert len(driver.simulator.receiver.posts) == (1 if dedup else 3)


async def test_a_lost_answer_leaves_a_visible_post_and_a_replay(driver):
    driver.simulator.faults.add(Fault("/submissions", "lose_answer"))
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
        await post(driver)
    answer = await post(driver)

    assert answer.json()["status"] == "replayed"
    assert outcomes(driver) == [("k1", "lost"), ("k1", "replayed")]
    assert len(driver.simulator.receiver.posts) == 1


async def test_a_conflict_on_request_stores_nothing(driver):
    driver.simulator.faults.add(Fault("/submissions", "conflict"))

    assert (await post(driver)).status_code == 409
    assert driver.simulator.receiver.posts == []


@pytest.mark.parametrize(("kind", "status"), [("status", 500), ("rate_limit", 429)])
async def test_faulted_attempts_are_remembered(driver, kind, status):
    driver.simulator.faults.add(Fault("/submissions", kind))

    assert (await post(driver)).status_code == status
    assert outcomes(driver) == [("k1", kind)]


async def test_readiness_can_be_taken_away(driver):
    url = f"{driver.simulator.receiver_url}/ready"
    driver.simulator.faults.add(Fault("/ready", "not_ready"))
    answers = [await driver.http.get(url) for _ in range(2)]

    assert [(answer.status_code, answer.json()) for answer in answers] == [
        (503, {"ready": False}),
        (200, {"ready": True}),
    ]


async def test_posts_can_be_read_from_outside(driver):
    await post(driver)
    (seen,) = (await driver.http.get(f"{driver.simulator.receiver_url}/posts")).json()

    assert (seen["key"], seen["fields"]) == ("k1", {"text": "灯台"})
    assert seen["files"][0]["size"] == len(PNG[1])
    assert "bytes" not in seen["files"][0]


async def test_a_large_file_arrives_whole(driver):
    data = bytes(range(256)) * 20_000
    await post(driver, files={"file": ("big.bin", data, "application/octet-stream")})

    assert driver.simulator.receiver.posts[0].files[0].bytes == data


async def test_posts_at_the_same_time_under_one_key_become_one(driver):
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(post, driver)

    assert len(driver.simulator.receiver.posts) == 1
    assert sorted(outcome for _, outcome in outcomes(driver)) == ["accepted"] + ["replayed"] * 4


async def test_a_request_cut_while_sending_shows_nothing(driver):
    head = (
        b"POST /submissions HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k1\r\nContent-Length: 1000\r\n"
        b"Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
    )
    stream = await trio.open_tcp_stream("127.0.0.1", httpx.URL(driver.simulator.receiver_url).port)
    async with stream:
        await stream.send_all(head)
    await driver.simulator.receiver.until(lambda receiver: len(receiver.attempts) == 1)

    assert outcomes(driver) == [("k1", "cut")]
    assert driver.simulator.receiver.posts == []


async def test_a_body_that_is_no_form_is_refused(driver):
    headers = {"Idempotency-Key": "k1", "Content-Type": "multipart/form-data"}
    url = f"{driver.simulator.receiver_url}/submissions"

    assert (await driver.http.post(url, content=b"--", headers=headers)).status_code == 400
    assert outcomes(driver) == [("k1", "invalid")]


async def test_one_can_wait_for_a_post(driver):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(post, driver)
        await driver.simulator.receiver.until(lambda receiver: len(receiver.posts) == 1)

    assert outcomes(driver) == [("k1", "accepted")]


async def test_a_key_can_be_looked_up_and_everything_forgotten(driver):
    await post(driver)
    receiver = driver.simulator.receiver
    assert receiver.post("k1") == receiver.posts[0]
    receiver.clear()

    assert (receiver.posts, receiver.attempts, receiver.post("k1")) == ([], [], None)


async def test_old_files_lose_their_bytes_and_keep_their_hash(driver):
    receiver = Receiver(driver.wall, kept_bytes=10)
    app = Starlette(routes=receiver.routes())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://receiver") as client:
        for key in ("old", "new"):
            files = {"file": (key, key.encode() * 2, "text/plain")}
            await client.post("/submissions", files=files, headers={"Idempotency-Key": key})

    assert [post.files[0].bytes for post in receiver.posts] == [b"", b"newnew"]
    assert [post.files[0].size for post in receiver.posts] == [6, 6]
    assert receiver.post("old").files[0].sha256 == hashlib.sha256(b"oldold").hexdigest()


async def test_several_files_keep_their_order(driver):
    files = [("files", (f"{number}.png", b"x", "image/png")) for number in range(12)]
    await post(driver, files=files)

    assert [file.name for file in driver.simulator.receiver.posts[0].files] == [f"{n}.png" for n in range(12)]
