"""The timetable itself, with seconds."""

from itertools import pairwise
from pathlib import Path

from tests.crash.audit import audit, bound_works
from tests.crash.stage import NEVER, Plan, open_stage


async def test_the_timetable_makes_a_slot_for_each_occurrence_and_each_gets_one_work(tmp_path: Path) -> None:
    async with open_stage(tmp_path, Plan(cron="* * * * * *"), works=40) as stage:
        daemon = await stage.start_ready()

        async def enough() -> bool:
            slots = await daemon.ask("slots.list")
            return [slot["status"] for slot in slots].count("success") >= 2

        await stage.until("two slots succeed", enough)
        assert await daemon.stop() == 0
        occurrences = [
            row["occurrence_at"] for row in stage.rows("SELECT occurrence_at FROM slots ORDER BY 1")
        ]
        assert all(later - earlier == 1000 for earlier, later in pairwise(occurrences))

        stage.write_config(cron=NEVER)
        after = await stage.start_ready()
        for slot in await after.ask("slots.list"):
            assert await after.slot_ends(slot["slot_id"]) == "success"
        assert await after.stop() == 0
        bound = bound_works(stage)
        assert len(set(bound.values())) == len(bound) == len(occurrences)
        audit(stage)
