"""The scheduler and the coordinator under virtual time, on a real ledger."""

import sqlite3
from datetime import UTC, datetime

import pytest
import trio

from actors.coordinator import run_coordinator
from actors.scheduler import Scheduler
from pixivflow.ledger.cells import claim_cell, end_cell
from pixivflow.ledger.slots import materialise, read_schedules, set_watermark_back, sync_schedules
from pixivflow.operations.plans import due_slot
from protocol.messages import SlotDue
from protocol.reasons import Reason
from protocol.states import CellStatus, Trigger

HOUR_S = 3600


def text_of(cron="0 * * * *", **keys):
    lines = "\n".join(f'{key} = "{value}"' for key, value in keys.items())
    return f"""
[storage]
state_dir = "state"
download_dir = "downloads"
[accounts.main]
refresh_token = "t"
[[schedules]]
id = "s"
cron = "{cron}"
targets = ["land"]
{lines}
[[targets]]
id = "land"
mode = "search"
tags = ["x"]
limit = 1
"""


def slots_of(bench):
    return bench.rows(
        "SELECT slot_id, trigger, status, missed_count, created_at, occurrence_at FROM slots ORDER BY occurrence_at"
    )


def hours_of(slots):
    return [datetime.fromtimestamp(slot["occurrence_at"] / 1000, UTC).strftime("%d %H:%M") for slot in slots]


async def test_a_day_of_slots_is_made_on_time_without_drift(autojump_clock, benches):
    config = benches.config(text_of("*/7 * * * *"))
    with benches(start_ms=benches.ms("2026-05-01T00:03:21+00:00")) as bench:
        async with bench.running(Scheduler(bench.core, config).run):
            await trio.sleep(24 * HOUR_S)
        slots = slots_of(bench)
    assert len(slots) == 24 * 9
    assert all(0 <= slot["created_at"] - slot["occurrence_at"] <= 2 for slot in slots)
    assert {slot["trigger"] for slot in slots} == {"cron"}
    assert [slot["occurrence_at"] for slot in slots] == sorted({slot["occurrence_at"] for slot in slots})


async def test_every_slot_has_its_cell_and_rings(autojump_clock, benches):
    config = benches.config(text_of())
    with benches(start_ms=benches.ms("2026-05-01T00:30:00+00:00")) as bench:
        async with bench.running(Scheduler(bench.core, config).run):
            rung = await bench.core.bells.slots.receive()
        assert rung == SlotDue("s@20260501T010000Z")
        assert bench.rows("SELECT slot_id, target_id, account FROM cells") == [
            {"slot_id": "s@20260501T010000Z", "target_id": "land", "account": "main"}
        ]


async def run_twice(bench, config, *, first_s, away_s, then_s, again=None):
    async with bench.running(Scheduler(bench.core, config).run):
        await trio.sleep(first_s)
    await trio.sleep(away_s)
    async with bench.running(Scheduler(bench.core, again or config).run):
        await trio.sleep(then_s)


async def test_after_an_absence_latest_runs_the_newest_and_records_the_others(autojump_clock, benches):
    config = benches.config(text_of(catch_up="latest"))
    with benches(start_ms=benches.ms("2026-05-01T00:30:00+00:00")) as bench:
        await run_twice(bench, config, first_s=HOUR_S, away_s=4 * HOUR_S, then_s=HOUR_S)
        slots = slots_of(bench)
    assert hours_of(slots) == ["01 01:00", "01 02:00", "01 03:00", "01 04:00", "01 05:00", "01 06:00"]
    assert [slot["status"] for slot in slots] == [
        "pending",
        "missed",
        "missed",
        "missed",
        "pending",
        "pending",
    ]
    assert [slot["trigger"] for slot in slots if slot["status"] == "pending"] == ["cron", "catch_up", "cron"]


async def test_catch_up_none_records_everything_as_missed(autojump_clock, benches):
    config = benches.config(text_of(catch_up="none"))
    with benches(start_ms=benches.ms("2026-05-01T00:30:00+00:00")) as bench:
        await run_twice(bench, config, first_s=60, away_s=3 * HOUR_S, then_s=60)
        slots = slots_of(bench)
    assert [slot["status"] for slot in slots] == ["missed"] * 3


