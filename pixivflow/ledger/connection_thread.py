"""One thread that owns one connection and answers the event loop's calls in order."""

import os
import queue
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

import trio
from outcome import Error, Outcome, Value, capture

from pixivflow.ledger.batch import Call
from pixivflow.ledger.faults import LedgerUnavailable, unavailable

INTERRUPT_GRACE_S: Final = 2.0


class Served(Protocol):
    """A connection as its thread uses it; everything but `interrupt` is called on that thread."""

    def open(self) -> None:
        """Open, or raise what the opener shall see."""

    def run(self, calls: Sequence[Call]) -> list[Outcome[Any]]:
        """Answer each call."""

    def interrupt(self) -> None:
        """Cut short what runs now; from any thread."""

    def close(self) -> None:
        """Close; called once, also after a failure."""


class _Job:
    """A call and the task that waits for it; without a task nobody waits any more."""

    __slots__ = ("call", "task")

    def __init__(self, call: Call, task: trio.lowlevel.Task) -> None:
        self.call = call
        self.task: trio.lowlevel.Task | None = task


class ConnectionThread:
    """Carries calls to the thread and answers back. Made by `serving`."""

    def __init__(self, name: str, path: Path, served: Served, most: int, grace_s: float) -> None:
        self._path = path
        self._served = served
        self._most = most
        self._grace_s = grace_s
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._opening = _Job(lambda _db: None, trio.lowlevel.current_task())
        self._in_hand: list[_Job] = []
        self._token = trio.lowlevel.current_trio_token()
        self._pid = os.getpid()
        self._closed = False
        self._died: BaseException | None = None
        self._thread = threading.Thread(target=self._live, name=name)

    async def call(self, call: Call, *, abandonable: bool) -> Any:
        """Run ``call(db)`` on the thread. Once queued it runs; only an ``abandonable`` wait for it can be cancelled.

        Raises `trio.ClosedResourceError` after the end, `LedgerUnavailable` when the thread died.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        self._require_open()
        job = _Job(call, trio.lowlevel.current_task())
        self._jobs.put(job)
        if self._died is not None:
            self._fail(self._queued(), self._died)
        return await _answer(job, abandonable=abandonable)

    def start(self) -> None:
        """Start the thread; the same task awaits `opened` next, with nothing in between."""
        self._in_hand = [self._opening]
        self._thread.start()

    async def opened(self) -> None:
        """Wait until the connection is open; raises what opening raised. Not cancellable."""
        await _answer(self._opening, abandonable=False)

    async def close(self) -> None:
        """Let the thread answer what is queued, close its connection and end. Call it shielded.

        Raises `LedgerUnavailable` when it does not end even though its statement was interrupted.
        """
        self._closed = True
        self._jobs.put(None)
        await self._join(self._grace_s)
        if self._thread.is_alive():
            self._served.interrupt()
            await self._join(INTERRUPT_GRACE_S)
        if self._thread.is_alive():
            raise LedgerUnavailable(f"ledger {self._path}: its thread does not end; look at its disk")

    async def _join(self, seconds: float) -> None:
        # A limiter of its own: the shared one may be full of threads that hang.
        limiter = trio.CapacityLimiter(1)
        await trio.to_thread.run_sync(self._thread.join, seconds, limiter=limiter)

    def _require_open(self) -> None:
        if self._closed:
            raise trio.ClosedResourceError("the ledger is closed")
        if os.getpid() != self._pid:
            raise RuntimeError("the ledger was opened before this process was forked: open it after the fork")

    def _live(self) -> None:
        ended = capture(self._serve)
        if isinstance(ended, Error):
            # A thread that died must not leave its callers waiting. Set first: later callers look at it.
            self._died = ended.error
            self._fail(self._in_hand + self._queued(), ended.error)

    def _serve(self) -> None:
        try:
            opened = capture(self._served.open)
            self._settle([opened])
            if isinstance(opened, Value):
                self._answer_calls()
        finally:
            self._served.close()

    def _answer_calls(self) -> None:
        more = True
        while more:
            self._in_hand, more = self._taken()
            if self._in_hand:
                self._settle(self._served.run([job.call for job in self._in_hand]))

    def _taken(self) -> tuple[list[_Job], bool]:
        """Wait for one job and take what is queued behind it; False once the end is reached."""
        taken: list[_Job] = []
        item = self._jobs.get()
        with suppress(queue.Empty):
            while item is not None:
                if item.task is not None:
                    taken.append(item)
                if len(taken) == self._most:
                    return taken, True
                item = self._jobs.get_nowait()
            return taken, False
        return taken, True

    def _settle(self, answers: list[Outcome[Any]]) -> None:
        pairs = list(zip(self._in_hand, answers, strict=True))
        self._in_hand = []
        self._tell(pairs)

    def _queued(self) -> list[_Job]:
        jobs: list[_Job] = []
        with suppress(queue.Empty):
            while True:
                job = self._jobs.get_nowait()
                if job is not None:
                    jobs.append(job)
        return jobs

    def _fail(self, jobs: list[_Job], cause: BaseException) -> None:
        self._tell([(job, Error(unavailable(self._path, cause))) for job in jobs])

    def _tell(self, pairs: list[tuple[_Job, Outcome[Any]]]) -> None:
        # The run that waited may have crashed: then nobody is left to tell.
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(_deliver, pairs)


@asynccontextmanager
async def serving(
    name: str, path: Path, served: Served, *, most: int, grace_s: float
) -> AsyncGenerator[ConnectionThread]:
    """Open ``served`` on a thread of its own for the block; at most ``most`` calls are handed to it at a time.

    At the end the thread has ``grace_s`` seconds to answer what is queued before its statement is interrupted.
    """
    thread = ConnectionThread(name, path, served, most, grace_s)
    thread.start()
    try:
        await thread.opened()
        yield thread
    finally:
        with trio.move_on_after(grace_s + 2 * INTERRUPT_GRACE_S, shield=True):
            await thread.close()


async def _answer(job: _Job, *, abandonable: bool) -> Any:
    def abort(_raise_cancel: object) -> trio.lowlevel.Abort:
        if not abandonable:
            return trio.lowlevel.Abort.FAILED
        job.task = None
        return trio.lowlevel.Abort.SUCCEEDED

    return await trio.lowlevel.wait_task_rescheduled(abort)


def _deliver(pairs: list[tuple[_Job, Outcome[Any]]]) -> None:
    for job, answer in pairs:
        if job.task is not None:
            trio.lowlevel.reschedule(job.task, answer)
