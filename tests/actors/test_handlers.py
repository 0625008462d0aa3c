"""Cells run by real hands against the look-alikes."""

import random

import msgspec
import pytest
import trio

from actors.heartbeat import run_heartbeat
from actors.parts import token_folder
from pixivflow.config.resolve import cell_spec
from pixivflow.ledger.binding import already_had
from pixivflow.ledger.cells import claim_cell
from pixivflow.ledger.engine import Ledger, LedgerUnavailable
from pixivflow.ledger.health import read_accounts
from pixivflow.ledger.leases import Queue, release_unowned, renew
from pixivflow.ledger.slots import add_adhoc_cell
from pixivflow.operations.plans import new_cell
from pixivflow.pixiv.credentials import StoredToken, TokenStore, fingerprint
from protocol.specs import Source

DETAIL, SEARCH, PICTURES = "/v1/illust/detail", "/v1/search/illust", "/img-original"
TWO_ACCOUNTS = """
[[targets]]
id = "land"
mode = "search"
tags = ["風景"]
limit = 1
routes = ["channel"]
[[targets]]
id = "other"
mode = "search"
tags = ["風景"]
limit = 1
routes = ["channel"]
"""


def newest(workshop) -> str:
    return f"illustration:{max(workshop.simulator.catalogue.works)}"


async def test_a_cell_is_collected_and_posted_once(workshop):
    async with workshop.working():
        row = await workshop.ended(await workshop.once())
    assert (row["status"], row["work"], row["attempts"]) == ("submitted", newest(workshop), 0)
    assert len(workshop.posts) == 1
    files = await workshop.rows("SELECT path, status FROM artifacts ORDER BY page")
    assert {file["status"] for file in files} == {"stored"}
    assert all((workshop.parts.config.storage.download_dir / file["path"]).is_file() for file in files)
    assert workshop.core.held.snapshot() == ()


async def test_nothing_found_is_a_result_with_a_reason(workshops):
    async with workshops(TWO_ACCOUNTS.replace("風景", "nowhere")) as workshop, workshop.working():
        row = await workshop.ended(await workshop.once())
    assert (row["status"], row["reason_code"]) == ("no_candidate", "no_candidate")


async def test_what_was_posted_before_is_passed_over_until_nothing_is_left(workshop):
    async with workshop.working():
        rows = [await workshop.ended(await workshop.once()) for _ in range(4)]
    assert [row["status"] for row in rows] == ["submitted"] * 3 + ["no_candidate"]
    assert rows[3]["reason_code"] == "duplicate_exhausted"
    assert len({row["work"] for row in rows[:3]}) == len(workshop.posts) == 3


async def test_an_outage_keeps_the_cell_with_its_reason_and_a_growing_delay(workshop):
    workshop.fault(SEARCH, "html", times=None)
    async with workshop.working():
        cell = await workshop.once()
        delays = []
        for attempt in range(1, 4):
            row = await workshop.until(cell, attempts=attempt, state="pending")
            delays.append((row["due_at"] - workshop.core.now()) / 1000)
            assert (row["status"], row["reason_code"], row["work"]) == ("pending", "remote_http_error", None)
            await workshop.due(cell)
        assert msgspec.json.decode(row["report"])["outage"]
        for number, delay in enumerate(delays):
            assert 59 <= delay <= 60 + 60 * 2**number
        workshop.simulator.faults.clear()
        await workshop.due(cell)
        assert (await workshop.ended(cell))["status"] == "submitted"


async def test_an_outage_while_pages_download_keeps_the_binding(workshop):
    workshop.fault(PICTURES, "status", status=502)
    async with workshop.working():
        cell = await workshop.once()
        row = await workshop.until(cell, attempts=1, state="pending")
        assert (row["status"], row["work"]) == ("selected", newest(workshop))
        workshop.simulator.catalogue.add(workshop.simulator.catalogue.make_work(tags=("風景",)))
        await workshop.due(cell)
        assert (await workshop.ended(cell))["work"] == row["work"]


