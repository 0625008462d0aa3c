"""A ``multipart/form-data`` body, streamed from disk with one chunk in memory."""

import re
from collections.abc import AsyncIterator, Iterator, Sequence

import httpx
import trio

from pixivflow.delivery.artifacts import OpenFile, chunk_spans

_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+", re.ASCII)
_Piece = bytes | tuple[OpenFile, int, int]


class FormBody(httpx.AsyncByteStream):
    """The text fields, then the files, each in the given order; it can be read once.

    A reader that stops half-way leaves nothing to close. Reading raises `FileMissing` and `FileUnreadable`.
    """

    def __init__(
        self, fields: Sequence[tuple[str, str]], file_field: str, files: Sequence[OpenFile], boundary: str
    ) -> None:
        self.content_type = f"multipart/form-data; boundary={boundary}"
        self.handed_over = False
        """Whether the receiver may have the whole body: its last piece was given to the connection."""
        heads = [_file_head(boundary, file_field, each) for each in files]
        text = b"".join(_text_part(boundary, name, value) for name, value in fields)
        end = f"--{boundary}--\r\n".encode()
        self.length = len(text) + len(end) + sum(map(len, heads)) + sum(f.file.bytes + 2 for f in files)
        self._pieces = _pieces(text, heads, files, end)
        self._end = end

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        piece = next(self._pieces, None)
        if piece is None:
            raise StopAsyncIteration
        if isinstance(piece, bytes):
            await trio.lowlevel.checkpoint()
            self.handed_over = piece is self._end
            return piece
        file, offset, size = piece
        return await trio.to_thread.run_sync(file.read_at, offset, size)


def _pieces(text: bytes, heads: Sequence[bytes], files: Sequence[OpenFile], end: bytes) -> Iterator[_Piece]:
    if text:
        yield text
    for head, each in zip(heads, files, strict=True):
        yield head
        for offset, size in chunk_spans(each.file.bytes):
            yield each, offset, size
        yield b"\r\n"
    yield end


def _text_part(boundary: str, name: str, value: str) -> bytes:
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"\r\n\r\n'
    return head.encode("utf-8", "replace") + value.encode("utf-8", "replace") + b"\r\n"


def _file_head(boundary: str, field: str, each: OpenFile) -> bytes:
    media = (
        each.file.media_type if _MEDIA_TYPE.fullmatch(each.file.media_type) else "application/octet-stream"
    )
    return (
        f"--{boundary}\r\n"
        f'Content-Disposition: form-data; name="{_quoted(field)}"; filename="{_quoted(each.file.name)}"\r\n'
        f"Content-Type: {media}\r\n\r\n"
    ).encode("utf-8", "replace")


def _quoted(name: str) -> str:
    """Escape a name as browsers do: UTF-8, with only quotes and line ends encoded."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
