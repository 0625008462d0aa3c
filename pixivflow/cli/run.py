"""`pixivflow run`: the daemon in the foreground."""

import os
from pathlib import Path

import click
import trio

from actors.daemon import run_daemon
from pixivflow.cli.config_commands import config_path
from pixivflow.cli.context import full_config
from pixivflow.cli.logs import configure_logs
from pixivflow.clock import SystemWall
from pixivflow.config import Config
from pixivflow.sd_notify import Notifier


@click.command("run")
@click.option(
    "--simulate", is_flag=True, help="Replace Pixiv, receivers, logins and folders by local look-alikes."
)
@click.option(
    "-c",
    "--config",
    "file",
    type=click.Path(path_type=Path, dir_okay=False, readable=False),
    help="The same as before the command.",
)
@click.pass_context
def run_command(ctx: click.Context, file: Path | None, *, simulate: bool) -> None:
    """Run the daemon until SIGTERM or Ctrl-C."""
    if file is not None:
        ctx.obj = {"config": file}
    config_path(ctx)
    config = full_config(ctx)
    configure_logs(config.logging.format, config.logging.level)
    trio.run(_run, config, simulate, strict_exception_groups=True)


async def _run(config: Config, simulate: bool) -> None:
    notifier = Notifier(os.environ)
    wall = SystemWall()
    if not simulate:
        await run_daemon(config, wall, notifier)
        return
    from pixivflow.cli.simulated import simulated  # noqa: PLC0415 - the look-alikes would double a daemon's memory

    async with simulated(config) as replaced:
        await run_daemon(replaced, wall, notifier)