async def test_a_rate_limit_cools_the_account_and_spends_nothing(workshop):
    workshop.fault(SEARCH, "rate_limit", retry_after="240")
    async with workshop.working():
        cell = await workshop.once()
        row = await workshop.until(cell, reason_code="rate_limited", state="pending")
        [account] = await workshop.ledger.read(read_accounts)
        assert row["attempts"] == 0
        assert 230_000 < account.cooldown_until - workshop.core.now() <= 240_000
        await workshop.change("UPDATE cells SET due_at = 0")
        claimed = await workshop.ledger.write(claim_cell, "x", workshop.core.now(), selecting=("main",))
        assert claimed is None


async def test_a_refused_login_waits_for_a_new_token_and_spends_nothing(workshops):
    async with workshops(token="wrong") as workshop, workshop.working():
        cell = await workshop.once()
        row = await workshop.until(cell, reason_code="auth_failed", state="pending")
        assert row["attempts"] == 0
        assert await workshop.parts.watch.check() == ("main",)
        await workshop.change("UPDATE cells SET due_at = 0")
        assert await workshop.ledger.write(claim_cell, "x", workshop.core.now(), selecting=("main",)) is None
        login(workshop)
        assert await workshop.parts.watch.check() == ()
        assert (await workshop.ended(cell))["status"] == "submitted"


def login(workshop):
    """Store a login as the login command does."""
    store = TokenStore(token_folder(workshop.parts.config.storage.state_dir))
    store.save("main", StoredToken(workshop.simulator.refresh_token, 0, fingerprint("wrong")))


async def test_without_any_token_the_cell_waits_unclaimed(workshops, tmp_path):
    async with workshops() as workshop:
        workshop.parts.watch._configured = {"main": None}
        assert await workshop.parts.watch.check() == ("main",)
        [account] = await workshop.ledger.read(read_accounts)
        assert "pixivflow login main" in account.auth_reason


async def test_a_full_disk_keeps_the_cell(workshops):
    async with workshops(storage='min_free = "4000TiB"') as workshop, workshop.working():
        row = await workshop.until(await workshop.once(), reason_code="disk_full", state="pending")
        assert row["status"] == "selected"
        assert workshop.posts == []


async def test_a_run_over_its_time_ends_the_cell(workshop):
    workshop.fault(PICTURES, "hang", times=None)
    spec = await _spec(workshop, timeout_s=0.2)
    async with workshop.working():
        row = await workshop.ended(await _add(workshop, spec))
    assert (row["status"], row["reason_code"], row["attempts"]) == ("failed", "execution_timeout", 1)


async def _spec(workshop, **changes):
    return msgspec.structs.replace(cell_spec(workshop.parts.config, "land"), **changes)


async def _add(workshop, spec, raw=None):
    now = workshop.core.now()
    cell = new_cell(spec, now)
    if raw is not None:
        cell = msgspec.structs.replace(cell, spec=raw)
    return await workshop.ledger.write(add_adhoc_cell, cell, now)


async def test_an_unreadable_spec_ends_that_cell_alone(workshop):
    bad = await _add(workshop, await _spec(workshop), raw='{"target_id": 5}')
    good = await workshop.once()
    async with workshop.working():
        row = await workshop.ended(bad)
        assert (row["status"], row["reason_code"]) == ("failed", "internal_error")
        assert (await workshop.ended(good))["status"] == "submitted"


async def test_a_work_that_is_none_ends_its_cell_with_a_reason(workshop):
    cell = await _add(workshop, await _spec(workshop))
    await workshop.change(
        "UPDATE cells SET work = 'illustration:abc', status = 'selected' WHERE id = ?", cell
    )
    async with workshop.working():
        row = await workshop.ended(cell)
    assert (row["status"], row["reason_code"]) == ("failed", "internal_error")
    assert "illustration:abc" in row["reason"]


@pytest.mark.parametrize("work", [None, "illustration:190000001"])
async def test_a_cell_of_an_account_that_left_the_configuration_says_so(workshop, work):
    cell = await _add(workshop, await _spec(workshop, account="gone"))
    await workshop.change("UPDATE cells SET work = ? WHERE id = ?", work, cell)
    async with workshop.working():
        row = await workshop.ended(cell)
    assert (row["status"], row["reason_code"]) == ("failed", "configuration_error")
    assert "'gone'" in row["reason"]


