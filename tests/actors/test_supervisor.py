import pytest
import trio

from actors.supervisor import RestartBudgetSpent, RestartPolicy, next_delay, supervise

POLICY = RestartPolicy()


class Failing:
    """An actor that fails a number of times, then returns; notes when each life began."""

    def __init__(self, failures: int, error: type[Exception] = ValueError) -> None:
        self.failures = failures
        self.error = error
        self.lives: list[float] = []

    async def run(self) -> None:
        self.lives.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        if len(self.lives) <= self.failures:
            raise self.error("bad luck")


def test_the_delay_doubles_with_each_restart_in_the_period():
    restarts: tuple[float, ...] = ()
    delays = []
    for _ in range(5):
        delays.append(next_delay(restarts, 10.0, POLICY))
        restarts = (*restarts, 10.0)
    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0]
    assert next_delay(restarts, 10.0, POLICY) is None


def test_the_delay_is_capped():
    assert next_delay((0.0,) * 9, 1.0, RestartPolicy(intensity=10)) == POLICY.max_delay_s


def test_restarts_older_than_the_period_do_not_count():
    assert next_delay((0.0,) * 5, 60.0, POLICY) == 0.5


async def test_an_actor_that_fails_is_started_again_after_its_delay(autojump_clock):
    actor = Failing(3)
    began = trio.current_time()
    await supervise("it", actor.run)
    assert [at - began for at in actor.lives] == pytest.approx([0.0, 0.5, 1.5, 3.5])


async def test_what_returns_is_not_started_again(autojump_clock):
    actor = Failing(0)
    await supervise("it", actor.run)
    assert len(actor.lives) == 1


async def test_more_than_five_restarts_in_a_minute_are_given_up_with_the_cause(autojump_clock):
    actor = Failing(99)
    with pytest.raises(
        RestartBudgetSpent, match="it failed 6 times in 60 s, at last: ValueError: bad luck"
    ) as caught:
        await supervise("it", actor.run)
    assert isinstance(caught.value.__cause__, ValueError)
    assert len(actor.lives) == 6


async def test_rare_failures_are_never_given_up(autojump_clock):
    actor = Failing(12)

    async def rarely() -> None:
        await trio.sleep(61)
        await actor.run()

    await supervise("it", rarely)
    assert len(actor.lives) == 13


async def test_what_an_inner_supervisor_gave_up_passes_through_the_outer_one(autojump_clock):
    hand = Failing(10_000)

    async def pool() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(supervise, "hand", hand.run)
            nursery.start_soon(trio.sleep_forever)

    with (
        trio.fail_after(3600),
        pytest.RaisesGroup(pytest.RaisesExc(RestartBudgetSpent, match="hand failed 6 times")),
    ):
        await supervise("pool", pool)
    assert len(hand.lives) == 6


async def test_cancellation_passes_alone_and_beside_errors(autojump_clock):
    lives = 0

    async def stubborn() -> None:
        nonlocal lives
        lives += 1
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("on the way out")

    async def cancelled() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(supervise, "it", stubborn)
            await trio.sleep(1)
            nursery.cancel_scope.cancel()

    with pytest.RaisesGroup(ValueError, flatten_subgroups=True):
        await cancelled()
    assert lives == 1
