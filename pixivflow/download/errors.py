"""What can go wrong between a chosen work and its files on disk.

::

    DownloadError
    ├── StorageFailed           the disk or a folder refuses: nothing about the work
    │   └── DiskFull            no space, no quota, or less than ``min_free`` is left
    ├── PathRefused             the path leaves its root (``..``, absolute, a symbolic link)
    ├── IntegrityFailed         the body is damaged, short, empty or no picture: fetch it again
    ├── FileGone                404 or 410: the address is old; ask Pixiv for the work again
    ├── ImageRefused            the image host refuses the request (401, 403 and the like)
    └── UnsupportedWork         a verdict about the work (also a `WorkUnavailable`): ugoira, no addresses

From `pixivflow.pixiv.errors` the same calls raise ``NetworkFailed``, ``ServerFailed``, ``RateLimited`` and
``WorkRestricted``; a bad template is ``TemplateRefused``, a ValueError.
"""

import errno
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pixivflow.pixiv.errors import WorkUnavailable

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class DownloadError(Exception):
    """Base of everything this package raises on purpose."""


class StorageFailed(DownloadError):
    """A folder or file can't be written, read or removed."""


class DiskFull(StorageFailed):
    """There is no room; everything that downloads should pause."""


class PathRefused(DownloadError):
    """A path would leave the folder that it belongs to."""


class IntegrityFailed(DownloadError):
    """What arrived is not the whole picture."""


class FileGone(DownloadError):
    """There is no file at this address any more."""


class ImageRefused(DownloadError):
    """The image host does not give the file to us."""


class UnsupportedWork(DownloadError, WorkUnavailable):
    """The work can't be turned into files."""


@contextmanager
def storage_errors(path: Path) -> Generator[None]:
    """Turn every OSError of the block into `DiskFull` or `StorageFailed`, naming ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise DiskFull(f"{path}: {error.strerror}. Free some space or raise the quota.") from error
        raise StorageFailed(
            f"{path}: {error.strerror or error}. Check that the folder exists and may be written."
        ) from error
