"""The control socket over a real Unix socket."""

import grp
import os
import socket
import stat
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing
from trio_websocket import ConnectionClosed, WebSocketConnection

from actors.control import ControlSocketUnusable, Method, MethodRefused, serve_control
from pixivflow.unix_websocket import connect
from protocol.rpc import MAX_MESSAGE_BYTES, Code, Failure, Request, Response, decode_answer, encode


async def echo(params: Mapping[str, Any]) -> Any:
    return dict(params)


async def refuse(params: Mapping[str, Any]) -> Any:
    raise MethodRefused("too late", {"earliest": 5})


async def blame(params: Mapping[str, Any]) -> Any:
    raise ValueError("limit: expected a number")


async def break_down(params: Mapping[str, Any]) -> Any:
    raise KeyError("a bug")


async def unspeakable(params: Mapping[str, Any]) -> Any:
    return object()


async def flood(params: Mapping[str, Any]) -> Any:
    return "x" * params["size"]


async def validated(params: Mapping[str, Any]) -> Any:
    return msgspec.convert(params["n"], int)


METHODS: Mapping[str, Method] = {
    "echo": echo,
    "refuse": refuse,
    "blame": blame,
    "break": break_down,
    "unspeakable": unspeakable,
    "flood": flood,
    "validated": validated,
}


@asynccontextmanager
async def served(
    path: trio.Path, methods: Mapping[str, Method] = METHODS
) -> AsyncGenerator[trio.CancelScope]:
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(serve_control, Path(path), methods))
            yield nursery.cancel_scope
            nursery.cancel_scope.cancel()


@pytest.fixture
def path(tmp_path: Path) -> trio.Path:
    return trio.Path(tmp_path) / "c.sock"


async def ask(connection: WebSocketConnection, method: str, **params: Any) -> Response | Failure:
    await connection.send_message(encode(Request(method, params, 1)).decode())
    return decode_answer(await connection.get_message())


async def code_of(path: trio.Path, method: str, **params: Any) -> int:
    async with connect(Path(path)) as connection:
        answer = await ask(connection, method, **params)
    assert isinstance(answer, Failure)
    return answer.error.code


async def test_a_method_gets_its_params_and_its_result_comes_back(path: trio.Path) -> None:
    async with served(path), connect(Path(path)) as connection:
        assert await ask(connection, "echo", a=[1, {"b": None}]) == Response(1, {"a": [1, {"b": None}]})


async def test_one_connection_takes_many_calls(path: trio.Path) -> None:
    async with served(path), connect(Path(path)) as connection:
        for number in range(20):
            assert await ask(connection, "echo", n=number) == Response(1, {"n": number})


async def test_a_refusal_carries_its_data(path: trio.Path) -> None:
    async with served(path), connect(Path(path)) as connection:
        answer = await ask(connection, "refuse")
    assert isinstance(answer, Failure)
    assert (answer.error.code, answer.error.message, answer.error.data) == (
        Code.REFUSED,
        "too late",
        {"earliest": 5},
    )


async def test_failures_have_the_codes_of_the_standard(path: trio.Path) -> None:
    async with served(path):
        assert await code_of(path, "nothing.such") == Code.METHOD_NOT_FOUND
        assert await code_of(path, "blame") == Code.INVALID_PARAMS
        assert await code_of(path, "validated", n="x") == Code.INVALID_PARAMS


