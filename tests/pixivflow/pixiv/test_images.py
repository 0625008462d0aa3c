from contextlib import aclosing, suppress

import httpx
import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from pixivflow.pixiv.errors import BadAddress, NetworkFailed, WorkRestricted, WorkUnavailable
from pixivflow.pixiv.images import address_of, open_image_host
from pixivflow.pixiv.settings import PixivSettings

PICTURE = "https://i.pximg.net/img-original/img/2026/10/05/18/30/12/190000101_p0.png"
PATH = "/img-original/img/2026/10/05/18/30/12/190000101_p0.png"


@pytest.fixture
def mirrored(image_server, settings):
    return msgspec.structs.replace(settings, image_url=image_server.url)


@pytest.fixture
async def host(mirrored):
    async with open_image_host(mirrored) as opened:
        yield opened


async def test_a_file_comes_whole(host, image_server):
    image_server.on(PATH, image_server.answer(body=b"picture" * 1000, content_type="image/png"))
    async with host.stream(PICTURE) as response:
        assert response.status_code == 200
        assert await response.aread() == b"picture" * 1000


async def test_a_request_has_the_referer_and_no_credentials(host, image_server):
    image_server.on(PATH, image_server.answer(body=b"x"))
    given_headers = {
        "Range": "bytes=5-",
        "authorization": "Bearer x",
        "Referer": "https://evil.example/",
        "Cookie": "a=b",
    }
    async with host.stream(PICTURE, given_headers):
        pass
    headers = image_server.asked[0].headers
    assert headers["referer"] == "https://app-api.pixiv.net/"
    assert headers["range"] == "bytes=5-"
    assert headers["accept-encoding"] == "identity"
    assert not {"authorization", "cookie", "x-client-hash"} & headers.keys()


@pytest.mark.parametrize("status", [206, 302, 403, 404, 416, 500])
async def test_every_status_is_left_to_the_caller(host, image_server, status):
    image_server.on(PATH, image_server.answer(status=status, headers=[("Location", "https://evil.example/")]))
    async with host.stream(PICTURE) as response:
        assert response.status_code == status


async def test_a_cut_body_is_a_network_failure_where_it_is_read(host, image_server):
    image_server.on(PATH, image_server.answer(body=b"half", cut=True))
    async with host.stream(PICTURE) as response:
        with pytest.raises(NetworkFailed):
            await response.aread()


async def test_a_cut_body_is_a_network_failure_outside_too(host, image_server):
    image_server.on(PATH, image_server.answer(body=b"half", cut=True))
    received = []
    with pytest.raises(NetworkFailed):
        await read_into(received, host)
    assert b"".join(received) == b"half"


async def read_into(received, host):
    async with host.stream(PICTURE) as response, aclosing(response.aiter_raw()) as chunks:
        async for chunk in chunks:
            received.append(chunk)


async def test_leaving_in_the_middle_of_a_body_is_clean(host, image_server):
    image_server.on(PATH, image_server.answer(body=b"x" * 5_000_000))
    async with host.stream(PICTURE) as response, aclosing(response.aiter_raw(65_536)) as chunks:
        async for _ in chunks:
            break
    async with host.stream(PICTURE) as response:
        assert len(await response.aread()) == 5_000_000


async def test_leaving_an_endless_body_ends(settings):
    class Endless(httpx.AsyncByteStream):
        def __aiter__(self):
            return self

        async def __anext__(self):
            await trio.lowlevel.checkpoint()
            return b"x"

    class Script(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request):
            await trio.lowlevel.checkpoint()
            return httpx.Response(200, stream=Endless())

    async with (
        open_image_host(settings, transport=Script()) as host,
        host.stream(PICTURE) as response,
        aclosing(response.aiter_raw()) as chunks,
    ):
        assert await anext(chunks) == b"x"


