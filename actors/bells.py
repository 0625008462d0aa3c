"""Doorbells: bounded channels that say where to look. A full one drops the message, for the ledger knows anyway."""

from collections import deque
from collections.abc import Iterable
from pathlib import Path

import msgspec
import trio

from protocol.messages import Changed, Message, OutboxReady, RunCell, SlotDue

INBOX_SIZE = 64
RECORDED = 1_000
Inbox = trio.MemoryReceiveChannel[Message]


class FlightRecorder:
    """The last messages, for the moment after a crash. Repeats in a row are one, so that idle hours push nothing out."""

    def __init__(self) -> None:
        self._messages: deque[tuple[int, Message, int]] = deque(maxlen=RECORDED)

    def note(self, now: int, message: Message) -> None:
        """Remember a message with the time (ms UTC) at which it was rung last, and how often in a row."""
        times = 1
        if self._messages and self._messages[-1][1] == message:
            times += self._messages.pop()[2]
        self._messages.append((now, message, times))

    def write(self, path: Path) -> None:
        """Write one JSON line a message, oldest first. Blocks; meant for the way out."""
        lines = [
            msgspec.json.encode({"at": at, "times": times, "message": message})
            for at, message, times in self._messages
        ]
        path.write_bytes(b"\n".join((*lines, b"")))


class Doorbells:
    """One inbox an actor and one a lane; `ring` finds the right one and never waits."""

    def __init__(self, routes: Iterable[str], recorder: FlightRecorder) -> None:
        self.recorder = recorder
        self._slots_in, self.slots = trio.open_memory_channel[Message](INBOX_SIZE)
        self._cells_in, self.cells = trio.open_memory_channel[Message](INBOX_SIZE)
        self._lanes_in: dict[str, trio.MemorySendChannel[Message]] = {}
        self.lanes: dict[str, Inbox] = {}
        for route in routes:
            self._lanes_in[route], self.lanes[route] = trio.open_memory_channel[Message](1)

    def ring(self, message: Message, now: int) -> None:
        """Pass a message on if there is room for it."""
        self.recorder.note(now, message)
        inbox = self._inbox_of(message)
        if inbox is not None:
            try:
                inbox.send_nowait(message)
            except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
                return

    def _inbox_of(self, message: Message) -> trio.MemorySendChannel[Message] | None:
        match message:
            case SlotDue():
                return self._slots_in
            case RunCell():
                return self._cells_in
            case OutboxReady(route=route):
                return self._lanes_in.get(route)
            case Changed():
                return None

    def close(self) -> None:
        """Close every end; the opener's duty."""
        senders = [self._slots_in, self._cells_in, *self._lanes_in.values()]
        inboxes = [self.slots, self.cells, *self.lanes.values()]
        for sender in senders:
            sender.close()
        for inbox in inboxes:
            inbox.close()


async def wait_for_bell(inbox: Inbox, at_most_s: float) -> None:
    """Return at the first message, with all that came with it taken; or when the time is over."""
    with trio.move_on_after(at_most_s):
        await inbox.receive()
    while True:
        try:
            inbox.receive_nowait()
        except trio.WouldBlock:
            return