async def test_catch_up_all_runs_what_is_in_the_window_oldest_first(autojump_clock, benches):
    config = benches.config(text_of(catch_up="all", catch_up_window="150m"))
    with benches(start_ms=benches.ms("2026-05-01T00:30:00+00:00")) as bench:
        await run_twice(bench, config, first_s=60, away_s=4 * HOUR_S, then_s=60)
        slots = slots_of(bench)
        rung = [bench.core.bells.slots.receive_nowait().slot_id[-7:-1] for _ in range(2)]
    assert [(slot["status"], slot["trigger"]) for slot in slots] == [
        ("missed", "cron"),
        ("missed", "cron"),
        ("pending", "catch_up"),
        ("pending", "catch_up"),
    ]
    assert rung == ["030000", "040000"]


async def test_a_long_absence_is_one_slot_and_a_bounded_number_of_rows(autojump_clock, benches):
    config = benches.config(text_of("* * * * *"))
    with benches(start_ms=benches.ms("2026-05-01T00:00:30+00:00")) as bench:
        await run_twice(bench, config, first_s=10, away_s=3 * 24 * HOUR_S + 31, then_s=5)
        slots = slots_of(bench)
    missed = [slot for slot in slots if slot["status"] == "missed"]
    assert len(slots) - len(missed) == 1
    assert len(missed) == 101
    assert sum(slot["missed_count"] for slot in missed) == 3 * 24 * 60 - (
        0 if slots[-1]["trigger"] == "cron" else 1
    )


async def test_a_new_schedule_starts_now_and_catches_nothing_up(autojump_clock, benches):
    with benches(start_ms=benches.ms("2026-05-01T00:30:00+00:00")) as bench:
        async with bench.running(Scheduler(bench.core, benches.config(text_of(catch_up="all"))).run):
            await trio.sleep(60)
        assert slots_of(bench) == []


async def test_an_edited_schedule_starts_at_its_edit(autojump_clock, benches):
    config = benches.config(text_of("0 1 * * *"))
    edited = benches.config(text_of("0 3 * * *"))
    with benches(start_ms=benches.ms("2026-05-01T00:30:00+00:00")) as bench:
        await run_twice(bench, config, first_s=HOUR_S, away_s=4 * HOUR_S, then_s=24 * HOUR_S, again=edited)
        assert hours_of(slots_of(bench)) == ["01 01:00", "02 03:00"]


async def test_a_disabled_schedule_makes_nothing(autojump_clock, benches):
    config = benches.config(text_of().replace('id = "s"', 'id = "s"\nenabled = false'))
    with benches() as bench:
        async with bench.running(Scheduler(bench.core, config).run):
            await trio.sleep(2 * HOUR_S)
        assert slots_of(bench) == []


async def test_a_restart_between_two_slots_neither_repeats_nor_misses(autojump_clock, benches):
    config = benches.config(text_of("*/10 * * * *"))
    with benches(start_ms=benches.ms("2026-05-01T00:00:00+00:00")) as bench:
        for pause in (599, 2, 600, 1, 1199):
            async with bench.running(Scheduler(bench.core, config).run):
                await trio.sleep(pause)
        slots = slots_of(bench)
    assert hours_of(slots) == ["01 00:10", "01 00:20", "01 00:30", "01 00:40"]
    assert {slot["status"] for slot in slots} == {"pending"}


async def test_a_watermark_ahead_of_the_clock_is_set_back_while_running(autojump_clock, benches):
    config = benches.config(text_of())
    start = benches.ms("2026-05-01T00:30:00+00:00")
    with benches(start_ms=start) as bench:
        async with bench.running(Scheduler(bench.core, config).run):
            await trio.sleep(40 * 60)
            bench.write(
                set_watermark_back, "s", start + 48 * HOUR_S * 1000, start
            )  # as a wrong clock would leave it
            await trio.sleep(2 * HOUR_S)
        assert hours_of(slots_of(bench)) == ["01 01:00", "01 02:00", "01 03:00"]
        assert bench.write(read_schedules)["s"].last_occurrence_at == benches.ms("2026-05-01T03:00:00+00:00")


