"""The exclusive lock that lets one process at a time own a ledger."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pixivflow.ledger.faults import LedgerRefused

UNKNOWN_PID: Final = 0
_ATTEMPTS: Final = 100
_PAUSE_S: Final = 0.001


class LedgerLocked(Exception):
    """Another process holds the ledger."""


@contextmanager
def ledger_lock(path: Path) -> Iterator[None]:
    """Hold the lock file ``path`` (made with mode 0600) for the block; the file stays afterwards.

    The kernel frees it when the process dies, however it dies. Raises `LedgerLocked` when another holder lives,
    `LedgerRefused` when the file cannot be made.
    """
    descriptor = _open(path)
    try:
        if not _acquire(descriptor):
            raise LedgerLocked(_held_text(path))
        _write_pid(descriptor)
        try:
            yield
        finally:
            # Closing alone would leave the lock to a child that was forked meanwhile.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def lock_holder(path: Path) -> int | None:
    """Tell which pid holds the lock now; None when it is free, 0 when it is held but the pid cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        if _free_of_owners(descriptor):
            return None
        return _read_pid(descriptor)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LedgerRefused(
            f"cannot make the lock file {path}: {error.strerror}; give this user write access to its folder"
        ) from error


def _acquire(descriptor: int) -> bool:
    # Whoever asks `lock_holder` shares the lock for an instant: that must not look like an owner.
    for _ in range(_ATTEMPTS):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if not _free_of_owners(descriptor):
            return False
        time.sleep(_PAUSE_S)
    return False


def _free_of_owners(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return True


def _write_pid(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def _read_pid(descriptor: int) -> int:
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else UNKNOWN_PID


def _held_text(path: Path) -> str:
    holder = lock_holder(path)
    who = f"another pixivflow (pid {holder})" if holder else "another pixivflow"
    return (
        f"{who} holds {path}: only one daemon at a time may work in a state_dir; stop that one (pixivflow stop), "
        "or set another state_dir"
    )
