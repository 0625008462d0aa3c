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


class Work(click.ParamType):
    """A work by its id or address; its value is the work's name, such as ``illustration:123``."""

    name = "work"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the work's name."""
        try:
            return str(WorkRef(WorkKind.ILLUSTRATION, parse_work(value)))
        except AddressRefused as error:
            self.fail(str(error), param, ctx)
