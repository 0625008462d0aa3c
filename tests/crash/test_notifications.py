"""What a service manager hears."""

import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import trio

from tests.crash.stage import DEADLINE_S, Plan, open_stage


class Listener:
    """A service manager's end of the notification socket."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.heard: list[str] = []
        self._socket = trio.socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    async def bind(self) -> None:
        await self._socket.bind(str(self.path))

    def close(self) -> None:
        self._socket.close()

    @property
    def env(self) -> dict[str, str]:
        return {"NOTIFY_SOCKET": str(self.path), "WATCHDOG_USEC": "100000"}

    async def until(self, wanted: Callable[[list[str]], bool]) -> None:
        """Listen until the lines heard so far are enough."""
        with trio.move_on_after(DEADLINE_S):
            while not wanted(self.heard):
                self.heard += (await self._socket.recv(4096)).decode().splitlines()
            return
        raise AssertionError(f"heard only {self.heard}")


@pytest.fixture
async def manager(tmp_path: Path) -> AsyncIterator[Listener]:
    listener = Listener(tmp_path / "notify")
    await listener.bind()
    yield listener
    listener.close()


async def test_ready_status_watchdog_and_stopping_are_told_in_this_order(
    tmp_path: Path, manager: Listener
) -> None:
    async with open_stage(tmp_path) as stage:
        daemon = await stage.start(env=manager.env)
        await manager.until(lambda heard: "READY=1" in heard)
        assert manager.heard[0] == "READY=1"
        assert manager.heard[1].startswith("STATUS=1 schedules")
        await manager.until(lambda heard: heard.count("WATCHDOG=1") >= 3)
        assert "STOPPING=1" not in manager.heard
        daemon.process.terminate()
        await manager.until(lambda heard: "STOPPING=1" in heard)
        assert await daemon.ended() == 0


async def test_ready_is_told_when_the_socket_answers(tmp_path: Path, manager: Listener) -> None:
    async with open_stage(tmp_path) as stage:
        daemon = await stage.start(env=manager.env)
        await manager.until(lambda heard: "READY=1" in heard)
        assert (await daemon.ask("daemon.status"))["pid"] == daemon.pid


async def test_an_account_without_token_is_named_and_the_daemon_is_ready(
    tmp_path: Path, manager: Listener
) -> None:
    async with open_stage(tmp_path, Plan(token="")) as stage:
        daemon = await stage.start(env=manager.env)
        await manager.until(lambda heard: "READY=1" in heard)
        assert manager.heard[:2] == ["READY=1", "STATUS=main: login needed"]
        assert (await daemon.ask("daemon.status"))["logins_needed"] == ["main"]


async def test_a_refused_token_shows_in_the_status(tmp_path: Path, manager: Listener) -> None:
    async with open_stage(tmp_path, Plan(token="no-such-token")) as stage:
        daemon = await stage.start_ready(env=manager.env)
        await daemon.trigger("k")
        await manager.until(lambda heard: "STATUS=main: login needed" in heard)
