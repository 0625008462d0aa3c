"""A stop gives back what is under way, unspent; the next daemon goes on with the same work."""

import signal
from pathlib import Path

from pixivflow.simulator.faults import Fault
from pixivflow.unix_websocket import connect
from protocol.works import WorkRef
from tests.crash.audit import audit, bound_works, clean_up
from tests.crash.stage import Plan, Stage, open_stage

ORIGINALS = "/img-original/"
SOON_S = 2.0
"""What a reader of the manual is promised, and less than any deadline of a settlement or a request."""
SLOT = "often@manual-k"


async def _resumes(stage: Stage) -> None:
    """Start again, beside a work that would be chosen now, and compare."""
    bound = bound_works(stage)
    assert list(bound) == [(SLOT, "one")]
    assert stage.rows("SELECT id FROM cells WHERE state = 'running'") == []
    assert stage.rows("SELECT id FROM outbox WHERE state = 'running'") == []
    assert {row["attempts"] for row in stage.rows("SELECT attempts FROM cells")} == {0}
    stage.simulator.faults.clear()
    stage.add_newer_work()
    after = await stage.start_ready()
    assert await after.slot_ends(SLOT) == "success"
    assert await after.stop() == 0
    assert bound_works(stage) == bound
    audit(stage)


async def test_a_stop_while_pages_download_spends_nothing(tmp_path: Path) -> None:
    async with open_stage(tmp_path, pages=3) as stage:
        stage.simulator.faults.add(Fault(ORIGINALS, "stall", times=2, skip=1))
        daemon = await stage.start_ready()
        await daemon.trigger("k")
        await stage.until_asked(ORIGINALS, 3)
        daemon.process.terminate()
        assert await daemon.ended(SOON_S) == 0
        [cell] = stage.rows("SELECT state, status, crashes FROM cells")
        assert (cell["state"], cell["status"], cell["crashes"]) == ("pending", "selected", 0)
        await _resumes(stage)


