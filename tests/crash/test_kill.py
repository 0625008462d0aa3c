"""The daemon dies by SIGKILL at each durable step; the next one must end in the same place as if nothing happened."""

from datetime import timedelta
from pathlib import Path

import pytest
import trio

from pixivflow.simulator.server import SimulatorOptions
from tests.crash.audit import audit, bound_works, clean_up
from tests.crash.stage import SIGKILLED, Plan, open_stage

SLOT = "often@manual-k"
BOTH = ("channel", "inbox")
CELL_STEPS = ("cell.bound", "cell.planned", "cell.committed", "cell.delivering")
PAGE_STEPS = ("download.renamed", "download.recorded")
CHANNEL_STEPS = ("outbox.sent", "outbox.settled")
FOLDER_STEPS = ("folder.staged", "folder.placed", "folder.published")
PLACES = [
    *((place, BOTH) for place in (*CELL_STEPS, *PAGE_STEPS)),
    *((place, ("channel",)) for place in CHANNEL_STEPS),
    *((place, ("inbox",)) for place in FOLDER_STEPS),
]
PAGES = {"persistent": 1, "cache": 4}


@pytest.mark.parametrize(("place", "routes"), PLACES)
async def test_a_death_there_changes_nothing_that_a_reader_sees(
    tmp_path: Path, place: str, routes: tuple[str, ...]
) -> None:
    async with trio.open_nursery() as nursery:
        for storage, pages in PAGES.items():
            folder = tmp_path / storage
            folder.mkdir()
            nursery.start_soon(_die_and_recover, folder, Plan({"one": (storage, routes)}), place, pages)


async def _die_and_recover(folder: Path, plan: Plan, place: str, pages: int) -> None:
    async with open_stage(folder, plan, pages=pages) as stage:
        dying = await stage.start_ready(place)
        await dying.trigger_and_die("k")
        assert await dying.ended() == SIGKILLED
        bound = bound_works(stage)
        newer = stage.add_newer_work()

        after = await stage.start_ready()
        assert await after.slot_ends(SLOT) == "success"
        assert await after.stop() == 0

        assert list(bound) == [(SLOT, "one")]
        assert bound_works(stage) == bound
        assert f"illustration:{newer.id}" not in bound.values()
        audit(stage)
        spent = stage.rows("SELECT attempts FROM cells UNION ALL SELECT attempts FROM outbox")
        assert {row["attempts"] for row in spent} == {0}


async def test_a_post_that_was_stored_but_not_settled_is_asked_for_again_under_its_key(
    tmp_path: Path,
) -> None:
    async with open_stage(tmp_path) as stage:
        dying = await stage.start_ready("outbox.sent")
        await dying.trigger_and_die("k")
        await dying.ended()
        after = await stage.start_ready()
        assert await after.slot_ends(SLOT) == "success"
        attempts = stage.simulator.receiver.attempts
        assert [attempt.outcome for attempt in attempts] == ["accepted", "replayed"]
        assert len({attempt.key for attempt in attempts}) == 1


async def test_what_was_stored_before_the_death_is_not_fetched_again(tmp_path: Path) -> None:
    async with open_stage(tmp_path, pages=3) as stage:
        dying = await stage.start_ready("cell.committed")
        await dying.trigger_and_die("k")
        await dying.ended()
        after = await stage.start_ready()
        assert await after.slot_ends(SLOT) == "success"
        assert stage.simulator.requests.total("image") == 3
        assert stage.simulator.requests.count("/v1/illust/detail") == 0


async def test_a_death_while_a_token_is_saved_does_not_lose_the_login(tmp_path: Path) -> None:
    options = SimulatorOptions(rotate_refresh_tokens=True)
    async with open_stage(tmp_path, options=options) as stage:
        dying = await stage.start_ready("pixiv.token_saved")
        await dying.trigger_and_die("k")
        assert await dying.ended() == SIGKILLED
        after = await stage.start_ready()
        assert await after.slot_ends(SLOT) == "success"


async def test_a_delivered_work_of_the_cache_is_removed_after_the_death_too(tmp_path: Path) -> None:
    async with open_stage(tmp_path, Plan({"one": ("cache", BOTH)}), pages=2) as stage:
        dying = await stage.start_ready("outbox.settled")
        await dying.trigger_and_die("k")
        await dying.ended()
        after = await stage.start_ready()
        assert await after.slot_ends(SLOT) == "success"
        assert await after.stop() == 0
        await clean_up(stage)
        assert not stage.rows("SELECT id FROM artifacts")
        assert not (stage.state / "cache" / SLOT).exists()
        audit(stage)


async def test_a_work_edited_while_the_daemon_was_dead_is_the_same_work_and_leaves_no_orphan(
    tmp_path: Path,
) -> None:
    async with open_stage(tmp_path, pages=3) as stage:
        dying = await stage.start_ready("download.renamed")
        await dying.trigger_and_die("k")
        await dying.ended()
        bound = bound_works(stage)
        work_id = int(bound[SLOT, "one"].partition(":")[2])
        uploaded = stage.simulator.catalogue.works[work_id].created + timedelta(seconds=1)
        stage.simulator.catalogue.edit(work_id, title="another title", uploaded=uploaded, page_count=2)
        after = await stage.start_ready()
        assert await after.slot_ends(SLOT) == "success"
        assert await after.stop() == 0
        await clean_up(stage)
        assert bound_works(stage) == bound
        audit(stage)


async def test_a_bound_work_that_is_gone_after_the_death_is_never_replaced(tmp_path: Path) -> None:
    async with open_stage(tmp_path, pages=3) as stage:
        dying = await stage.start_ready("download.recorded")
        await dying.trigger_and_die("k")
        await dying.ended()
        bound = bound_works(stage)
        stage.simulator.catalogue.remove(int(bound[SLOT, "one"].partition(":")[2]))
        after = await stage.start_ready()
        assert await after.slot_ends(SLOT) == "failed"
        assert await after.stop() == 0
        await clean_up(stage)
        [cell] = stage.rows("SELECT status, reason_code FROM cells")
        assert (cell["status"], cell["reason_code"]) == ("failed", "locked_work_unavailable")
        assert bound_works(stage) == bound
        assert stage.simulator.receiver.posts == []
        assert [path for path in stage.downloads.rglob("*") if path.is_file()] == []


async def test_a_committed_work_that_is_gone_after_the_death_is_delivered_from_disk(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        dying = await stage.start_ready("cell.committed")
        await dying.trigger_and_die("k")
        await dying.ended()
        for work_id in list(stage.simulator.catalogue.works):
            stage.simulator.catalogue.edit(work_id, deleted=True)
        after = await stage.start_ready()
        assert await after.slot_ends(SLOT) == "success"
        assert await after.stop() == 0
        audit(stage)


async def test_a_cell_that_kills_the_daemon_three_times_is_ended_and_the_others_go_on(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        dying = await stage.start_ready("cell.planned")
        await dying.trigger_and_die("k")
        assert await dying.ended() == SIGKILLED
        for _ in range(2):
            again = await stage.start("cell.planned")
            assert await again.ended() == SIGKILLED
        after = await stage.start_ready()
        assert await after.slot_ends(SLOT) == "failed"
        [detail] = (await after.slot(SLOT))["cells"]
        assert (detail["cell"]["reason_code"], detail["cell"]["attempts"]) == ("crashed_repeatedly", 0)
        assert await after.slot_ends(await after.trigger("next")) == "success"
