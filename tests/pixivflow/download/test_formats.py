import io
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pixivflow.download.errors import IntegrityFailed
from pixivflow.download.formats import PICTURES, SNIFF_BYTES, ZIP, check_complete, sniff

KINDS = ["jpg", "progressive", "png", "gif", "webp"]


@pytest.fixture(scope="module")
def archive() -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as packed:
        for number in range(3):
            packed.writestr(f"{number:06d}.jpg", bytes(100))
        packed.comment = b"a comment"
    return target.getvalue()


def check(data: bytes) -> None:
    media_type = sniff(data[:SNIFF_BYTES])
    assert media_type is not None
    check_complete(io.BytesIO(data), media_type)


@pytest.mark.parametrize(
    ("kind", "media_type"),
    [("jpg", "image/jpeg"), ("png", "image/png"), ("gif", "image/gif"), ("webp", "image/webp")],
)
def test_a_picture_is_known_by_its_first_bytes(kind, media_type, pictures):
    assert sniff(pictures[kind][:SNIFF_BYTES]) == media_type
    assert media_type in PICTURES


@pytest.mark.parametrize("head", [b"", b"\xff\xd8", b"<html>", b"RIFF\0\0\0\0WAVE", b"\x89PNG", b"BM", b"PK"])
def test_anything_else_is_unknown(head):
    assert sniff(head) is None


@pytest.mark.parametrize("kind", KINDS)
def test_whole_pictures_pass_with_and_without_trailing_bytes(kind, pictures):
    check(pictures[kind])
    check(pictures[kind] + bytes(50))
    check(pictures[kind] + b"\xff\xd9 more")


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_cut_anywhere_is_found(kind, pictures):
    body = pictures[kind]
    cuts = {*range(SNIFF_BYTES, len(body), max(1, len(body) // 97)), *range(len(body) - 20, len(body))}
    for cut in cuts:
        with pytest.raises(IntegrityFailed):
            check(body[:cut])


def test_a_file_is_read_from_its_path(pictures, tmp_path):
    (tmp_path / "a").write_bytes(pictures["png"])
    check_complete(tmp_path / "a", "image/png")


def test_every_changed_byte_of_a_png_is_found(pictures):
    body = pictures["png"]
    for at in range(8, len(body), max(1, len(body) // 50)):
        damaged = bytearray(body)
        damaged[at] ^= 0x10
        with pytest.raises(IntegrityFailed):
            check(bytes(damaged))


def test_a_jpeg_longer_than_a_look_is_walked_across_its_seams(pictures):
    start, scan = pictures["jpg"].split(b"\xff\xda", 1)
    length = int.from_bytes(scan[:2], "big")
    # Restarts, stuffed zeros and fill bytes at every offset to the seams.
    coded = b"\xff\x00\xff\xd3abc\xff\xff\x00" * 80_000
    check(start + b"\xff\xda" + scan[:length] + coded + b"\xff\xff\xff\xd9")
    with pytest.raises(IntegrityFailed):
        check(start + b"\xff\xda" + scan[:length] + coded + b"\xff")


def test_a_thumbnail_inside_a_jpeg_does_not_end_it(pictures):
    body = pictures["jpg"]
    thumbnail = b"\xff\xe1" + (len(body[:3000]) + 4).to_bytes(2, "big") + body[:3000] + b"\xff\xd9"
    check(body[:2] + thumbnail + body[2:])
    with pytest.raises(IntegrityFailed):
        check(body[:2] + thumbnail)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xd8\xff\xd9",
        b"\xff\xd8\xff\xe0\x00\x01" + bytes(90),
        b"\x89PNG\r\n\x1a\n\0\0\0\0IEND\xaeB`\x82",
        b"GIF89a" + bytes(7) + b";",
        b"GIF89a" + bytes(7) + b"\x07" + bytes(90),
        b"RIFF\x04\0\0\0WEBP",
    ],
)
def test_a_frame_without_a_picture_is_refused(data):
    with pytest.raises(IntegrityFailed):
        check(data)


def test_a_whole_archive_passes_and_a_cut_one_fails(archive):
    check(archive)
    for cut in range(SNIFF_BYTES, len(archive)):
        with pytest.raises(IntegrityFailed):
            check(archive[:cut])


def test_an_archive_whose_directory_lies_elsewhere_is_refused(archive):
    with pytest.raises(IntegrityFailed):
        check(archive[:40] + b"x" + archive[40:])
    entry = archive.index(b"PK\x01\x02")
    with pytest.raises(IntegrityFailed):
        check(archive[:entry] + b"XX" + archive[entry + 2 :])
    assert sniff(archive) == ZIP


def test_an_unknown_media_type_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="image/png"):
        check_complete(io.BytesIO(b""), "image/avif")


@given(
    st.sampled_from([b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFF\0\0\0\0WEBP", b"PK\x03\x04"]),
    st.binary(),
)
def test_rubbish_is_judged_and_never_breaks_the_check(head, rest):
    with suppress(IntegrityFailed):
        check(head + rest)
