"""The files of a message, opened only if they are what was frozen."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import msgspec

from pixivflow.delivery.settings import Roots
from protocol.payloads import PayloadFile

CHUNK = 256 * 1024
Pulse = Callable[[], None]
"""Called between chunks of long work in a thread; raises to stop it."""


class FileMissing(Exception):
    """A file to be delivered is gone or is not what was frozen; sending again can't help."""

    def __init__(self, file: PayloadFile, problem: str) -> None:
        super().__init__(f"{file.path}: {problem}; it can't be delivered as it was committed")
        self.file = file


class FileUnreadable(Exception):
    """A file to be delivered can't be read at the moment."""

    def __init__(self, file: PayloadFile, cause: OSError) -> None:
        reason = os.strerror(cause.errno) if cause.errno is not None else type(cause).__name__
        super().__init__(f"{file.path} can't be read: {reason}")
        self.file = file


class OpenFile(msgspec.Struct, frozen=True):
    """A file of a message, open for reading; whoever opened it closes it."""

    file: PayloadFile
    handle: BinaryIO

    def read_at(self, offset: int, size: int) -> bytes:
        """Read exactly ``size`` bytes. Raises `FileMissing` if the file has become shorter, `FileUnreadable`."""
        try:
            chunk = os.pread(self.handle.fileno(), size, offset)
        except OSError as exc:
            raise FileUnreadable(self.file, exc) from exc
        if len(chunk) != size:
            raise FileMissing(self.file, f"it became shorter than {self.file.bytes} bytes while it was read")
        return chunk

    def chunks(self, pulse: Pulse) -> Iterator[bytes]:
        """Read the whole file piece by piece."""
        for offset, size in chunk_spans(self.file.bytes):
            pulse()
            yield self.read_at(offset, size)


def chunk_spans(length: int) -> Iterator[tuple[int, int]]:
    """Return (offset, size) of each piece of a file of ``length`` bytes."""
    for offset in range(0, length, CHUNK):
        yield offset, min(CHUNK, length - offset)


def locate(file: PayloadFile, roots: Roots) -> Path:
    """Return where the file lies. Raises `FileMissing` for a path that leaves its folder."""
    relative = PurePosixPath(file.path)
    if relative.is_absolute() or ".." in relative.parts:
        raise FileMissing(file, "its path lies outside its folder")
    return roots[file.root] / relative


def open_artifact(file: PayloadFile, roots: Roots, stack: ExitStack) -> OpenFile:
    """Open one file and check its length; ``stack`` closes it. Raises `FileMissing`, `FileUnreadable`."""
    path = locate(file, roots)
    try:
        if not path.is_file():  # opening a pipe would block
            raise FileMissing(file, "it is not there")
        handle = stack.enter_context(path.open("rb"))
        length = os.fstat(handle.fileno()).st_size
    except FileNotFoundError as exc:
        raise FileMissing(file, "it is not there") from exc
    except OSError as exc:
        raise FileUnreadable(file, exc) from exc
    if length != file.bytes:
        raise FileMissing(file, f"it has {length} bytes instead of {file.bytes}")
    return OpenFile(file, handle)


def open_verified(
    files: tuple[PayloadFile, ...], roots: Roots, stack: ExitStack, pulse: Pulse
) -> tuple[OpenFile, ...]:
    """Open all files and check lengths and hashes. Blocking: for a worker thread.

    What is sent later is read from these very handles, whatever happens to the paths.
    """
    opened = tuple(open_artifact(file, roots, stack) for file in files)
    for each in opened:
        digest = hashlib.sha256()
        for chunk in each.chunks(pulse):
            digest.update(chunk)
        check_hash(each.file, digest.hexdigest())
    return opened


def check_hash(file: PayloadFile, sha256: str) -> None:
    """Raise `FileMissing` unless the content is the frozen one."""
    if sha256 != file.sha256.lower():
        raise FileMissing(file, "its content was changed (another sha256)")