async def test_a_bug_in_a_method_ends_neither_the_server_nor_the_connection(
    path: trio.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with served(path), connect(Path(path)) as connection:
        answer = await ask(connection, "break")
        assert isinstance(answer, Failure)
        assert answer.error.code == Code.INTERNAL
        assert "a bug" not in answer.error.message
        assert await ask(connection, "echo") == Response(1, {})
    assert "a bug" in "".join(capsys.readouterr())


async def test_a_result_that_json_cannot_say_is_an_internal_error(path: trio.Path) -> None:
    async with served(path):
        assert await code_of(path, "unspeakable") == Code.INTERNAL


async def test_an_answer_beyond_the_limit_says_so(path: trio.Path) -> None:
    async with served(path), connect(Path(path)) as connection:
        assert isinstance(await ask(connection, "flood", size=MAX_MESSAGE_BYTES - 100), Response)
        answer = await ask(connection, "flood", size=MAX_MESSAGE_BYTES)
    assert isinstance(answer, Failure)
    assert answer.error.code == Code.TOO_LARGE


async def test_a_message_beyond_the_limit_closes_its_connection_only(path: trio.Path) -> None:
    async with served(path), connect(Path(path)) as other:
        async with connect(Path(path)) as connection:
            with pytest.raises(ConnectionClosed):
                await ask(connection, "echo", a="x" * (MAX_MESSAGE_BYTES + 1))
        assert await ask(other, "echo") == Response(1, {})


async def test_what_is_no_request_is_answered(path: trio.Path) -> None:
    async with served(path), connect(Path(path)) as connection:
        await connection.send_message("{")
        answer = decode_answer(await connection.get_message())
    assert isinstance(answer, Failure)
    assert answer.error.code == Code.PARSE_ERROR


async def test_a_notification_is_carried_out_and_not_answered(path: trio.Path) -> None:
    async with served(path), connect(Path(path)) as connection:
        await connection.send_message(encode(Request("echo", {"quiet": True})).decode())
        assert await ask(connection, "echo", loud=True) == Response(1, {"loud": True})


async def test_many_clients_are_answered_at_once(path: trio.Path) -> None:
    everyone = trio.Event()
    waiting = 0

    async def meet(params: Mapping[str, Any]) -> Any:
        nonlocal waiting
        waiting += 1
        if waiting == 30:
            everyone.set()
        await everyone.wait()
        return waiting

    async def client() -> None:
        async with connect(Path(path)) as connection:
            assert await ask(connection, "meet") == Response(1, 30)

    async with served(path, {"meet": meet}), trio.open_nursery() as nursery:
        for _ in range(30):
            nursery.start_soon(client)


async def test_a_client_that_vanishes_disturbs_nobody(path: trio.Path) -> None:
    async with served(path), connect(Path(path)) as other:
        for junk in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\x00\xff junk\r\n\r\n"):
            stream = await trio.open_unix_socket(path)
            await stream.send_all(junk)
            await stream.aclose()
        assert await ask(other, "echo") == Response(1, {})


async def test_the_answer_of_a_call_that_stops_the_server_is_delivered(path: trio.Path) -> None:
    async with trio.open_nursery() as nursery:

        async def stop(params: Mapping[str, Any]) -> Any:
            nursery.cancel_scope.cancel()
            return "stopping"

        await nursery.start(partial(serve_control, Path(path), {"stop": stop}))
        with trio.CancelScope(shield=True), trio.fail_after(10):
            async with connect(Path(path)) as connection:
                assert await ask(connection, "stop") == Response(1, "stopping")
                with pytest.raises(ConnectionClosed) as closed:
                    await connection.get_message()
    assert closed.value.reason is not None
    assert closed.value.reason.code == 1000


async def test_a_method_in_flight_is_cancelled_with_the_server(path: trio.Path) -> None:
    started = trio.Event()
    cancelled = False

    async def hang(params: Mapping[str, Any]) -> Any:
        nonlocal cancelled
        started.set()
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            cancelled = True
            raise

    async with connect_later(path, {"hang": hang}) as (scope, connection):
        await connection.send_message(encode(Request("hang", {}, 1)).decode())
        await started.wait()
        scope.cancel()
        with pytest.raises(ConnectionClosed):
            await connection.get_message()
    assert cancelled


@asynccontextmanager
async def connect_later(
    path: trio.Path, methods: Mapping[str, Method]
) -> AsyncGenerator[tuple[trio.CancelScope, WebSocketConnection]]:
    """A server in a scope of its own, and one client outside of it."""
    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()

        async def run(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
            with scope:
                async with trio.open_nursery() as server:
                    await server.start(partial(serve_control, Path(path), methods))
                    task_status.started()

        await nursery.start(run)
        with trio.fail_after(100):
            async with connect(Path(path)) as connection:
                yield scope, connection
        scope.cancel()


async def test_a_client_that_does_not_read_is_dropped(
    path: trio.Path, autojump_clock: trio.testing.MockClock
) -> None:
    autojump_clock.autojump_threshold = 0.05
    async with served(path):
        stream = await trio.open_unix_socket(path)
        async with stream:
            await stream.send_all(UPGRADE)
            await stream.receive_some()
            for _ in range(3):
                await stream.send_all(masked(encode(Request("flood", {"size": 900_000}, 1))))
            received = 0
            await trio.sleep(10)
            try:
                while data := await stream.receive_some():
                    received += len(data)
            except trio.BrokenResourceError:
                pass
        assert received < 900_000


async def test_a_silent_client_is_dropped(path: trio.Path, autojump_clock: trio.testing.MockClock) -> None:
    autojump_clock.autojump_threshold = 0.05
    async with connect_later(path, METHODS) as (_, connection):
        with trio.CancelScope(shield=True), pytest.raises(ConnectionClosed):
            await connection.get_message()


async def test_a_client_that_never_shakes_hands_is_dropped(
    path: trio.Path, autojump_clock: trio.testing.MockClock
) -> None:
    autojump_clock.autojump_threshold = 0.05
    async with served(path), await trio.open_unix_socket(path) as stream:
        assert await stream.receive_some() == b""


UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def masked(payload: bytes) -> bytes:
    """A short text frame with a mask of zeros."""
    assert len(payload) < 126
    return bytes([0x81, 0x80 | len(payload)]) + bytes(4) + payload


async def test_the_socket_is_for_its_owner_alone(path: trio.Path) -> None:
    async with served(path):
        assert stat.S_IMODE((await path.stat()).st_mode) == 0o600


async def test_the_socket_is_open_to_its_group_if_one_is_named(path: trio.Path) -> None:
    name = grp.getgrgid(os.getgid()).gr_name
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(serve_control, Path(path), METHODS, group=name))
        found = await path.stat()
        assert (stat.S_IMODE(found.st_mode), found.st_gid) == (0o660, os.getgid())
        nursery.cancel_scope.cancel()


async def test_the_socket_is_removed_at_the_end(path: trio.Path) -> None:
    async with served(path):
        assert await path.exists()
    assert not await path.exists()


async def test_a_socket_left_by_a_dead_daemon_is_replaced(path: trio.Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with served(path), connect(Path(path)) as connection:
        assert await ask(connection, "echo") == Response(1, {})


async def test_a_file_that_is_no_socket_is_left_alone(path: trio.Path) -> None:
    await path.write_text("mine")
    with pytest.raises(ControlSocketUnusable, match=r"c\.sock.*another file"):
        await serve_control(Path(path), METHODS)
    assert await path.read_text() == "mine"


async def test_a_socket_that_another_daemon_has_put_there_is_left_alone(path: trio.Path) -> None:
    async with served(path):
        await path.unlink()
        await path.write_text("theirs")
    assert await path.read_text() == "theirs"


async def test_a_path_too_long_for_a_socket_is_named(tmp_path: Path) -> None:
    with pytest.raises(ControlSocketUnusable, match="at most 107 bytes"):
        await serve_control(tmp_path / ("x" * 108), METHODS)


async def test_a_group_that_does_not_exist_is_named(path: trio.Path) -> None:
    with pytest.raises(ControlSocketUnusable, match=r"control\.group.*'no-such-group'"):
        await serve_control(Path(path), METHODS, group="no-such-group")


async def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ControlSocketUnusable, match=r"none/c\.sock"):
        await serve_control(tmp_path / "none" / "c.sock", METHODS)
