"""The root of the command line."""

from pathlib import Path

import click

from pixivflow.cli.exits import expected_errors
from pixivflow.cli.table import SectionedGroup


@click.group(
    cls=SectionedGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="pixivflow", prog_name="pixivflow")
@click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path, dir_okay=False, readable=False),
    help="Configuration file. Else $PIXIVFLOW_CONFIG, ./pixivflow.toml, ~/.config/pixivflow/, /etc/pixivflow/.",
)
@click.pass_context
def root(ctx: click.Context, config: Path | None) -> None:
    """Collect works from Pixiv on a timetable, and deliver each exactly once."""
    ctx.obj = {"config": config}


def main() -> None:
    """Run the command line; an expected error ends it with one message."""
    with expected_errors():
        root()
