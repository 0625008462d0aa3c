import gc
import re
import socket

import httpx
import pytest
import trio

from pixivflow.simulator.connections import bind
from pixivflow.simulator.faults import Fault
from pixivflow.simulator.server import SimulatorOptions, open_simulator


async def everything(driver):
    """What a client sees: lists and a few files, without the ports."""
    page = (await driver.get("/v1/search/illust", word="オリジナル")).text
    illusts = (await driver.get("/v1/search/illust", word="オリジナル")).json()["illusts"]
    urls = [illust["meta_single_page"].get("original_image_url") for illust in illusts]
    files = [(await driver.image(url)).content for url in urls if url][:5]
    return re.sub(r"127\.0\.0\.1:\d+", "HOST", page), files


async def test_two_simulators_of_one_seed_give_equal_bytes(drive):
    async with drive() as first, drive() as second:
        assert await everything(first) == await everything(second)


async def ask(client, url):
    with pytest.raises(httpx.TransportError):
        await client.get(url + "/v1/illust/ranking", headers={"Authorization": "Bearer x"})


@pytest.mark.parametrize("kind", ["hang", "stall"])
async def test_closing_with_an_open_request_is_quick_and_clean(kind):
    with trio.fail_after(10):
        async with httpx.AsyncClient(trust_env=False, timeout=30) as client, trio.open_nursery() as nursery:
            async with open_simulator(works=0) as simulator:
                url = simulator.api_url
                simulator.faults.add(Fault("/v1/", kind, times=None))
                for _ in range(3):
                    nursery.start_soon(ask, client, url)
                await simulator.requests.until(lambda log: log.running("api") == 3)
            assert simulator.requests.running("api") == 0
    gc.collect()


async def test_closing_while_a_client_does_not_read_is_quick(drive):
    async with drive(options=SimulatorOptions(image_min_bytes=20_000_000)) as driver:
        work = driver.simulator.catalogue.make_work()
        driver.simulator.catalogue.add(work)
        illust = (await driver.get("/v1/illust/detail", illust_id=work.id)).json()["illust"]
        path = httpx.URL(illust["meta_single_page"]["original_image_url"]).path
        stream = await trio.open_tcp_stream("127.0.0.1", httpx.URL(driver.simulator.image_url).port)
        await stream.send_all(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nReferer: https://app-api.pixiv.net/\r\n\r\n".encode()
        )
        assert (await stream.receive_some(15)).startswith(b"HTTP/1.1 200")
        assert driver.simulator.requests.running("image") == 1
    await stream.aclose()


async def test_small_answers_come_in_one_write(driver):
    url = httpx.URL(driver.simulator.receiver_url)
    async with await trio.open_tcp_stream("127.0.0.1", url.port) as stream:
        await stream.send_all(b"GET /ready HTTP/1.1\r\nHost: x\r\n\r\n")
        received = bytes(await stream.receive_some(65536))

    assert received.startswith(b"HTTP/1.1 200")
    assert received.endswith(b'{"ready":true}')


@pytest.mark.parametrize(
    "words", [b"nonsense\r\n\r\n", b"\x00\xff\x16\x03", b"GET / HTTP/1.1\r\n\r\n", b"GET"]
)
async def test_nonsense_does_not_end_the_server(driver, words):
    url = httpx.URL(driver.simulator.receiver_url)
    async with await trio.open_tcp_stream("127.0.0.1", url.port) as stream:
        await stream.send_all(words)
        await stream.send_eof()
        while await stream.receive_some(65536):
            pass

    assert (await driver.http.get(f"{url}/ready")).status_code == 200


async def test_many_requests_go_over_one_connection(driver):
    for _ in range(50):
        assert (await driver.http.get(f"{driver.simulator.receiver_url}/ready")).status_code == 200


async def test_an_error_of_the_block_leaves_as_it_is():
    with pytest.raises(KeyError, match="mine"):
        async with open_simulator(works=0):
            raise KeyError("mine")


async def test_a_taken_port_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"127.0.0.1:{port}"):
            await bind("127.0.0.1", port)


async def test_a_taken_port_closes_what_was_open():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        options = SimulatorOptions(receiver_port=taken.getsockname()[1])
        with pytest.raises(OSError, match="choose another port"):
            async with open_simulator(works=0, options=options):
                pass
    gc.collect()


async def test_a_cancelled_block_ends():
    with trio.move_on_after(0.05) as scope:
        async with open_simulator(works=5) as simulator:
            assert simulator.api_url.startswith("http://127.0.0.1:")
            await trio.sleep_forever()

    assert scope.cancelled_caught


async def test_chosen_ports_are_used():
    listener = await bind("127.0.0.1", 0)
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    async with open_simulator(works=0, options=SimulatorOptions(api_port=port)) as simulator:
        assert simulator.api_url == simulator.oauth_url == f"http://127.0.0.1:{port}"
