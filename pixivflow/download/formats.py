"""Which format a file has by its first bytes, and whether it reaches that format's own end.

Structure only: nothing is decoded. Bytes after the end are legal in every format.
"""

import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from pixivflow.download.errors import IntegrityFailed

SNIFF_BYTES = 64
JPEG, PNG, GIF, WEBP, ZIP = "image/jpeg", "image/png", "image/gif", "image/webp", "application/zip"
PICTURES = frozenset({JPEG, PNG, GIF, WEBP})

_CHUNK = 256 * 1024
_FIRST_LOOK = 4 * 1024
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_ZIP_END = b"PK\x05\x06"
_ZIP_ENTRY = b"PK\x01\x02"
_ZIP_END_BYTES = 22
_MOST_COMMENT = 0xFFFF
# Any marker but stuffed zeros, fill bytes and restarts, which also occur inside a scan.
_JPEG_MARKER = re.compile(rb"\xff([\x01-\xcf\xd8-\xfe])", re.DOTALL)
_JPEG_ALONE = frozenset({0x01, 0xD8})
_JPEG_END, _JPEG_SCAN = 0xD9, 0xDA
_JPEG_LENGTH = 2
_WEBP_NAME = 4
_GIF_IMAGE, _GIF_EXTENSION, _GIF_END = 0x2C, 0x21, 0x3B
_TABLE = 0x80


def sniff(head: bytes) -> str | None:
    """Give the media type that the first bytes (64 suffice) stand for, or None."""
    if head.startswith(b"\xff\xd8\xff"):
        return JPEG
    if head.startswith(_PNG_SIGNATURE):
        return PNG
    if head.startswith((b"GIF87a", b"GIF89a")):
        return GIF
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return WEBP
    return ZIP if head.startswith((b"PK\x03\x04", _ZIP_END)) else None


def check_complete(source: Path | BinaryIO, media_type: str) -> None:
    """Raise `IntegrityFailed` unless the file reaches the end that its format defines.

    Blocking; reads a chunk at a time. Raises ValueError for a media type that `sniff` does not give.
    """
    check = _CHECKS.get(media_type)
    if check is None:
        raise ValueError(f"no check for {media_type!r}, known are {', '.join(_CHECKS)}")
    if isinstance(source, Path):
        with source.open("rb", buffering=_CHUNK) as stream:
            check(stream)
    else:
        source.seek(0)
        check(source)


def _take(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise IntegrityFailed("the picture is cut short")
    return data


def _skip(stream: BinaryIO, count: int) -> None:
    if count:
        stream.seek(count - 1, 1)
        _take(stream, 1)


def _check_jpeg(stream: BinaryIO) -> None:
    _skip(stream, 2)
    scans = 0
    while (code := _next_marker(stream)) != _JPEG_END:
        if code in _JPEG_ALONE:
            continue
        length = int.from_bytes(_take(stream, _JPEG_LENGTH), "big")
        if length < _JPEG_LENGTH:
            raise IntegrityFailed("the JPEG has a damaged segment")
        _skip(stream, length - _JPEG_LENGTH)
        scans += code == _JPEG_SCAN
    if not scans:
        raise IntegrityFailed("the JPEG has no picture in it")


def _next_marker(stream: BinaryIO) -> int:
    """Go behind the next marker, past coded data and stray bytes, and give its code."""
    carried = b""
    # Segments mostly follow each other: a short look first, longer ones inside a scan.
    look = _FIRST_LOOK
    while data := stream.read(look):
        block = carried + data
        if found := _JPEG_MARKER.search(block):
            stream.seek(found.end() - len(block), 1)
            return found[1][0]
        carried = b"\xff" if block.endswith(b"\xff") else b""
        look = min(look * 2, _CHUNK)
    raise IntegrityFailed("the JPEG is cut short: its end marker is missing")


def _check_png(stream: BinaryIO) -> None:
    _skip(stream, len(_PNG_SIGNATURE))
    kind, seen = b"", False
    while kind != b"IEND":
        length, kind = struct.unpack(">I4s", _take(stream, 8))
        checksum = _checksum(stream, kind, length)
        if checksum != int.from_bytes(_take(stream, 4), "big"):
            raise IntegrityFailed(f"the PNG is damaged in its chunk {kind!r}")
        seen = seen or kind == b"IDAT"
    if not seen:
        raise IntegrityFailed("the PNG has no picture in it")


def _checksum(stream: BinaryIO, kind: bytes, length: int) -> int:
    checksum = zlib.crc32(kind)
    while length:
        data = _take(stream, min(length, _CHUNK))
        checksum = zlib.crc32(data, checksum)
        length -= len(data)
    return checksum


def _check_gif(stream: BinaryIO) -> None:
    _skip(stream, 10)
    _skip_table(stream, _take(stream, 3)[0])
    images = 0
    while (block := _take(stream, 1)[0]) != _GIF_END:
        if block == _GIF_IMAGE:
            _skip_table(stream, _take(stream, 9)[8])
            images += 1
        elif block != _GIF_EXTENSION:
            raise IntegrityFailed(f"the GIF is damaged: unknown block 0x{block:02x}")
        # The label of an extension, or the code size of an image.
        _skip(stream, 1)
        while size := _take(stream, 1)[0]:
            _skip(stream, size)
    if not images:
        raise IntegrityFailed("the GIF has no picture in it")


def _skip_table(stream: BinaryIO, flags: int) -> None:
    if flags & _TABLE:
        _skip(stream, 3 << ((flags & 7) + 1))


def _check_webp(stream: BinaryIO) -> None:
    _, length, _ = struct.unpack("<4sI4s", _take(stream, 12))
    if length <= _WEBP_NAME:
        raise IntegrityFailed("the WebP has no picture in it")
    _skip(stream, length - _WEBP_NAME)


def _check_zip(stream: BinaryIO) -> None:
    size = stream.seek(0, 2)
    stream.seek(max(0, size - _ZIP_END_BYTES - _MOST_COMMENT))
    tail = stream.read()
    at = tail.rfind(_ZIP_END)
    if at < 0 or len(tail) - at < _ZIP_END_BYTES:
        raise IntegrityFailed("the zip is cut short: its directory is missing")
    entries, length, start, comment = struct.unpack("<HIIH", tail[at + 10 : at + _ZIP_END_BYTES])
    end = size - len(tail) + at
    if start + length != end or len(tail) - at < _ZIP_END_BYTES + comment:
        raise IntegrityFailed("the zip is damaged: its directory is not where it should be")
    stream.seek(start)
    for _ in range(entries):
        name, extra, note = _zip_entry(stream)
        _skip(stream, name + extra + note)
    if stream.tell() != end:
        raise IntegrityFailed("the zip is damaged: its directory does not add up")


def _zip_entry(stream: BinaryIO) -> tuple[int, int, int]:
    entry = _take(stream, 46)
    if not entry.startswith(_ZIP_ENTRY):
        raise IntegrityFailed("the zip is damaged: an entry of its directory is unreadable")
    name, extra, note = struct.unpack("<HHH", entry[28:34])
    return name, extra, note


_CHECKS: dict[str, Callable[[BinaryIO], None]] = {
    JPEG: _check_jpeg,
    PNG: _check_png,
    GIF: _check_gif,
    WEBP: _check_webp,
    ZIP: _check_zip,
}
