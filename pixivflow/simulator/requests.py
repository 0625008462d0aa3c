"""What the simulator was asked: counts, headers, concurrency."""

from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import msgspec
import trio

Role = Literal["api", "image", "receiver"]
KEPT = 20_000


class SeenRequest(msgspec.Struct, frozen=True):
    """One request as it arrived; header names are in lower case. ``at_s`` is trio's clock."""

    role: Role
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    at_s: float


class RequestLog:
    """The newest 20,000 requests, and totals of all of them."""

    def __init__(self) -> None:
        self._seen: deque[SeenRequest] = deque(maxlen=KEPT)
        self._totals: Counter[Role] = Counter()
        self._running: Counter[Role] = Counter()
        self._peaks: Counter[Role] = Counter()
        self._changed = trio.Event()

    @property
    def seen(self) -> tuple[SeenRequest, ...]:
        """The kept requests, oldest first."""
        return tuple(self._seen)

    def matching(self, prefix: str = "", *, role: Role | None = None) -> tuple[SeenRequest, ...]:
        """Give the kept requests whose path begins so."""
        return tuple(
            seen for seen in self._seen if seen.path.startswith(prefix) and role in (None, seen.role)
        )

    def count(self, prefix: str = "", *, role: Role | None = None) -> int:
        """How many of the kept requests have a path that begins so."""
        return len(self.matching(prefix, role=role))

    def total(self, role: Role) -> int:
        """How many requests a host got since the last `clear`."""
        return self._totals[role]

    def running(self, role: Role) -> int:
        """How many requests a host is answering now."""
        return self._running[role]

    def peak(self, role: Role) -> int:
        """Give the most requests a host answered at the same time since the last `clear`."""
        return self._peaks[role]

    async def until(self, condition: Callable[["RequestLog"], bool]) -> None:
        """Wait until a condition holds for this log; looked at whenever a request begins or ends."""
        while not condition(self):
            await self._changed.wait()

    def clear(self) -> None:
        """Forget; running requests keep counting as running."""
        self._seen.clear()
        self._totals.clear()
        self._peaks.clear()

    @contextmanager
    def answering(self, request: SeenRequest) -> Generator[None]:
        """Count a request in, and out again when its answer is over."""
        self._seen.append(request)
        self._totals[request.role] += 1
        self._running[request.role] += 1
        self._peaks[request.role] = max(self._peaks[request.role], self._running[request.role])
        self._wake()
        try:
            yield
        finally:
            self._running[request.role] -= 1
            self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    def summary(self) -> dict[str, Any]:
        """Totals, peaks and counts by path, for the admin door."""
        roles: tuple[Role, ...] = ("api", "image", "receiver")
        paths = Counter(seen.path for seen in self._seen)
        hosts = {role: {"total": self.total(role), "peak": self.peak(role)} for role in roles}
        return {"hosts": hosts, "paths": dict(paths.most_common()), "requests": self.seen}
