"""A file while it is written: ``.part`` beside the target, hashed on the way, renamed when it is whole.

Everything here blocks; it runs in worker threads, one call at a time.
"""

import hashlib
import io
import os
import stat
from pathlib import Path

import msgspec
import trio

from pixivflow.download.errors import IntegrityFailed, StorageFailed, storage_errors
from pixivflow.download.formats import check_complete
from pixivflow.download.places import Place

_CHUNK = 1024 * 1024


class StoredFile(msgspec.Struct, frozen=True):
    """A file that is durable under its final name."""

    bytes: int
    sha256: str
    media_type: str


class PartFile:
    """A file on its way. Its maker calls `close`, and `drop` when it is of no use; both may be repeated."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._file: io.FileIO | None = None
        self._hash = hashlib.sha256()
        self.bytes = 0

    def write(self, data: bytes | bytearray) -> None:
        """Append; the first call makes the folders and the file."""
        with storage_errors(self._place.part):
            if self._file is None:
                self._file = io.FileIO(self._place.create_part(), "wb")
            view = memoryview(data)
            while view:
                view = view[self._file.write(view) or 0 :]
        self._hash.update(data)
        self.bytes += len(data)

    def publish(self, media_type: str) -> StoredFile:
        """Check the end of the picture, then make it durable under the final name.

        A file that is there already is adopted when it is the same, else moved aside; it is never overwritten.
        """
        with storage_errors(self._place.part):
            try:
                check_complete(self._place.part, media_type)
            except IntegrityFailed as error:
                raise IntegrityFailed(f"{self._place.path}: {error}, after {self.bytes} bytes") from error
        self._sync()
        stored = StoredFile(self.bytes, self._hash.hexdigest(), media_type)
        with storage_errors(self._place.final):
            self._settle(stored)
            self._place.sync_folders()
        return stored

    def replace(self) -> None:
        """Make it durable under the final name, in place of what is there."""
        self._sync()
        with storage_errors(self._place.final):
            self._place.part.replace(self._place.final)
            self._place.sync_folders()

    def drop(self) -> None:
        """Remove what was written, as far as that is possible."""
        self.close()
        self._place.drop_part()

    def close(self) -> None:
        """Close the descriptor."""
        if self._file is not None:
            self._file.close()

    def _sync(self) -> None:
        with storage_errors(self._place.part):
            if self._file is not None:
                os.fsync(self._file.fileno())
                self._file.close()

    def _settle(self, stored: StoredFile) -> None:
        final, part = self._place.final, self._place.part
        if os.path.lexists(final):
            if same_file(final, stored):
                _sync_file(final)
                part.unlink()
                return
            if final.is_dir() and not final.is_symlink():
                raise StorageFailed(f"{final} is a folder where a file should be. Move it away.")
            final.rename(self._place.next_foreign())
        part.rename(final)


def same_file(path: Path, expected: StoredFile, *, content: bool = True) -> bool:
    """Whether an ordinary file of that length lies there, and, when ``content`` is asked, with that hash.

    Runs in a worker thread of trio: it looks for cancellation between chunks.
    """
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not stat.S_ISREG(found.st_mode) or found.st_size != expected.bytes:
        return False
    return not content or _sha256(path) == expected.sha256


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as stream:
        while data := stream.read(_CHUNK):
            trio.from_thread.check_cancelled()
            digest.update(data)
    return digest.hexdigest()


def _sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
