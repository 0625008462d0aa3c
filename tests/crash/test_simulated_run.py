"""`run --simulate` replaces every address, credential and folder, and touches nothing real."""

import hashlib
import json
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.crash.stage import DEADLINE_S, Plan, Stage, open_stage

ENOUGH = 8


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """The temporary folder of the daemon: a socket's path must not be long."""
    with tempfile.TemporaryDirectory(prefix="pf-") as folder:
        yield Path(folder)


async def test_a_simulated_run_touches_nothing_real(tmp_path: Path, short_folder: Path) -> None:
    plan = Plan(targets={"one": ("persistent", ("channel", "inbox"))})
    async with open_stage(tmp_path, plan) as stage:
        real = await stage.start_ready()
        assert await real.slot_ends(await real.trigger("real")) == "success"
        assert await real.stop() == 0
        asked = stage.simulator.requests.seen
        stage.write_config(cron="* * * * * *")

        with ExitStack() as listening:
            listeners = [listening.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
            _redirect(stage, listeners)
            before = _contents(tmp_path)
            assert {"state/ledger.db", "state/tokens/main.json"} <= set(before)
            assert any(name.startswith("downloads/") for name in before)
            assert any(name.startswith("inbox/") for name in before)

            daemon = await stage.start(env={"TMPDIR": str(short_folder)}, arguments=("--simulate",))
            await _until_ended(stage, short_folder, 1)
            assert await daemon.stop() == 0
            for listener in listeners:
                listener.setblocking(False)
                with pytest.raises(BlockingIOError):
                    listener.accept()
        after = _contents(tmp_path)
        del after[daemon.log.name]
        assert after == before
        assert stage.simulator.requests.seen == asked


SCENERY = """
[accounts.main]
[routes.channel]
type = "multipart"
url = "https://receiver.invalid/submissions"
[routes.inbox]
type = "folder"
path = "inbox"
[[schedules]]
id = "often"
cron = "* * * * * *"
targets = ["landscape", "top"]
[[targets]]
id = "landscape"
mode = "search"
tags = ["風景"]
limit = 1
routes = ["channel"]
[[targets]]
id = "top"
mode = "ranking"
limit = 1
routes = ["channel", "inbox"]
"""


async def test_every_slot_of_a_simulated_run_succeeds(tmp_path: Path, short_folder: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.config.write_text(SCENERY)
        daemon = await stage.start(env={"TMPDIR": str(short_folder)}, arguments=("--simulate",))
        await _until_ended(stage, short_folder, ENOUGH)
        view = _view(short_folder)
        assert str(view) in daemon.text(), "the user is told where to look"
        listed = [slot for slot in await _slots(view) if slot["ended_at"] is not None]
        assert len(listed) >= ENOUGH
        assert {(slot["status"], slot["cells"], slot["submitted"]) for slot in listed} == {("success", 2, 2)}
        assert await daemon.stop() == 0
        assert len(await _slots(view)) >= ENOUGH, "the results can be looked at afterwards"


async def _until_ended(stage: Stage, folder: Path, number: int) -> None:
    """Wait until so many slots of the simulated run have ended."""

    async def ended() -> bool:
        view = _view(folder)
        if view is None or not (view.parent / "state" / "control.sock").exists():
            return False
        return sum(slot["ended_at"] is not None for slot in await _slots(view)) >= number

    await stage.until(f"{number} simulated slots have ended", ended)


def _view(folder: Path) -> Path | None:
    """The configuration with which a user looks at the simulated run."""
    return next(iter(folder.glob("*/pixivflow.toml")), None)


async def _slots(view: Path | None) -> list[dict[str, Any]]:
    with trio.fail_after(DEADLINE_S):
        done = await trio.run_process(
            [sys.executable, "-m", "pixivflow", "-c", str(view), "slots", "list", "--json"],
            capture_stdout=True,
            capture_stderr=True,
        )
    return list(json.loads(done.stdout))


def _redirect(stage: Stage, listeners: list[socket.socket]) -> None:
    """Have a listener of the test at each address of the configuration."""
    world = stage.simulator
    text = stage.config.read_text()
    for address, listener in zip(
        (world.api_url, world.image_url, world.receiver_url), listeners, strict=True
    ):
        assert address in text
        text = text.replace(address, f"http://127.0.0.1:{listener.getsockname()[1]}")
    stage.config.write_text(text)


def _contents(folder: Path) -> dict[str, str]:
    """The digest of every file."""
    files = [Path(parent, name) for parent, _, names in os.walk(folder) for name in names]
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }
