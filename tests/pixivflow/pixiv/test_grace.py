import pytest
import trio

from pixivflow.pixiv.errors import NetworkFailed
from pixivflow.pixiv.grace import finish


async def test_work_runs_to_its_end(autojump_clock):
    done = []

    async def work():
        await trio.sleep(5)
        done.append(True)

    await finish(work, grace_s=1)
    assert done


async def test_an_error_of_the_work_comes_out_plain(autojump_clock):
    async def work():
        await trio.sleep(1)
        raise NetworkFailed("no way")

    with pytest.raises(NetworkFailed, match="no way"):
        await finish(work, grace_s=1)


async def test_work_under_way_ends_within_the_grace_after_a_cancellation(autojump_clock):
    done = []

    async def work():
        await trio.sleep(5)
        done.append(trio.current_time())

    with trio.move_on_after(4.5) as scope:
        await finish(work, grace_s=1)
    assert scope.cancelled_caught
    assert done == [5.0]


async def test_work_that_takes_longer_than_the_grace_is_cut(autojump_clock):
    async def work():
        await trio.sleep(60)

    with trio.move_on_after(4) as scope:
        await finish(work, grace_s=1)
    assert scope.cancelled_caught
    assert trio.current_time() == 5.0


async def test_work_does_not_begin_under_a_cancellation():
    begun = []

    async def work():
        begun.append(True)
        await trio.lowlevel.checkpoint()

    with trio.CancelScope() as scope:
        scope.cancel()
        await finish(work, grace_s=1)
    assert not begun


async def test_a_bug_in_the_work_is_not_hidden():
    async def work():
        await trio.lowlevel.checkpoint()
        raise KeyError("bug")

    with pytest.RaisesGroup(KeyError):
        await finish(work, grace_s=1)
