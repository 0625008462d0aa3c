"""The least time between the requests of one account."""

import random

import trio

JITTER = 0.1
"""The largest part of the pace that chance adds."""


class Pace:
    """Hands out turns in the order of asking, at least ``pace_s`` seconds apart."""

    def __init__(self, pace_s: float, rng: random.Random) -> None:
        self._pace_s = pace_s
        self._rng = rng
        self._queue = trio.Lock()
        self._free_at = -float("inf")

    async def turn(self) -> None:
        """Wait for this caller's turn. A caller cancelled while it waits takes none."""
        async with self._queue:
            await trio.sleep_until(self._free_at)
            jitter = self._rng.uniform(0.0, self._pace_s * JITTER)
            self._free_at = trio.current_time() + self._pace_s + jitter
