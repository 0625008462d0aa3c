"""One ledger, one daemon."""

from pathlib import Path

from tests.crash.stage import open_stage


async def test_a_second_daemon_on_a_ledger_ends_with_75_and_names_the_first(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        first = await stage.start_ready()
        second = await stage.start()
        assert await second.ended() == 75
        [line] = second.text().splitlines()
        assert f"pid {first.pid}" in line
        assert str(stage.state) in line
        slot = await first.trigger("k")
        assert await first.slot_ends(slot) == "success"
        assert await first.stop() == 0


async def test_the_socket_of_a_killed_daemon_is_taken_over(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        first = await stage.start_ready()
        first.process.kill()
        await first.ended()
        assert stage.socket.exists()
        await stage.start_ready()


async def test_of_two_daemons_started_at_once_one_runs(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        both = [await stage.start(), await stage.start()]

        async def one_has_ended() -> bool:
            return any(daemon.process.poll() is not None for daemon in both)

        await stage.until("one of them gives up", one_has_ended)
        [loser] = [daemon for daemon in both if daemon.process.poll() is not None]
        [winner] = [daemon for daemon in both if daemon is not loser]
        assert await loser.ended() == 75
        await winner.ready()
        assert await winner.slot_ends(await winner.trigger("k")) == "success"