async def test_a_cell_of_a_route_that_left_the_configuration_says_so(workshop):
    async with workshop.working():
        row = await workshop.ended(await _add(workshop, await _spec(workshop, routes=("gone",))))
    assert (row["status"], row["reason_code"]) == ("failed", "configuration_error")
    assert "'gone'" in row["reason"]


@pytest.mark.parametrize("bad", [{"fields": {"title": "{{nonsense}}"}}, {"path": "{nonsense}/{id}"}])
async def test_a_template_that_cannot_be_filled_is_a_configuration_error(workshop, bad):
    async with workshop.working():
        row = await workshop.ended(await _add(workshop, await _spec(workshop, **bad)))
    assert (row["status"], row["reason_code"]) == ("failed", "configuration_error")


async def test_a_bug_in_one_run_spends_an_attempt_and_the_hand_lives(workshop, quiet_logs):
    bug = await _add(workshop, await _spec(workshop, source=Source(mode="search", tags=(5,))))
    await workshop.change(
        "UPDATE cells SET spec = replace(spec, '[5]', '[\"風景\"]'), work = 'novel:1' WHERE id = ?", bug
    )
    async with workshop.working():
        row = await workshop.until(bug, attempts=1, state="pending")
        assert row["reason_code"] == "internal_error"
        assert "only illustrations" in row["reason"]
        assert (await workshop.ended(await _add(workshop, await _spec(workshop))))["status"] == "submitted"
    assert [entry["event"] for entry in quiet_logs].count("run_crashed") == 1
    assert not [entry for entry in quiet_logs if entry["event"] == "actor_failed"]


async def test_two_cells_of_one_account_never_select_at_once(workshops):
    async with workshops(TWO_ACCOUNTS) as workshop:
        workshop.fault(SEARCH, "hang", times=1)
        first, second = await workshop.once("land"), await workshop.once("other")
        async with workshop.working():
            await workshop.until(first, state="running")
            await trio.sleep(0.05)
            assert (await workshop.cell(second))["state"] == "pending"
            assert len(workshop.seen(SEARCH)) == 1


async def test_a_resumed_cell_does_not_wait_for_the_capacity(workshops):
    async with workshops(TWO_ACCOUNTS) as workshop:
        workshop.fault(SEARCH, "hang", times=1)
        selecting, resumed = await workshop.once("land"), await workshop.once("other")
        oldest = f"illustration:{min(workshop.simulator.catalogue.works)}"
        async with workshop.working():
            await workshop.until(selecting, state="running")
            await workshop.change(
                "UPDATE cells SET work = ?, status = 'selected' WHERE id = ?", oldest, resumed
            )
            await workshop.due(resumed)
            assert (await workshop.ended(resumed))["status"] == "submitted"
            assert (await workshop.cell(selecting))["state"] == "running"


async def test_the_second_cell_selects_as_soon_as_the_first_downloads(workshops):
    async with workshops(TWO_ACCOUNTS) as workshop:
        workshop.fault(PICTURES, "hang", times=1)
        first, second = await workshop.once("land"), await workshop.once("other")
        async with workshop.working():
            assert (await workshop.ended(second))["status"] == "submitted"
            assert (await workshop.cell(first))["state"] == "running"


async def test_a_lease_lost_during_a_download_stops_the_run_which_writes_nothing(workshop, quiet_logs):
    workshop.fault(PICTURES, "hang", times=1)
    async with workshop.working():
        cell = await workshop.once()
        row = await workshop.until(cell, status="selected", state="running")
        await _until(lambda: workshop.seen(PICTURES))
        assert await workshop.ledger.write(release_unowned, Queue.CELLS, cell, workshop.core.now())
        await workshop.change("UPDATE cells SET due_at = ? WHERE id = ?", workshop.core.now() + 60_000, cell)
        before = await _cell_row(workshop, cell)
        await _renew(workshop)
        assert await _cell_row(workshop, cell) == before
        assert before["lease_generation"] == row["lease_generation"] + 1
        await workshop.due(cell)
        ended = await workshop.ended(cell)
    assert (ended["status"], ended["work"], len(workshop.posts)) == ("submitted", row["work"], 1)


