import signal
import sys
from pathlib import Path

import pytest
import trio

from pixivflow.download.collect import chief_error, fetch_pages
from pixivflow.download.errors import DiskFull, FileGone, IntegrityFailed
from pixivflow.download.plan import PlannedFile
from pixivflow.download.store import StoredFile


def planned(host, pages: int) -> list[PlannedFile]:
    return [
        PlannedFile(page, "original", f"{host.base}/p{page}.jpg", f"1/1_p{page}.jpg") for page in range(pages)
    ]


class Records:
    def __init__(self, root: Path) -> None:
        self._root = root
        self.pages: dict[int, StoredFile] = {}

    async def __call__(self, file: PlannedFile, stored: StoredFile) -> None:
        await trio.lowlevel.checkpoint()
        assert (self._root / file.path).stat().st_size == stored.bytes
        self.pages[file.page] = stored


@pytest.fixture
def records(tmp_path) -> Records:
    return Records(tmp_path)


async def test_all_pages_are_stored_recorded_and_given_in_order(store, host, pictures, records, tmp_path):
    kinds = ["jpg", "png", "gif", "webp", "progressive", "jpg", "png"]
    for page, kind in enumerate(kinds):
        host.put(f"/p{page}.jpg", pictures[kind])
    result = await fetch_pages(store, planned(host, 7), tmp_path, record=records, skip={})
    assert [stored.bytes for stored in result] == [len(pictures[kind]) for kind in kinds]
    assert records.pages == dict(enumerate(result))


async def test_no_pages_give_an_empty_result(store, records, tmp_path):
    assert await fetch_pages(store, [], tmp_path, record=records, skip={}) == ()


async def test_pages_are_fetched_side_by_side(store, host, pictures, records, tmp_path):
    for page in range(3):
        host.put(f"/p{page}.jpg", pictures["jpg"])
    host.together = 3
    await fetch_pages(store, planned(host, 3), tmp_path, record=records, skip={})
    assert host.busiest == 3


async def test_a_page_that_is_recorded_and_there_is_not_asked_for_again(
    store, host, pictures, records, tmp_path
):
    for page in range(2):
        host.put(f"/p{page}.jpg", pictures["jpg"])
    first = await fetch_pages(store, planned(host, 1), tmp_path, record=records, skip={})
    host.asked.clear()
    records.pages.clear()
    again = await fetch_pages(store, planned(host, 2), tmp_path, record=records, skip={0: first[0]})
    assert again[0] == first[0]
    assert set(records.pages) == {1}
    assert len(host.asked) == 1


async def test_a_page_that_is_recorded_and_missing_is_fetched_and_recorded(
    store, host, pictures, records, tmp_path
):
    host.put("/p0.jpg", pictures["jpg"])
    old = StoredFile(3, "0" * 64, "image/jpeg")
    result = await fetch_pages(store, planned(host, 1), tmp_path, record=records, skip={0: old})
    assert result[0].bytes == len(pictures["jpg"])
    assert records.pages == {0: result[0]}


