"""`run --simulate`: every address, credential and directory of a configuration replaced by a local look-alike."""

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import click

from pixivflow.config import Config
from pixivflow.config.resolve import redirected
from pixivflow.simulator.server import open_simulator

VIEW: Final = """# Where a simulated run of {original} keeps its things: enough for every command that only looks.
[storage]
state_dir = "state"
download_dir = "downloads"
"""


@asynccontextmanager
async def simulated(config: Config) -> AsyncGenerator[Config]:
    """Start the look-alikes and give the configuration that uses them; the folder with its results stays."""
    folder = Path(tempfile.mkdtemp(prefix="pixivflow-simulate-"))
    view = folder / "pixivflow.toml"
    view.write_text(VIEW.format(original=config.path))
    async with open_simulator() as simulator:
        for line in (
            f"simulating: Pixiv at {simulator.api_url}, receiver at {simulator.receiver_url}",
            f"everything is kept in {folder}; look at it with: pixivflow -c {view} slots list",
            "this works there, too: status, cells, outbox list, deliveries list, trigger SCHEDULE --now",
            f"it has no schedules; for their times: pixivflow -c {config.path} schedules next",
        ):
            click.echo(line, err=True)
        yield redirected(
            config,
            api_url=simulator.api_url,
            oauth_url=simulator.oauth_url,
            image_url=simulator.image_url,
            receiver_url=simulator.receiver_url,
            refresh_token=simulator.refresh_token,
            folder=folder,
        )
