import itertools
import random

import pytest
import trio
import trio.testing

from pixivflow.pixiv.pace import Pace


@pytest.fixture
def pace():
    return Pace(2.0, random.Random(3))


async def starts(pace, count):
    times = []
    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(take, pace, times)
    return times


async def take(pace, times):
    await pace.turn()
    times.append(trio.current_time())


async def test_the_first_turn_comes_at_once(pace, autojump_clock):
    assert await starts(pace, 1) == [0.0]


async def test_turns_are_never_closer_than_the_pace(pace, autojump_clock):
    times = await starts(pace, 20)
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert all(2.0 <= gap <= 2.2 + 1e-9 for gap in gaps)
    assert len(set(gaps)) > 1


async def test_turns_come_in_the_order_of_asking(pace, autojump_clock):
    order = []

    async def ask(number):
        await pace.turn()
        order.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(ask, number)
            await trio.testing.wait_all_tasks_blocked()
    assert order == [0, 1, 2, 3, 4]


async def test_a_cancelled_waiter_gives_its_turn_back(pace, autojump_clock):
    await pace.turn()
    with trio.move_on_after(1.0) as scope:
        await pace.turn()
    assert scope.cancelled_caught
    await pace.turn()
    assert 2.0 <= trio.current_time() <= 2.2 + 1e-9


async def test_a_pace_of_zero_never_waits(autojump_clock):
    pace = Pace(0.0, random.Random(3))
    for _ in range(5):
        await pace.turn()
    assert trio.current_time() == 0.0
