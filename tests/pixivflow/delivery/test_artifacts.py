import os
from contextlib import ExitStack

import msgspec
import pytest

from pixivflow.delivery.artifacts import FileMissing, FileUnreadable, open_artifact, open_verified
from pixivflow.delivery.form import FormBody
from pixivflow.delivery.senders import open_sender
from pixivflow.delivery.settings import FolderSettings, MultipartSettings
from protocol.verdicts import VerdictKind


def go_on():
    """The pulse of a test that nobody stops."""


class Stopped(Exception):
    pass


def test_what_was_verified_is_what_is_read_even_if_the_path_is_replaced(roots, store):
    file = store("a.png", b"one")
    with ExitStack() as stack:
        (opened,) = open_verified((file,), roots, stack, go_on)
        (roots["download"] / "new").write_bytes(b"two")
        (roots["download"] / "new").rename(roots["download"] / "a.png")

        assert b"".join(opened.chunks(go_on)) == b"one"


def test_verifying_can_be_stopped_between_chunks(roots, store):
    def stop():
        raise Stopped

    with ExitStack() as stack, pytest.raises(Stopped):
        open_verified((store("a.png", b"one"),), roots, stack, stop)


def test_a_pipe_or_a_folder_in_place_of_a_file_is_missing(roots, store):
    for name, make in (("pipe", os.mkfifo), ("folder", os.mkdir)):
        file = msgspec.structs.replace(store("a.png", b"one"), path=name)
        make(roots["download"] / name)
        with ExitStack() as stack, pytest.raises(FileMissing, match=f"{name}: it is not there"):
            open_artifact(file, roots, stack)


def test_files_below_the_state_folder_are_found_there(roots, store):
    file = msgspec.structs.replace(store("a.png", b"one"), root="state", path="cache/x.png")
    (roots["state"] / "cache").mkdir()
    (roots["download"] / "a.png").rename(roots["state"] / "cache" / "x.png")

    with ExitStack() as stack:
        assert open_artifact(file, roots, stack).read_at(0, 3) == b"one"


async def test_a_file_that_shrinks_during_the_send_ends_it_incomplete(roots, store):
    file = store("a.png", b"x" * 1000)
    with ExitStack() as stack:
        body = FormBody((), "files", open_verified((file,), roots, stack, go_on), "boundary")
        (roots["download"] / "a.png").write_bytes(b"x")
        with pytest.raises(FileMissing, match="shorter than 1000 bytes"):
            async for _ in body:
                pass

    assert not body.handed_over


async def test_the_announced_length_of_a_form_is_its_real_one(roots, store):
    files = (store("夕.png", b"x" * 600_000), store("b.png", b""))
    with ExitStack() as stack:
        body = FormBody((("題", "夕焼け"),), "f", open_verified(files, roots, stack, go_on), "boundary")
        pieces = [piece async for piece in body]

    assert sum(map(len, pieces)) == body.length
    assert max(map(len, pieces)) <= 256 * 1024
    assert body.handed_over


async def test_a_media_type_that_is_none_becomes_the_neutral_one(roots, store):
    file = msgspec.structs.replace(store("a.png", b""), media_type="x\r\nEvil: 1")
    with ExitStack() as stack:
        body = FormBody((), "f", open_verified((file,), roots, stack, go_on), "boundary")
        form = b"".join([piece async for piece in body])

    assert b"Content-Type: application/octet-stream\r\n" in form
    assert b"Evil" not in form


@pytest.mark.parametrize("kind", ["multipart", "folder"])
async def test_a_file_that_can_not_be_read_now_is_tried_again_unspent(tmp_path, roots, store, payload, kind):
    """The disk may come back; only a file that is gone or changed ends the row."""
    file = store("a.png", b"one")
    (roots["download"] / "dir").mkdir()
    named_too_long = msgspec.structs.replace(file, path="n" * 300)
    route = (
        MultipartSettings(name="r", url="http://127.0.0.1:1/")
        if kind == "multipart"
        else FolderSettings("r", tmp_path / "inbox")
    )
    async with open_sender(route, roots) as sender:
        verdict = await sender.send(payload([named_too_long]))

    assert (verdict.kind, verdict.error_class) == (VerdictKind.RETRY, "artifact_unreadable")
    assert not verdict.spends_attempt
    with pytest.raises(FileUnreadable), ExitStack() as stack:
        open_artifact(named_too_long, roots, stack)
