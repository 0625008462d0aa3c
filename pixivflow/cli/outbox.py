"""`pixivflow outbox` and `pixivflow deliveries`: what is to be sent, and what was."""

from typing import Any

import click

from pixivflow.cli.asking import ask, look_up
from pixivflow.cli.options import json_option, limit_option, work_option
from pixivflow.cli.output import (
    NOTHING,
    brief,
    print_facts,
    print_json,
    print_table,
    status,
    when,
    work_id,
    work_url,
)
from pixivflow.cli.schedules import refuse_unknown
from protocol.states import LeaseState


@click.group("outbox")
def outbox_group() -> None:
    """The outbox: frozen posts, waiting or sent."""


@outbox_group.command("list")
@click.option("--state", type=click.Choice([str(state) for state in LeaseState]), help="Only in this state.")
@click.option("--route", help="Only of this route.")
@limit_option
@json_option
@click.pass_context
def list_command(
    ctx: click.Context, state: str | None, route: str | None, limit: int, *, as_json: bool
) -> None:
    """List the newest rows of the outbox."""
    rows = ask(ctx, "outbox.list", {"limit": limit, "state": state, "route": route})
    if not rows:
        refuse_unknown(ctx, "route", route)
    if as_json:
        print_json(rows)
        return
    print_table(
        ("row", "route", "state", "work", "target", "failures", "next try", "last answer"),
        (
            (
                row["id"],
                row["route"],
                status(row["state"]),
                work_id(row["work"]),
                row["target_id"] or NOTHING,
                _failures(row),
                brief(row["due_at"]) if row["state"] == "pending" else "",
                row["last_error"] or "",
            )
            for row in rows
        ),
        "nothing in the outbox",
    )


@outbox_group.command("show")
@click.argument("row", type=int)
@json_option
@click.pass_context
def show_command(ctx: click.Context, row: int, *, as_json: bool) -> None:
    """Show a row of the outbox with its frozen content."""
    found = look_up(ctx, "outbox.get", {"row_id": row}, as_json=as_json)
    head = found["row"]
    print_facts(
        [
            ("row", head["id"]),
            ("route", head["route"]),
            ("state", status(head["state"])),
            ("work", NOTHING if head["work"] is None else work_url(head["work"])),
            ("slot", head["slot_id"] or NOTHING),
            ("target", head["target_id"] or NOTHING),
            ("key", head["idempotency_key"]),
            ("failures", _failures(head)),
            ("made", when(head["created_at"])),
            ("next try", when(head["due_at"]) if head["state"] == "pending" else NOTHING),
            ("ended", when(head["ended_at"])),
            ("last answer", head["last_error"] or NOTHING),
        ]
    )
    _show_payload(found["payload"])


def _show_payload(payload: dict[str, Any] | None) -> None:
    if payload is None:
        click.echo("its content was removed after the delivery ([retention] payloads)")
        return
    click.echo()
    if fields := payload.get("fields", ()):
        click.echo("form fields")
        print_facts((f"  {name}", value) for name, value in fields)
        click.echo()
    print_facts(("file", f"{file['name']} ({file['bytes']} bytes)") for file in payload.get("files", ()))


def _failures(row: dict[str, Any]) -> str:
    return f"{row['attempts']}/{row['max_attempts'] or NOTHING}"


@click.group("deliveries")
def deliveries_group() -> None:
    """Deliveries: which work went to which route, for ever."""


@deliveries_group.command("list")
@work_option
@limit_option
@json_option
@click.pass_context
def list_deliveries_command(ctx: click.Context, work: str | None, limit: int, *, as_json: bool) -> None:
    """List the newest deliveries."""
    deliveries = look_up(ctx, "deliveries.list", {"limit": limit, "work": work}, as_json=as_json)
    print_table(
        ("delivery", "route", "work", "target", "slot", "status", "remote id", "settled"),
        (
            (
                delivery["id"],
                delivery["route"],
                work_id(delivery["work"]),
                delivery["target_id"],
                delivery["slot_id"] or NOTHING,
                status(delivery["status"]),
                delivery["remote_id"] or delivery["reason"] or "",
                brief(delivery["settled_at"]),
            )
            for delivery in deliveries
        ),
        "nothing was delivered yet",
    )
