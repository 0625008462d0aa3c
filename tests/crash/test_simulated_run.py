"""`run --simulate` replaces every address, credential and folder, and touches nothing real."""

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pixivflow.cli.client import DaemonUnreachable, call
from tests.crash.stage import Plan, open_stage


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """The temporary folder of the daemon: a socket's path must not be long."""
    with tempfile.TemporaryDirectory(prefix="pf-") as folder:
        yield Path(folder)


async def test_a_simulated_run_touches_nothing_real(tmp_path: Path, short_folder: Path) -> None:
    plan = Plan(targets={"one": ("persistent", ("channel", "inbox"))}, cron="* * * * * *")
    async with open_stage(tmp_path, plan) as stage:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            real = f"http://127.0.0.1:{listener.getsockname()[1]}"
            text = stage.config.read_text()
            for address in (stage.simulator.api_url, stage.simulator.image_url, stage.simulator.receiver_url):
                text = text.replace(address, real)
            stage.config.write_text(text)
            before = _everything(tmp_path)
            daemon = await stage.start(env={"TMPDIR": str(short_folder)}, arguments=("--simulate",))

            async def delivered() -> bool:
                sockets = _sockets(short_folder)
                if not sockets:
                    return False
                try:
                    slots = await call(sockets[0], "slots.list", {})
                except DaemonUnreachable:
                    return False
                return any(slot["status"] == "success" for slot in slots)

            await stage.until("a simulated slot succeeds", delivered)
            assert await daemon.stop() == 0
            with pytest.raises(BlockingIOError):
                listener.accept()
        assert _everything(tmp_path) - before == {daemon.log.name}
        assert not stage.state.exists()
        assert not stage.downloads.exists()
        assert not stage.inbox.exists()
        assert stage.simulator.requests.seen == ()


def _everything(folder: Path) -> set[str]:
    return {
        os.path.relpath(Path(parent, name), folder) for parent, _, names in os.walk(folder) for name in names
    }


def _sockets(folder: Path) -> list[Path]:
    return list(folder.glob("*/state/control.sock"))
