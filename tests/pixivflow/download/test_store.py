import errno
import gzip
import hashlib
import os
from itertools import product
from pathlib import Path

import httpx
import pytest
import trio

from pixivflow.download.errors import (
    DiskFull,
    FileGone,
    ImageRefused,
    IntegrityFailed,
    PathRefused,
    StorageFailed,
    storage_errors,
)
from pixivflow.download.store import Store, StoredFile
from pixivflow.pixiv.errors import NetworkFailed, RateLimited, ServerFailed, WorkRestricted

PATH = "7-name/1_title_p0.jpg"


class Plain:
    """The smallest source of images."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    def stream(self, url, headers=None):
        return self._client.stream("GET", url, headers=headers)


def files(root: Path) -> list[str]:
    return sorted(str(found.relative_to(root)) for found in root.rglob("*") if not found.is_dir())


async def test_a_picture_is_stored_whole_with_its_length_and_hash(store, host, pictures, tmp_path):
    body = pictures["jpg"]
    stored = await store.fetch(host.put("/a.jpg", body), tmp_path, PATH)
    assert stored == StoredFile(len(body), hashlib.sha256(body).hexdigest(), "image/jpeg")
    assert (tmp_path / PATH).read_bytes() == body
    assert files(tmp_path) == [PATH]


async def test_the_request_carries_the_referer_and_asks_for_no_encoding(store, host, pictures, tmp_path):
    await store.fetch(host.put("/a.jpg", pictures["jpg"]), tmp_path, PATH)
    sent = host.asked[0].lower()
    assert "referer: https://app-api.pixiv.net/" in sent
    assert "accept-encoding: identity" in sent


async def test_progress_is_told_for_every_byte(store, host, pictures, tmp_path):
    heard: list[int] = []
    await store.fetch(host.put("/a.png", pictures["png"]), tmp_path, PATH, on_bytes=heard.append)
    assert sum(heard) == len(pictures["png"])


async def test_a_body_of_many_chunks_is_stored_whole(chunky, host, pictures, tmp_path):
    stored = await chunky.fetch(host.put("/a.png", pictures["png"]), tmp_path, PATH)
    assert (tmp_path / PATH).read_bytes() == pictures["png"]
    assert stored.bytes == len(pictures["png"])


async def test_the_root_is_made_when_it_is_missing(store, host, pictures, tmp_path):
    await store.fetch(host.put("/a.jpg", pictures["jpg"]), tmp_path / "new" / "root", PATH)
    assert (tmp_path / "new" / "root" / PATH).is_file()


async def test_a_png_named_jpg_keeps_its_name_and_gets_its_own_media_type(store, host, pictures, tmp_path):
    stored = await store.fetch(host.put("/a.jpg", pictures["png"]), tmp_path, PATH)
    assert stored.media_type == "image/png"
    assert files(tmp_path) == [PATH]


@pytest.mark.parametrize("kind", ["jpg", "progressive", "png", "gif", "webp"])
async def test_bytes_after_the_end_of_a_picture_are_kept(kind, store, host, pictures, tmp_path):
    body = pictures[kind] + bytes(50)
    await store.fetch(host.put("/a", body), tmp_path, PATH)
    assert (tmp_path / PATH).read_bytes() == body


async def test_a_gzipped_body_is_stored_as_the_picture_it_holds(store, host, pictures, tmp_path):
    url = host.put("/a.jpg", gzip.compress(pictures["jpg"]), headers=("Content-Encoding: gzip",))
    stored = await store.fetch(url, tmp_path, PATH)
    assert stored.bytes == len(pictures["jpg"])


async def test_a_body_shorter_than_announced_is_a_broken_transfer(store, host, pictures, tmp_path):
    url = host.put("/a.jpg", pictures["jpg"], sent=400)
    with pytest.raises(NetworkFailed):
        await store.fetch(url, tmp_path, PATH)
    assert files(tmp_path) == []


async def test_a_source_that_translates_nothing_gives_the_same_failure(host, limiter, pictures, tmp_path):
    url = host.put("/a.jpg", pictures["jpg"], sent=400)
    async with httpx.AsyncClient(trust_env=False, verify=False) as client:
        with pytest.raises(NetworkFailed, match="broke off"):
            await Store(Plain(client), limiter).fetch(url, tmp_path, PATH)
    assert files(tmp_path) == []


async def test_a_length_that_the_transport_ignored_is_held_against_the_body(store, host, pictures, tmp_path):
    headers = (f"Content-Length: {len(pictures['jpg']) + 1}",)
    url = host.put("/a.jpg", pictures["jpg"], framing="chunked", headers=headers)
    with pytest.raises(IntegrityFailed, match="were announced"):
        await store.fetch(url, tmp_path, PATH)
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    "case", list(product(["jpg", "progressive", "png", "gif", "webp"], ["close", "chunked"]))
)
async def test_an_early_end_that_http_can_not_see_is_found_in_the_picture(
    case, store, host, pictures, tmp_path
):
    kind, framing = case
    body = pictures[kind]
    url = host.put("/a", body, framing=framing, sent=len(body) * 2 // 5)
    with pytest.raises(IntegrityFailed, match=r"1_title_p0\.jpg"):
        await store.fetch(url, tmp_path, PATH)
    assert files(tmp_path) == []


async def test_a_picture_damaged_at_its_origin_is_refused(store, host, pictures, tmp_path):
    url = host.put("/a.png", pictures["png"][:-2])
    with pytest.raises(IntegrityFailed):
        await store.fetch(url, tmp_path, PATH)


@pytest.mark.parametrize(
    "body",
    [b"<!DOCTYPE html><html>wait</html>", b"", b"PK\x03\x04" + bytes(90), b"\xff", b"GIF88a" + bytes(99)],
)
async def test_what_is_no_picture_is_refused_under_status_200(body, store, host, tmp_path):
    url = host.put("/a.jpg", body, headers=("Content-Type: text/html",))
    with pytest.raises(IntegrityFailed):
        await store.fetch(url, tmp_path, PATH)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "case",
    [
        (404, FileGone),
        (410, FileGone),
        (401, ImageRefused),
        (403, ImageRefused),
        (416, ImageRefused),
        (500, ServerFailed),
        (503, ServerFailed),
        (206, ServerFailed),
        (204, ServerFailed),
        (302, ServerFailed),
    ],
)
async def test_a_status_other_than_200_stores_nothing(case, store, host, pictures, tmp_path):
    status, error = case
    body = b"" if status == 204 else pictures["jpg"]
    with pytest.raises(error, match=str(status)):
        await store.fetch(host.put("/a.jpg", body, status=status), tmp_path, PATH)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("header", "wait"), [("17", 17.0), ("soon", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)]
)
async def test_a_pause_that_the_host_asks_for_is_handed_on(header, wait, store, host, tmp_path):
    url = host.put("/a.jpg", b"slow down", status=429, headers=(f"Retry-After: {header}",))
    with pytest.raises(RateLimited) as caught:
        await store.fetch(url, tmp_path, PATH)
    assert caught.value.retry_after_s == wait


async def test_a_refused_connection_is_a_network_failure(store, host, tmp_path):
    with trio.socket.socket() as closed:
        await closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(NetworkFailed):
            await store.fetch(f"http://127.0.0.1:{port}/a.jpg", tmp_path, PATH)


async def test_a_placeholder_is_refused_without_a_request(store, host, pictures, tmp_path):
    url = host.put("/common/images/limit_unknown_360.png", pictures["png"])
    with pytest.raises(WorkRestricted):
        await store.fetch(url, tmp_path, PATH)
    assert host.asked == []


@pytest.mark.parametrize("path", ["../x.jpg", "/x.jpg", "a/../../x.jpg", "", ".", "a\0.jpg"])
async def test_a_path_out_of_the_root_is_refused(path, store, host, pictures, tmp_path):
    url = host.put("/a.jpg", pictures["jpg"])
    for call in (store.fetch(url, tmp_path, path), store.discard(tmp_path, path)):
        with pytest.raises(PathRefused):
            await call
    assert host.asked == []


async def test_a_link_out_of_the_root_is_refused_before_the_request(store, host, pictures, tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "7-name").symlink_to(outside)
    (outside / "1_title_p0.jpg").write_bytes(b"precious")
    with pytest.raises(PathRefused, match="outside"):
        await store.fetch(host.put("/a.jpg", pictures["jpg"]), root, PATH)
    with pytest.raises(PathRefused):
        await store.discard(root, PATH)
    with pytest.raises(PathRefused):
        await store.known(root, PATH, StoredFile(8, "", "image/jpeg"))
    await store.drop_parts(root, [PATH])
    assert files(outside) == ["1_title_p0.jpg"]
    assert host.asked == []


async def test_a_link_that_stays_inside_and_a_linked_root_are_fine(store, host, pictures, tmp_path):
    (tmp_path / "real" / "elsewhere").mkdir(parents=True)
    (tmp_path / "root").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "7-name").symlink_to("elsewhere")
    await store.fetch(host.put("/a.jpg", pictures["jpg"]), tmp_path / "root", PATH)
    assert (tmp_path / "real" / "elsewhere" / "1_title_p0.jpg").is_file()


async def test_a_part_that_is_a_link_is_replaced_not_followed(store, host, pictures, tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "root" / "7-name").mkdir(parents=True)
    (tmp_path / "root" / f"{PATH}.part").symlink_to(victim)
    await store.fetch(host.put("/a.jpg", pictures["jpg"]), tmp_path / "root", PATH)
    assert victim.read_bytes() == b"precious"


async def test_an_old_part_is_written_anew(store, host, pictures, tmp_path):
    (tmp_path / "7-name").mkdir()
    (tmp_path / f"{PATH}.part").write_bytes(bytes(100_000))
    stored = await store.fetch(host.put("/a.jpg", pictures["jpg"]), tmp_path, PATH)
    assert stored.bytes == len(pictures["jpg"])
    assert files(tmp_path) == [PATH]


async def test_an_equal_file_is_adopted(store, host, pictures, tmp_path):
    (tmp_path / "7-name").mkdir()
    (tmp_path / PATH).write_bytes(pictures["jpg"])
    before = (tmp_path / PATH).stat().st_ino
    stored = await store.fetch(host.put("/a.jpg", pictures["jpg"]), tmp_path, PATH)
    assert stored.bytes == len(pictures["jpg"])
    assert (tmp_path / PATH).stat().st_ino == before
    assert files(tmp_path) == [PATH]


async def test_another_file_at_our_path_is_moved_aside(store, host, pictures, tmp_path):
    (tmp_path / "7-name").mkdir()
    (tmp_path / PATH).write_bytes(pictures["png"])
    (tmp_path / f"{PATH}.foreign-1").write_bytes(b"an earlier one")
    # As long as ours, and different.
    other = bytes(len(pictures["jpg"]))
    (tmp_path / PATH).write_bytes(other)
    await store.fetch(host.put("/a.jpg", pictures["jpg"]), tmp_path, PATH)
    assert (tmp_path / PATH).read_bytes() == pictures["jpg"]
    assert (tmp_path / f"{PATH}.foreign-1").read_bytes() == b"an earlier one"
    assert (tmp_path / f"{PATH}.foreign-2").read_bytes() == other


async def test_a_link_at_our_path_is_moved_aside_with_its_target_untouched(store, host, pictures, tmp_path):
    (tmp_path / "7-name").mkdir()
    (tmp_path / "target").write_bytes(pictures["jpg"])
    (tmp_path / PATH).symlink_to(tmp_path / "target")
    await store.fetch(host.put("/a.jpg", pictures["jpg"]), tmp_path, PATH)
    assert not (tmp_path / PATH).is_symlink()
    assert (tmp_path / f"{PATH}.foreign-1").is_symlink()


async def test_a_folder_at_our_path_stays_where_it_is(store, host, pictures, tmp_path):
    (tmp_path / PATH).mkdir(parents=True)
    with pytest.raises(StorageFailed, match="is a folder"):
        await store.fetch(host.put("/a.jpg", pictures["jpg"]), tmp_path, PATH)
    assert files(tmp_path) == []


async def test_a_file_where_a_folder_should_be_is_named(store, host, pictures, tmp_path):
    (tmp_path / "7-name").write_bytes(b"")
    with pytest.raises(StorageFailed, match="7-name"):
        await store.fetch(host.put("/a.jpg", pictures["jpg"]), tmp_path, PATH)


async def test_cancelled_half_way_nothing_has_the_final_name_and_the_next_run_succeeds(
    chunky, host, pictures, tmp_path
):
    body = pictures["png"]
    url = host.put("/a.png", body, sent=len(body) // 2, hold=True)
    got = 0

    async with trio.open_nursery() as nursery:

        def count(number: int) -> None:
            nonlocal got
            got += number
            if got == len(body) // 2:
                nursery.cancel_scope.cancel()

        nursery.start_soon(lambda: chunky.fetch(url, tmp_path, PATH, on_bytes=count))
    assert files(tmp_path) in ([], [f"{PATH}.part"])
    host.put("/a.png", body)
    await chunky.fetch(url, tmp_path, PATH)
    assert files(tmp_path) == [PATH]


async def test_too_little_free_space_is_refused_before_the_request(images, limiter, host, pictures, tmp_path):
    careful = Store(images, limiter, min_free=1 << 60)
    with pytest.raises(DiskFull, match="min_free"):
        await careful.fetch(host.put("/a.jpg", pictures["jpg"]), tmp_path, PATH)
    assert host.asked == []
    assert list(tmp_path.iterdir()) == []


async def test_a_body_announced_bigger_than_the_disk_is_refused_before_it_is_written(store, host, small_disk):
    url = host.put("/a.jpg", bytes(100_000), sent=0, hold=True)
    with pytest.raises(DiskFull):
        await store.fetch(url, small_disk, PATH)
    assert list(small_disk.iterdir()) == []


async def test_a_disk_that_fills_up_while_writing_leaves_no_part(store, host, pictures, small_disk):
    url = host.put("/a.jpg", pictures["jpg"] + bytes(100_000), framing="close")
    with pytest.raises(DiskFull, match="Free some space"):
        await store.fetch(url, small_disk, PATH)
    assert files(small_disk) == []
    stored = await store.fetch(host.put("/b.jpg", pictures["jpg"]), small_disk, PATH)
    assert stored.media_type == "image/jpeg"


async def test_a_read_only_disk_is_named(store, host, pictures, small_disk):
    await trio.run_process(["mount", "-o", "remount,ro", str(small_disk)])
    with pytest.raises(StorageFailed, match=r"7-name.*Read-only") as caught:
        await store.fetch(host.put("/a.jpg", pictures["jpg"]), small_disk, PATH)
    assert not isinstance(caught.value, DiskFull)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_no_space_and_no_quota_are_a_full_disk(number):
    with pytest.raises(DiskFull, match="/some/folder"), storage_errors(Path("/some/folder")):
        raise OSError(number, os.strerror(number))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_without_permission_is_named(store, host, pictures, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StorageFailed, match="7-name"):
        await store.fetch(host.put("/a.jpg", pictures["jpg"]), tmp_path, PATH)


async def test_no_more_files_than_tokens_are_fetched_at_once(store, host, pictures, tmp_path):
    urls = [host.put(f"/{number}.jpg", pictures["jpg"]) for number in range(9)]
    async with trio.open_nursery() as nursery:
        for number, url in enumerate(urls):
            nursery.start_soon(store.fetch, url, tmp_path, f"{number}.jpg")
    assert len(files(tmp_path)) == 9
    assert host.busiest <= 3


async def test_a_recorded_file_is_known_by_length_and_on_request_by_hash(store, host, pictures, tmp_path):
    stored = await store.fetch(host.put("/a.jpg", pictures["jpg"]), tmp_path, PATH)
    assert await store.known(tmp_path, PATH, stored, verify=True)
    (tmp_path / PATH).write_bytes(bytes(stored.bytes))
    assert await store.known(tmp_path, PATH, stored)
    assert not await store.known(tmp_path, PATH, stored, verify=True)
    (tmp_path / PATH).write_bytes(b"short")
    assert not await store.known(tmp_path, PATH, stored)


@pytest.mark.parametrize("path", ["missing.jpg", "a/b/missing.jpg", "file/below.jpg", "folder"])
async def test_what_is_missing_or_no_file_is_not_known(path, store, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    assert not await store.known(tmp_path, path, StoredFile(0, "", "image/jpeg"))


async def test_discarding_removes_file_part_and_the_folders_left_empty(store, tmp_path):
    for name in ("a/b/c.jpg", "a/b/c.jpg.part", "a/other.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    await store.discard(tmp_path, "a/b/c.jpg")
    assert [str(found.relative_to(tmp_path)) for found in tmp_path.rglob("*")] == ["a", "a/other.jpg"]
    await store.discard(tmp_path, "a/other.jpg")
    assert tmp_path.is_dir()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["missing.jpg", "a/b/missing.jpg", "file/below.jpg"])
async def test_discarding_what_is_gone_is_fine(path, store, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    await store.discard(tmp_path, path)
    await store.discard(tmp_path / "no-root", path)
    assert files(tmp_path) == ["file"]
