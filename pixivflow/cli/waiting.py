"""Orders that a command waits for: through the daemon if one runs, else in this process under the lock."""

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import click
import trio

from actors.once import Waited, order_through, run_here, wait_through
from pixivflow.cli.asking import DEADLINE_S, daemon_runs, patiently
from pixivflow.cli.client import DaemonUnreachable, DaemonWentAway, call
from pixivflow.cli.context import base_config, full_config
from pixivflow.cli.logs import configure_logs
from pixivflow.clock import SystemWall
from pixivflow.config.units import parse_duration


def _seconds(_ctx: click.Context, _param: click.Parameter, value: str) -> float:
    try:
        return parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


wait_option = click.option(
    "--wait",
    "wait_s",
    callback=_seconds,
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="How long to wait for the end.",
)


def order_and_wait(ctx: click.Context, method: str, params: Mapping[str, Any], wait_s: float) -> Waited:
    """Give an order that makes cells and wait for them. Raises what `ask` raises, and `DaemonWentAway`."""
    folder = base_config(ctx).storage.state_dir
    return patiently(folder, lambda: _attempt(ctx, method, params, wait_s))


def _attempt(ctx: click.Context, method: str, params: Mapping[str, Any], wait_s: float) -> Waited:
    storage = base_config(ctx).storage
    wall = SystemWall()
    if daemon_runs(storage.state_dir):
        ask = partial(call, storage.control_socket, deadline_s=DEADLINE_S)
        cell_ids = trio.run(order_through, ask, method, params)
        _say("the running daemon is at it; Ctrl-C only ends the waiting")
        try:
            return trio.run(wait_through, ask, cell_ids, wait_s, wall)
        except DaemonUnreachable as error:
            cells = ", ".join(map(str, cell_ids))
            raise DaemonWentAway(
                f"the daemon went away while it was waited for; its cells ({cells}) go on when it runs again"
            ) from error
    configure_logs("console", "warning")
    _say("no daemon runs: it is done here; Ctrl-C stops it, and what is left stays in the ledger")
    return trio.run(run_here, full_config(ctx), wall, method, params, wait_s)


def _say(text: str) -> None:
    """Tell a person at a terminal what goes on meanwhile."""
    if sys.stderr.isatty():
        click.echo(text, err=True)
