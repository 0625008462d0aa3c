"""What is wrong with a file, a folder or a host ends in one clear message, and nothing is lost."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.crash.audit import audit, bound_works
from tests.crash.stage import Daemon, open_stage

DEADLINE_S = 20
UNSET = "PIXIVFLOW_NOBODY_SETS_THIS"
GOOD = """\
[storage]
state_dir = "place/state"
download_dir = "downloads"
[accounts.main]
refresh_token = "a-token"
[[schedules]]
id = "daily"
cron = "0 8 * * *"
timezone = "Asia/Tokyo"
targets = ["landscape"]
[[targets]]
id = "landscape"
mode = "search"
tags = ["風景"]
limit = 1
"""
GARBAGE = b"this is no ledger\n" * 1000


def run_of(folder: Path, text: str) -> tuple[int, str]:
    """The exit code of the daemon, and everything that it said."""
    file = folder / "pixivflow.toml"
    file.write_text(text)
    file.chmod(0o600)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PIXIVFLOW", "NOTIFY"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "pixivflow", "-c", str(file), "run"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
        env=environment,
        cwd=folder,
        check=False,
    )
    return done.returncode, done.stdout


BAD_FILES = {
    "a typo in a key": (
        ("download_dir", "dowload_dir"),
        ':3: storage.dowload_dir: unknown key "dowload_dir", did you mean "download_dir"?',
    ),
    "a variable that is not set": (
        ("a-token", f"${{{UNSET}}}"),
        f":5: accounts.main.refresh_token: the environment variable {UNSET} is not set",
    ),
    "a target that is not there": (
        ('["landscape"]', '["landscapes"]'),
        ':10: schedules.daily.targets: unknown target "landscapes", did you mean "landscape"?',
    ),
    "a cron expression that never comes": (
        ("0 8 * * *", "0 8 31 2 *"),
        ':8: schedules.daily.cron: found "0 8 31 2 *", expected ',
    ),
    "a time zone that is not there": (
        ("Asia/Tokyo", "Asia/Tokio"),
        ':9: schedules.daily.timezone: found "Asia/Tokio", expected an IANA time zone',
    ),
}


@pytest.mark.parametrize(("change", "told"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_ends_with_65_and_one_line_that_names_file_line_and_key(
    tmp_path: Path, change: tuple[str, str], told: str
) -> None:
    code, said = run_of(tmp_path, GOOD.replace(*change))
    assert code == 65
    [line] = said.splitlines()
    assert line.startswith(f"pixivflow: {tmp_path / 'pixivflow.toml'}{told}")
    assert list(tmp_path.iterdir()) == [tmp_path / "pixivflow.toml"], "nothing was made"


@contextmanager
def damaged_ledger(folder: Path) -> Iterator[Path]:
    ledger = folder / "place" / "state" / "ledger.db"
    ledger.parent.mkdir(parents=True)
    ledger.write_bytes(GARBAGE)
    yield ledger
    assert ledger.read_bytes() == GARBAGE
    assert {path.name for path in ledger.parent.iterdir()} <= {"ledger.db", "ledger.lock"}


@contextmanager
def file_in_the_place(folder: Path) -> Iterator[Path]:
    place = folder / "place"
    place.write_text("a file")
    yield place
    assert place.read_text() == "a file"


@contextmanager
def read_only_place(folder: Path) -> Iterator[Path]:
    place = folder / "place"
    place.mkdir()
    with read_only(place):
        yield place
        assert list(place.iterdir()) == []


@contextmanager
def read_only(place: Path) -> Iterator[None]:
    """Have nobody write into a folder, not even root."""
    with ExitStack() as undo:
        if os.geteuid() == 0:  # permissions say nothing to root
            mount = ["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(place)]
            mounted = subprocess.run(mount, check=False, capture_output=True)
            if mounted.returncode != 0:
                pytest.skip(f"nothing can be mounted here: {mounted.stderr.decode().strip()}")
            undo.callback(subprocess.run, ["umount", str(place)], check=True)
        else:
            place.chmod(0o555)
            undo.callback(place.chmod, 0o755)
        yield


BAD_PLACES = {
    "a damaged ledger": (damaged_ledger, "place/state", "Nothing was changed. Restore a backup of it"),
    "a file where the folder should be": (file_in_the_place, "place/state", "storage.state_dir: "),
    "a folder that can not be made": (read_only_place, "place/state", "storage.state_dir: "),
    "a read-only folder": (read_only_place, "place", "ledger.lock"),
}


@pytest.mark.parametrize(("place", "state_dir", "advice"), BAD_PLACES.values(), ids=BAD_PLACES)
def test_a_bad_place_ends_with_1_and_one_line_that_names_it(
    tmp_path: Path, place: Callable[[Path], AbstractContextManager[Path]], state_dir: str, advice: str
) -> None:
    with place(tmp_path) as named:
        code, said = run_of(tmp_path, GOOD.replace("place/state", state_dir))
    assert code == 1
    [line] = said.splitlines()
    assert line.startswith("pixivflow: ")
    assert str(named) in line
    assert advice in line


async def _tried(daemon: Daemon, slot: str, times: int) -> dict[str, Any]:
    """Wait for the end of a try, and return the cell."""
    cell: dict[str, Any] = {}

    async def tried() -> bool:
        nonlocal cell
        [detail] = (await daemon.slot(slot))["cells"]
        cell = detail["cell"]
        return bool(cell["attempts"] == times)

    await daemon.stage.until(f"try {times} has ended", tried)
    return cell


async def test_a_host_that_does_not_listen_keeps_the_slot_waiting_with_one_warning_for_each_try(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        nobody = f"http://127.0.0.1:{reserved.getsockname()[1]}"
    async with open_stage(tmp_path) as stage:
        there = stage.config.read_text()
        stage.config.write_text(there.replace(stage.simulator.api_url, nobody))
        slot = "often@manual-k"
        for times in (1, 2):
            daemon = await stage.start_ready()
            await daemon.trigger("k")
            cell = await _tried(daemon, slot, times)
            assert (cell["state"], cell["reason_code"]) == ("pending", "network_error")
            assert (await daemon.slot(slot))["slot"]["status"] == "running"
            assert await daemon.stop() == 0
            warnings = [event for event in daemon.events() if event["level"] == "warning"]
            assert len(warnings) == 1, warnings
            assert "Traceback" not in daemon.text()
            stage.let_time_pass()

        stage.config.write_text(there)
        after = await stage.start_ready()
        assert await after.slot_ends(slot) == "success"
        assert await after.stop() == 0


async def test_a_read_only_download_folder_keeps_the_work_for_the_day_it_can_be_written(
    tmp_path: Path,
) -> None:
    async with open_stage(tmp_path) as stage:
        stage.downloads.mkdir()
        with read_only(stage.downloads):
            daemon = await stage.start_ready()
            slot = await daemon.trigger("k")
            cell = await _tried(daemon, slot, 1)
            assert (cell["state"], cell["status"]) == ("pending", "selected")
            assert str(stage.downloads) in cell["reason"]
            assert await daemon.stop() == 0
            assert "Traceback" not in daemon.text()
        bound = bound_works(stage)
        stage.let_time_pass()
        stage.add_newer_work()
        after = await stage.start_ready()
        assert await after.slot_ends(slot) == "success"
        assert await after.stop() == 0
        assert bound_works(stage) == bound
        audit(stage, cell_attempts=1)
