import gc

import pytest
import trio

from pixivflow.pixiv.errors import BadAddress, NetworkFailed
from pixivflow.pixiv.settings import PixivSettings
from pixivflow.pixiv.transport import checked_proxy, open_http


@pytest.mark.parametrize(
    "address", ["http://h:1", "https://h", "socks5://h:1080", "socks5h://u:p@h:1080", " http://h:1 "]
)
def test_usual_proxies_are_taken(address):
    assert checked_proxy(address).url.host == "h"


@pytest.mark.parametrize(
    "address",
    [
        "",
        "127.0.0.1:7890",
        "socks://u:SECRET@h:1",
        "ftp://u:SECRET@h:1",
        "http://",
        "http://u:SECRET@h:99999",
        "http://u:SECRET@h:port",
        "socks5://",
    ],
)
def test_a_proxy_that_can_not_be_used_is_a_value_error_without_its_password(address):
    with pytest.raises(BadAddress, match="expected a form like") as caught:
        checked_proxy(address)
    assert isinstance(caught.value, ValueError)
    assert "SECRET" not in str(caught.value)


def test_a_misspelt_socks_scheme_is_explained():
    with pytest.raises(BadAddress, match="socks5h://"):
        checked_proxy("socks://h:1")


def test_settings_do_not_show_the_password_of_a_proxy():
    assert "SECRET" not in repr(PixivSettings(proxy="http://u:SECRET@h:1", image_proxy="http://u:SECRET@h:1"))


async def test_requests_pass_the_configured_proxy(image_server):
    async with open_http(image_server.url, 5.0, None) as http:
        await http.get("http://app-api.example.invalid/v1/x?a=b")
    assert image_server.asked[0].target == "http://app-api.example.invalid/v1/x?a=b"


# The HTTP library leaves this to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_socks_proxy_gets_the_name_and_not_an_address():
    received = bytearray()

    async def socks(stream):
        async with stream:
            received.extend(await stream.receive_some())
            await stream.send_all(b"\x05\x00")
            received.extend(await stream.receive_some())

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, socks, 0)
        port = listeners[0].socket.getsockname()[1]
        async with open_http(f"socks5h://127.0.0.1:{port}", 5.0, None) as http:
            with pytest.raises(NetworkFailed):
                await http.get("http://i.pximg.invalid/a.png")
        gc.collect()
        nursery.cancel_scope.cancel()
    assert b"i.pximg.invalid" in received


# The HTTP library leaves this to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_socks_proxy_that_speaks_nonsense_is_a_network_failure():
    async def nonsense(stream):
        async with stream:
            await stream.receive_some()
            await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, nonsense, 0)
        port = listeners[0].socket.getsockname()[1]
        async with open_http(f"socks5://127.0.0.1:{port}", 5.0, None) as http:
            with pytest.raises(NetworkFailed):
                await http.get("http://i.pximg.invalid/a.png")
        gc.collect()
        nursery.cancel_scope.cancel()


async def test_credentials_that_can_not_be_a_header_are_not_shown(pixiv):
    async with open_http(None, 5.0, None) as http:
        with pytest.raises(NetworkFailed) as caught:
            await http.get(pixiv.url, headers={"Authorization": "Bearer SECRET\n"})
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None
