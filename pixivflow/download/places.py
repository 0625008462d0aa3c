"""A place for one file inside its root: checked, with its folders, on the disk. Everything here blocks."""

import os
import shutil
from contextlib import suppress
from pathlib import Path, PurePosixPath

from pixivflow.download.errors import DiskFull, PathRefused, storage_errors
from pixivflow.durable import sync_folder

_RACES = 3


class Place:
    """A final path under a root. Raises `PathRefused` when the path is absolute, empty, or has ``..``."""

    def __init__(self, root: Path, path: str) -> None:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or "\0" in path:
            raise PathRefused(f"{path!r} is no path inside {root}; expected a relative one without '..'")
        self.root = root
        self.path = path
        self.final = root.joinpath(*parts)
        self.folder = self.final.parent
        self.part = self.final.with_name(self.final.name + ".part")

    def check(self) -> None:
        """Raise `PathRefused` when a symbolic link on the way leads out of the root."""
        with storage_errors(self.folder):
            real_root = os.path.realpath(self.root)
            real_folder = os.path.realpath(self.folder)
        if not Path(real_folder).is_relative_to(real_root):
            raise PathRefused(
                f"{self.folder} leads to {real_folder}, outside of {self.root}. Remove the symbolic link."
            )

    def require_room(self, min_free: int, coming: int = 0) -> None:
        """Raise `DiskFull` when less than ``min_free`` bytes would be left after ``coming`` more."""
        with storage_errors(self.folder):
            candidates = (*self._upwards(), *self.root.absolute().parents)
            existing = next(folder for folder in candidates if folder.is_dir())
            usage = shutil.disk_usage(existing)
        if usage.total == 0:
            # The file system does not tell; a write will.
            return
        free = usage.free
        if free - coming < max(min_free, 0):
            raise DiskFull(
                f"{self.root}: {free} bytes are free, {coming} are to come and {min_free} must stay free. "
                "Free some space or lower min_free."
            )

    def create_part(self) -> int:
        """Make folders and an empty file under the temporary name, in place of an older one.

        Gives its descriptor; the caller closes it.
        """
        for attempt in range(_RACES):
            self._make_folders()
            try:
                self.part.unlink(missing_ok=True)
                return os.open(self.part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
            except FileNotFoundError:
                # Somebody removed the empty folder in between.
                if attempt == _RACES - 1:
                    raise
        raise AssertionError

    def sync_folders(self) -> None:
        """Make the name durable: fsync the folder and all above it up to the root."""
        for folder in self._upwards():
            sync_folder(folder)

    def next_foreign(self) -> Path:
        """Give a free name beside the final one, for a file that is not ours."""
        number = 1
        while os.path.lexists(name := self.final.with_name(f"{self.final.name}.foreign-{number}")):
            number += 1
        return name

    def drop_part(self) -> None:
        """Remove the temporary file, as far as that is possible."""
        with suppress(OSError):
            self.part.unlink(missing_ok=True)

    def remove(self) -> None:
        """Unlink the file and its ``.part``, then the folders that are empty now, up to the root."""
        with storage_errors(self.final):
            for name in (self.final, self.part):
                try:
                    name.unlink(missing_ok=True)
                except NotADirectoryError:
                    return
            for folder in self._upwards()[:-1]:
                if not _remove_empty(folder):
                    break

    def _make_folders(self) -> None:
        if not self.root.is_dir():
            self.root.mkdir(parents=True, exist_ok=True)
            sync_folder(self.root.parent)
        self.folder.mkdir(parents=True, exist_ok=True)

    def _upwards(self) -> tuple[Path, ...]:
        """Give the folders from the file's own up to and with the root."""
        above = len(PurePosixPath(self.path).parts) - 1
        return (*list(self.final.parents)[:above], self.root)


def _remove_empty(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        # Not empty, a mount point, or a symbolic link: it stays.
        return False
    return True
