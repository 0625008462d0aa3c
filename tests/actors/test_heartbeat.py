"""Renewals under virtual time."""

import sqlite3
from functools import partial

import pytest
import trio

from actors.heartbeat import run_heartbeat
from pixivflow.ledger.cells import claim_cell
from pixivflow.ledger.leases import LEASE_MS, Queue, release_unowned
from pixivflow.ledger.slots import NewCell, add_adhoc_cell


class Away(sqlite3.Connection):
    """A connection whose commits fail from a moment on, as on a full disk."""

    def commit(self):
        if self.away:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        self.commits += self.total_changes > self.seen
        self.seen = self.total_changes
        super().commit()

    away = False
    commits = 0
    seen = 0


class Opened:
    """Opens such connections and remembers the newest."""

    def __call__(self, path):
        self.newest = sqlite3.connect(path, isolation_level=None, factory=Away)
        return self.newest


def claimed(bench, count=1):
    now = bench.core.now()
    ids = [bench.write(add_adhoc_cell, NewCell("t", "main", "{}", now + 10**9), now) for _ in range(count)]
    return [bench.write(claim_cell, "me", now, selecting=("main",), only=(cell,)).lease for cell in ids]


class Holder:
    """Works under a lease until it is stopped, and notes when."""

    def __init__(self, bench, lease) -> None:
        self.bench = bench
        self.lease = lease
        self.stopped_at: float | None = None

    async def run(self) -> None:
        with self.bench.core.held.hold(self.lease, self.bench.core.now()) as scope:
            await trio.sleep_forever()
        if scope.cancel_called:
            self.stopped_at = trio.current_time()


async def test_everything_in_hand_is_renewed_in_one_write_every_half_minute(autojump_clock, benches):
    with benches(connect=(opened := Opened())) as bench:
        holders = [Holder(bench, lease) for lease in claimed(bench, 5)]
        before = opened.newest.commits
        async with bench.running(partial(run_heartbeat, bench.core), *(holder.run for holder in holders)):
            await trio.sleep(600)
            assert 20 <= opened.newest.commits - before <= 25
            ends = bench.rows("SELECT lease_until, lease_generation FROM cells")
            assert all(
                row["lease_until"] >= bench.core.now() + LEASE_MS[Queue.CELLS] - 31_000 for row in ends
            )
            assert {row["lease_generation"] for row in ends} == {1}
            assert all(bench.core.held.usable(holder.lease, bench.core.now()) for holder in holders)


async def test_with_nothing_in_hand_nothing_is_written(autojump_clock, benches):
    with benches(connect=(opened := Opened())) as bench:
        before = opened.newest.commits
        async with bench.running(partial(run_heartbeat, bench.core)):
            await trio.sleep(600)
        assert opened.newest.commits == before
        assert bench.core.ledger.statistics().batches == 0


async def test_the_holder_of_a_lost_lease_is_stopped_and_the_others_go_on(
    autojump_clock, benches, quiet_logs
):
    with benches() as bench:
        lost, kept = (Holder(bench, lease) for lease in claimed(bench, 2))
        async with bench.running(partial(run_heartbeat, bench.core), lost.run, kept.run):
            await trio.sleep(1)
            bench.write(release_unowned, Queue.CELLS, lost.lease.id, bench.core.now())
            await trio.sleep(31)
            assert lost.stopped_at is not None
            assert kept.stopped_at is None
            assert not bench.core.held.usable(lost.lease, bench.core.now())
    assert [entry["row"] for entry in quiet_logs if entry["event"] == "lease_lost"] == ["cells:1"]


async def test_progress_travels_with_the_renewal(autojump_clock, benches):
    with benches() as bench:
        holder = Holder(bench, claimed(bench)[0])
        async with bench.running(partial(run_heartbeat, bench.core), holder.run):
            await trio.sleep(100)
            bench.core.held.progress(holder.lease, moved := bench.core.now())
            await trio.sleep(31)
        assert bench.rows("SELECT progress_at FROM cells") == [{"progress_at": moved}]


async def test_holders_are_stopped_before_their_leases_end_when_the_ledger_cannot_renew_them(
    autojump_clock, benches
):
    with benches(connect=(opened := Opened())) as bench:
        holder = Holder(bench, claimed(bench)[0])
        began = trio.current_time()
        opened.newest.away = True
        async with bench.running(partial(run_heartbeat, bench.core), holder.run):
            await trio.sleep(600)
        assert holder.stopped_at is not None
        assert 150 <= holder.stopped_at - began < LEASE_MS[Queue.CELLS] / 1000 - 5


@pytest.mark.parametrize("away_s", [20, 120])
async def test_a_ledger_that_comes_back_in_time_costs_nobody_the_lease(autojump_clock, benches, away_s):
    with benches(connect=(opened := Opened())) as bench:
        holder = Holder(bench, claimed(bench)[0])
        async with bench.running(partial(run_heartbeat, bench.core), holder.run):
            await trio.sleep(25)
            opened.newest.away = True
            await trio.sleep(away_s)
            opened.newest.away = False
            await trio.sleep(600)
            assert holder.stopped_at is None
            assert bench.core.held.usable(holder.lease, bench.core.now())
