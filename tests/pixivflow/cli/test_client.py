"""Calls of the command line to a daemon over a real Unix socket."""

import os
import socket
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from actors.control import MethodRefused, serve_control
from pixivflow.cli.client import CallRefused, DaemonUnreachable, call
from protocol.rpc import Code


async def double(params: Mapping[str, Any]) -> Any:
    return params["n"] * 2


async def refuse(params: Mapping[str, Any]) -> Any:
    raise MethodRefused("outside grace", {"earliest_ms": 1})


async def hang(params: Mapping[str, Any]) -> Any:
    await trio.sleep_forever()


METHODS = {"double": double, "refuse": refuse, "hang": hang}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "c.sock"


async def test_a_call_returns_the_result(path: Path, nursery: trio.Nursery) -> None:
    await nursery.start(partial(serve_control, path, METHODS))
    assert await call(path, "double", {"n": 21}) == 42


async def test_a_refusal_keeps_message_and_data(path: Path, nursery: trio.Nursery) -> None:
    await nursery.start(partial(serve_control, path, METHODS))
    with pytest.raises(CallRefused, match="outside grace") as refused:
        await call(path, "refuse", {})
    assert (refused.value.data, refused.value.code) == ({"earliest_ms": 1}, Code.REFUSED)


async def test_an_unknown_method_is_refused_by_its_name(path: Path, nursery: trio.Nursery) -> None:
    await nursery.start(partial(serve_control, path, METHODS))
    with pytest.raises(CallRefused, match=r"no\.such") as refused:
        await call(path, "no.such", {})
    assert refused.value.code == Code.METHOD_NOT_FOUND


async def test_without_a_socket_no_daemon_is_running(path: Path) -> None:
    with pytest.raises(DaemonUnreachable, match=r"no daemon is running.*c\.sock") as unreachable:
        await call(path, "double", {})
    assert not unreachable.value.sent


async def test_a_stale_socket_means_that_no_daemon_is_running(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with pytest.raises(DaemonUnreachable, match=r"nobody listens on .*c\.sock"):
        await call(path, "double", {})


@pytest.mark.skipif(os.getuid() == 0, reason="root may open everything")
async def test_a_socket_of_somebody_else_is_named(path: Path, nursery: trio.Nursery) -> None:
    await nursery.start(partial(serve_control, path, METHODS))
    await trio.Path(path).chmod(0)
    with pytest.raises(DaemonUnreachable, match=r"no access to .*c\.sock"):
        await call(path, "double", {})


async def test_a_daemon_that_does_not_answer_may_have_done_it(
    path: Path, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    autojump_clock.autojump_threshold = 0.05
    await nursery.start(partial(serve_control, path, METHODS))
    with pytest.raises(DaemonUnreachable, match=r"c\.sock does not answer.*may have been") as unreachable:
        await call(path, "hang", {}, deadline_s=3)
    assert unreachable.value.sent


async def test_a_daemon_that_hangs_before_the_handshake_does_not_answer(
    path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    autojump_clock.autojump_threshold = 0.05
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(path))
        deaf.listen()
        with pytest.raises(DaemonUnreachable, match="does not answer in time") as unreachable:
            await call(path, "double", {"n": 1})
    assert not unreachable.value.sent


async def test_a_daemon_that_dies_during_a_call_leaves_it_open(path: Path) -> None:
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:

            async def stopped(params: Mapping[str, Any]) -> Any:
                nursery.cancel_scope.cancel()
                await trio.sleep_forever()

            await nursery.start(partial(serve_control, path, {"stopped": stopped}))
            with trio.CancelScope(shield=True), pytest.raises(DaemonUnreachable, match="without an answer"):
                await call(path, "stopped", {})


async def test_a_path_too_long_for_a_socket_is_named(tmp_path: Path) -> None:
    with pytest.raises(DaemonUnreachable, match="at most 107 bytes"):
        await call(tmp_path / ("x" * 120), "double", {})


async def test_the_callers_own_deadline_is_not_taken_for_the_daemons(
    path: Path, nursery: trio.Nursery
) -> None:
    await nursery.start(partial(serve_control, path, METHODS))
    with trio.move_on_after(0.05) as scope:
        await call(path, "hang", {})
    assert scope.cancelled_caught
