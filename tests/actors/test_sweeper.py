"""The sweeper: what it ends and with which cause, and the cleaner, which never removes a path in use."""

import sqlite3
import threading

import pytest
import trio
import trio.testing

from actors.sweeper import Retention, Sweeper
from pixivflow.download.store import Store
from pixivflow.ledger.binding import bind
from pixivflow.ledger.cells import CellFailure, claim_cell, fail_cell
from pixivflow.ledger.files import NewArtifact, plan_artifacts
from pixivflow.ledger.health import account_refused, cool_down
from pixivflow.ledger.slots import NewCell, add_adhoc_cell
from protocol.reasons import Reason
from protocol.works import WorkKind, WorkRef

WORK = WorkRef(WorkKind.ILLUSTRATION, 7)
RETENTION = Retention(1e9, 1e9, 1e9)


async def nothing():
    await trio.lowlevel.checkpoint()


def sweeper_of(bench, *, retention=RETENTION, naming=None):
    store = Store(None, trio.CapacityLimiter(1))
    roots = {"download": bench.folder / "dl", "state": bench.folder / "state"}
    return Sweeper(bench.core, store, roots, retention, nothing, naming or trio.Lock())


def waiting(bench, hours=1):
    now = bench.core.now()
    return bench.write(add_adhoc_cell, NewCell("t", "main", "{}", now + hours * 3_600_000), now)


def failed(bench, cell, reason, text):
    lease = bench.write(claim_cell, "me", bench.core.now(), selecting=("main",), only=(cell,)).lease
    failure = CellFailure(reason, text, bench.core.now() + 10**9)
    assert bench.write(fail_cell, lease, failure, bench.core.now())


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        ("nothing", ("queued_too_long", "turn")),
        ("outage", ("network_error", "no route to host")),
        ("login", ("auth_failed", "refused")),
        ("cooldown", ("rate_limited", "cooling down")),
    ],
)
async def test_a_cell_past_its_time_ends_with_what_kept_it_waiting(autojump_clock, benches, cause, expected):
    with benches() as bench:
        cell = waiting(bench)
        if cause == "outage":
            failed(bench, cell, Reason.NETWORK_ERROR, "no route to host")
        elif cause == "login":
            bench.write(account_refused, "main", "the token was refused", None, bench.core.now())
        elif cause == "cooldown":
            bench.write(cool_down, "main", bench.core.now() + 10**9)
        async with bench.running(sweeper_of(bench).run):
            await trio.sleep(3590)
            assert bench.rows("SELECT ended_at FROM cells") == [{"ended_at": None}]
            await trio.sleep(75)
        [row] = bench.rows("SELECT status, reason_code, reason FROM cells")
    assert (row["status"], row["reason_code"]) == ("failed", expected[0])
    assert expected[1] in row["reason"]


async def test_a_lease_whose_holder_died_is_taken_back_once_it_expired(autojump_clock, benches):
    with benches() as bench:
        cell = waiting(bench)
        bench.write(claim_cell, "somebody else", bench.core.now(), selecting=("main",), only=(cell,))
        async with bench.running(sweeper_of(bench).run):
            await trio.sleep(170)
            assert bench.rows("SELECT state FROM cells") == [{"state": "running"}]
            await trio.sleep(80)
        assert bench.rows("SELECT state, crashes, attempts FROM cells") == [
            {"state": "pending", "crashes": 1, "attempts": 0}
        ]


async def test_what_this_process_holds_is_never_taken_back(autojump_clock, benches):
    with benches() as bench:
        cell = waiting(bench)
        lease = bench.write(claim_cell, "me", bench.core.now(), selecting=("main",), only=(cell,)).lease
        async with bench.running(sweeper_of(bench).run):
            with bench.core.held.hold(lease, bench.core.now()):
                await trio.sleep(600)
        assert bench.rows("SELECT state, lease_generation FROM cells") == [
            {"state": "running", "lease_generation": 1}
        ]


def planned(bench, path, *, work=WORK, discard=False):
    """Plan a file at ``path`` for a cell of its own."""
    cell = waiting(bench, hours=10_000)
    lease = bench.write(claim_cell, "me", bench.core.now(), selecting=("main",), only=(cell,)).lease
    bench.write(bind, lease, work, "r", (), bench.core.now())
    new = [NewArtifact(0, "original", path)]
    [artifact] = bench.write(
        plan_artifacts, lease, work, "r", new, root="download", owner="archive", now=bench.core.now()
    )
    bench.change("UPDATE cells SET state = 'done', ended_at = ? WHERE id = ?", bench.core.now(), cell)
    if discard:
        bench.change("UPDATE artifacts SET status = 'discard' WHERE id = ?", artifact.id)
    return artifact