async def test_a_stop_while_a_post_hangs_spends_nothing(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.simulator.faults.add(Fault("/submissions", "hang"))
        daemon = await stage.start_ready()
        await daemon.trigger("k")
        await stage.until_asked("/submissions")
        daemon.process.terminate()
        assert await daemon.ended(SOON_S) == 0
        [row] = stage.rows("SELECT state, attempts, crashes, idempotency_key FROM outbox")
        assert (row["state"], row["attempts"], row["crashes"]) == ("pending", 0, 0)
        await _resumes(stage)
        [post] = stage.simulator.receiver.posts
        assert post.key == row["idempotency_key"]


DOWNLOADS = tuple(f"work-{number}" for number in range(12))
CHANNELS = ("channel-1", "channel-2", "channel-3", "channel-4")
BUSY = Plan(
    targets={
        **dict.fromkeys(DOWNLOADS, ("persistent", ("inbox",))),
        **{f"to-{route}": ("persistent", (route,)) for route in CHANNELS},
    },
    capacity=16,
    page_concurrency=24,
    extra_channels=CHANNELS,
)


async def test_a_stop_of_a_daemon_with_its_hands_full_spends_nothing(tmp_path: Path) -> None:
    async with open_stage(tmp_path, BUSY, pages=2, works=20) as stage:
        stage.simulator.faults.add(Fault("/submissions", "hang", times=None))
        daemon = await stage.start_ready()
        slots = [await daemon.trigger(route, target=f"to-{route}") for route in CHANNELS]
        await stage.until_asked("/submissions", len(CHANNELS))
        for [work] in stage.live_rows(
            "SELECT DISTINCT work FROM cells"
        ):  # nobody else is to find their files
            stage.simulator.catalogue.edit(WorkRef.parse(work).id, tags=("海",))
        stage.simulator.faults.add(Fault(ORIGINALS, "stall", times=None))
        pages_before = stage.simulator.requests.count(ORIGINALS)
        slots += [await daemon.trigger(target, target=target) for target in DOWNLOADS]
        await stage.until_asked(ORIGINALS, pages_before + 2 * len(DOWNLOADS))
        daemon.process.terminate()
        assert await daemon.ended(SOON_S) == 0

        cells = stage.rows("SELECT status, state, attempts, crashes FROM cells")
        downloading = [cell for cell in cells if cell["status"] == "selected"]
        assert [cell["state"] for cell in downloading] == ["pending"] * len(DOWNLOADS)
        assert {(cell["attempts"], cell["crashes"]) for cell in cells} == {(0, 0)}
        rows = stage.rows("SELECT state, attempts, crashes FROM outbox")
        assert [tuple(row.values()) for row in rows] == [("pending", 0, 0)] * len(CHANNELS)

        bound = bound_works(stage)
        stage.simulator.faults.clear()
        after = await stage.start_ready()
        for slot in slots:
            assert await after.slot_ends(slot) == "success"
        assert await after.stop() == 0
        assert bound_works(stage) == bound
        assert len(stage.simulator.receiver.posts) == len(CHANNELS)
        assert len(list(stage.inbox.glob("*.json"))) == len(DOWNLOADS)


async def test_a_stop_while_pixiv_is_asked_leaves_the_cell_unbound(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.simulator.faults.add(Fault("/v1/search/illust", "hang"))
        daemon = await stage.start_ready()
        await daemon.trigger("k")
        await stage.until_asked("/v1/search/illust")
        daemon.process.terminate()
        assert await daemon.ended(SOON_S) == 0
        [cell] = stage.rows("SELECT state, status, work, attempts FROM cells")
        assert list(cell.values()) == ["pending", "pending", None, 0]
        stage.simulator.faults.clear()
        after = await stage.start_ready()
        assert await after.slot_ends(SLOT) == "success"


async def test_the_order_to_stop_ends_the_daemon_after_its_answer(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        daemon = await stage.start_ready()
        assert (await daemon.ask("daemon.stop"))["stopping"] is True
        assert await daemon.ended(SOON_S) == 0
        assert not stage.socket.exists()


async def test_a_second_interrupt_ends_at_once_and_is_as_safe_as_a_crash(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.simulator.faults.add(Fault("/auth/token", "hang"))
        daemon = await stage.start_ready()
        await daemon.trigger("k")
        await stage.until_asked(
            "/auth/token"
        )  # a refresh on the wire is given a second: the stop takes a while
        daemon.process.send_signal(signal.SIGINT)

        async def stopping() -> bool:
            return any(event["event"] == "stopping" for event in daemon.events())

        await stage.until("the stop has begun", stopping)
        assert await daemon.stop(signal.SIGINT) == 128 + signal.SIGINT
        stage.simulator.faults.clear()
        after = await stage.start_ready()
        assert await after.slot_ends(SLOT) == "success"
        assert await after.stop() == 0
        audit(stage)


async def test_a_run_over_its_time_ends_and_leaves_no_file(tmp_path: Path) -> None:
    async with open_stage(tmp_path, Plan(cell_timeout="1s"), pages=2) as stage:
        stage.simulator.faults.add(Fault(ORIGINALS, "stall", skip=1))
        daemon = await stage.start_ready()
        slot = await daemon.trigger("k")
        assert await daemon.slot_ends(slot) == "failed"
        assert await daemon.stop() == 0
        await clean_up(stage)
        [cell] = stage.rows("SELECT status, reason_code FROM cells")
        assert (cell["status"], cell["reason_code"]) == ("failed", "execution_timeout")
        assert [path for path in stage.downloads.rglob("*") if path.is_file()] == []
        assert not stage.rows("SELECT id FROM artifacts")


async def test_a_client_that_stays_connected_does_not_hold_up_a_stop(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        daemon = await stage.start_ready()
        async with connect(stage.socket):
            daemon.process.terminate()
            assert await daemon.ended(SOON_S) == 0
        assert "Traceback" not in daemon.text()
