import gc
from functools import partial
from pathlib import Path

import msgspec
import pytest
import trio

from pixivflow.delivery.artifacts import FileMissing
from pixivflow.delivery.senders import open_sender
from pixivflow.delivery.settings import MultipartSettings, RouteRefused
from protocol.verdicts import VerdictKind

from .conftest import KEY, CutAnswer, Deaf, Hang, Lose, Reset, Say

BIG = bytes(range(256)) * 4096 * 3  # 3 MiB: more than the sockets of loopback hold


def settings(receiver, **more):
    return MultipartSettings(name="channel", url=receiver.url, **{"headers": {}, **more})


async def send_once(receiver, roots, message, **more):
    async with open_sender(settings(receiver, **more), roots) as sender:
        with trio.fail_after(20):
            return await sender.send(message)


async def test_a_form_arrives_with_its_fields_and_files(receiver, roots, store, payload):
    message = payload([store("a.png", b"one")], [("title", "Évening 夕焼け"), ("tags", "a"), ("tags", "b")])

    verdict = await send_once(receiver, roots, message)

    assert (verdict.kind, verdict.remote_id) == (VerdictKind.ACCEPTED, "77")
    assert receiver.seen[0].method == "POST"
    assert receiver.seen[0].fields == (("title", "Évening 夕焼け"), ("tags", "a"), ("tags", "b"))
    assert receiver.seen[0].files == (("files", "a.png", "image/png", b"one"),)


async def test_key_and_agent_are_on_the_wire(receiver, roots, payload):
    await send_once(receiver, roots, payload())

    assert receiver.seen[0].headers["idempotency-key"] == KEY
    assert receiver.seen[0].headers["user-agent"].startswith("pixivflow/")


async def test_a_key_outside_ascii_is_encoded_and_equal_in_every_attempt(receiver, roots, payload):
    for _ in range(2):
        await send_once(receiver, roots, payload(key="pixivflow:channel:illustration:1:x@manual-夕:t"))

    assert {seen.headers["idempotency-key"] for seen in receiver.seen} == {
        "pixivflow:channel:illustration:1:x@manual-%E5%A4%95:t"
    }


async def test_five_files_keep_their_order(receiver, roots, store, payload):
    files = [store(f"p{n}.png", bytes([n]) * n) for n in (3, 1, 5, 2, 4)]

    await send_once(receiver, roots, payload(files), file_field="media[]")

    assert [(field, name, len(content)) for field, name, _, content in receiver.seen[0].files] == [
        ("media[]", f"p{n}.png", n) for n in (3, 1, 5, 2, 4)
    ]


@pytest.mark.parametrize("name", ["夕焼け 😀.png", "a'b;c=d.png", "naïve (1).jpg"])
async def test_names_of_files_arrive_as_they_are(receiver, roots, store, payload, name):
    await send_once(receiver, roots, payload([store(name, b"x", "stored.png")]))

    assert receiver.seen[0].files[0][1] == name


async def test_a_name_can_not_break_out_of_its_header(receiver, roots, store, payload):
    nasty = 'a"; name="title"\r\nX: y.png'

    await send_once(receiver, roots, payload([store(nasty, b"x", "stored.png")], [('t"\r\n', "v")]))

    assert receiver.seen[0].files[0][1] == "a%22; name=%22title%22%0D%0AX: y.png"
    assert receiver.seen[0].fields == (("t%22%0D%0A", "v"),)


async def test_many_chunks_and_empty_files_arrive_whole(receiver, roots, store, payload):
    await send_once(receiver, roots, payload([store("big.png", BIG), store("empty.png", b"")]))

    assert [content for *_, content in receiver.seen[0].files] == [BIG, b""]


async def test_a_lost_answer_is_silence_and_the_same_key_is_then_replayed(receiver, roots, store, payload):
    receiver.script.append(Lose())
    message = payload([store("a.png", b"one")])

    lost = await send_once(receiver, roots, message)
    again = await send_once(receiver, roots, message)

    assert (lost.kind, lost.error_class) == (VerdictKind.RETRY, "answer_lost")
    assert lost.spends_attempt
    assert lost.feeds_breaker
    assert again.kind is VerdictKind.REPLAYED
    assert list(receiver.visible) == [KEY]


async def test_half_an_answer_is_a_lost_answer(receiver, roots, payload):
    receiver.script.append(CutAnswer())

    assert (await send_once(receiver, roots, payload())).error_class == "answer_lost"


