import pytest
import trio
import trio.testing

from pixivflow.ledger.held import HeldLeases
from pixivflow.ledger.leases import Lease, Queue

LEASE = Lease(Queue.CELLS, 1, 3, "a", until=100_000)
NEWER = Lease(Queue.CELLS, 1, 5, "a", until=200_000)


async def test_a_lease_is_held_for_the_block_and_not_longer():
    held = HeldLeases()
    with held.hold(LEASE, 10):
        assert held.ids(Queue.CELLS) == (1,)
        assert held.ids(Queue.OUTBOX) == ()
        assert held.snapshot() == ((LEASE, 10),)
    assert held.ids(Queue.CELLS) == ()


async def test_nothing_comes_between_a_claim_and_its_registration():
    held = HeldLeases()
    with trio.testing.assert_no_checkpoints(), held.hold(LEASE, 0):
        assert held.ids(Queue.CELLS) == (1,)


async def test_it_is_let_go_when_the_block_raises():
    held = HeldLeases()
    with pytest.raises(ValueError, match="a bug"), held.hold(LEASE, 0):
        raise ValueError("a bug")
    assert held.ids(Queue.CELLS) == ()


async def test_a_renewal_counts_for_what_may_still_begin():
    held = HeldLeases()
    with held.hold(LEASE, 0):
        assert held.usable(LEASE, 94_999)
        assert not held.usable(LEASE, 95_000)
        held.renewed(LEASE, 150_000)
        assert held.usable(LEASE, 144_999)
        assert not held.usable(LEASE, 145_000)


async def test_a_lease_that_is_not_held_is_not_usable():
    held = HeldLeases()
    assert not held.usable(LEASE, 0)
    with held.hold(NEWER, 0):
        assert not held.usable(LEASE, 0)


async def test_progress_is_told_to_the_next_renewal():
    held = HeldLeases()
    with held.hold(LEASE, 10):
        held.progress(LEASE, 20)
        held.progress(NEWER, 30)
        assert held.snapshot() == ((LEASE, 20),)


async def test_a_lost_lease_cancels_its_own_holder_alone():
    held = HeldLeases()
    with held.hold(LEASE, 0) as scope:
        held.lost(NEWER, "another generation")
        await trio.lowlevel.checkpoint()
        held.lost(LEASE, "the lease was lost")
        await trio.sleep_forever()
    assert scope.cancelled_caught
    assert held.ids(Queue.CELLS) == ()


async def test_a_revocation_cancels_whoever_holds_the_row():
    held = HeldLeases()
    with held.hold(LEASE, 0) as scope:
        held.revoke(Queue.OUTBOX, 1, "another queue")
        held.revoke(Queue.CELLS, 2, "another row")
        await trio.lowlevel.checkpoint()
        held.revoke(Queue.CELLS, 1, "an operator's order")
        await trio.sleep_forever()
    assert scope.cancelled_caught


async def test_an_older_holder_that_ends_late_does_not_let_the_newer_one_go():
    held = HeldLeases()
    newer_holds = trio.Event()
    older_ended = trio.Event()

    async def hold_older():
        with held.hold(LEASE, 0):
            await newer_holds.wait()
        older_ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hold_older)
        await trio.testing.wait_all_tasks_blocked()
        with held.hold(NEWER, 0):
            newer_holds.set()
            await older_ended.wait()
            assert held.snapshot() == ((NEWER, 0),)
