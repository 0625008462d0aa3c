"""Restarts what fails, with a growing delay, and gives up when it fails too often."""

from collections.abc import Awaitable, Callable

import msgspec
import structlog
import trio

log = structlog.get_logger(__name__)


class RestartPolicy(msgspec.Struct, frozen=True):
    """At most ``intensity`` restarts in ``period_s``; the delay doubles from ``first_delay_s`` to ``max_delay_s``."""

    intensity: int = 5
    period_s: float = 60.0
    first_delay_s: float = 0.5
    max_delay_s: float = 10.0


class RestartBudgetSpent(Exception):
    """An actor failed too often: the daemon ends, and its service manager starts it afresh."""


def next_delay(restarts: tuple[float, ...], now: float, policy: RestartPolicy) -> float | None:
    """Return how long to wait before the restart, or None to give up."""
    recent = sum(1 for at in restarts if now - at < policy.period_s)
    if recent >= policy.intensity:
        return None
    return min(policy.max_delay_s, policy.first_delay_s * 2.0**recent)


async def supervise(
    name: str, run: Callable[[], Awaitable[None]], policy: RestartPolicy | None = None
) -> None:
    """Run ``run`` until it returns; restart it when it raises. Raises `RestartBudgetSpent`.

    What a supervisor inside has given up is not restarted by the one around it.
    """
    policy = policy or RestartPolicy()
    restarts: tuple[float, ...] = ()
    while True:
        try:
            await run()
        except Exception as error:
            if _given_up(error):
                raise
            now = trio.current_time()
            delay = next_delay(restarts, now, policy)
            if delay is None:
                raise RestartBudgetSpent(
                    f"{name} failed {len(restarts) + 1} times in {policy.period_s:.0f} s, at last: {_told(error)}"
                ) from error
            restarts = (*(at for at in restarts if now - at < policy.period_s), now)
            log.exception("actor_failed", actor=name, restart_in_s=delay)
            await trio.sleep(delay)
        else:
            return


def first_error(group: BaseExceptionGroup[Exception]) -> Exception:
    """Return the first error of a group, however deep it lies."""
    first = group.exceptions[0]
    return first_error(first) if isinstance(first, BaseExceptionGroup) else first


def _told(error: Exception) -> str:
    single = first_error(error) if isinstance(error, ExceptionGroup) else error
    return " ".join(f"{type(single).__name__}: {single}".split())


def _given_up(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(_given_up(inner) for inner in error.exceptions)
    return isinstance(error, RestartBudgetSpent)
