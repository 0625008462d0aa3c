"""What every actor is given: the ledger, the leases in hand, the bells, the clock and the dice."""

import dataclasses
import random

import trio

from actors.bells import Doorbells
from pixivflow.clock import Wall
from pixivflow.ledger.engine import Ledger
from pixivflow.ledger.held import HeldLeases
from protocol.messages import Message


class Pulse:
    """When each actor last showed that it is alive; the watchdog is fed only while all do."""

    def __init__(self) -> None:
        self._beats: dict[str, float] = {}
        self._busy: set[str] = set()

    def beat(self, name: str, *, busy: bool = False) -> None:
        """Note that ``name`` is alive. While ``busy`` its lease vouches for it, however long the work takes."""
        self._beats[name] = trio.current_time()
        (self._busy.add if busy else self._busy.discard)(name)

    def silent(self, limit_s: float) -> tuple[str, ...]:
        """Return who has not been heard of for ``limit_s`` seconds."""
        now = trio.current_time()
        return tuple(
            name for name, at in self._beats.items() if name not in self._busy and now - at > limit_s
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Core:
    """The parts that all actors share, made once by the composition root."""

    ledger: Ledger
    held: HeldLeases
    bells: Doorbells
    wall: Wall
    rng: random.Random
    owner: str
    pulse: Pulse

    def now(self) -> int:
        """Civil time, ms UTC."""
        return self.wall.now_ms()

    def ring(self, message: Message) -> None:
        """Ring a doorbell."""
        self.bells.ring(message, self.now())

    def idle_s(self) -> float:
        """How long an actor may sleep before it looks at the ledger by itself: about 5 s, never in step."""
        return 5.0 * self.rng.uniform(0.8, 1.2)
