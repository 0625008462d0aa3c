"""What the daemon says about itself, bells, pulse, and what idle actors cost."""

import dataclasses
import socket
from contextlib import nullcontext

import msgspec
import pytest
import trio

from actors.accounts import AccountWatch
from actors.bells import INBOX_SIZE, RECORDED, Doorbells, FlightRecorder, wait_for_bell
from actors.control import MethodRefused
from actors.coordinator import run_coordinator
from actors.core import Pulse
from actors.daemon import _report, _status_line
from actors.doors import DaemonDoor, refusing
from actors.fetching import WorkLocks
from actors.handlers import HandlerPool
from actors.heartbeat import run_heartbeat
from actors.outbox import LaneTerms, run_outbox
from actors.scheduler import Scheduler
from actors.settlement import RetryTerms
from actors.sweeper import Retention, Sweeper
from pixivflow.download.store import Store
from pixivflow.ledger.engine import Ledger, LedgerUnavailable
from pixivflow.operations.orders import OrderRefused
from pixivflow.sd_notify import Notifier
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
    assert msgspec.json.decode(lines[0]) == {
        "at": 10,
        "times": 1,
        "message": {"type": "RunCell", "cell_id": 10},
    }


def test_the_flight_recorder_counts_repeats_in_a_row(tmp_path):
    recorder = FlightRecorder()
    for now in (1, 2, 3):
        recorder.note(now, RunCell(0))
    recorder.note(4, RunCell(1))
    recorder.write(tmp_path / "flight.jsonl")
    lines = [msgspec.json.decode(line) for line in (tmp_path / "flight.jsonl").read_bytes().splitlines()]
    assert [(line["at"], line["times"], line["message"]["cell_id"]) for line in lines] == [
        (3, 3, 0),
        (4, 1, 1),
    ]


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


class AwayLedger(Ledger):
    """A ledger that can't be read for a number of times."""

    def __init__(self, real, *, times):
        self.real, self.times = real, times

    def statistics(self):
        return self.real.statistics()

    async def _write(self, call):
        return await self.real._write(call)

    async def _read(self, call):
        if self.times > 0:
            self.times -= 1
            raise LedgerUnavailable("the disk is away")
        return await self.real._read(call)


async def test_a_ledger_that_is_away_changes_the_status_and_ends_nothing(workshop, tmp_path):
    core = workshop.with_core(ledger=AwayLedger(workshop.ledger, times=1)).core
    watch = AccountWatch(core, None, {})
    parts = dataclasses.replace(workshop.parts, core=core, watch=watch)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.setblocking(False)
        notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "20000"})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_report, parts, notifier)
            said = []
            with trio.fail_after(10):
                while len(said) < 4:
                    await trio.lowlevel.wait_readable(manager)
                    said.append(manager.recv(1000).decode())
            nursery.cancel_scope.cancel()
    assert said[:2] == ["WATCHDOG=1", "STATUS=the disk is away"]
    assert said[2] == "WATCHDOG=1"
    assert said[3].startswith("STATUS=0 schedules")


async def test_a_silent_actor_starves_the_watchdog(workshop, tmp_path):
    workshop.core.pulse._beats["stuck"] = trio.current_time() - 1000
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.setblocking(False)
        notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "20000"})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_report, workshop.parts, notifier)
            with trio.move_on_after(0.1) as scope:
                await trio.lowlevel.wait_readable(manager)
            assert scope.cancelled_caught
            workshop.core.pulse.beat("stuck")
            with trio.fail_after(10):
                await trio.lowlevel.wait_readable(manager)
            nursery.cancel_scope.cancel()
        assert manager.recv(1000) == b"WATCHDOG=1"


async def test_a_refused_order_reaches_the_caller_as_a_refusal():
    async def refuse(_):
        await trio.lowlevel.checkpoint()
        raise OrderRefused("not today")

    with pytest.raises(MethodRefused, match="not today"):
        await refusing({"x": refuse})["x"]({})


def idle(bench, config):
    pool = HandlerPool(bench.core, None, {}, {}, extra_hands=4)
    terms = LaneTerms("inbox", "facts", RetryTerms(1.0, 1.0), 60.0, 0.0)
    inboxes = bench.core.bells.cells.clone(), bench.core.bells.slots.clone()
    store = Store(None, trio.CapacityLimiter(1))
    sweeper = Sweeper(bench.core, store, {}, Retention(1e9, 1e9, 1e9), trio.lowlevel.checkpoint, trio.Lock())
    return (
        lambda: run_heartbeat(bench.core),
        lambda: pool.run(inboxes[0]),
        lambda: run_coordinator(bench.core, inboxes[1], {}),
        Scheduler(bench.core, config).run,
        lambda: run_outbox(bench.core, {"inbox": (terms, lambda: nullcontext(None))}),
        sweeper.run,
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
    with benches(routes=("inbox",)) as bench:
        async with bench.running(*idle(bench, benches.config(IDLE))):
            await trio.sleep(10)
            written = (bench.folder / "ledger.db-wal").read_bytes()
            batches = bench.core.ledger.statistics().batches
            await trio.sleep(600)
            assert (bench.folder / "ledger.db-wal").read_bytes() == written
            assert bench.core.ledger.statistics().batches - batches <= 600 / 4
