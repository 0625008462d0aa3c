"""Options that several commands share."""

import click

from pixivflow.cli.addresses import AddressRefused, parse_work
from protocol.works import WorkKind, WorkRef

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON; times are ms UTC.")
limit_option = click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="At most so many, newest first.",
)


def _work(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    try:
        return None if value is None else str(WorkRef(WorkKind.ILLUSTRATION, parse_work(value)))
    except AddressRefused as error:
        raise click.BadParameter(str(error)) from error


work_option = click.option("--work", callback=_work, help="Only of this work: an id or its address.")
