"""`pixivflow config`: check, show and begin a configuration file."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from actors.parts import token_folder
from pixivflow.config import (
    Checks,
    Config,
    ConfigNotFound,
    ConfigProblem,
    ConfigRefused,
    check_config,
    locate_config,
)
from pixivflow.config.document import named_variables
from pixivflow.config.sample import write_example
from pixivflow.config.show import as_toml, shown_config, shown_paths
from pixivflow.delivery import templates
from pixivflow.download import names
from pixivflow.pixiv.credentials import TokenStore
from pixivflow.pixiv.errors import CredentialsDamaged
from pixivflow.timetable.cron import parse_cron

EX_CONFIG = 65
CHECKS = Checks(path=names.check_template, field=templates.check_template, cron=parse_cron)
"""What download, delivery and timetable say to their texts."""


def config_path(ctx: click.Context) -> Path:
    """Return the configuration file that the command is to use; ends with exit code 65 where there is none."""
    given = ctx.obj.get("config") if isinstance(ctx.obj, dict) else None
    try:
        return locate_config(given, os.environ, Path.cwd())
    except ConfigNotFound as error:
        click.echo(str(error), err=True)
        ctx.exit(EX_CONFIG)


@click.group("config")
def config_group() -> None:
    """Check, show or begin a configuration file."""


@config_group.command("check")
@click.option("--strict", is_flag=True, help="Fail on warnings, too.")
@click.pass_context
def check_command(ctx: click.Context, *, strict: bool) -> None:
    """Tell everything that is wrong with the configuration."""
    path = config_path(ctx)
    config, problems = check_config(path, os.environ, checks=CHECKS)
    for problem in problems:
        click.echo(str(problem), err=True)
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = len(problems) - errors
    if errors or (strict and warnings):
        click.echo(f"{path}: refused, {_count(errors, 'error')}, {_count(warnings, 'warning')}", err=True)
        ctx.exit(EX_CONFIG)
    click.echo(f"{path}: ok{_contents(config)}" + (f", {_count(warnings, 'warning')}" if warnings else ""))
    for note in login_notes(config, problems):
        click.echo(f"note: {note}")


@config_group.command("show")
@click.option("--paths", is_flag=True, help="Only say where things are.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def show_command(ctx: click.Context, *, paths: bool, as_json: bool) -> None:
    """Print the configuration as it is understood, secrets as ***."""
    config, problems = check_config(config_path(ctx), os.environ, checks=CHECKS)
    if config is None:
        click.echo(str(ConfigRefused(problems)), err=True)
        ctx.exit(EX_CONFIG)
    shown: dict[str, Any] = shown_paths(config) if paths else shown_config(config, _variables(config.path))
    if as_json:
        click.echo(json.dumps(shown, ensure_ascii=False, indent=2))
    elif paths:
        click.echo("\n".join(f"{name:<15}{value}" for name, value in shown.items()))
    else:
        click.echo(as_toml(shown), nl=False)


@config_group.command("init")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), default="pixivflow.toml")
@click.pass_context
def init_command(ctx: click.Context, file: Path) -> None:
    """Write a commented example to FILE, ./pixivflow.toml by default."""
    try:
        write_example(file)
    except FileExistsError:
        click.echo(f"{file} is there already and was left as it is; name another file", err=True)
        ctx.exit(1)
    except OSError as error:
        click.echo(f"{file} cannot be written: {error.strerror}", err=True)
        ctx.exit(1)
    click.echo(f"wrote {file}; next: pixivflow -c {file} config check, then pixivflow login")


def _variables(path: Path) -> dict[str, str]:
    return {name: os.environ[name] for name in named_variables(path) if os.environ.get(name)}


def _contents(config: Config | None) -> str:
    if config is None:
        return " as far as it can be told without the variables"
    counts = (
        (len(config.targets), "target"),
        (len(config.schedules), "schedule"),
        (len(config.routes), "route"),
        (len(config.accounts), "account"),
    )
    return f" ({', '.join(_count(number, name) for number, name in counts)})"


def login_notes(config: Config | None, problems: Iterable[ConfigProblem]) -> Iterator[str]:
    """Yield a note for each account without a login, but for those about whose token a problem was told."""
    if config is None:
        return
    mentioned = {problem.key_path for problem in problems}
    logins = TokenStore(token_folder(config.storage.state_dir))
    for name, account in config.accounts.items():
        told = mentioned & {f"accounts.{name}.refresh_token", f"accounts.{name}.refresh_token_file"}
        if account.refresh_token is not None or told:
            continue
        try:
            if logins.load(name) is None:
                yield f"account {name!r} has no login yet; run: pixivflow login {name}"
        except CredentialsDamaged as error:
            yield str(error)


def _count(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"
