import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import trio

from pixivflow.delivery.artifacts import FileMissing
from pixivflow.delivery.folder import from_os_error
from pixivflow.delivery.inbox import HIDDEN, safe_name, slip_for
from pixivflow.delivery.senders import open_sender
from pixivflow.delivery.settings import FolderSettings
from pixivflow.failpoints import VARIABLE
from protocol.verdicts import VerdictKind

from .conftest import KEY

DIE = """
import sys, trio, msgspec
from pathlib import Path
from pixivflow.delivery.senders import open_sender
from pixivflow.delivery.settings import FolderSettings
from protocol.payloads import Payload

async def main():
    folder, download, raw = sys.argv[1:]
    roots = {"download": Path(download), "state": Path(download)}
    async with open_sender(FolderSettings("inbox", Path(folder)), roots) as sender:
        await sender.send(msgspec.json.decode(raw, type=Payload))

trio.run(main)
"""


@pytest.fixture
def inbox(tmp_path):
    return tmp_path / "srv" / "inbox"


async def put(inbox, roots, message):
    async with open_sender(FolderSettings("inbox", inbox), roots) as sender:
        return await sender.send(message)


async def die_at(place, inbox, roots, message):
    """Send in a process of its own that is killed at the named place."""
    command = [
        sys.executable,
        "-c",
        DIE,
        str(inbox),
        str(roots["download"]),
        msgspec.json.encode(message).decode(),
    ]
    done = await trio.run_process(
        command, env={**os.environ, VARIABLE: place}, check=False, stderr=subprocess.DEVNULL
    )
    assert done.returncode == -signal.SIGKILL


def manifests(inbox):
    return [json.loads(path.read_bytes()) for path in sorted(inbox.glob("*.json"))]


def visible(inbox):
    return sorted(
        path.name for path in inbox.iterdir() if not path.name.startswith(".") and path.suffix != ".json"
    )


async def test_files_and_manifest_arrive_in_a_folder_that_was_missing(inbox, roots, store, payload):
    message = payload(
        [store("b.png", b"bb"), store("夕.png", b"a")], [("title", "x"), ("tags", "1"), ("tags", "2")]
    )

    verdict = await put(inbox, roots, message)

    assert verdict.kind is VerdictKind.ACCEPTED
    assert verdict.remote_id == slip_for(inbox, KEY).manifest.name
    (manifest,) = manifests(inbox)
    assert [file["name"] for file in manifest["files"]] == ["b.png", "夕.png"]
    assert manifest["fields"] == {"title": ["x"], "tags": ["1", "2"]}
    assert (manifest["key"], manifest["work"]) == (KEY, "illustration:123")
    assert (inbox / "b.png").read_bytes() == b"bb"


async def test_nothing_unfinished_is_left_behind(inbox, roots, store, payload):
    await put(inbox, roots, payload([store("a.png", b"a")]))

    assert [path.suffix for path in (inbox / HIDDEN).iterdir()] == [".done"]


async def test_the_same_key_again_is_replayed_and_writes_nothing(inbox, roots, store, payload):
    message = payload([store("a.png", b"a")])
    await put(inbox, roots, message)
    (inbox / "a.png").unlink()

    verdict = await put(inbox, roots, message)

    assert verdict.kind is VerdictKind.REPLAYED
    assert not (inbox / "a.png").exists()


async def test_a_manifest_that_its_reader_took_away_is_not_written_again(inbox, roots, store, payload):
    message = payload([store("a.png", b"a")])
    await put(inbox, roots, message)
    for path in inbox.glob("*.*"):
        if path.is_file():
            path.unlink()

    assert (await put(inbox, roots, message)).kind is VerdictKind.REPLAYED
    assert not manifests(inbox)


@pytest.mark.parametrize("place", ["folder.staged", "folder.placed"])
async def test_a_crash_before_the_manifest_is_resumed(inbox, roots, store, payload, place):
    message = payload([store("a.png", b"one"), store("b.png", b"two")])
    await die_at(place, inbox, roots, message)
    assert not manifests(inbox)

    verdict = await put(inbox, roots, message)

    assert verdict.kind is VerdictKind.ACCEPTED
    assert visible(inbox) == ["a.png", "b.png"]
    assert [file["name"] for file in manifests(inbox)[0]["files"]] == ["a.png", "b.png"]


@pytest.mark.parametrize("taken_away", [False, True])
async def test_a_crash_after_the_manifest_is_replayed(inbox, roots, store, payload, taken_away):
    message = payload([store("a.png", b"one")])
    await die_at("folder.published", inbox, roots, message)
    if taken_away:
        slip_for(inbox, KEY).manifest.unlink()

    assert (await put(inbox, roots, message)).kind is VerdictKind.REPLAYED
    assert len(manifests(inbox)) == (0 if taken_away else 1)
    assert [path.suffix for path in (inbox / HIDDEN).iterdir()] == [".done"]


async def test_a_half_written_copy_is_written_anew(inbox, roots, store, payload):
    slip = slip_for(inbox, KEY)
    slip.staging.mkdir(parents=True)
    (slip.staging / "0").write_bytes(b"on")
    (slip.staging / "0.part").write_bytes(b"o")

    await put(inbox, roots, payload([store("a.png", b"one")]))

    assert (inbox / "a.png").read_bytes() == b"one"


