"""The sender of a ``folder`` route: files and a manifest in a folder that another program reads."""

import errno
import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import trio

from pixivflow.delivery.artifacts import FileUnreadable, Pulse, open_artifact
from pixivflow.delivery.inbox import finish, prune_receipts, put, slip_for
from pixivflow.delivery.settings import FolderSettings, Roots
from protocol.payloads import Payload
from protocol.verdicts import Verdict, VerdictKind

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class FolderSender:
    """Puts messages into one folder. A send that was cut off anywhere is resumed by the next one."""

    def __init__(self, settings: FolderSettings, roots: Roots) -> None:
        self._settings = settings
        self._roots = roots

    async def ready(self) -> bool:
        """Whether the folder, or where it is missing its nearest parent, can be written to."""
        return await trio.to_thread.run_sync(_writable, self._settings.path)

    async def send(self, payload: Payload, open_file: Roots | None = None) -> Verdict:
        """Put one message into the folder; ``open_file`` replaces the roots given at opening.

        Raises `FileMissing`, before anything is visible.
        """
        roots = self._roots if open_file is None else open_file
        work = partial(_deliver, self._settings.path, payload, roots, trio.from_thread.check_cancelled)
        return await trio.to_thread.run_sync(work)


def _deliver(folder: Path, payload: Payload, roots: Roots, pulse: Pulse) -> Verdict:
    slip = slip_for(folder, payload.key)
    try:
        if slip.published:
            finish(slip)
            return Verdict(VerdictKind.REPLAYED, remote_id=slip.manifest.name, detail="it is in the folder")
        with ExitStack() as stack:
            files = tuple(open_artifact(file, roots, stack) for file in payload.files)
            put(slip, payload, files, pulse)
    except FileUnreadable as exc:
        return Verdict(VerdictKind.RETRY, error_class="artifact_unreadable", detail=str(exc))
    except OSError as exc:
        return from_os_error(exc, folder)
    return Verdict(VerdictKind.ACCEPTED, remote_id=slip.manifest.name, detail=f"written to {folder}")


def from_os_error(exc: OSError, folder: Path) -> Verdict:
    """Return what it means that ``folder`` could not be written; it is never the work's fault."""
    name = errno.errorcode.get(exc.errno or 0, "unknown").lower()
    reason = os.strerror(exc.errno) if exc.errno else type(exc).__name__
    if exc.errno in _FULL:
        return Verdict(
            VerdictKind.RETRY, error_class="disk_full", detail=f"{folder}: {reason}; free some space there"
        )
    return Verdict(
        VerdictKind.RETRY,
        error_class=f"folder_{name}",
        detail=f"{folder}: {reason}; the folder must exist or be creatable, and be writable",
        feeds_breaker=True,
    )


def _writable(folder: Path) -> bool:
    try:
        place = next(place for place in (folder, *folder.parents) if place.exists())
    except (OSError, StopIteration):
        return False
    return place.is_dir() and os.access(place, os.W_OK | os.X_OK)


async def open_folder(settings: FolderSettings, roots: Roots, now_s: float) -> FolderSender:
    """Return the sender of one folder, after removing receipts that have served their time."""

    def prune() -> None:
        try:
            prune_receipts(settings.path, now_s)
        except OSError:
            return  # the next send says what is wrong with the folder

    await trio.to_thread.run_sync(prune)
    return FolderSender(settings, roots)
