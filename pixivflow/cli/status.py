"""`pixivflow status` and `pixivflow stop`: how the daemon is, and its end."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import click
from rich.text import Text

from pixivflow.cli import exits
from pixivflow.cli.asking import NoLedger, ask, ask_daemon, daemon_runs
from pixivflow.cli.client import DaemonUnreachable
from pixivflow.cli.config_commands import CHECKS, config_path, login_notes
from pixivflow.cli.context import base_config
from pixivflow.cli.options import json_option
from pixivflow.cli.output import plain, print_facts, print_json, span, when
from pixivflow.cli.schedules import lenient_config, upcoming
from pixivflow.clock import SystemWall
from pixivflow.config import ConfigRefused, check_config
from pixivflow.delivery.breaker import Breaker

DUE_SHOWN: Final = 5
STOP_S: Final = 15.0
Facts = Iterator[tuple[str, object]]


@click.command("status")
@json_option
@click.pass_context
def status_command(ctx: click.Context, *, as_json: bool) -> None:
    """Show how the daemon is and what is open; ends with 69 where none runs."""
    try:
        found = ask_daemon(ctx, "daemon.status", {})
    except DaemonUnreachable as error:
        _tell_ledger(ctx, error, as_json=as_json)
        ctx.exit(exits.UNREACHABLE)
    if as_json:
        print_json(found)
        return
    print_facts(
        [
            *_head(found),
            *(
                ("login needed", Text(f"{name}: pixivflow login {name}", "red"))
                for name in found["logins_needed"]
            ),
            *_cooling(found),
            *_due(ctx),
            *_counts(found["counts"]),
            *_routes(found),
        ]
    )


def _head(found: Mapping[str, Any]) -> Facts:
    state, up_s = found["state"], (found["now"] - found["started_at"]) / 1000
    colour = "green" if state == "running" else "yellow"
    more = f", version {found['version']}, pid {found['pid']}, up {span(up_s)}"
    yield "daemon", Text.assemble((state, colour), more)
    yield "configuration", found["config"]


def _cooling(found: Mapping[str, Any]) -> Facts:
    for account in found["accounts"]:
        until = account["cooldown_until"] or 0
        if until > found["now"]:
            yield "account", f"{account['name']} waits until {when(until)}: Pixiv asked for a pause"


def _due(ctx: click.Context) -> Facts:
    try:
        config = lenient_config(ctx)
    except ConfigRefused:
        yield "next", "the configuration can't be read now: pixivflow config check"
        return
    now = SystemWall().now_ms()
    entries = [
        entry
        for schedule in config.schedules
        if schedule.enabled
        for entry in upcoming(config, schedule, None, 1, now)
    ]
    entries.sort(key=lambda entry: entry.occurrence_at)
    for entry in entries[:DUE_SHOWN]:
        in_s = span((entry.occurrence_at - now) / 1000)
        yield "next", f"{when(entry.occurrence_at)} {entry.schedule} (in {in_s})"


def _logins(ctx: click.Context) -> Facts:
    """Tell of accounts that have no login, from the configuration and the stored logins alone."""
    with suppress(ConfigRefused):
        for note in login_notes(*check_config(config_path(ctx), os.environ, checks=CHECKS)):
            yield "login needed", Text(note, "red")


def _counts(counts: Mapping[str, Any]) -> Facts:
    waiting, running = counts["cells_pending"], counts["cells_running"]
    yield "slots", f"{counts['slots_open']} open"
    yield "cells", f"{waiting} waiting, {running} running, {counts['cells_in_delivery']} in delivery"
    pending = ", ".join(f"{route} {number}" for route, number in sorted(counts["outbox_pending"].items()))
    yield "outbox", pending or "empty"
    if counts["outbox_dead"]:
        yield "", Text(f"{counts['outbox_dead']} dead: pixivflow outbox list --state dead", "red")


def _routes(found: Mapping[str, Any]) -> Facts:
    for route in found["routes"]:
        name = route["name"]
        if route["paused_at"] is not None:
            yield (
                "route",
                Text.assemble(
                    (f"{name} is paused since {when(route['paused_at'])}: ", "red"), plain(route["reason"])
                ),
            )
            yield "", "correct it in the configuration and restart the daemon; it is tried once an hour"
        elif route["reason"] is not None:
            yield "route", Text.assemble((f"{name} is not ready: ", "yellow"), plain(route["reason"]))
        breaker = Breaker.decode(route["breaker"])
        if breaker.is_open:
            failed = f"{breaker.failures} failures in a row, tried again at {when(breaker.next_probe_ms)}"
            yield "route", Text.assemble((f"{name} does not answer: ", "yellow"), failed)
    for name in found["unknown_routes"]:
        yield "route", Text(f"{plain(name)} is not in the configuration, but posts wait for it", "red")


def _tell_ledger(ctx: click.Context, error: DaemonUnreachable, *, as_json: bool) -> None:
    click.echo(f"pixivflow: {error}", err=True)
    try:
        counts = ask(ctx, "ledger.counts", {})
    except NoLedger as nothing:
        click.echo(str(nothing), err=True)
        return
    if as_json:
        print_json({"state": "absent", "counts": counts})
    else:
        print_facts([("daemon", "does not run (pixivflow run)"), *_logins(ctx), *_due(ctx), *_counts(counts)])


@click.command("stop")
@click.pass_context
def stop_command(ctx: click.Context) -> None:
    """Stop the daemon; what it is at goes on at its next start."""
    answer = ask_daemon(ctx, "daemon.stop", {})
    storage = base_config(ctx).storage
    give_up_at = time.monotonic() + STOP_S
    while storage.control_socket.exists() or daemon_runs(storage.state_dir):
        if time.monotonic() >= give_up_at:
            exits.fail(
                f"the daemon (pid {answer['pid']}) was told to stop and still runs after {STOP_S:.0f} s"
            )
        time.sleep(0.05)
    click.echo(f"stopped (pid {answer['pid']})")
