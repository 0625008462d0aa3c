"""What the daemon says about itself, bells, pulse, and what idle actors cost."""

import msgspec
import pytest
import trio

from actors.bells import INBOX_SIZE, RECORDED, Doorbells, FlightRecorder, wait_for_bell
from actors.control import MethodRefused
from actors.coordinator import run_coordinator
from actors.core import Pulse
from actors.daemon import _status_line
from actors.doors import DaemonDoor, refusing
from actors.fetching import WorkLocks
from actors.handlers import HandlerPool
from actors.heartbeat import run_heartbeat
from actors.outbox import run_outbox
from actors.scheduler import Scheduler
from pixivflow.operations.orders import OrderRefused
from protocol.messages import Changed, OutboxReady, RunCell, SlotDue
from protocol.works import WorkKind, WorkRef


@pytest.fixture
def bells():
    made = Doorbells(["channel"], FlightRecorder())
    yield made
    made.close()


async def test_each_message_finds_its_inbox(bells):
    for message in (
        SlotDue("s"),
        RunCell(1),
        OutboxReady("channel"),
        OutboxReady("unknown"),
        Changed("cell", "1"),
    ):
        bells.ring(message, 5)
    assert bells.slots.receive_nowait() == SlotDue("s")
    assert bells.cells.receive_nowait() == RunCell(1)
    assert bells.lanes["channel"].receive_nowait() == OutboxReady("channel")


async def test_a_full_inbox_drops_and_never_blocks(bells):
    for number in range(INBOX_SIZE * 3):
        bells.ring(RunCell(number), 5)
        bells.ring(OutboxReady("channel"), 5)
    assert bells.cells.statistics().current_buffer_used == INBOX_SIZE
    assert bells.lanes["channel"].statistics().current_buffer_used == 1


async def test_ringing_after_the_close_is_no_error(bells):
    bells.close()
    bells.ring(RunCell(1), 5)


async def test_a_bell_takes_all_that_came_with_it(bells, autojump_clock):
    for number in range(5):
        bells.ring(RunCell(number), 5)
    began = trio.current_time()
    await wait_for_bell(bells.cells, 60)
    assert trio.current_time() == began
    await wait_for_bell(bells.cells, 60)
    assert trio.current_time() - began == pytest.approx(60)


def test_the_flight_recorder_keeps_the_last_messages_oldest_first(tmp_path):
    recorder = FlightRecorder()
    for number in range(RECORDED + 10):
        recorder.note(number, RunCell(number))
    recorder.write(tmp_path / "flight.jsonl")
    lines = (tmp_path / "flight.jsonl").read_bytes().splitlines()
    assert len(lines) == RECORDED
    assert msgspec.json.decode(lines[0]) == {"at": 10, "message": {"type": "RunCell", "cell_id": 10}}


async def test_who_is_busy_under_a_lease_is_not_called_silent(autojump_clock):
    pulse = Pulse()
    pulse.beat("idle")
    pulse.beat("busy", busy=True)
    await trio.sleep(200)
    assert pulse.silent(150.0) == ("idle",)
    pulse.beat("busy")
    await trio.sleep(200)
    assert set(pulse.silent(150.0)) == {"idle", "busy"}


async def test_nothing_is_kept_of_a_lock_that_nobody_uses(autojump_clock):
    locks, work, inside = WorkLocks(), WorkRef(WorkKind.ILLUSTRATION, 1), []

    async def use(name):
        async with locks.holding(work):
            inside.append(name)
            assert len(inside) == 1
            await trio.sleep(1)
            inside.remove(name)

    async with trio.open_nursery() as nursery:
        for name in range(3):
            nursery.start_soon(use, name)
        await trio.sleep(0.5)
        with trio.move_on_after(0.1):
            await use("impatient")
    assert locks._locks == {}


def door_of(workshop):
    return DaemonDoor(workshop.core, workshop.parts.config, workshop.parts.watch, trio.Event())


async def test_the_status_counts_what_is_open(workshop):
    await workshop.once()
    status = await door_of(workshop).methods()["daemon.status"]({})
    assert (status.state, status.counts.cells_pending, status.logins_needed) == ("running", 1, ())
    msgspec.json.encode(status)


async def test_rows_of_a_route_that_left_are_named(workshop):
    async with workshop.working(lanes_too=False):
        await workshop.until(await workshop.once(), status="delivery_pending")
    await workshop.change("UPDATE outbox SET route = 'left'")
    status = await door_of(workshop).methods()["daemon.status"]({})
    assert status.unknown_routes == ("left",)


async def test_an_order_to_stop_is_answered_and_sets_the_event(workshop):
    stop = trio.Event()
    door = DaemonDoor(workshop.core, workshop.parts.config, workshop.parts.watch, stop)
    assert (await door.methods()["daemon.stop"]({}))["stopping"] is True
    assert stop.is_set()
    assert (await door.methods()["daemon.status"]({})).state == "stopping"


async def test_the_status_line_says_what_runs_or_which_login_is_needed(workshop):
    line = await _status_line(workshop.parts)
    assert line.startswith("0 schedules, 0 at work, ")
    workshop.parts.watch._configured = {"main": None}
    assert await _status_line(workshop.parts) == "main: login needed"


async def test_a_refused_order_reaches_the_caller_as_a_refusal():
    async def refuse(_):
        await trio.lowlevel.checkpoint()
        raise OrderRefused("not today")

    with pytest.raises(MethodRefused, match="not today"):
        await refusing({"x": refuse})["x"]({})


def idle(bench, config):
    pool = HandlerPool(bench.core, None, {}, {})
    inboxes = bench.core.bells.cells.clone(), bench.core.bells.slots.clone()
    return (
        lambda: run_heartbeat(bench.core),
        lambda: pool.run(inboxes[0]),
        lambda: run_coordinator(bench.core, inboxes[1], {}),
        Scheduler(bench.core, config).run,
        lambda: run_outbox(bench.core, {}),
    )


IDLE = """
[storage]
state_dir = "state"
download_dir = "downloads"
[accounts.main]
refresh_token = "t"
[[schedules]]
id = "s"
cron = "0 0 1 1 *"
targets = ["land"]
[[targets]]
id = "land"
mode = "search"
tags = ["x"]
limit = 1
"""


async def test_idle_actors_write_nothing_and_ask_seldom(autojump_clock, benches):
    with benches() as bench:
        async with bench.running(*idle(bench, benches.config(IDLE))):
            await trio.sleep(10)
            written = (bench.folder / "ledger.db-wal").read_bytes()
            batches = bench.core.ledger.statistics().batches
            await trio.sleep(600)
            assert (bench.folder / "ledger.db-wal").read_bytes() == written
            assert bench.core.ledger.statistics().batches - batches <= 600 / 4
