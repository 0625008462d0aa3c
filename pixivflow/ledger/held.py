"""The leases that this process holds, and the means to stop their holders."""

from collections.abc import Generator
from contextlib import contextmanager

import trio

from pixivflow.ledger.leases import Lease, Queue


class _Holding:
    """One lease in hand: its newest end, its last progress, and the scope of the work done under it."""

    def __init__(self, lease: Lease, now: int) -> None:
        self.lease = lease
        self.until = lease.until
        self.progress_at = now
        self.scope = trio.CancelScope()


class HeldLeases:
    """Every lease in hand. It outlives restarts of actors; rows in it are neither claimed nor reclaimed."""

    def __init__(self) -> None:
        self._holdings: dict[tuple[Queue, int], _Holding] = {}

    @contextmanager
    def hold(self, lease: Lease, now: int) -> Generator[trio.CancelScope]:
        """Register ``lease`` while the block runs; the scope is cancelled when the lease is lost or revoked.

        Entering has no checkpoint, so nothing can come between a claim and its registration.
        """
        holding = _Holding(lease, now)
        key = (lease.queue, lease.id)
        self._holdings[key] = holding
        try:
            with holding.scope as scope:
                yield scope
        finally:
            if self._holdings.get(key) is holding:
                del self._holdings[key]

    def ids(self, queue: Queue) -> tuple[int, ...]:
        """Ids of the rows of one queue that are held."""
        return tuple(row_id for held_queue, row_id in self._holdings if held_queue is queue)

    def snapshot(self) -> tuple[tuple[Lease, int], ...]:
        """Each held lease with the time of its last progress."""
        return tuple((holding.lease, holding.progress_at) for holding in self._holdings.values())

    def usable(self, lease: Lease, now: int) -> bool:
        """Whether a side effect may begin under ``lease``, with its renewals counted."""
        holding = self._find(lease)
        return holding is not None and Lease(
            lease.queue, lease.id, lease.generation, lease.owner, holding.until
        ).usable(now)

    def progress(self, lease: Lease, now: int) -> None:
        """Note that the work under ``lease`` moved on."""
        if (holding := self._find(lease)) is not None:
            holding.progress_at = now

    def renewed(self, lease: Lease, until: int) -> None:
        """Note the new end of a renewed lease."""
        if (holding := self._find(lease)) is not None:
            holding.until = until

    def lost(self, lease: Lease, why: str) -> None:
        """Cancel the holder of exactly this lease."""
        if (holding := self._find(lease)) is not None:
            holding.scope.cancel(why)

    def revoke(self, queue: Queue, row_id: int, why: str) -> None:
        """Cancel whoever in this process holds the row."""
        if (holding := self._holdings.get((queue, row_id))) is not None:
            holding.scope.cancel(why)

    def _find(self, lease: Lease) -> _Holding | None:
        holding = self._holdings.get((lease.queue, lease.id))
        return holding if holding is not None and holding.lease == lease else None
