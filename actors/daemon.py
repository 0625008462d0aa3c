"""The daemon: services outside, workers inside. A stop cancels the workers, while ledger and heartbeat still serve."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import structlog
import trio

from actors.assembly import lanes
from actors.control import serve_control
from actors.coordinator import run_coordinator
from actors.doors import DaemonDoor, refusing
from actors.heartbeat import run_heartbeat
from actors.outbox import run_outbox
from actors.parts import Parts, open_parts
from actors.scheduler import Scheduler
from actors.supervisor import RestartPolicy, first_error, supervise
from pixivflow.clock import Wall
from pixivflow.config.model import Config
from pixivflow.ledger.engine import LedgerUnavailable
from pixivflow.operations.desk import Desk
from pixivflow.sd_notify import Notifier

log = structlog.get_logger(__name__)
SILENCE_S: Final = 150.0
STATUS_S: Final = 10.0
RESTARTS: Final = RestartPolicy()


class DaemonFailed(Exception):
    """An actor failed too often; the cause has the last error."""


async def run_daemon(
    config: Config, wall: Wall, notifier: Notifier, restarts: RestartPolicy = RESTARTS
) -> None:
    """Run until SIGTERM, SIGINT or ``daemon.stop``. Call it first thing in the main thread.

    ``restarts`` is for the actors themselves; hands and lanes inside them have the usual one.
    Raises `LedgerLocked`, `LedgerRefused`, `ControlSocketUnusable`, `DaemonFailed`.
    """
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async with open_parts(config, wall) as parts:
            try:
                await _serve(parts, notifier, signals, restarts)
            except* Exception as group:  # noqa: BLE001 - the last edge: whatever ends the daemon is named once
                with suppress(OSError):  # a full disk must not take the place of the cause
                    parts.core.bells.recorder.write(config.storage.state_dir / "flight-recorder.jsonl")
                error = first_error(group)
                raise DaemonFailed(str(error)) from error
    log.info("stopped")


async def _serve(
    parts: Parts, notifier: Notifier, signals: AsyncIterator[int], restarts: RestartPolicy
) -> None:
    stop = trio.Event()
    core, config = parts.core, parts.config
    door = DaemonDoor(core, config, parts.watch, stop)
    desk = Desk(core.ledger, core.wall, config, core.ring)
    methods = refusing({**desk.methods(), **door.methods()})
    async with trio.open_nursery() as services:
        services.start_soon(_listen, signals, stop)
        services.start_soon(supervise, "heartbeat", lambda: run_heartbeat(core), restarts)
        path = config.storage.control_socket
        await services.start(
            lambda *, task_status: serve_control(
                path, methods, group=config.control.group, task_status=task_status
            )
        )
        services.start_soon(_report, parts, notifier)
        log.info("ready", config=str(config.path), socket=str(path), schedules=len(config.schedules))
        notifier.ready(await _status_line(parts))
        await _work(parts, stop, notifier, restarts)
        services.cancel_scope.cancel("the workers have ended")


async def _work(parts: Parts, stop: trio.Event, notifier: Notifier, restarts: RestartPolicy) -> None:
    core, config = parts.core, parts.config
    overlap = {schedule.id: str(schedule.overlap) for schedule in config.schedules}
    pool = parts.handler_pool()
    async with trio.open_nursery() as workers:
        workers.start_soon(supervise, "sweeper", parts.sweeper().run, restarts)
        workers.start_soon(supervise, "outbox", lambda: run_outbox(core, lanes(config, core.wall)), restarts)
        workers.start_soon(supervise, "handlers", lambda: pool.run(core.bells.cells.clone()), restarts)
        workers.start_soon(
            supervise,
            "coordinator",
            lambda: run_coordinator(core, core.bells.slots.clone(), overlap),
            restarts,
        )
        workers.start_soon(supervise, "scheduler", Scheduler(core, config).run, restarts)
        await stop.wait()
        notifier.stopping()
        log.info("stopping")
        workers.cancel_scope.cancel("a stop was ordered")


async def _listen(signals: AsyncIterator[int], stop: trio.Event) -> None:
    """Turn the first SIGTERM or SIGINT into a stop; a second SIGINT ends at once, which is as safe as a crash."""
    async for number in signals:
        if number == signal.SIGHUP:
            log.warning("not_reloaded", hint="restart the daemon to apply a changed configuration")
        elif number == signal.SIGINT and stop.is_set():
            os._exit(128 + signal.SIGINT)
        else:
            log.info("signal", name=signal.Signals(number).name)
            stop.set()


async def _report(parts: Parts, notifier: Notifier) -> None:
    """Feed the service manager's watchdog while every actor answers, and tell it the status."""
    interval = min(STATUS_S, notifier.watchdog_interval_s or STATUS_S)
    while True:
        await trio.sleep(interval)
        silent = parts.core.pulse.silent(SILENCE_S)
        if silent:
            log.error("actors_silent", actors=silent)
            continue
        notifier.watchdog()
        try:
            notifier.status(await _status_line(parts))
        except LedgerUnavailable as error:
            notifier.status(str(error))


async def _status_line(parts: Parts) -> str:
    needed = await parts.watch.check()
    if needed:
        return ", ".join(f"{name}: login needed" for name in needed)
    held = len(parts.core.held.snapshot())
    now = datetime.fromtimestamp(parts.core.now() / 1000, UTC)
    return f"{len(parts.config.schedules)} schedules, {held} at work, {now:%H:%M:%S} UTC"
