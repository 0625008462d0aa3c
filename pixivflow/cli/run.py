"""`pixivflow run`: the daemon in the foreground."""

import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import click
import trio

from actors.daemon import run_daemon
from pixivflow.cli.config_commands import config_path
from pixivflow.cli.context import full_config
from pixivflow.cli.logs import configure_logs
from pixivflow.clock import SystemWall
from pixivflow.config import Config
from pixivflow.config.resolve import redirected
from pixivflow.sd_notify import Notifier
from pixivflow.simulator.server import Simulator, open_simulator

VIEW: Final = """# Where a simulated run of {original} keeps its things: enough for every command that only looks.
[storage]
state_dir = "state"
download_dir = "downloads"
"""


@click.command("run")
@click.option(
    "--simulate", is_flag=True, help="Replace Pixiv, receivers, logins and folders by local look-alikes."
)
@click.option(
    "-c",
    "--config",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
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
    async with simulated(config) as (replaced, _):
        await run_daemon(replaced, wall, notifier)


@asynccontextmanager
async def simulated(config: Config) -> AsyncGenerator[tuple[Config, Simulator]]:
    """Start the look-alikes and replace every address, credential and directory of the configuration by theirs."""
    folder = Path(tempfile.mkdtemp(prefix="pixivflow-simulate-"))
    async with open_simulator() as simulator:
        click.echo(
            f"simulating: Pixiv at {simulator.api_url}, receiver at {simulator.receiver_url}", err=True
        )
        click.echo(f"everything is kept in {folder}", err=True)
        yield (
            redirected(
                config,
                api_url=simulator.api_url,
                oauth_url=simulator.oauth_url,
                image_url=simulator.image_url,
                receiver_url=simulator.receiver_url,
                refresh_token=simulator.refresh_token,
                folder=folder,
            ),
            simulator,
        )
