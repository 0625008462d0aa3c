"""A circuit breaker as a value: what a row of failures means for the next send on a route."""

from typing import Self

import msgspec

THRESHOLD = 5
FIRST_PROBE_S = 30.0
LONGEST_PROBE_S = 900.0


class Breaker(msgspec.Struct, frozen=True, omit_defaults=True):
    """Open after five failures in a row; then one probe every 30 s, doubling to 15 min."""

    failures: int = 0
    opened_at_ms: int | None = None
    """When it opened, or when the last probe failed; None while it is closed."""
    probe_delay_s: float = FIRST_PROBE_S
    probing_since_ms: int | None = None
    """When the probe that is under way began."""

    @classmethod
    def decode(cls, stored: bytes | str | None) -> Self:
        """Read what `encode` wrote; nothing, or what can't be read, is a closed breaker."""
        try:
            return msgspec.json.decode(stored or b"{}", type=cls)
        except msgspec.MsgspecError:
            return cls()

    def encode(self) -> bytes:
        """Return the state as JSON."""
        return msgspec.json.encode(self)

    @property
    def is_open(self) -> bool:
        """Whether only probes may pass; while it is, failures spend no attempts."""
        return self.opened_at_ms is not None

    @property
    def next_probe_ms(self) -> int | None:
        """The instant from which a probe may pass, as the wall clock counts; None while closed."""
        if self.opened_at_ms is None:
            return None
        since = max(self.opened_at_ms, self.probing_since_ms or 0)
        return since + round(self.probe_delay_s * 1000)

    def allows(self, now_ms: int) -> bool:
        """Whether a send may start now; while open, that send is the probe (see `probing`).

        A clock that was set back to before the opening lets a probe pass.
        """
        due = self.next_probe_ms
        return due is None or now_ms >= due or now_ms < (self.opened_at_ms or 0)

    def probing(self, now_ms: int) -> Self:
        """Return the state while a send that `allows` let pass is under way: no second probe beside it.

        A probe that never comes back (the process died) blocks for no longer than the delay.
        """
        return self if not self.is_open else msgspec.structs.replace(self, probing_since_ms=now_ms)

    def succeeded(self) -> Self:
        """Return the state after an answer that shows the receiver at work: closed."""
        return type(self)()

    def failed(self, now_ms: int) -> Self:
        """Return the state after one more failure that speaks against the route."""
        failures = self.failures + 1
        if not self.is_open:
            opened = now_ms if failures >= THRESHOLD else None
            return msgspec.structs.replace(self, failures=failures, opened_at_ms=opened)
        if self.probing_since_ms is None:  # sent before it opened: says nothing new
            return msgspec.structs.replace(self, failures=failures)
        return msgspec.structs.replace(
            self,
            failures=failures,
            opened_at_ms=now_ms,
            probe_delay_s=min(LONGEST_PROBE_S, self.probe_delay_s * 2),
            probing_since_ms=None,
        )
