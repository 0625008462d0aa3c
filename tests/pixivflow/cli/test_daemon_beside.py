"""The command line beside a running daemon: status, stop, trigger, and who owns the ledger."""

import trio

from pixivflow.ledger.lockfile import lock_holder
from pixivflow.simulator.faults import Fault


async def test_the_status_says_what_is_up(site, daemon) -> None:
    ran = await site.ask("status")
    assert ran.code == 0, ran
    assert f"pid {daemon.pid}" in ran.out
    assert "-01-01 00:00:00 UTC yearly (in " in ran.out
    assert (await site.ask("status", "--json")).json["state"] == "running"


async def test_without_a_daemon_the_status_still_counts_and_ends_with_69(site) -> None:
    await site.ask("trigger", "yearly", "--now")
    ran = await site.ask("status")
    assert ran.code == 69
    assert "2 waiting" in ran.out
    assert "no daemon is running" in ran.err
    assert (await site.ask("status", "--json")).json["counts"]["slots_open"] == 1


async def test_a_paused_route_and_a_missing_login_are_told_with_what_helps(site) -> None:
    site.simulator.faults.add(
        Fault(match="/submissions", kind="status", status=401, times=None, method="POST")
    )
    async with site.daemon():
        assert (await site.run("once", "landscape", "--wait", "1s")).code == 4
        told = (await site.ask("status")).out
        assert "channel is paused since" in told
        assert "correct it in the configuration" in told
        assert "channel 1" in told


async def test_a_second_daemon_ends_with_75(site, daemon) -> None:
    ran = await site.run("run")
    assert ran.code == 75
    assert f"pid {daemon.pid}" in ran.err


async def test_stop_waits_for_the_end(site) -> None:
    async with site.daemon() as process:
        ran = await site.run("stop")
        assert ran.code == 0, ran
        assert ran.out == f"stopped (pid {process.pid})\n"
        assert not site.socket.exists()
        assert lock_holder(site.state / "ledger.lock") is None
        with trio.fail_after(5):
            assert await process.wait() == 0
    assert (await site.run("stop")).code == 69


async def test_a_trigger_beside_a_daemon_runs_at_once_and_is_idempotent(site, daemon) -> None:
    first = await site.ask("trigger", "yearly", "--now", "--key", "k1")
    again = await site.ask("trigger", "yearly", "--now", "--key", "k1")
    assert first.out == "yearly@manual-k1: made, 2 cells\n"
    assert again.out.startswith("yearly@manual-k1: it was there already")
    with trio.fail_after(20):
        await site.simulator.receiver.until(lambda receiver: len(receiver.posts) == 2)


async def test_a_trigger_without_a_daemon_is_kept_until_one_starts(site) -> None:
    ran = await site.ask("trigger", "yearly", "--now", "--key", "k1")
    assert ran.code == 0
    assert "runs when a daemon starts" in ran.out
    async with site.daemon():
        with trio.fail_after(20):
            await site.simulator.receiver.until(lambda receiver: len(receiver.posts) == 2)


async def test_a_trigger_that_meets_a_slot_which_has_ended_says_how_it_ended(site) -> None:
    site.simulator.faults.add(Fault(match="/submissions", kind="status", status=422, method="POST"))
    async with site.daemon():
        await site.ask("trigger", "yearly", "--now", "--key", "k1", "--target", "landscape")
        with trio.fail_after(20):
            ended_at = None
            while ended_at is None:
                ended_at = (await site.ask("slots", "list", "--json")).json[0]["ended_at"]
    ran = await site.ask("trigger", "yearly", "--now", "--key", "k1", "--target", "landscape")
    assert ran.code == 0, ran
    assert "it was there already and ended at " in ran.out
    assert ran.out.endswith(": failed\n")
    assert "runs when a daemon starts" not in ran.out


async def test_a_second_daemon_is_told_what_to_do(site, daemon) -> None:
    ran = await site.run("run")
    assert ran.code == 75
    assert f"another pixivflow (pid {daemon.pid}) holds " in ran.err
    assert "stop that one (pixivflow stop), or set another state_dir" in ran.err


async def test_the_status_without_a_daemon_tells_of_logins_and_what_is_due(site) -> None:
    site.configure("")
    await site.ask("trigger", "yearly", "--now")
    ran = await site.ask("status")
    assert ran.code == 69
    assert "account 'main' has no login yet; run: pixivflow login main" in ran.out
    assert "-01-01 00:00:00" in ran.out


async def test_a_trigger_far_from_any_occurrence_is_refused_with_the_way_out(site) -> None:
    ran = await site.ask("trigger", "yearly")
    assert ran.code == 1
    assert "add --now" in ran.err
    assert (await site.ask("trigger", "weekly")).code == 1
    assert (await site.ask("trigger", "yearly", "--key", "k")).code == 2
    assert (await site.ask("trigger", "yearly", "--now", "--key", "a b")).code == 2


async def test_a_daemon_that_ends_during_a_wait_leaves_the_cells_open(site) -> None:
    site.simulator.faults.add(Fault(match="/img", kind="hang", times=None))
    async with site.daemon(), site.started("once", "landscape") as process:
        await site.until(lambda: any("/img" in seen.path for seen in site.simulator.requests.seen))
        assert (await site.run("stop")).code == 0
        with trio.fail_after(20):
            assert await process.wait() == 4
    assert "the daemon went away" in site.log.read_text()


async def test_commands_side_by_side_without_a_daemon_wait_for_each_other(site) -> None:
    await site.ask("trigger", "yearly", "--now")
    ran = []

    async def read() -> None:
        ran.append(await site.run("cells", "--json"))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(read)
    assert [(one.code, len(one.json)) for one in ran] == [(0, 2)] * 3