async def test_a_late_success_changes_nothing_of_the_next_holder(workshop, quiet_logs):
    workshop.fault(PICTURES, "delay", delay_s=0.2)
    async with workshop.working():
        cell = await workshop.once()
        await workshop.until(cell, status="selected", state="running")
        await _until(lambda: workshop.seen(PICTURES))
        now = workshop.core.now()
        await workshop.ledger.write(release_unowned, Queue.CELLS, cell, now)
        other = await workshop.ledger.write(claim_cell, "another", now, selecting=("main",))
        before = await _cell_row(workshop, cell)
        await _until(lambda: not workshop.core.held.snapshot())
        assert await _cell_row(workshop, cell) == before
        assert (before["lease_owner"], before["lease_generation"]) == ("another", other.lease.generation)
    assert [entry["event"] for entry in quiet_logs].count("run_abandoned") == 1
    assert await workshop.rows("SELECT 1 FROM outbox") == []


async def _cell_row(workshop, cell):
    return (await workshop.rows("SELECT * FROM cells WHERE id = ?", cell))[0]


async def _renew(workshop):
    """Renew what is in hand once, as the heartbeat does every half minute."""
    ends = await workshop.ledger.write(renew, workshop.core.held.snapshot(), workshop.core.now())
    assert set(ends.values()) == {None}
    async with trio.open_nursery() as nursery:
        hurried = workshop.with_core(rng=Hurried())
        nursery.start_soon(run_heartbeat, hurried.core)
        await _until(lambda: not workshop.core.held.snapshot())
        nursery.cancel_scope.cancel()


class Hurried(random.Random):
    """Dice that shorten every pause."""

    def uniform(self, a: float, b: float) -> float:
        return a * 0.001


async def _until(condition):
    with trio.fail_after(10):
        while True:
            if condition():
                return
            await trio.sleep(0.01)


async def test_a_work_that_vanishes_between_list_and_download_gives_way_to_the_next(workshop):
    gone = max(workshop.simulator.catalogue.works)
    async with workshop.working():
        workshop.fault(PICTURES, "status", status=404, times=1)
        workshop.fault(DETAIL, "status", status=404, user_message="gone", times=1)
        row = await workshop.ended(await workshop.once())
    assert (row["status"], row["work"]) == ("submitted", f"illustration:{gone - 1}")
    assert len(workshop.posts) == 1
    left = await workshop.rows("SELECT work FROM artifacts WHERE status <> 'discard'")
    assert {file["work"] for file in left} == {row["work"]}


async def test_when_every_candidate_vanishes_the_cell_ends_without_a_work(workshop):
    workshop.fault(PICTURES, "status", status=404, times=None)
    workshop.fault(DETAIL, "status", status=404, user_message="gone", times=None)
    async with workshop.working():
        spec = await _spec(workshop, scan_limit=2)
        row = await workshop.ended(await _add(workshop, spec))
    assert (row["status"], row["reason_code"], row["work"]) == ("no_candidate", "no_candidate", None)


async def test_a_page_that_was_replaced_since_it_was_listed_is_found_by_its_detail(workshop):
    workshop.fault(PICTURES, "status", status=404, times=1)
    async with workshop.working():
        row = await workshop.ended(await workshop.once())
    assert (row["status"], row["work"]) == ("submitted", newest(workshop))


async def test_a_recovery_whose_work_is_gone_ends_and_takes_no_other(workshop):
    workshop.fault(PICTURES, "status", status=502, times=1)
    async with workshop.working():
        cell = await workshop.once()
        bound = (await workshop.until(cell, attempts=1, state="pending"))["work"]
        workshop.simulator.catalogue.remove(int(bound.partition(":")[2]))
        await workshop.due(cell)
        row = await workshop.ended(cell)
    assert (row["status"], row["reason_code"], row["work"]) == ("failed", "locked_work_unavailable", bound)
    assert workshop.posts == []