async def test_a_cancelled_reader_leaves_the_host_usable(host, image_server):
    image_server.on(PATH, image_server.answer(body=b"x" * 3_000_000))
    with trio.CancelScope() as scope:
        async with host.stream(PICTURE) as response, aclosing(response.aiter_raw()) as chunks:
            async for _ in chunks:
                scope.cancel()
    assert scope.cancelled_caught
    async with host.stream(PICTURE) as response:
        assert len(await response.aread()) == 3_000_000


async def test_a_silent_host_is_a_network_failure(image_server, mirrored):
    image_server.on(PATH, image_server.answer(hang=True))
    async with open_image_host(msgspec.structs.replace(mirrored, timeout_s=0.05)) as host:
        with pytest.raises(NetworkFailed, match="in time"):
            async with host.stream(PICTURE):
                pass


async def test_an_unreachable_host_is_a_network_failure(settings):
    async with open_image_host(settings) as host:
        with pytest.raises(NetworkFailed):
            async with host.stream("http://127.0.0.1:1/a.png"):
                pass


async def test_errors_of_the_caller_pass_through(host, image_server):
    image_server.on(PATH, image_server.answer(body=b"x"))
    with pytest.raises(KeyError):
        async with host.stream(PICTURE):
            raise KeyError("caller")


@pytest.mark.parametrize(
    "url",
    [
        "https://s.pximg.net/common/images/limit_unknown_360.png",
        "https://s.pximg.net/common/images/limit_r18-360.png",
        "https://s.pximg.net/anything.png",
        "https://S.PXIMG.net/anything.png",
        "https://i.pximg.net/common/images/limit_mypixiv_360.png",
        "http://127.0.0.1:1/common/images/limit_new_kind.png",
    ],
)
async def test_placeholders_are_never_fetched(host, image_server, url):
    with pytest.raises(WorkRestricted):
        async with host.stream(url):
            pass
    assert image_server.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "file:///etc/passwd",
        "ftp://i.pximg.net/a.png",
        "/a.png",
        "https:///a.png",
        "https://u:p@i.pximg.net/a.png",
        "http://[broken/a.png",
        "https://i.pximg.net:port/a.png",
        "\x00",
    ],
)
async def test_only_plain_http_addresses_are_fetched(host, image_server, url):
    with pytest.raises(WorkUnavailable):
        async with host.stream(url):
            pass
    assert image_server.asked == []


def test_without_a_mirror_an_address_stays_as_it_is():
    assert str(address_of(PICTURE, None)) == PICTURE


def test_a_mirror_replaces_scheme_and_host_and_nothing_else():
    address = address_of(PICTURE + "?a=%2F", "http://127.0.0.1:8080/")
    assert str(address) == f"http://127.0.0.1:8080{PATH}?a=%2F"


def test_a_mirror_takes_no_other_hosts():
    assert (
        str(address_of("https://other.example/a.png", "http://127.0.0.1:8080"))
        == "https://other.example/a.png"
    )


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_a_typed_error(text):
    with suppress(WorkUnavailable):
        assert address_of(text, None).scheme in {"http", "https"}


async def test_the_image_proxy_defaults_to_the_proxy():
    settings = PixivSettings(proxy="http://one:1")
    assert settings.proxy_of_images == "http://one:1"
    assert msgspec.structs.replace(settings, image_proxy="http://two:2").proxy_of_images == "http://two:2"


async def test_a_bad_image_proxy_is_reported_when_the_host_opens():
    with pytest.raises(BadAddress):
        async with open_image_host(PixivSettings(image_proxy="127.0.0.1:7890")):
            pass


async def test_a_scripted_failure_in_the_middle_of_a_body_is_translated(settings):
    class Breaking(httpx.AsyncByteStream):
        async def __aiter__(self):
            yield b"x"
            raise httpx.ReadTimeout("slow")

    class Script(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request):
            await trio.lowlevel.checkpoint()
            return httpx.Response(200, stream=Breaking())

    async with open_image_host(settings, transport=Script()) as host:
        with pytest.raises(NetworkFailed, match="ReadTimeout"):
            async with host.stream(PICTURE) as response:
                await response.aread()
