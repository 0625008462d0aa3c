"""A disk that is full in the middle of a work."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pixivflow.cli.client import CallRefused
from pixivflow.simulator.server import SimulatorOptions
from tests.crash.audit import audit, bound_works
from tests.crash.stage import Plan, open_stage

DISK = 2 << 20
PAGE = 900 << 10


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a file system of 2 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def disk_for_downloads(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk"):
        yield tmp_path / "disk"


@pytest.fixture
def disk_for_state(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "state"):
        yield tmp_path / "state"


async def test_a_full_disk_leaves_no_half_work_and_is_recovered_from(
    tmp_path: Path, disk_for_downloads: Path
) -> None:
    plan = Plan(download_dir="disk/downloads")
    options = SimulatorOptions(image_min_bytes=PAGE)
    async with open_stage(tmp_path, plan, pages=2, options=options) as stage:
        ballast = disk_for_downloads / "ballast"
        ballast.write_bytes(bytes(700 << 10))
        daemon = await stage.start_ready()
        slot = await daemon.trigger("k")

        async def full() -> bool:
            [detail] = (await daemon.slot(slot))["cells"]
            return bool(detail["cell"]["reason_code"] == "disk_full")

        await stage.until("the full disk is reported", full)
        assert await daemon.stop() == 0
        [cell] = stage.rows("SELECT state, status FROM cells")
        assert (cell["state"], cell["status"]) == ("pending", "selected")
        there = {path for path in stage.downloads.rglob("*") if path.is_file()}
        recorded = {
            stage.downloads / row["path"]
            for row in stage.rows("SELECT path FROM artifacts WHERE sha256 > ''")
        }
        assert there == recorded, "nothing half stored, and nothing recorded that is not there"
        assert stage.simulator.receiver.posts == []
        bound = bound_works(stage)

        ballast.unlink()
        stage.let_time_pass()
        after = await stage.start_ready()
        assert await after.slot_ends(slot) == "success"
        assert await after.stop() == 0
        assert bound_works(stage) == bound
        audit(stage, cell_attempts=1)


async def test_a_full_disk_under_the_ledger_is_told_in_one_line_and_recovered_from(
    tmp_path: Path, disk_for_state: Path
) -> None:
    async with open_stage(tmp_path) as stage:
        daemon = await stage.start_ready()
        ballast = disk_for_state / "ballast"
        with pytest.raises(OSError, match="No space left"), ballast.open("wb") as out:
            out.write(bytes(2 * DISK))
        with pytest.raises(CallRefused, match="is full"):
            await daemon.trigger("k")
        ballast.unlink()
        assert await daemon.slot_ends(await daemon.trigger("k")) == "success"
        assert await daemon.stop() == 0
        assert "Traceback" not in daemon.text()
        audit(stage)
