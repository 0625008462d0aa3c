"""`pixivflow slots` and `pixivflow cells`: what ran, what it came to, and why."""

from collections.abc import Iterable
from typing import Any

import click
import msgspec
from rich.text import Text

from pixivflow.cli.asking import ask, look_up
from pixivflow.cli.context import base_config
from pixivflow.cli.options import json_option, limit_option
from pixivflow.cli.outcomes import CellStory, Roots, file_lines, hint_of, scan_lines, waiting_for
from pixivflow.cli.output import (
    NOTHING,
    brief,
    console,
    plain,
    print_facts,
    print_json,
    print_table,
    status,
    when,
    work_id,
    work_url,
)
from pixivflow.cli.schedules import refuse_unknown
from pixivflow.clock import SystemWall


@click.group("slots")
def slots_group() -> None:
    """Slots: one for each time that a schedule was due."""


@slots_group.command("list")
@click.option("--schedule", help="Only of this schedule.")
@limit_option
@json_option
@click.pass_context
def list_command(ctx: click.Context, schedule: str | None, limit: int, *, as_json: bool) -> None:
    """List the newest slots."""
    slots = ask(ctx, "slots.list", {"limit": limit, "schedule": schedule})
    if not slots:
        refuse_unknown(ctx, "schedule", schedule)
    if as_json:
        print_json(slots)
        return
    print_table(
        ("slot", "due", "trigger", "status", "result", "posted", "ended"),
        ([*_slot_cells(slot), brief(slot["ended_at"])] for slot in slots),
        "no slots yet; see: pixivflow schedules next",
    )


def _slot_cells(slot: dict[str, Any]) -> list[object]:
    missed = f" ×{slot['missed_count']}" if slot["missed_count"] > 1 else ""
    result = slot["reason_code"] or slot["business_status"] or NOTHING
    return [
        slot["slot_id"],
        brief(slot["occurrence_at"]),
        slot["trigger"],
        Text.assemble(status(slot["status"]), missed),
        result,
        f"{slot['submitted']}/{slot['cells']}",
    ]


@slots_group.command("show")
@click.argument("slot")
@json_option
@click.pass_context
def show_command(ctx: click.Context, slot: str, *, as_json: bool) -> None:
    """Show a slot: its cells, files and deliveries, and what each selection passed over."""
    found = look_up(ctx, "slots.get", {"slot_id": slot}, as_json=as_json)
    head = found["slot"]
    print_facts(
        [
            ("slot", head["slot_id"]),
            ("schedule", head["schedule_id"] or NOTHING),
            ("due", when(head["occurrence_at"])),
            ("trigger", head["trigger"]),
            ("status", status(head["status"])),
            ("result", head["business_status"] or NOTHING),
            *_reason(head["reason_code"]),
            ("ended", when(head["ended_at"])),
        ]
    )
    storage = base_config(ctx).storage
    roots = {"download": storage.download_dir, "state": storage.state_dir}
    for cell in msgspec.convert(found["cells"], tuple[CellStory, ...]):
        _show_cell(cell, roots)


def _show_cell(story: CellStory, roots: Roots) -> None:
    cell = story.cell
    click.echo()
    facts: list[tuple[str, object]] = [
        ("target", f"{cell.target_id} (cell {cell.id})"),
        ("status", status(cell.status)),
    ]
    if cell.work is not None:
        facts += [("work", f"{work_id(cell.work)} {plain(cell.title or '')}"), ("", work_url(cell.work))]
    facts += _reason(cell.reason_code)
    if cell.reason:
        facts.append(("", cell.reason))
    if cell.ended_at is None and cell.state == "pending":
        facts.append(waiting_for(cell, SystemWall().now_ms()))
    if cell.attempts:
        facts.append(("failed tries", cell.attempts))
    print_facts(facts)
    _print_lines(file_lines(story.files, roots))
    screen = console()
    for delivery in story.deliveries:
        extra = delivery.remote_id or delivery.reason or ""
        line = Text.assemble(f"  {delivery.route}: ", status(delivery.status), f" {plain(extra)}".rstrip())
        screen.print(line, soft_wrap=True)
    if cell.report is not None:
        _print_lines(scan_lines(cell.report))


def _reason(code: str | None) -> list[tuple[str, object]]:
    return [] if code is None else [("reason", code), ("", hint_of(code))]


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


@click.command("cells")
@click.option("--open", "open_only", is_flag=True, help="Only those that have not ended.")
@limit_option
@json_option
@click.pass_context
def cells_command(ctx: click.Context, limit: int, *, open_only: bool, as_json: bool) -> None:
    """List the newest cells: one target in one slot, or of `once` and `get`."""
    cells = look_up(ctx, "cells.list", {"limit": limit, "open": open_only}, as_json=as_json)
    print_table(
        ("cell", "target", "slot", "status", "work", "title", "reason", "made", "next try"),
        (
            (
                cell["id"],
                cell["target_id"],
                cell["slot_id"] or NOTHING,
                status(cell["status"]),
                work_id(cell["work"]),
                cell["title"] or "",
                cell["reason_code"] or "",
                brief(cell["created_at"]),
                brief(cell["due_at"]) if cell["state"] == "pending" else "",
            )
            for cell in cells
        ),
        "no open cells" if open_only else "no cells yet",
    )