def put(bench, path, text="x"):
    file = bench.folder / "dl" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


async def test_discarded_files_go_with_their_parts_and_empty_folders(benches):
    with benches() as bench:
        planned(bench, "a/b/1.png", discard=True)
        file = put(bench, "a/b/1.png")
        put(bench, "a/b/1.png.part")
        other = put(bench, "a/other.png")
        await sweeper_of(bench)._tick()
        assert not file.parent.exists()
        assert other.exists()
        assert bench.rows("SELECT 1 FROM artifacts") == []


async def test_a_path_that_a_live_row_names_again_stays_on_disk(benches):
    with benches() as bench:
        planned(bench, "1.png", discard=True)
        file = put(bench, "1.png")
        live = planned(bench, "1.png")
        await sweeper_of(bench)._tick()
        assert file.exists()
        assert bench.rows("SELECT id FROM artifacts") == [{"id": live.id}]


async def test_what_cannot_be_removed_is_kept_in_mind_and_stops_nothing(benches, quiet_logs):
    with benches() as bench:
        planned(bench, "1.png", discard=True)
        (bench.folder / "dl" / "1.png" / "full").mkdir(parents=True)
        planned(bench, "2.png", discard=True)
        second = put(bench, "2.png")
        await sweeper_of(bench)._tick()
        assert not second.exists()
        assert bench.rows("SELECT path FROM artifacts") == [{"path": "1.png"}]
    assert [entry["path"] for entry in quiet_logs if entry["event"] == "not_removed"] == ["1.png"]


async def test_nobody_plans_a_path_between_the_look_at_it_and_its_removal(benches):
    """The removal waits for a thread; a hand that wants the path waits for the removal."""
    with benches() as bench:
        planned(bench, "1.png", discard=True)
        file = put(bench, "1.png", "old")
        naming, threads, busy = (
            trio.Lock(),
            trio.to_thread.current_default_thread_limiter(),
            threading.Event(),
        )
        before, threads.total_tokens = threads.total_tokens, 1
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.to_thread.run_sync, busy.wait)
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(sweeper_of(bench, naming=naming)._tick)
                await trio.testing.wait_all_tasks_blocked()

                async def hand():
                    async with naming:
                        planned(bench, "1.png")
                    put(bench, "1.png", "new")

                nursery.start_soon(hand)
                await trio.testing.wait_all_tasks_blocked()
                busy.set()
        finally:
            threads.total_tokens = before
        assert file.read_text() == "new"


async def test_caches_of_failed_cells_are_given_up_after_their_time(autojump_clock, benches):
    with benches() as bench:
        artifact = planned(bench, "cache/1.png")
        bench.change("UPDATE artifacts SET root = 'state', status = 'stored'")
        sweeper = sweeper_of(bench, retention=Retention(1e9, 1e9, 7200.0))
        for _ in range(2):  # by hand, for virtual time would jump while a file is being removed
            await trio.sleep(3600)
            await sweeper._tick()
            assert bench.rows("SELECT id FROM artifacts") == [{"id": artifact.id}]
        await trio.sleep(3601)
        await sweeper._tick()
        assert bench.rows("SELECT id FROM artifacts") == []


async def test_old_events_are_pruned(autojump_clock, benches):
    with benches() as bench:
        bench.write(account_refused, "main", "x", None, bench.core.now())
        async with bench.running(sweeper_of(bench, retention=Retention(1e9, 3600.0, 1e9)).run):
            await trio.sleep(2.1 * 3600)
        assert bench.rows("SELECT 1 FROM events") == []


async def test_a_ledger_that_is_away_only_delays_the_sweep(autojump_clock, benches, quiet_logs):
    with benches() as bench:
        waiting(bench, hours=0)
        sweeper = sweeper_of(bench)
        other = sqlite3.connect(bench.folder / "ledger.db", isolation_level=None)
        bench.core.ledger._writer._db.conn.execute("PRAGMA busy_timeout = 0")
        other.execute("BEGIN IMMEDIATE")
        async with bench.running(sweeper.run):
            await trio.sleep(1)
            other.execute("COMMIT")
            other.close()
            await trio.sleep(61)
        assert bench.rows("SELECT status FROM cells") == [{"status": "failed"}]
    assert [entry["event"] for entry in quiet_logs if entry["event"] == "ledger_unavailable"]
