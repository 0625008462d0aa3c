"""The plot: a slot, a crash in the middle of the next one, a restart, one more slot, an orderly end."""

from collections.abc import Callable, Sequence
from typing import Final

import trio

from pixivflow.cli.client import DaemonUnreachable, call
from pixivflow.cli.demo.daemon import Daemon, running
from pixivflow.cli.demo.facts import (
    SlotFacts,
    VisiblePost,
    ask_slots,
    channel_posts,
    files_on_disk,
    inbox_posts,
    read_slots,
    slots_in_order,
)
from pixivflow.cli.demo.scenery import EVERY_S, ROUTES, Place
from pixivflow.cli.demo.stage import Stage
from pixivflow.cli.demo.verdict import Evidence
from pixivflow.simulator.faults import Fault
from pixivflow.simulator.receiver import Receiver
from pixivflow.simulator.server import Simulator

SLOTS: Final = 3
LOOK_S: Final = 0.08
Slots = Sequence[SlotFacts]


class DemoFailed(Exception):
    """The play could not be played to its end; the text says what happened."""


class Play:
    """One performance."""

    def __init__(self, simulator: Simulator, place: Place, stage: Stage) -> None:
        self._simulator = simulator
        self._place = place
        self._stage = stage
        self._slots: dict[str, SlotFacts] = {}
        self._bound: dict[tuple[str, str], str] = {}
        self.step = "the daemon to start"

    async def perform(self) -> Evidence:
        """Play it and return what there is to judge. Raises `DemoFailed`, OSError, ledger errors."""
        async with running(self._place) as daemon:
            key = await self._until_the_crash(daemon)
        async with running(self._place) as daemon:
            await self._after_the_crash(daemon, key)
            await self._orderly_end(daemon)
        return await self._gather(key)

    async def _until_the_crash(self, daemon: Daemon) -> str:
        """Let a slot end, kill the daemon in the next one, and return the key of the post with the lost answer."""
        await self._until_it_answers(daemon)
        self._stage.tell(
            f"The daemon runs as process {daemon.pid}; every {EVERY_S} s a slot is due.",
            f"Each slot owes one new work for each of its {len(ROUTES)} targets: never none silently, never two.",
        )
        await self._watch(daemon, "the first slot", lambda slots: ended(slots) >= 1)
        self._simulator.faults.add(Fault(match="/submissions", method="POST", kind="lose_answer"))
        key = await self._until_an_answer_is_lost(daemon)
        await self._end(daemon)
        await self._show()
        self._stage.tell(
            f"SIGKILL: process {daemon.pid} is dead, in the middle of a slot.",
            "The receiver had just stored a post and its answer was lost: the daemon died without knowing about it. "
            "Here others post twice, or never.",
            style="bold red",
        )
        return key

    async def _after_the_crash(self, daemon: Daemon, key: str) -> None:
        await self._until_it_answers(daemon)
        self._stage.tell(
            f"The daemon is started again, as process {daemon.pid}.",
            "It goes on from its ledger: the same works, the files it has, the same key for each post.",
        )
        await self._watch(daemon, "the lost post", lambda _: len(self._answers(key)) > 1)
        self._stage.tell(
            f"That post was sent again with its key; the receiver said {self._answers(key)[1]!r}.",
            "It knew the key, so there is still one post, and now the daemon knows it, too: exactly once.",
            style="bold green",
        )

    async def _orderly_end(self, daemon: Daemon) -> None:
        await self._watch(daemon, f"{SLOTS} slots to be complete", lambda slots: ended(slots) >= SLOTS)
        daemon.terminate()
        code = await self._end(daemon)
        if code != 0:
            raise DemoFailed(f"on SIGTERM the daemon ended with {code}, not with 0")
        self._stage.tell(
            "SIGTERM: the daemon has ended in order, with code 0.",
            "What is unfinished at a stop is given back and resumed at the next start.",
        )

    async def _until_it_answers(self, daemon: Daemon) -> None:
        self._expect("the daemon to start")
        while True:
            try:
                await call(self._place.socket, "daemon.status", {})
            except DaemonUnreachable:
                self._check_alive(daemon)
                await self._pause()
            else:
                return

    async def _watch(self, daemon: Daemon, what: str, done: Callable[[Slots], bool]) -> None:
        """Show what the daemon says of itself until that is enough."""
        self._expect(what)
        while True:
            try:
                slots = slots_in_order((await ask_slots(self._place.socket, self._slots)).values())
            except DaemonUnreachable:
                self._check_alive(daemon)
            else:
                await self._note(slots)
                if done(slots):
                    return
            await self._pause()

    async def _until_an_answer_is_lost(self, daemon: Daemon) -> str:
        """Watch until the receiver keeps an answer to itself, kill the daemon at once, and return the post's key."""
        failure: DemoFailed | None = None

        async def kill_at_the_loss() -> None:
            await self._simulator.receiver.until(_has_lost)
            daemon.kill()
            nursery.cancel_scope.cancel("the answer is lost")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(kill_at_the_loss)
            try:
                await self._watch(daemon, "the next post, whose answer will be lost", lambda _: False)
            except DemoFailed as error:
                failure = error
                nursery.cancel_scope.cancel("the daemon is gone")
        if failure is not None:
            raise failure
        return next(
            attempt.key or "" for attempt in self._simulator.receiver.attempts if attempt.outcome == "lost"
        )

    async def _end(self, daemon: Daemon) -> int:
        self._expect("the daemon to end")
        try:
            return await daemon.ended()
        except trio.TooSlowError:
            raise DemoFailed(f"process {daemon.pid} does not end") from None

    async def _note(self, slots: Slots) -> None:
        self._slots = {each.slot.slot_id: each for each in slots}
        for each in slots:
            for cell in each.cells:
                if cell.cell.work is not None:
                    self._bound.setdefault((each.slot.slot_id, cell.cell.target_id), cell.cell.work)
        await self._show()

    async def _show(self) -> None:
        self._stage.show(slots_in_order(self._slots.values())[:SLOTS], await self._posts())

    async def _posts(self) -> tuple[VisiblePost, ...]:
        return channel_posts(self._simulator.receiver.posts) + await inbox_posts(self._place)

    def _answers(self, key: str) -> tuple[str, ...]:
        return tuple(attempt.outcome for attempt in self._simulator.receiver.attempts if attempt.key == key)

    def _check_alive(self, daemon: Daemon) -> None:
        if daemon.exit_code is not None:
            raise DemoFailed(
                f"the daemon ended by itself, with code {daemon.exit_code}; its log has the reason"
            )

    def _expect(self, what: str) -> None:
        self.step = what
        self._stage.expect(f"waiting for {what}")

    async def _pause(self) -> None:
        await trio.sleep(LOOK_S)
        self._expect(self.step)

    async def _gather(self, key: str) -> Evidence:
        return Evidence(
            slots=await read_slots(self._place),
            posts=await self._posts(),
            on_disk=await files_on_disk(self._place),
            bound=self._bound,
            retold=self._answers(key),
        )


def ended(slots: Slots) -> int:
    """Return how many of the slots that count have ended; later ones do not make up for them."""
    return sum(each.slot.ended_at is not None for each in slots[:SLOTS])


def _has_lost(receiver: Receiver) -> bool:
    return any(attempt.outcome == "lost" for attempt in receiver.attempts)
