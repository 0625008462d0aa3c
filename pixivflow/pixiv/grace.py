"""Work that a cancellation may not cut in the middle, only hurry."""

from collections.abc import Awaitable, Callable

import trio

from pixivflow.pixiv.errors import PixivError


async def finish(work: Callable[[], Awaitable[None]], *, grace_s: float) -> None:
    """Run ``work``; once this is cancelled from outside, ``work`` has ``grace_s`` seconds left.

    A PixivError of ``work`` comes out as it is.
    """
    await trio.lowlevel.checkpoint_if_cancelled()
    shield = trio.CancelScope(shield=True)
    failures: list[PixivError] = []
    over = trio.Event()

    async def run() -> None:
        await trio.lowlevel.cancel_shielded_checkpoint()
        with shield:
            try:
                await work()
            except PixivError as exc:
                failures.append(exc)
        over.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        try:
            await over.wait()
        finally:
            shield.deadline = trio.current_time() + grace_s
    if failures:
        raise failures[0]
