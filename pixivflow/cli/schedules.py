"""`pixivflow schedules`: when targets are due next, from the configuration and what ran already."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Literal
from zoneinfo import ZoneInfo

import click
import msgspec

from pixivflow.cli.asking import NoLedger, ask
from pixivflow.cli.client import DaemonUnreachable
from pixivflow.cli.config_commands import CHECKS, config_path
from pixivflow.cli.exits import fail
from pixivflow.cli.options import json_option
from pixivflow.cli.output import print_json, print_table
from pixivflow.clock import SystemWall
from pixivflow.config import Config, ConfigRefused, check_config
from pixivflow.config.model import ScheduleSection
from pixivflow.ledger.lockfile import LedgerLocked
from pixivflow.timetable import occurrences, parse_cron, shift_note, slot_id, watermark_is_ahead
from pixivflow.timetable.cron import SEARCH_DAYS

DAY_MS = 86_400_000


class Upcoming(msgspec.Struct, frozen=True):
    """One occurrence to come; ``note`` tells of a change of the clock."""

    schedule: str
    occurrence_at: int
    timezone: str
    slot_id: str
    targets: tuple[str, ...]
    note: str | None = None


def upcoming(
    config: Config, schedule: ScheduleSection, watermark: int | None, count: int, now: int
) -> tuple[Upcoming, ...]:
    """Return the next occurrences of a schedule; one that ran ahead of its time (``watermark``) is not next."""
    cron, zone = parse_cron(schedule.cron), ZoneInfo(schedule.timezone)
    usable = watermark is not None and not watermark_is_ahead(watermark, now, config.scheduler.lead_s)
    after = max(now, watermark) if usable and watermark is not None else now
    found = islice(occurrences(cron, zone, after, after + SEARCH_DAYS * DAY_MS), count)
    return tuple(
        Upcoming(
            schedule.id,
            at,
            schedule.timezone,
            slot_id(schedule.id, at),
            schedule.targets,
            shift_note(cron, zone, at),
        )
        for at in found
    )


def lenient_config(ctx: click.Context) -> Config:
    """Load the configuration where secrets need not be set. Raises `ConfigRefused`."""
    config, problems = check_config(config_path(ctx), os.environ, checks=CHECKS)
    if config is None:
        errors = [problem for problem in problems if problem.severity == "error"]
        raise ConfigRefused(errors or problems)
    return config


def watermarks(ctx: click.Context) -> Mapping[str, int]:
    """Return the last occurrence of each schedule that the ledger knows; nothing where it can't be asked."""
    try:
        rows = ask(ctx, "schedules.list", {})
    except NoLedger:
        return {}
    except (DaemonUnreachable, LedgerLocked) as error:
        click.echo(f"note: told from the configuration alone: {error}", err=True)
        return {}
    return {name: row["last_occurrence_at"] for name, row in rows.items()}


def refuse_unknown(ctx: click.Context, kind: Literal["schedule", "route"], name: str | None) -> None:
    """End with a message when the configuration can be read and does not know the ``name``."""
    try:
        config = lenient_config(ctx)
    except ConfigRefused:
        return
    known = [section.id for section in config.schedules] if kind == "schedule" else sorted(config.routes)
    if name is not None and name not in known:
        fail(f"no {kind} {name!r} in {config.path}; known: {', '.join(known) or 'none'}")


@click.group("schedules")
def schedules_group() -> None:
    """Schedules: when targets are due."""


@schedules_group.command("next")
@click.argument("schedule", required=False)
@click.option(
    "--count", type=click.IntRange(1, 1000), default=5, show_default=True, help="So many of each schedule."
)
@json_option
@click.pass_context
def next_command(ctx: click.Context, schedule: str | None, count: int, *, as_json: bool) -> None:
    """Show the next times at which schedules are due, in their zones and UTC."""
    config = lenient_config(ctx)
    known = watermarks(ctx)
    now = SystemWall().now_ms()
    found = [
        entry
        for section in _chosen(config, schedule)
        for entry in upcoming(config, section, known.get(section.id), count, now)
    ]
    found.sort(key=lambda entry: entry.occurrence_at)
    if as_json:
        print_json(msgspec.to_builtins(found))
        return
    print_table(
        ("schedule", "local time", "UTC", "targets", "note"),
        (_row(entry) for entry in found),
        "nothing is due: no schedule is enabled"
        if config.schedules
        else f"nothing is due: there is no schedule in {config.path}",
    )


def _chosen(config: Config, schedule: str | None) -> tuple[ScheduleSection, ...]:
    if schedule is None:
        return tuple(section for section in config.schedules if section.enabled)
    chosen = tuple(section for section in config.schedules if section.id == schedule)
    if not chosen:
        known = ", ".join(section.id for section in config.schedules) or "none"
        fail(f"no schedule {schedule!r} in {config.path}; known: {known}")
    if not chosen[0].enabled:
        click.echo(
            f"note: schedule {schedule} is disabled; these are the times at which it would be due", err=True
        )
    return chosen


def _row(entry: Upcoming) -> tuple[object, ...]:
    local = datetime.fromtimestamp(entry.occurrence_at / 1000, ZoneInfo(entry.timezone))
    utc = datetime.fromtimestamp(entry.occurrence_at / 1000, UTC)
    return (
        entry.schedule,
        f"{local:%a %Y-%m-%d %H:%M:%S} {entry.timezone}",
        f"{utc:%m-%d %H:%M:%S}",
        ", ".join(entry.targets),
        entry.note or "",
    )