async def test_a_hanging_receiver_ends_at_the_deadline(receiver, roots, payload):
    receiver.script.append(Hang())

    verdict = await send_once(receiver, roots, payload(), timeout_s=1.0)

    assert (verdict.kind, verdict.error_class) == (VerdictKind.RETRY, "answer_timeout")
    assert verdict.spends_attempt


async def test_a_receiver_that_reads_nothing_spends_no_attempt(receiver, roots, store, payload):
    receiver.script.append(Deaf())
    huge = store("huge.png", BIG * 6)

    verdict = await send_once(receiver, roots, payload([huge]), timeout_s=0.5)

    assert verdict.error_class == "upload_timeout"
    assert not verdict.spends_attempt
    assert verdict.feeds_breaker


async def test_a_reset_in_the_middle_of_the_upload_spends_no_attempt(receiver, roots, store, payload):
    receiver.script.append(Reset())

    verdict = await send_once(receiver, roots, payload([store("huge.png", BIG * 6)]))

    assert (verdict.kind, verdict.error_class) == (VerdictKind.RETRY, "upload_broken")
    assert not verdict.spends_attempt
    assert verdict.feeds_breaker
    assert not receiver.visible


async def test_a_refused_connection_spends_no_attempt(roots, payload):
    with trio.socket.socket() as unused:
        await unused.bind(("127.0.0.1", 0))
        route = MultipartSettings(name="channel", url=f"http://127.0.0.1:{unused.getsockname()[1]}/")
        async with open_sender(route, roots) as sender:
            verdict = await sender.send(payload())

    assert (verdict.kind, verdict.error_class) == (VerdictKind.RETRY, "connect")
    assert "Connection refused" in verdict.detail
    assert not verdict.spends_attempt
    assert verdict.feeds_breaker


async def test_a_tls_failure_is_named(receiver, roots, payload):
    route = MultipartSettings(name="channel", url=receiver.url.replace("http:", "https:"))
    async with open_sender(route, roots) as sender:
        verdict = await sender.send(payload())

    assert verdict.error_class == "tls"
    assert not verdict.spends_attempt


async def test_a_missing_file_is_found_before_the_first_byte(receiver, roots, store, payload):
    there, gone = store("a.png", b"one"), store("b.png", b"two")
    (roots["download"] / "b.png").unlink()

    with pytest.raises(FileMissing, match=r"b\.png: it is not there"):
        await send_once(receiver, roots, payload([there, gone]))
    assert receiver.connections == 0


@pytest.mark.parametrize("change", [(b"onX", "sha256"), (b"on", "2 bytes instead of 3")])
async def test_a_changed_file_is_found_before_the_first_byte(receiver, roots, store, payload, change):
    content, problem = change
    file = store("a.png", b"one")
    (roots["download"] / "a.png").write_bytes(content)

    with pytest.raises(FileMissing, match=problem):
        await send_once(receiver, roots, payload([file]))
    assert receiver.connections == 0


@pytest.mark.parametrize("path", ["../downloads/a.png", "/etc/hostname"])
async def test_a_path_outside_its_folder_is_refused(receiver, roots, store, payload, path):
    file = msgspec.structs.replace(store("a.png", b"one"), path=path)

    with pytest.raises(FileMissing, match="outside"):
        await send_once(receiver, roots, payload([file]))


async def test_the_roots_may_be_given_with_the_message(receiver, roots, store, payload):
    message = payload([store("a.png", b"one")])
    nowhere = {"download": Path("/nonexistent"), "state": Path("/nonexistent")}
    async with open_sender(settings(receiver), nowhere) as sender:
        verdict = await sender.send(message, roots)

    assert verdict.kind is VerdictKind.ACCEPTED


async def test_redirects_are_not_followed(receiver, roots, payload):
    receiver.script.append(Say(307, b"", (("location", receiver.url),)))

    verdict = await send_once(receiver, roots, payload())

    assert (verdict.kind, verdict.pauses_route) == (VerdictKind.RETRY, True)
    assert "redirects are not followed" in verdict.detail
    assert len(receiver.seen) == 1


