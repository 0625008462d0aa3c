"""Requests from the command line: through the daemon's socket, or on the ledger under its lock."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec
import trio

from actors.parts import lock_file, open_state
from pixivflow.cli.client import DaemonUnreachable, call
from pixivflow.cli.context import base_config, full_config
from pixivflow.clock import SystemWall
from pixivflow.config import BaseConfig, Config
from pixivflow.ledger.lockfile import lock_holder
from pixivflow.operations.desk import Desk

DEADLINE_S = 30.0


class NoLedger(DaemonUnreachable):
    """There is neither a daemon nor a ledger: nothing was ever run here."""


def daemon_runs(folder: Path) -> bool:
    """Whether a daemon (or another command) holds the ledger."""
    return lock_holder(lock_file(folder)) is not None


def ask(ctx: click.Context, method: str, params: Mapping[str, Any], *, writes: bool = False) -> Any:
    """Answer a request through the daemon if one runs, else from the ledger under its lock; plain JSON data.

    Only an order (``writes``) needs the whole configuration, and only where no daemon runs. A reading request
    never makes a ledger. Raises `NoLedger`, `DaemonUnreachable`, `CallRefused`, `OrderRefused`.
    """
    storage = base_config(ctx).storage
    if daemon_runs(storage.state_dir):
        return trio.run(partial(call, storage.control_socket, method, params, deadline_s=DEADLINE_S))
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
        with trio.fail_after(DEADLINE_S):
            return msgspec.json.decode(msgspec.json.encode(await desk.methods()[method](params)))


def ask_daemon(ctx: click.Context, method: str, params: Mapping[str, Any]) -> Any:
    """Answer a request that only a daemon can answer. Raises `DaemonUnreachable`."""
    socket = base_config(ctx).storage.control_socket
    return trio.run(partial(call, socket, method, params, deadline_s=DEADLINE_S))
