"""`pixivflow trigger`: a slot made by hand."""

import re
from typing import Any, Final

import click

from pixivflow.cli.asking import ask, daemon_runs
from pixivflow.cli.context import base_config
from pixivflow.cli.output import when

KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)


@click.command("trigger")
@click.argument("schedule")
@click.option("--target", help="Only this target of the schedule; makes a slot outside the timetable.")
@click.option("--now", is_flag=True, help="Make a slot outside the timetable.")
@click.option("--key", help="With --now: the same key means the same slot, however often it is asked for.")
@click.pass_context
def trigger_command(
    ctx: click.Context, schedule: str, target: str | None, key: str | None, *, now: bool
) -> None:
    """Make the slot of a schedule's nearest occurrence, or one for now.

    An occurrence is the nearest within the schedule's grace and lead; it runs once however often it is triggered.
    """
    if key is not None and not now:
        raise click.BadParameter("a key names a slot outside the timetable: add --now", param_hint="--key")
    if key is not None and not KEY.fullmatch(key):
        raise click.BadParameter(
            "expected up to 100 letters, digits, '_', '.' or '-', beginning with a letter or digit",
            param_hint="--key",
        )
    params: dict[str, Any] = {"schedule": schedule, "target": target, "now": now, "key": key}
    made = ask(ctx, "schedules.trigger", params, writes=True)
    cells = len(made["cell_ids"])
    slot = None if made["created"] else ask(ctx, "slots.get", {"slot_id": made["slot_id"]})["slot"]
    what = f"made, {cells} cell{'' if cells == 1 else 's'}" if slot is None else _met(slot)
    click.echo(f"{made['slot_id']}: {what}")
    ended = slot is not None and slot["ended_at"] is not None
    if not ended and not daemon_runs(base_config(ctx).storage.state_dir):
        click.echo(
            "no daemon runs: it is written to the ledger and runs when a daemon starts (pixivflow run)"
        )


def _met(slot: dict[str, Any]) -> str:
    """Say how the slot is that the trigger met."""
    if slot["ended_at"] is None:
        return f"it was there already: {slot['status']}"
    return f"it was there already and ended at {when(slot['ended_at'])}: {slot['status']}"