async def test_a_detail_shows_no_secret_that_the_receiver_repeats(receiver, roots, payload):
    receiver.script.append(
        Say(
            403,
            b'{"message": "bad token s3cr3t-token for user:pa55word at http://user:pa55word@host/?k=query-secret"}',
        )
    )
    route = MultipartSettings(
        name="channel",
        url=receiver.url.replace("http://", "http://user:pa55word@") + "?k=query-secret",
        headers={"X-Token": "Bearer s3cr3t-token"},
    )
    async with open_sender(route, roots) as sender:
        verdict = await sender.send(payload())

    assert verdict.pauses_route
    for secret in ("s3cr3t-token", "pa55word", "query-secret"):
        assert secret not in verdict.detail
    assert receiver.seen[0].headers["authorization"] == "Basic dXNlcjpwYTU1d29yZA=="


async def test_credentials_stay_with_their_host(receiver, roots):
    other = f"http://localhost:{receiver.port}/ready"
    route = settings(receiver, headers={"Authorization": "Bearer t0ken"}, readiness_url=other)
    async with open_sender(route, roots) as sender:
        assert await sender.ready()

    assert "authorization" not in receiver.seen[0].headers


async def test_readiness_on_the_same_host_carries_the_credentials(receiver, roots):
    route = settings(
        receiver, headers={"Authorization": "Bearer t0ken"}, readiness_url=f"{receiver.url}/ready"
    )
    async with open_sender(route, roots) as sender:
        assert await sender.ready()

    assert receiver.seen[0].headers["authorization"] == "Bearer t0ken"


@pytest.mark.parametrize("act", [Say(503), Say(302), Lose()])
async def test_a_receiver_that_does_not_answer_2xx_is_not_ready(receiver, roots, act):
    receiver.script.append(act)
    async with open_sender(settings(receiver, readiness_url=receiver.url), roots) as sender:
        assert not await sender.ready()


async def test_a_route_without_readiness_address_is_ready(receiver, roots):
    async with open_sender(settings(receiver), roots) as sender:
        assert await sender.ready()
    assert receiver.connections == 0


async def test_proxies_of_the_environment_are_ignored(receiver, roots, payload, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")

    assert (await send_once(receiver, roots, payload())).kind is VerdictKind.ACCEPTED


async def test_a_proxy_that_refuses_spends_no_attempt(receiver, roots, payload):
    receiver.script.append(Say(407))
    route = MultipartSettings(
        name="channel", url="https://host.invalid/", proxy=f"http://127.0.0.1:{receiver.port}"
    )
    async with open_sender(route, roots) as sender:
        verdict = await sender.send(payload())

    assert (verdict.kind, verdict.error_class) == (VerdictKind.RETRY, "proxy")
    assert not verdict.spends_attempt


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_proxy_that_speaks_no_socks_spends_no_attempt(roots, payload):
    """The client library leaves the socket of such a handshake to the garbage collector."""

    async def babble(stream):
        async with stream:
            await stream.receive_some()
            await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, babble, 0, host="127.0.0.1"))
        proxy = f"socks5://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        async with open_sender(
            MultipartSettings(name="c", url="http://host.invalid/", proxy=proxy), roots
        ) as sender:
            verdict = await sender.send(payload())
        nursery.cancel_scope.cancel()
    gc.collect()

    assert (verdict.kind, verdict.error_class) == (VerdictKind.RETRY, "proxy")
    assert not verdict.spends_attempt


async def test_a_send_that_is_cancelled_can_be_repeated(receiver, roots, store, payload):
    receiver.script.append(Deaf())
    message = payload([store("huge.png", BIG * 6)])
    async with open_sender(settings(receiver), roots) as sender:
        with trio.move_on_after(0.3) as scope:
            await sender.send(message)
        assert scope.cancelled_caught
        assert (await sender.send(message)).kind is VerdictKind.ACCEPTED


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "ftp://host/"},
        {"url": "no address"},
        {"url": "http://host..example/"},
        {"readiness_url": "host/ready"},
        {"proxy": "socks4://host:1"},
        {"method": "PO ST"},
        {"headers": {"X-Token": "secret\n"}},
        {"headers": {"X Token": "secret"}},
        {"headers": {"Idempotency-Key": "mine"}},
    ],
)
async def test_settings_that_can_not_work_are_refused_without_showing_secrets(roots, wrong):
    route = MultipartSettings(**{"name": "channel", "url": "http://host/", **wrong})

    with pytest.raises(RouteRefused, match="route channel: ") as caught:
        async with open_sender(route, roots):
            pass
    assert "secret\n" not in str(caught.value)


def test_settings_show_no_secrets_when_printed():
    route = MultipartSettings(name="channel", url="http://u:p@host/", headers={"A": "secret"})

    assert repr(route) == "MultipartSettings('channel')"