async def test_files_that_are_ready_are_handed_over_without_asking_pixiv_again(workshop):
    async with workshop.working(lanes_too=False):
        cell = await workshop.once()
        await workshop.until(cell, status="delivery_pending")
    await workshop.change("DELETE FROM outbox")
    await workshop.change("DELETE FROM deliveries")
    await workshop.change("UPDATE cells SET status = 'artifact_ready', state = 'pending', due_at = 0")
    asked = len(workshop.simulator.requests.seen)
    async with workshop.working(lanes_too=False):
        await workshop.until(cell, status="delivery_pending", state="done")
    assert len(workshop.simulator.requests.seen) == asked


async def test_a_file_that_is_gone_from_the_disk_is_fetched_again_before_the_delivery(workshop):
    async with workshop.working(lanes_too=False):
        cell = await workshop.once()
        await workshop.until(cell, status="delivery_pending")
    await workshop.change("DELETE FROM outbox")
    await workshop.change("DELETE FROM deliveries")
    await workshop.change("UPDATE cells SET status = 'artifact_ready', state = 'pending', due_at = 0")
    await workshop.change("UPDATE artifacts SET bytes = bytes + 1, sha256 = 'old' WHERE variant = 'original'")
    async with workshop.working():
        assert (await workshop.ended(cell))["status"] == "submitted"
    assert len(workshop.posts) == 1


async def test_an_unwritable_sidecar_is_left_out_with_a_warning(workshop, quiet_logs):
    work = workshop.simulator.catalogue.works[max(workshop.simulator.catalogue.works)]
    root = workshop.parts.config.storage.download_dir
    async with workshop.working():
        cell = await _add(workshop, await _spec(workshop, path="{id}/{id}_p{page}"))
        (root / str(work.id) / f"{work.id}.json").mkdir(parents=True)
        row = await workshop.ended(cell)
    assert row["status"] == "submitted"
    assert [entry["event"] for entry in quiet_logs].count("sidecar_not_written") == 1
    assert [file["variant"] for file in await workshop.rows("SELECT variant FROM artifacts")] == ["original"]
    assert len(workshop.posts) == 1


class AwayLedger(Ledger):
    """A ledger that can't answer one kind of question for a number of times."""

    def __init__(self, real, fn, *, times):
        self.real, self.fn, self.times = real, fn, times

    async def read(self, fn, *args, **kwargs):
        if fn is self.fn and self.times > 0:
            self.times -= 1
            raise LedgerUnavailable("the disk is away")
        return await self.real.read(fn, *args, **kwargs)

    def statistics(self):
        return self.real.statistics()

    async def _write(self, call):
        return await self.real._write(call)

    async def _read(self, call):
        return await self.real._read(call)


async def test_a_ledger_that_fails_during_a_run_gives_the_cell_back(workshop, quiet_logs):
    ledger = AwayLedger(workshop.ledger, already_had, times=2)
    away = workshop.with_core(ledger=ledger, rng=Hurried())
    async with away.working():
        row = await away.ended(await away.once())
    assert (row["status"], row["attempts"], row["crashes"]) == ("submitted", 0, 0)
    assert [entry["event"] for entry in quiet_logs].count("ledger_unavailable") == 2


@pytest.mark.parametrize("seed", range(12))
async def test_a_run_cancelled_at_any_moment_is_finished_later_with_the_same_work(workshops, seed):
    rng = random.Random(seed)
    async with workshops() as workshop:
        cell = await workshop.once()
        bound = None
        for _ in range(4):
            async with workshop.working():
                await trio.sleep(rng.uniform(0.0, 0.06))
            row = await _cell_row(workshop, cell)
            assert (row["state"] in {"pending", "done"}, row["attempts"], row["crashes"]) == (True, 0, 0)
            assert bound in {None, row["work"]}
            bound = row["work"]
            assert await workshop.rows("SELECT 1 FROM outbox WHERE state = 'running' OR attempts > 0") == []
            assert workshop.core.held.snapshot() == ()
        async with workshop.working():
            row = await workshop.ended(cell)
        assert row["status"] == "submitted"
        assert bound in {None, row["work"]}
        assert len(workshop.posts) == 1
        assert workshop.parts.accounts["main"].capacity.borrowed_tokens == 0
