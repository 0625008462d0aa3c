"""Requests from the command line: through the daemon's socket, or on the ledger under its lock."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import msgspec
import trio

from actors.parts import lock_file, open_state
from pixivflow.cli.client import DaemonUnreachable, call
from pixivflow.cli.context import base_config, full_config
from pixivflow.cli.logs import configure_logs
from pixivflow.cli.output import print_json
from pixivflow.clock import SystemWall
from pixivflow.config import BaseConfig, Config
from pixivflow.ledger.faults import LedgerUnavailable
from pixivflow.ledger.lockfile import LedgerLocked, lock_holder
from pixivflow.operations.desk import Desk
from pixivflow.operations.orders import OrderRefused

DEADLINE_S: Final = 30.0
PATIENCE_S: Final = 3.0
"""How long to wait for a daemon that is starting or ending, or for another command."""
PAUSE_S: Final = 0.1
T = TypeVar("T")


class NoLedger(DaemonUnreachable):
    """There is neither a daemon nor a ledger: nothing was ever run here."""


def daemon_runs(folder: Path) -> bool:
    """Whether a daemon (or another command) holds the ledger."""
    try:
        return lock_holder(lock_file(folder)) is not None
    except PermissionError:
        return True  # somebody else's: the socket tells what is allowed


def patiently(folder: Path, attempt: Callable[[], T]) -> T:
    """Repeat an attempt while the ledger changes hands. Raises `LedgerLocked` when that takes too long."""
    give_up_at = time.monotonic() + PATIENCE_S
    while True:
        try:
            return attempt()
        except LedgerLocked:
            if time.monotonic() >= give_up_at:
                raise
        except DaemonUnreachable as error:
            if error.sent or not error.absent or not daemon_runs(folder):
                raise
            if time.monotonic() >= give_up_at:
                raise LedgerLocked(_busy(folder)) from error
        time.sleep(PAUSE_S)


def ask(ctx: click.Context, method: str, params: Mapping[str, Any], *, writes: bool = False) -> Any:
    """Answer a request through the daemon if one runs, else from the ledger under its lock; plain JSON data.

    Only an order (``writes``) needs the whole configuration, and only where no daemon runs. A reading request
    never makes a ledger. Raises `NoLedger`, `DaemonUnreachable`, `CallRefused`, `OrderRefused`, `LedgerLocked`.
    """
    return patiently(
        base_config(ctx).storage.state_dir, lambda: _ask_once(ctx, method, params, writes=writes)
    )


def look_up(ctx: click.Context, method: str, params: Mapping[str, Any], *, as_json: bool) -> Any:
    """Return what `ask` answers, to be told; with ``as_json`` it is printed as it is and the command ends."""
    answer = ask(ctx, method, params)
    if as_json:
        print_json(answer)
        ctx.exit()
    return answer


def _ask_once(ctx: click.Context, method: str, params: Mapping[str, Any], *, writes: bool) -> Any:
    storage = base_config(ctx).storage
    if daemon_runs(storage.state_dir):
        return trio.run(partial(call, storage.control_socket, method, params, deadline_s=DEADLINE_S))
    configure_logs("console", "warning")
    if writes:
        return trio.run(_ask_ledger, full_config(ctx), method, params)
    if not storage.ledger_file.exists():
        raise NoLedger(
            f"no daemon runs and there is no ledger in {storage.state_dir} yet; start one: pixivflow run"
        )
    return trio.run(_ask_ledger, base_config(ctx), method, params)


async def _ask_ledger(config: Config | BaseConfig, method: str, params: Mapping[str, Any]) -> Any:
    wall = SystemWall()
    async with open_state(config, wall) as ledger:
        desk = Desk(ledger, wall, config if isinstance(config, Config) else None, lambda _: None)
        try:
            with trio.fail_after(DEADLINE_S):
                return msgspec.json.decode(msgspec.json.encode(await desk.methods()[method](params)))
        except msgspec.ValidationError as error:
            raise OrderRefused(str(error)) from error
        except trio.TooSlowError as error:
            text = (
                f"ledger {config.storage.ledger_file}: no answer within {DEADLINE_S:.0f} s; look at its disk"
            )
            raise LedgerUnavailable(text) from error


def ask_daemon(ctx: click.Context, method: str, params: Mapping[str, Any]) -> Any:
    """Answer a request that only a daemon can answer. Raises `DaemonUnreachable`."""
    storage = base_config(ctx).storage
    asked = partial(call, storage.control_socket, method, params, deadline_s=DEADLINE_S)
    return patiently(storage.state_dir, lambda: trio.run(asked))


def _busy(folder: Path) -> str:
    holder = lock_holder(lock_file(folder))
    who = f"another pixivflow (pid {holder})" if holder else "another pixivflow"
    return (
        f"{who} holds the ledger in {folder} and has no control socket: a command such as `pixivflow once` at work, "
        "or a daemon that is starting or ending; try again in a moment"
    )