async def test_a_watermark_ahead_is_set_back_at_the_start(autojump_clock, benches):
    config = benches.config(text_of())
    start = benches.ms("2026-05-01T00:30:00+00:00")
    with benches(start_ms=start) as bench:
        bench.write(sync_schedules, [("s", "0 * * * *", "UTC")], start + 48 * HOUR_S * 1000)
        async with bench.running(Scheduler(bench.core, config).run):
            await trio.sleep(HOUR_S)
        assert hours_of(slots_of(bench)) == ["01 01:00"]
        assert len(bench.rows("SELECT 1 FROM events WHERE kind = 'watermark_set_back'")) == 1


async def test_a_slot_triggered_ahead_of_its_time_is_not_made_twice(autojump_clock, benches):
    config = benches.config(text_of())
    with benches(start_ms=benches.ms("2026-05-01T00:50:00+00:00")) as bench:
        async with bench.running(Scheduler(bench.core, config).run):
            await trio.sleep(60)
            early = due_slot(
                config,
                config.schedule("s"),
                benches.ms("2026-05-01T01:00:00+00:00"),
                Trigger.MANUAL,
                bench.core.now(),
            )
            bench.write(materialise, early, bench.core.now())
            await trio.sleep(75 * 60)
        assert hours_of(slots_of(bench)) == ["01 01:00", "01 02:00"]


@pytest.mark.parametrize(
    ("day", "cron", "expected"),
    [
        ("2026-03-29T00:00:00+01:00", "30 2 * * *", ["29 01:00"]),
        ("2026-10-25T00:00:00+02:00", "30 2 * * *", ["25 00:30"]),
        (
            "2026-10-25T01:50:00+02:00",
            "*/30 * * * *",
            ["25 00:00", "25 00:30", "25 01:00", "25 01:30", "25 02:00"],
        ),
    ],
)
async def test_a_day_on_which_berlins_clock_changes(autojump_clock, benches, day, cron, expected):
    config = benches.config(text_of(cron, timezone="Europe/Berlin"))
    with benches(start_ms=benches.ms(day)) as bench:
        async with bench.running(Scheduler(bench.core, config).run):
            await trio.sleep((2.4 if "/" in cron else 23.5) * HOUR_S)
        assert hours_of(slots_of(bench)) == expected


class Flaky(sqlite3.Connection):
    """A connection whose commits fail while told to."""

    full = False

    def commit(self):
        if Flaky.full:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        super().commit()


@pytest.fixture
def full_disk():
    Flaky.full = False
    yield lambda full: setattr(Flaky, "full", full)
    Flaky.full = False


def flaky(path):
    return sqlite3.connect(path, isolation_level=None, factory=Flaky)


async def test_scheduler_and_coordinator_outlive_a_full_disk_and_lose_no_slot(
    autojump_clock, benches, full_disk
):
    config = benches.config(text_of("*/5 * * * *", catch_up="all"))
    with benches(start_ms=benches.ms("2026-05-01T00:02:00+00:00"), connect=flaky) as bench:
        inbox = bench.core.bells.slots.clone()
        async with bench.running(
            Scheduler(bench.core, config).run, lambda: run_coordinator(bench.core, inbox, {"s": "queue"})
        ):
            await trio.sleep(120)
            full_disk(True)
            await trio.sleep(11 * 60)
            full_disk(False)
            await trio.sleep(120)
        slots = slots_of(bench)
        admitted = bench.rows("SELECT 1 FROM slots WHERE admitted_at IS NOT NULL")
    assert hours_of(slots) == ["01 00:05", "01 00:10", "01 00:15"]
    assert {slot["status"] for slot in slots} == {"pending"}
    assert len(admitted) == 1