async def test_a_file_of_another_message_is_never_overwritten(inbox, roots, store, payload):
    await put(inbox, roots, payload([store("a.png", b"first")]))

    await put(inbox, roots, payload([store("a.png", b"second")], key="other"))

    first, second = sorted(manifests(inbox), key=lambda manifest: manifest["key"] == "other")
    assert (inbox / first["files"][0]["name"]).read_bytes() == b"first"
    assert (inbox / second["files"][0]["name"]).read_bytes() == b"second"
    assert second["files"][0]["name"] == f"a~{slip_for(inbox, 'other').digest[:8]}.png"


async def test_equal_content_of_two_messages_is_two_files(inbox, roots, store, payload):
    file = store("a.png", b"same")
    await put(inbox, roots, payload([file]))
    await put(inbox, roots, payload([file], key="other"))

    assert len(visible(inbox)) == 2


async def test_a_stranger_s_file_is_never_overwritten(inbox, roots, store, payload):
    inbox.mkdir(parents=True)
    (inbox / "a.png").write_bytes(b"precious")

    await put(inbox, roots, payload([store("a.png", b"new")]))

    assert (inbox / "a.png").read_bytes() == b"precious"


async def test_two_files_of_one_message_with_one_name_are_both_kept(inbox, roots, store, payload):
    files = [store("a.png", b"1", f"{n}/a.png") for n in range(3)]

    await put(inbox, roots, payload(files))

    assert len(visible(inbox)) == 3


async def test_a_file_that_looks_like_a_manifest_is_renamed(inbox, roots, store, payload):
    await put(inbox, roots, payload([store(f"{'a' * 32}.json", b"{}")]))

    assert not (inbox / f"{'a' * 32}.json").exists()


async def test_without_hard_links_files_are_renamed_and_a_crash_is_resumed(
    inbox, roots, store, payload, monkeypatch
):
    def refuse(self, target):
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    message = payload([store("a.png", b"one"), store("b.png", b"two")])
    inbox.mkdir(parents=True)
    (inbox / "a.png").write_bytes(b"one")
    (inbox / "b.png").write_bytes(b"other")

    assert (await put(inbox, roots, message)).kind is VerdictKind.ACCEPTED
    assert visible(inbox) == ["a.png", "b.png", f"b~{slip_for(inbox, KEY).digest[:8]}.png"]


async def test_a_missing_file_leaves_the_folder_untouched(inbox, roots, store, payload):
    there, gone = store("a.png", b"one"), store("b.png", b"two")
    (roots["download"] / "b.png").unlink()

    with pytest.raises(FileMissing):
        await put(inbox, roots, payload([there, gone]))
    assert not inbox.exists()


async def test_a_changed_file_is_never_visible(inbox, roots, store, payload):
    file = store("a.png", b"one")
    (roots["download"] / "a.png").write_bytes(b"onX")

    with pytest.raises(FileMissing, match="sha256"):
        await put(inbox, roots, payload([file]))
    assert not visible(inbox)


async def test_a_folder_that_can_not_be_made_feeds_the_breaker(tmp_path, roots, payload):
    (tmp_path / "file").write_text("")

    verdict = await put(tmp_path / "file" / "inbox", roots, payload())

    assert (verdict.kind, verdict.error_class) == (VerdictKind.RETRY, "folder_enotdir")
    assert verdict.feeds_breaker
    assert not verdict.spends_attempt


@pytest.mark.parametrize(
    ("number", "error_class", "feeds_breaker"),
    [
        (errno.ENOSPC, "disk_full", False),
        (errno.EDQUOT, "disk_full", False),
        (errno.EACCES, "folder_eacces", True),
        (errno.EROFS, "folder_erofs", True),
    ],
)
def test_a_folder_that_can_not_be_written_spends_no_attempt(number, error_class, feeds_breaker):
    verdict = from_os_error(OSError(number, "x"), Path("/srv/inbox"))

    assert (verdict.kind, verdict.error_class) == (VerdictKind.RETRY, error_class)
    assert (verdict.spends_attempt, verdict.feeds_breaker) == (False, feeds_breaker)
    assert os.strerror(number) in verdict.detail


async def test_readiness_asks_the_folder_or_its_nearest_parent(tmp_path, roots):
    (tmp_path / "file").write_text("")
    for path, ready in [(tmp_path, True), (tmp_path / "a" / "b", True), (tmp_path / "file" / "x", False)]:
        async with open_sender(FolderSettings("inbox", path), roots) as sender:
            assert await sender.ready() is ready


async def test_old_receipts_and_unfinished_messages_are_pruned_at_opening(inbox, roots, store, payload):
    await put(inbox, roots, payload([store("a.png", b"a")]))
    stale = slip_for(inbox, "stale").staging
    stale.mkdir()
    (stale / "0").write_bytes(b"x")
    fresh = slip_for(inbox, "fresh").staging
    fresh.mkdir()
    for path in (stale, slip_for(inbox, KEY).receipt):
        os.utime(path, (0, 0))

    async with open_sender(FolderSettings("inbox", inbox), roots):
        assert list((inbox / HIDDEN).iterdir()) == [fresh]


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("a/b.png", "a_b.png"),
        ("../x", ".._x"),
        ("..", "file"),
        ("", "file"),
        ("a\n.png", "a_.png"),
        (" 夕 .png ", "夕 .png"),
    ],
)
def test_a_name_is_one_component(name, safe):
    assert safe_name(name) == safe


@pytest.mark.parametrize("name", ["夕" * 300 + ".png", "x" * 300, "x." + "y" * 300])
def test_a_long_name_leaves_room_for_a_suffix(name):
    assert len(safe_name(name).encode()) <= 255 - 24
