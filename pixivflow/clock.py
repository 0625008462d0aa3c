"""The wall clock, passed in wherever civil time matters."""

import time
from typing import Protocol

import trio


class Wall(Protocol):
    """Tells civil time."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""


class SystemWall:
    """The host's clock."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC, by the host."""
        return time.time_ns() // 1_000_000


class TrioWall:
    """Civil time that moves with trio's own clock, so that `trio.testing.MockClock` moves both."""

    def __init__(self, start_ms: int) -> None:
        self._start_ms = start_ms
        self._origin = trio.current_time()

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC, counted from the given start."""
        return self._start_ms + round((trio.current_time() - self._origin) * 1000)
