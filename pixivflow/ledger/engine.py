"""The ledger as the event loop sees it: ``await ledger.write(fn, ...)`` and ``await ledger.read(fn, ...)``."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

import msgspec
import trio
from sqlite_utils import Database

from pixivflow.ledger.batch import Call
from pixivflow.ledger.connection_thread import ConnectionThread, serving
from pixivflow.ledger.connections import Connect, Reader, Writer, connect_writer
from pixivflow.ledger.faults import LedgerDamaged, LedgerRefused, LedgerUnavailable
from pixivflow.ledger.migrate import Migration
from pixivflow.ledger.opening import sqlite_version_text

__all__ = [
    "Database",
    "InlineLedger",
    "Ledger",
    "LedgerDamaged",
    "LedgerRefused",
    "LedgerStatistics",
    "LedgerUnavailable",
    "connect_inline",
    "open_ledger",
    "sqlite_version_text",
]

P = ParamSpec("P")
T = TypeVar("T")

LARGEST_BATCH: Final = 256
WRITER_GRACE_S: Final = 10.0
READER_GRACE_S: Final = 1.0


class LedgerStatistics(msgspec.Struct, frozen=True):
    """What a ledger has done since it was opened (``opened_at`` in ms UTC; None where no clock was given)."""

    batches: int
    lost_batches: int
    calls: int
    largest_batch: int
    opened_at: int | None


class Ledger(ABC):
    """Runs plain functions of a `Database` against the ledger's file.

    They must not keep cursors, open transactions, change the schema, or wait for anything.
    """

    async def write(self, fn: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``fn(db, ...)`` in a savepoint of a shared transaction; return its result once that is committed.

        Not cancellable once queued. An exception of ``fn`` undoes its own work alone and comes back here.
        Raises `LedgerUnavailable` when the outcome is unknown: read again before acting, and
        `trio.ClosedResourceError` after the ledger was closed.
        """
        result: T = await self._write(lambda db: fn(db, *args, **kwargs))
        return result

    async def read(self, fn: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``fn(db, ...)`` on one snapshot of what is committed; the wait for it can be cancelled.

        Raises `LedgerUnavailable` when the file cannot be read, `trio.ClosedResourceError` after the close.
        """
        result: T = await self._read(lambda db: fn(db, *args, **kwargs))
        return result

    @abstractmethod
    def statistics(self) -> LedgerStatistics:
        """Tell what was done so far."""

    @abstractmethod
    async def _write(self, call: Call) -> Any: ...

    @abstractmethod
    async def _read(self, call: Call) -> Any: ...


class ThreadedLedger(Ledger):
    """A ledger with a thread for each of its two connections. Made by `open_ledger`."""

    def __init__(
        self, writer: Writer, writing: ConnectionThread, reading: ConnectionThread, opened_at: int
    ) -> None:
        self._writer = writer
        self._writing = writing
        self._reading = reading
        self._opened_at = opened_at

    def statistics(self) -> LedgerStatistics:
        """Tell what was done so far."""
        return _statistics(self._writer, self._opened_at)

    async def _write(self, call: Call) -> Any:
        return await self._writing.call(call, abandonable=False)

    async def _read(self, call: Call) -> Any:
        return await self._reading.call(call, abandonable=True)


class InlineLedger(Ledger):
    """A ledger without threads: same SQL, same file, each call runs at once. Made by `connect_inline`."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def open(self) -> None:
        """Check, migrate and open; called by `connect_inline`."""
        self._writer.open()
        try:
            self._reader.open()
        except BaseException:
            self._writer.close()
            raise

    def statistics(self) -> LedgerStatistics:
        """Tell what was done so far."""
        return _statistics(self._writer, None)

    def close(self) -> None:
        """Close both connections; later calls raise `trio.ClosedResourceError`."""
        self._closed = True
        self._reader.close()
        self._writer.close()

    async def _write(self, call: Call) -> Any:
        return await self._inline(self._writer, call)

    async def _read(self, call: Call) -> Any:
        return await self._inline(self._reader, call)

    async def _inline(self, connection: Writer | Reader, call: Call) -> Any:
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._closed:
            raise trio.ClosedResourceError("the ledger is closed")
        [answer] = connection.run([call])
        await trio.lowlevel.cancel_shielded_checkpoint()
        return answer.unwrap()


@asynccontextmanager
async def open_ledger(
    path: Path,
    migrations: Sequence[Migration],
    *,
    now_ms: Callable[[], int],
    connect: Connect = connect_writer,
    largest_batch: int = LARGEST_BATCH,
) -> AsyncGenerator[Ledger]:
    """Open the ledger for the block: checked, migrated, with its threads.

    The caller holds the ledger's lock. However the block ends, queued writes are run, the log is checkpointed,
    the reader is closed and then the writer. At most ``largest_batch`` writes share a commit.
    Raises `LedgerRefused` or `LedgerDamaged` when it cannot be opened.
    """
    writer = Writer(path, migrations, connect)
    async with (
        serving("ledger-writer", path, writer, most=largest_batch, grace_s=WRITER_GRACE_S) as writing,
        serving("ledger-reader", path, Reader(path), most=1, grace_s=READER_GRACE_S) as reading,
    ):
        yield ThreadedLedger(writer, writing, reading, now_ms())


def connect_inline(
    path: Path,
    migrations: Sequence[Migration] = (),
    *,
    connect: Connect = connect_writer,
    durable: bool = True,
) -> InlineLedger:
    """Open a ledger without threads: for virtual time, property tests and one-shot programs. The caller closes it.

    ``durable=False`` leaves out the waits for the disk: for tests only. Raises like `open_ledger`.
    """
    ledger = InlineLedger(Writer(path, migrations, connect, durable=durable), Reader(path))
    ledger.open()
    return ledger


def _statistics(writer: Writer, opened_at: int | None) -> LedgerStatistics:
    return LedgerStatistics(
        batches=writer.batches,
        lost_batches=writer.lost_batches,
        calls=writer.calls,
        largest_batch=writer.largest_batch,
        opened_at=opened_at,
    )
