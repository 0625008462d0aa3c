"""The order of the commands in the help: by what a person wants, not by the alphabet."""

from typing import Final

import click

SECTIONS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("Begin", ("demo", "config", "login", "simulate")),
    ("Collect", ("run", "stop", "once", "get", "trigger")),
    ("Look", ("status", "schedules", "slots", "cells", "outbox", "deliveries")),
)


class OrderedGroup(click.Group):
    """A group whose help lists its commands in sections."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is click's
        """Return the commands in the order of the sections; any other comes last."""
        ordered = [name for _, names in SECTIONS for name in names if name in self.commands]
        return ordered + sorted(self.commands.keys() - set(ordered))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - likewise
        """Write the sections."""
        placed = {name for _, names in SECTIONS for name in names}
        others = tuple(sorted(self.commands.keys() - placed))
        for title, names in (*SECTIONS, ("More", others)):
            rows = [
                (name, self.commands[name].get_short_help_str(90)) for name in names if name in self.commands
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
