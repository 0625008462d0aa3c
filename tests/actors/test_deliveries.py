"""Lanes with real senders: over HTTP to the receiver, into a folder, with files from disk."""

import pytest
import trio

from pixivflow.ledger.health import read_routes

BOTH = """
[[targets]]
id = "land"
mode = "search"
tags = ["風景"]
limit = 1
storage = "cache"
routes = ["channel", "inbox"]
[routes.inbox]
type = "folder"
path = "inbox"
"""
SUBMIT = "/submissions"


async def test_a_lost_answer_is_asked_again_with_the_same_key_and_shows_one_post(workshop):
    workshop.fault(SUBMIT, "lose_answer")
    async with workshop.working():
        row = await workshop.ended(await workshop.once())
    assert row["status"] == "submitted"
    assert [attempt.outcome for attempt in workshop.simulator.receiver.attempts] == ["lost", "replayed"]
    assert len(workshop.posts) == 1
    [outbox] = await workshop.rows("SELECT state, attempts FROM outbox")
    assert outbox == {"state": "done", "attempts": 1}


async def test_a_receiver_that_has_the_work_makes_the_cell_a_duplicate(workshops):
    async with workshops() as workshop, workshop.working():
        workshop.fault(SUBMIT, "status", status=200, body='{"status": "duplicate", "id": "p9"}')
        row = await workshop.ended(await workshop.once())
        assert row["status"] == "duplicate"
        assert await workshop.rows("SELECT remote_id FROM deliveries") == [{"remote_id": "p9"}]


async def test_a_rejection_ends_at_once(workshop):
    workshop.fault(SUBMIT, "status", status=422, body='{"status": "rejected", "message": "too big"}')
    async with workshop.working():
        row = await workshop.ended(await workshop.once())
    assert (row["status"], row["reason_code"]) == ("failed", "delivery_rejected")
    assert "too big" in row["reason"]


async def test_server_errors_spend_attempts_until_the_post_is_taken(workshop):
    workshop.fault(SUBMIT, "status", status=500, times=3)
    async with workshop.working():
        assert (await workshop.ended(await workshop.once()))["status"] == "submitted"
    assert await workshop.rows("SELECT attempts FROM outbox") == [{"attempts": 3}]
    assert len(workshop.posts) == 1


async def test_an_unavailable_receiver_costs_no_attempt(workshop):
    workshop.fault(SUBMIT, "status", status=503, retry_after="0", times=3)
    async with workshop.working():
        assert (await workshop.ended(await workshop.once()))["status"] == "submitted"
    assert await workshop.rows("SELECT attempts FROM outbox") == [{"attempts": 0}]


async def test_a_refusal_of_our_credentials_pauses_the_route(workshop):
    workshop.fault(SUBMIT, "status", status=401)
    async with workshop.working():
        await workshop.once()
        with trio.fail_after(10):
            await _paused(workshop)
    [route] = await workshop.ledger.read(read_routes)
    assert "HTTP 401" in route.reason
    assert await workshop.rows("SELECT state, attempts FROM outbox") == [{"state": "pending", "attempts": 0}]


async def _paused(workshop):
    while True:
        if any(row.paused_at for row in await workshop.ledger.read(read_routes)):
            return
        await trio.sleep(0.01)


async def test_one_work_goes_to_every_route_and_its_cache_is_given_up(workshops):
    async with workshops(BOTH) as workshop:
        async with workshop.working():
            row = await workshop.ended(await workshop.once())
        assert row["status"] == "submitted"
        assert len(workshop.posts) == 1
        inbox = workshop.parts.config.path.parent / "inbox"
        assert len(list(inbox.glob("*.json"))) == 1
        assert {file["status"] for file in await workshop.rows("SELECT status FROM artifacts")} == {"discard"}


async def test_one_route_that_fails_leaves_the_cell_partial_and_the_files_in_place(workshops):
    async with workshops(BOTH) as workshop:
        workshop.fault(SUBMIT, "status", status=400)
        async with workshop.working():
            row = await workshop.ended(await workshop.once())
        assert (row["status"], row["reason_code"]) == ("partial", "delivery_rejected")
        assert {file["status"] for file in await workshop.rows("SELECT status FROM artifacts")} == {"stored"}


@pytest.mark.parametrize("damage", ["gone", "changed"])
async def test_a_file_that_is_not_what_was_committed_is_never_sent(workshop, damage):
    async with workshop.working(lanes_too=False):
        cell = await workshop.once()
        await workshop.until(cell, status="delivery_pending")
    [file] = await workshop.rows("SELECT path, bytes FROM artifacts WHERE variant = 'original'")
    path = workshop.parts.config.storage.download_dir / file["path"]
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(b"x" * file["bytes"])
    async with workshop.working(hands=False):
        row = await workshop.ended(cell)
    assert (row["status"], row["reason_code"]) == ("failed", "artifact_missing")
    assert workshop.simulator.receiver.attempts == []