async def test_the_first_failure_ends_the_rest_and_comes_without_a_group(
    store, host, pictures, records, tmp_path
):
    body = pictures["png"]
    for page in (0, 2):
        host.put(f"/p{page}.jpg", body, sent=len(body) // 2, hold=True)
    with pytest.raises(FileGone):
        await fetch_pages(store, planned(host, 3), tmp_path, record=records, skip={})
    assert records.pages == {}
    assert [found for found in tmp_path.rglob("*") if found.is_file()] == []


async def test_pages_recorded_before_the_failure_stay(store, host, pictures, tmp_path):
    host.put("/p0.jpg", pictures["jpg"])
    recorded: list[int] = []

    async def record(file: PlannedFile, stored: StoredFile) -> None:
        await trio.lowlevel.checkpoint()
        recorded.append(file.page)
        if file.page == 1:
            raise IntegrityFailed("told by the test")

    host.put("/p1.jpg", pictures["jpg"])
    with pytest.raises(IntegrityFailed, match="told by the test"):
        await fetch_pages(store, planned(host, 2), tmp_path, record=record, skip={})
    for page in recorded:
        assert (tmp_path / f"1/1_p{page}.jpg").is_file()


async def test_a_failure_keeps_its_cause(store, host, pictures, records, small_disk):
    host.put("/p0.jpg", pictures["jpg"] + bytes(100_000))
    with pytest.raises(DiskFull) as caught:
        await fetch_pages(store, planned(host, 1), small_disk, record=records, skip={})
    assert not isinstance(caught.value.__context__, BaseExceptionGroup)


def test_a_full_disk_goes_before_other_failures():
    full, gone = DiskFull("full"), FileGone("gone")
    assert chief_error(ExceptionGroup("", [gone, ExceptionGroup("", [full])])) is full
    assert chief_error(ExceptionGroup("", [gone, IntegrityFailed("cut")])) is gone


async def test_cancelled_from_outside_it_ends_cancelled_and_records_nothing(
    store, host, pictures, records, tmp_path
):
    body = pictures["png"]
    for page in range(2):
        host.put(f"/p{page}.jpg", body, sent=len(body) // 2, hold=True)
    with trio.CancelScope() as scope:
        await fetch_pages(
            store, planned(host, 2), tmp_path, record=records, skip={}, on_bytes=lambda _: scope.cancel()
        )
    assert scope.cancelled_caught
    assert records.pages == {}
    assert not list(tmp_path.rglob("*.jpg"))


async def test_a_failure_during_cancellation_does_not_hide_it(store, host, pictures, tmp_path):
    host.put("/p0.jpg", pictures["jpg"])
    host.put("/p1.jpg", pictures["jpg"])

    with trio.CancelScope() as scope:

        async def record(file: PlannedFile, stored: StoredFile) -> None:
            if file.page == 0:
                scope.cancel()
                raise IntegrityFailed("while cancelled")
            await trio.sleep_forever()

        await fetch_pages(store, planned(host, 2), tmp_path, record=record, skip={})
    assert scope.cancelled_caught


RUN = """
import sys
from pathlib import Path
import trio
from pixivflow.download.collect import fetch_pages
from pixivflow.download.plan import PlannedFile
from pixivflow.download.store import Store
from pixivflow.pixiv.images import open_image_host
from pixivflow.pixiv.settings import PixivSettings

async def record(file, stored):
    print("recorded", stored.bytes, flush=True)

async def main(url, root):
    async with open_image_host(PixivSettings()) as images:
        store = Store(images, trio.CapacityLimiter(1))
        planned = [PlannedFile(0, "original", url, "1/1_p0.jpg")]
        await fetch_pages(store, planned, Path(root), record=record, skip={})

trio.run(main, *sys.argv[1:])
"""


@pytest.mark.parametrize(("place", "records"), [("download.renamed", 0), ("download.recorded", 1)])
async def test_killed_around_the_record_the_file_is_whole_and_the_next_run_adopts_it(
    place, records, host, pictures, tmp_path
):
    command = [sys.executable, "-c", RUN, host.put("/p0.jpg", pictures["jpg"]), str(tmp_path)]
    killed = await trio.run_process(
        command, env={"PIXIVFLOW_FAILPOINT": place}, check=False, capture_stdout=True
    )
    assert killed.returncode == -signal.SIGKILL
    assert killed.stdout.count(b"recorded") == records
    assert (tmp_path / "1/1_p0.jpg").read_bytes() == pictures["jpg"]
    again = await trio.run_process(command, env={}, capture_stdout=True)
    assert again.stdout == f"recorded {len(pictures['jpg'])}\n".encode()
    assert [found.name for found in (tmp_path / "1").iterdir()] == ["1_p0.jpg"]
