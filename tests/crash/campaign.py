"""Kills the daemon at random instants, and compares what a reader sees with what the ledger says.

``python -m tests.crash.campaign --seeds 200`` runs the seeds 0 to 199; ``--seed 17`` repeats one.
"""

import argparse
import random
import sys
import tempfile
import traceback
from pathlib import Path

import trio

from pixivflow.cli.client import DaemonUnreachable
from pixivflow.simulator.catalogue import Catalogue
from pixivflow.simulator.faults import Fault
from pixivflow.simulator.server import SimulatorOptions
from tests.crash.audit import audit, bound_works, clean_up
from tests.crash.stage import SIGKILLED, TAG, Daemon, Plan, Stage, open_stage

BOTH = ("channel", "inbox")
PLAN = Plan(targets={"kept": ("persistent", BOTH), "passing": ("cache", BOTH), "boxed": ("cache", BOTH)})
OPTIONS = SimulatorOptions(api_latency_s=0.01, image_latency_s=0.03, receiver_latency_s=0.02)
KEYS = ("a", "b")
MOST_KILLS = 2  # three in a row without progress end a row, as they should
MOST_REQUESTS = 20
STARTING_S = 0.5


async def run_seed(seed: int, folder: Path) -> int:
    """Kill or stop the daemon at the instants that the seed names, let the next one finish, and audit."""
    rng = random.Random(seed)
    async with open_stage(folder, PLAN, catalogue=_catalogue(rng), options=OPTIONS) as stage:
        for skip in range(rng.randint(0, 2)):
            stage.simulator.faults.add(Fault("/submissions", "lose_answer", skip=2 * skip))
        kills = rng.randint(1, MOST_KILLS)
        owned: dict[tuple[str, str], str] = {}
        ordered: set[str] = set()
        for _ in range(kills):
            await _live_and_die(stage, rng, ordered)
            now_owned = bound_works(stage)
            assert now_owned.items() >= owned.items(), "a binding is for ever"
            owned = now_owned
            known = {row["label"] for row in stage.rows("SELECT label FROM slots")}
            assert known >= ordered, "an order that was answered is durable"
            stage.add_newer_work()
        await _finish(stage)
        assert bound_works(stage).items() >= owned.items(), "a binding is for ever"
        audit(stage)
        return kills


def _catalogue(rng: random.Random) -> Catalogue:
    catalogue = Catalogue(works=0)
    for _ in range(12):
        pages = rng.choice((1, 1, 2, 4))
        extensions = ("jpg", "png") if rng.random() < 0.5 else ("png",)
        catalogue.add(
            catalogue.make_work(tags=(TAG,), page_count=pages, extensions=extensions, width=120, height=160)
        )
    return catalogue


async def _live_and_die(stage: Stage, rng: random.Random, ordered: set[str]) -> None:
    daemon = await stage.start()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_order, daemon, ordered)
        if rng.random() < 0.2:
            await trio.sleep(rng.uniform(0.0, STARTING_S))
        else:
            await _until_asked(stage, rng.randint(1, MOST_REQUESTS))
            await trio.sleep(rng.uniform(0.0, 0.03))
        if rng.random() < 0.3:
            daemon.process.terminate()
            if await daemon.ended() == 0:
                assert not stage.rows("SELECT id FROM cells WHERE state = 'running'")
                assert not stage.rows("SELECT id FROM outbox WHERE state = 'running'")
            else:
                assert not daemon.was_ready, "whoever takes orders stops in order"
        else:
            daemon.process.kill()
            assert await daemon.ended() == SIGKILLED
        nursery.cancel_scope.cancel("nobody is there to take orders")


async def _order(daemon: Daemon, ordered: set[str]) -> None:
    try:
        await daemon.ready()
        for key in KEYS:
            await daemon.trigger(key)
            ordered.add(key)
    except (DaemonUnreachable, AssertionError):
        return  # it died meanwhile


async def _until_asked(stage: Stage, more: int) -> None:
    """Return after so many more requests, or when no more can come."""
    requests = stage.simulator.requests
    wanted = len(requests.seen) + more
    daemon = stage.daemons[-1]

    async def all_ended() -> bool:
        try:
            slots = await daemon.ask("slots.list")
        except DaemonUnreachable:
            return False
        return len(slots) == len(KEYS) and all(slot["ended_at"] is not None for slot in slots)

    async with trio.open_nursery() as nursery:

        async def counted() -> None:
            await requests.until(lambda log: len(log.seen) >= wanted)
            nursery.cancel_scope.cancel("enough requests")

        nursery.start_soon(counted)
        await stage.until(f"{wanted} requests, or the end of all slots", all_ended)
        nursery.cancel_scope.cancel("no more requests")


async def _finish(stage: Stage) -> None:
    daemon = await stage.start_ready()
    for key in KEYS:
        await daemon.trigger(key)
    for key in KEYS:
        assert await daemon.slot_ends(f"often@manual-{key}") == "success"
    assert await daemon.stop() == 0
    await clean_up(stage)
    assert not stage.rows("SELECT path FROM artifacts WHERE root = 'state'")


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a program's output


def main() -> int:
    """Run a campaign; 1 when a seed failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="run this one alone")
    arguments = parser.parse_args()
    seeds = (
        range(arguments.first, arguments.first + arguments.seeds)
        if arguments.seed is None
        else [arguments.seed]
    )
    failed = []
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="pf-") as folder:
            try:
                kills = trio.run(run_seed, seed, Path(folder))
                _say(f"seed {seed}: {kills} kills, all as it should be")
            except Exception:  # noqa: BLE001 - one failed seed does not end the campaign
                traceback.print_exc()
                _say(f"seed {seed}: FAILED; again: python -m tests.crash.campaign --seed {seed}")
                failed.append(seed)
    _say(f"failed seeds: {failed or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
