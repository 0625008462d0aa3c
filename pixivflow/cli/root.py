"""The root of the command line."""

from pathlib import Path

import click

from pixivflow.cli.config_commands import config_group
from pixivflow.cli.demo import demo_command
from pixivflow.cli.exits import expected_errors
from pixivflow.cli.login import login_command
from pixivflow.cli.once import get_command, once_command
from pixivflow.cli.ordering import OrderedGroup
from pixivflow.cli.outbox import deliveries_group, outbox_group
from pixivflow.cli.run import run_command
from pixivflow.cli.schedules import schedules_group
from pixivflow.cli.simulate import simulate_command
from pixivflow.cli.slots import cells_command, slots_group
from pixivflow.cli.status import status_command, stop_command
from pixivflow.cli.trigger import trigger_command


@click.group(
    cls=OrderedGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="pixivflow", prog_name="pixivflow")
@click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Configuration file. Else $PIXIVFLOW_CONFIG, ./pixivflow.toml, ~/.config/pixivflow/, /etc/pixivflow/.",
)
@click.pass_context
def root(ctx: click.Context, config: Path | None) -> None:
    """Collect works from Pixiv on a timetable, and deliver each exactly once."""
    ctx.obj = {"config": config}


root.add_command(config_group)
root.add_command(run_command)
root.add_command(demo_command)
root.add_command(simulate_command)
root.add_command(login_command)
root.add_command(once_command)
root.add_command(get_command)
root.add_command(trigger_command)
root.add_command(status_command)
root.add_command(stop_command)
root.add_command(schedules_group)
root.add_command(slots_group)
root.add_command(cells_command)
root.add_command(outbox_group)
root.add_command(deliveries_group)


def main() -> None:
    """Run the command line; an expected error ends it with one message."""
    with expected_errors():
        root()