async def test_a_slot_that_waits_while_the_disk_is_full_is_admitted_later(autojump_clock, benches, full_disk):
    config = benches.config(text_of())
    with benches(connect=flaky) as bench:
        slot = due_slot(config, config.schedule("s"), bench.core.now(), Trigger.CRON, bench.core.now())
        bench.write(materialise, slot, bench.core.now())
        full_disk(True)
        async with bench.running(lambda: run_coordinator(bench.core, bench.core.bells.slots.clone(), {})):
            await trio.sleep(600)
            assert bench.rows("SELECT 1 FROM slots WHERE admitted_at IS NOT NULL") == []
            full_disk(False)
            await trio.sleep(6)
        assert bench.rows("SELECT 1 FROM slots WHERE admitted_at IS NOT NULL")


# The coordinator, on slots that the scheduler made.


async def collecting(bench, *, takes_s):
    """Stand in for a hand: claim what is admitted, take a while, end it."""
    while True:
        claimed = bench.write(claim_cell, "hand", bench.core.now(), selecting=("main",))
        if claimed is None:
            await trio.sleep(5)
            continue
        await trio.sleep(takes_s)
        bench.write(end_cell, claimed.lease, CellStatus.NO_CANDIDATE, bench.core.now(), Reason.NO_CANDIDATE)


async def overlapping(bench, config, overlap, *, takes_s, for_s):
    inbox = bench.core.bells.slots.clone()
    async with bench.running(
        Scheduler(bench.core, config).run,
        lambda: run_coordinator(bench.core, inbox, {"s": overlap}),
        lambda: collecting(bench, takes_s=takes_s),
    ):
        await trio.sleep(for_s)
    return bench.rows(
        "SELECT slot_id, reason_code, admitted_at, ended_at, business_status FROM slots ORDER BY occurrence_at"
    )


async def test_with_queue_one_slot_waits_and_further_ones_are_skipped(autojump_clock, benches):
    config = benches.config(text_of("*/10 * * * *"))
    with benches(start_ms=benches.ms("2026-05-01T00:09:00+00:00")) as bench:
        slots = await overlapping(bench, config, "queue", takes_s=25 * 60, for_s=33 * 60)
    assert [slot["reason_code"] for slot in slots] == [None, None, "overlap_skipped", None]
    assert slots[0]["ended_at"] <= slots[1]["admitted_at"]
    assert slots[2]["business_status"] == "cancelled"
    assert slots[3]["admitted_at"] is None


async def test_with_skip_no_slot_waits(autojump_clock, benches):
    config = benches.config(text_of("*/10 * * * *"))
    with benches(start_ms=benches.ms("2026-05-01T00:09:00+00:00")) as bench:
        slots = await overlapping(bench, config, "skip", takes_s=25 * 60, for_s=33 * 60)
    assert [slot["reason_code"] for slot in slots] == [None, "overlap_skipped", "overlap_skipped", None]
    assert slots[3]["admitted_at"] is not None


async def test_slots_of_a_catch_up_wait_for_each_other_whatever_the_overlap_rule(autojump_clock, benches):
    config = benches.config(text_of("0 * * * *", catch_up="all"))
    with benches(start_ms=benches.ms("2026-05-01T00:30:00+00:00")) as bench:
        async with bench.running(Scheduler(bench.core, config).run):
            await trio.sleep(1)
        await trio.sleep(4 * HOUR_S)
        slots = await overlapping(bench, config, "skip", takes_s=60, for_s=20 * 60)
    assert [slot["business_status"] for slot in slots] == ["no_candidate"] * 4
    assert [slot["admitted_at"] for slot in slots] == sorted(slot["admitted_at"] for slot in slots)


async def test_a_lost_bell_only_delays(autojump_clock, benches):
    config = benches.config(text_of())
    with benches(start_ms=benches.ms("2026-05-01T00:59:59+00:00")) as bench:
        async with bench.running(lambda: run_coordinator(bench.core, bench.core.bells.slots.clone(), {})):
            await trio.sleep(1)
            slot = due_slot(config, config.schedule("s"), bench.core.now(), Trigger.CRON, bench.core.now())
            bench.write(materialise, slot, bench.core.now())
            await trio.sleep(6)
        assert bench.rows("SELECT 1 FROM slots WHERE admitted_at IS NOT NULL")
