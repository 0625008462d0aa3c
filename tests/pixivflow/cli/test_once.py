"""`once` and `get` over real processes, with a daemon and without."""

import signal
import sqlite3

import pytest
import trio

from pixivflow.ledger.lockfile import lock_holder
from pixivflow.simulator.faults import Fault


def leases(site) -> list[tuple[str, int]]:
    with sqlite3.connect(site.state / "ledger.db") as connection:
        rows = connection.execute("SELECT state, attempts FROM cells ORDER BY id").fetchall()
    connection.close()
    return rows


def first_work(site) -> int:
    works = site.simulator.catalogue.works
    return next(number for number, work in works.items() if work.page_count == 1)


async def test_once_collects_and_delivers_without_a_daemon_and_makes_no_slot(site) -> None:
    ran = await site.run("once", "landscape")
    assert ran.code == 0, ran
    work = site.simulator.receiver.posts[0].work
    assert ran.out.startswith(f"landscape: {work.removeprefix('illustration:')} ")
    assert f"https://www.pixiv.net/artworks/{work.removeprefix('illustration:')}" in ran.out
    assert str(site.folder / "works") in ran.out
    assert "channel: delivered (post-" in ran.out
    assert (await site.ask("slots", "list", "--json")).json == []


async def test_once_beside_a_daemon_is_done_by_the_daemon(site, daemon) -> None:
    ran = await site.run("once")
    assert ran.code == 0, ran
    assert len(site.simulator.receiver.posts) == 2
    assert lock_holder(site.state / "ledger.lock") == daemon.pid
    assert [line.split(":")[0] for line in ran.out.splitlines() if not line.startswith(" ")] == [
        "landscape",
        "single",
    ]


async def test_what_once_took_is_not_taken_again(site) -> None:
    for _ in range(2):
        assert (await site.run("once", "landscape")).code == 0
    works = [post.work for post in site.simulator.receiver.posts]
    assert len(works) == len(set(works)) == 2


async def test_once_without_delivery_only_stores(site) -> None:
    ran = await site.run("once", "--no-deliver", "landscape")
    assert ran.code == 0, ran
    assert ".json" in ran.out
    assert site.simulator.receiver.posts == []
    assert (await site.ask("deliveries", "list", "--json")).json == []


async def test_nothing_new_ends_with_0_and_says_so(site) -> None:
    ran = await site.run("once", "nothing")
    assert ran.code == 0
    assert ran.out.startswith("nothing: nothing new: no_candidate")


async def test_an_unknown_target_is_refused_with_the_known_ones(site) -> None:
    ran = await site.run("once", "landscpe")
    assert ran.code == 1
    assert "no target 'landscpe'" in ran.err
    assert "landscape, nothing, single" in ran.err


async def test_some_failed_ends_with_3_and_all_failed_with_1(site) -> None:
    site.simulator.faults.add(Fault(match="/submissions", kind="status", status=422, times=1, method="POST"))
    assert (await site.run("once")).code == 3
    site.simulator.faults.add(Fault(match="/submissions", kind="status", status=422, times=1, method="POST"))
    ran = await site.run("once", "landscape")
    assert ran.code == 1, ran
    assert "delivery_rejected" in ran.out


async def test_a_delivery_that_is_still_open_after_the_wait_ends_with_4(site) -> None:
    site.simulator.faults.add(
        Fault(match="/submissions", kind="status", status=503, times=None, method="POST")
    )
    ran = await site.run("once", "landscape", "--wait", "2s")
    assert ran.code == 4, ran
    assert "channel: pending" in ran.out
    assert "stays in the ledger" in ran.out
    site.simulator.faults.clear()
    async with site.daemon():
        with trio.fail_after(20):
            await site.simulator.receiver.until(lambda receiver: bool(receiver.posts))


async def test_once_does_not_wait_for_a_login_that_nobody_makes(site) -> None:
    site.configure("")
    ran = await site.run("once", "landscape")
    assert ran.code == 4
    assert "account 'main' needs a login: pixivflow login main" in ran.out


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
async def test_a_stop_gives_the_leases_back_and_spends_no_attempt(site, stop) -> None:
    site.simulator.faults.add(Fault(match="/img", kind="hang", times=None))
    async with site.started("once", "landscape") as process:
        await site.until(lambda: any("/img" in seen.path for seen in site.simulator.requests.seen))
        process.send_signal(stop)
        with trio.fail_after(10):
            assert await process.wait() == 4, site.log.read_text()
    assert "still open: selected, pending" in site.log.read_text()
    assert leases(site) == [("pending", 0)]


async def test_a_stop_beside_a_daemon_only_ends_the_waiting(site, daemon) -> None:
    fault = Fault(match="/img", kind="hang", times=None)
    site.simulator.faults.add(fault)
    async with site.started("once", "landscape") as process:
        await site.until(lambda: any("/img" in seen.path for seen in site.simulator.requests.seen))
        process.send_signal(signal.SIGINT)
        with trio.fail_after(10):
            assert await process.wait() == 4
    assert (await site.ask("cells", "--open", "--json")).json[0]["state"] == "running"


async def test_a_command_beside_a_local_once_says_who_holds_the_ledger(site) -> None:
    site.simulator.faults.add(Fault(match="/img", kind="hang", times=None))
    async with site.started("once", "landscape") as process:
        await site.until(lambda: lock_holder(site.state / "ledger.lock") is not None)
        ran = await site.ask("cells")
    assert ran.code == 75
    assert f"pid {process.pid}" in ran.err


async def test_get_stores_a_work_named_by_its_address_and_delivers_nothing(site) -> None:
    work = first_work(site)
    ran = await site.run("get", f"https://www.pixiv.net/en/artworks/{work}#1")
    assert ran.code == 0, ran
    assert ran.out.startswith(f"{work}: ")
    assert site.simulator.receiver.posts == []


async def test_get_of_a_stored_work_shows_its_files(site, daemon) -> None:
    work = first_work(site)
    first = await site.run("get", str(work))
    again = await site.run("get", str(work))
    assert (first.code, again.code) == (0, 0)
    assert "stored already" in again.out
    assert [line for line in again.out.splitlines() if "/works/" in line] == [
        line for line in first.out.splitlines() if "/works/" in line
    ]


async def test_get_of_a_work_that_is_gone_fails_and_says_so(site) -> None:
    ran = await site.run("get", "1", str(first_work(site)))
    assert ran.code == 3, ran
    assert "1: not stored: " in ran.out
    assert "deleted" in ran.out


async def test_get_refuses_every_wrong_address_at_once(site) -> None:
    ran = await site.run("get", "https://www.pixiv.net/users/11", "xyz", "5")
    assert ran.code == 2
    assert "is a user" in ran.err
    assert "'xyz'" in ran.err
    assert not site.state.exists()


async def test_a_wait_that_is_no_duration_is_refused(site) -> None:
    ran = await site.run("once", "--wait", "5")
    assert ran.code == 2
    assert '"5m"' in ran.err or "duration" in ran.err
