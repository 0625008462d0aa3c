"""The command: stage, deadline, signals, verdict, exit code."""

import io
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import click
import trio

from pixivflow.cli.demo.play import SLOTS, DemoFailed, Play
from pixivflow.cli.demo.scenery import PACE_OF_A_DEMO, BadPlace, Place, configuration, make_place
from pixivflow.cli.demo.stage import DemoConsole, Stage, ViewerGone
from pixivflow.cli.demo.verdict import Evidence, problems
from pixivflow.cli.exits import FAILURE, OK, fail
from pixivflow.ledger.engine import LedgerUnavailable
from pixivflow.ledger.faults import LedgerRefused
from pixivflow.ledger.lockfile import LedgerLocked
from pixivflow.simulator.server import open_simulator

DEADLINE_S: Final = 28.0
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED: Final = 128


@click.command("demo")
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Put everything into DIR, empty or new. By default a folder among the temporary files, which stays.",
)
def demo_command(keep: Path | None) -> None:
    """See it work: the real daemon, killed in the middle, and every post exactly once.

    Takes about 12 seconds. Everything is local; nothing is sent to Pixiv or anybody else.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # titles must not break on a terminal without their letters
    try:
        place = make_place(keep)
    except BadPlace as error:
        fail(str(error))
    sys.exit(trio.run(_run, place, Stage(DemoConsole(highlight=False)), strict_exception_groups=True))


async def _run(place: Place, stage: Stage) -> int:
    """Play until the end or a signal; return the exit code."""
    code = FAILURE
    with trio.open_signal_receiver(*SIGNALS) as signals:
        async with trio.open_nursery() as nursery:
            received: list[int] = []
            nursery.start_soon(_stop_at_a_signal, signals, received, nursery.cancel_scope)
            try:
                code = await _demonstrate(place, stage)
            except ViewerGone:
                code = FAILURE
            nursery.cancel_scope.cancel("the demo is over")
    if received:
        stage.console.print(f"stopped by {signal.Signals(received[0]).name}; the daemon has ended, too")
        return INTERRUPTED + received[0]
    return code


async def _stop_at_a_signal(
    signals: AsyncIterator[int], received: list[int], scope: trio.CancelScope
) -> None:
    async for number in signals:
        received.append(number)
        scope.cancel("a signal")
        return


async def _demonstrate(place: Place, stage: Stage) -> int:
    """Play, judge and show; an error that belongs to the play ends here."""
    await trio.lowlevel.checkpoint()
    stage.title("PixivFlow demo: three slots, one crash, and every post exactly once.")
    evidence: Evidence | None = None
    found: tuple[str, ...] = ()
    try:
        evidence = await _performed(place, stage)
        found = problems(evidence, SLOTS)
    except (DemoFailed, LedgerLocked, LedgerRefused, LedgerUnavailable, OSError) as error:
        found = (f"{error}",)
    if evidence is not None:
        stage.table(evidence.slots[:SLOTS], evidence.posts)
    stage.verdict(_praise(evidence), found)
    stage.list(_places(place))
    return FAILURE if found else OK


async def _performed(place: Place, stage: Stage) -> Evidence:
    async with open_simulator(options=PACE_OF_A_DEMO) as simulator:
        await trio.to_thread.run_sync(place.config.write_text, configuration(simulator), "utf-8")
        stage.tell(
            f"A look-alike of Pixiv listens on {simulator.api_url}, a receiver on {simulator.receiver_url}.",
            "Both are local. Works, titles and authors are made up; the daemon and its files are real.",
        )
        play = Play(simulator, place, stage)
        with stage.curtain(), trio.move_on_after(DEADLINE_S):
            return await play.perform()
        raise DemoFailed(f"not done after {DEADLINE_S:.0f} s; it was waiting for {play.step}")


def _praise(evidence: Evidence | None) -> str:
    if evidence is None:
        return ""
    cells = [cell for slot in evidence.slots[:SLOTS] for cell in slot.cells]
    posts = sum(len(cell.deliveries) for cell in cells)
    return f"{len(cells)} works, {posts} posts, each exactly once; ledger, receivers and files agree."


def _places(place: Place) -> tuple[tuple[str, str], ...]:
    return (
        ("works", f"{place.downloads}{os.sep}"),
        ("inbox", f"{place.inbox}{os.sep}"),
        ("configuration", str(place.config)),
        ("log", str(place.log)),
        ("look inside", f"pixivflow -c {shlex.quote(str(place.config))} slots list"),
    )
