"""The commands, in the order of what a person wants. Each is imported when it is asked for: a daemon stays small."""

from importlib import import_module
from typing import Final

import click

SECTIONS: Final = {
    "Begin": {
        "demo": "demo:demo_command",
        "config": "config_commands:config_group",
        "login": "login:login_command",
        "simulate": "simulate:simulate_command",
    },
    "Collect": {
        "run": "run:run_command",
        "stop": "status:stop_command",
        "once": "once:once_command",
        "get": "once:get_command",
        "trigger": "trigger:trigger_command",
    },
    "Look": {
        "status": "status:status_command",
        "schedules": "schedules:schedules_group",
        "slots": "slots:slots_group",
        "cells": "slots:cells_command",
        "outbox": "outbox:outbox_group",
        "deliveries": "outbox:deliveries_group",
    },
}


class SectionedGroup(click.Group):
    """A group whose commands come from `SECTIONS`, in the help as on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is click's
        """Return the names in the order of the sections."""
        return [name for names in SECTIONS.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - likewise
        """Import a command; None for an unknown name."""
        place = next((names[cmd_name] for names in SECTIONS.values() if cmd_name in names), None)
        if place is None:
            return None
        module, _, attribute = place.partition(":")
        command: click.Command = getattr(import_module(f"pixivflow.cli.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections."""
        for title, names in SECTIONS.items():
            commands = ((name, self.get_command(ctx, name)) for name in names)
            with formatter.section(title):
                formatter.write_dl(
                    [(name, command.get_short_help_str(90)) for name, command in commands if command]
                )
