"""`pixivflow login`: a refresh token from standard input or by the browser, tried before it is stored."""

import os
import shlex
import sys
from pathlib import Path
from typing import Final

import click
import trio

from actors.parts import token_folder
from pixivflow.cli.asking import daemon_runs
from pixivflow.cli.client import CallRefused, DaemonUnreachable, call
from pixivflow.cli.config_commands import config_path
from pixivflow.cli.exits import fail
from pixivflow.cli.output import plain
from pixivflow.clock import SystemWall
from pixivflow.config import LoginConfig, load_login
from pixivflow.config.locate import user_name
from pixivflow.config.model import PixivSection
from pixivflow.pixiv.credentials import StoredToken, TokenStore, fingerprint
from pixivflow.pixiv.errors import NetworkFailed, PixivError
from pixivflow.pixiv.login import begin_pkce, clean_refresh_token, code_from, exchange_code, try_refresh
from pixivflow.pixiv.oauth import TokenAnswer
from pixivflow.pixiv.settings import PixivSettings

LONGEST_INPUT: Final = 8192
VIEWS: Final = {
    0: "works for all ages only (change that in Pixiv's display settings)",
    1: "works for all ages and R-18",
    2: "works for all ages, R-18 and R-18G",
}
STEPS: Final = """\
1. Open a browser, open its developer tools (F12) and choose their Network tab. Let it keep its log ("Persist logs").
2. In the same tab open this address and log in:

   {url}

3. The page stays white at the end. In the Network tab look for the newest line that begins with
   pixiv://account/login?code=... (or .../callback?state=...&code=...).
4. Copy that address, or only its code, and paste it below. Be quick: a code is good for about 30 seconds.
"""


@click.command("login")
@click.argument("account", default="main")
@click.option("--token", "given", metavar="-", help="Read a refresh token from standard input.")
@click.pass_context
def login_command(ctx: click.Context, account: str, given: str | None) -> None:
    """Log an account in: with the browser, or with a token from standard input."""
    if given not in (None, "-"):
        raise click.BadParameter(
            "a token on the command line can be seen by everybody on this host (process list, shell history); "
            "write `--token -` and give it on standard input",
            param_hint="--token",
        )
    config = load_login(config_path(ctx), os.environ)
    _check_account(config, account)
    _check_owner(config, account)
    settings = _settings(config.pixiv)
    try:
        answer = _by_browser(settings) if given is None else trio.run(try_refresh, _read_token(), settings)
        _store(config, account, answer)
    except NetworkFailed as error:
        fail(
            "Pixiv cannot be reached: look at the network of this host and at [pixiv] proxy; nothing was stored, "
            f"an earlier login is kept ({error})"
        )
    except PixivError as error:
        fail(f"{error}; nothing was stored, an earlier login is kept")
    _tell(config, account, answer)


def _check_account(config: LoginConfig, account: str) -> None:
    if account not in config.accounts:
        known = ", ".join(sorted(config.accounts))
        fail(f"no account {account!r} in {config.path}; known: {known}")


def _check_owner(config: LoginConfig, account: str) -> None:
    """Refuse to leave a token that the daemon's user could not read."""
    state_dir = config.storage.state_dir
    owner = state_dir.stat().st_uid if state_dir.exists() else os.geteuid()
    if owner == os.geteuid():
        return
    name = user_name(owner)
    fail(
        f"{state_dir} belongs to the user {name}, who could not use a token stored by another; run: "
        + shlex.join(
            ["sudo", "-u", name, *own_command(sys.argv[0]), "-c", str(config.path), "login", account]
        )
    )


def own_command(started_as: str) -> tuple[str, ...]:
    """Return what another user can type to start this program again; ``started_as`` is the first of sys.argv."""
    program = Path(started_as).absolute()
    return (sys.executable, "-m", "pixivflow") if program.suffix == ".py" else (str(program),)


def _settings(section: PixivSection) -> PixivSettings:
    return PixivSettings(
        api_url=section.api_url,
        oauth_url=section.oauth_url,
        proxy=section.proxy,
        timeout_s=section.timeout_s,
        language=section.language,
    )


def _read_token() -> str:
    if sys.stdin.isatty():
        text = str(click.prompt("Refresh token (not shown)", hide_input=True))
    else:
        text = sys.stdin.read(LONGEST_INPUT)
    try:
        return clean_refresh_token(text)
    except ValueError as error:
        fail(f"{error}; give it on standard input, such as: pixivflow login --token - < FILE")


def _by_browser(settings: PixivSettings) -> TokenAnswer:
    attempt = begin_pkce(settings)
    click.echo(STEPS.format(url=attempt.url))
    while True:
        pasted = click.prompt("Code or address", prompt_suffix=": ")
        try:
            code = code_from(pasted)
            break
        except ValueError as error:
            click.echo(str(error))

    async def exchange() -> TokenAnswer:
        granted = await exchange_code(code, attempt, settings)
        return await try_refresh(granted.refresh_token, settings)

    return trio.run(exchange)


def _store(config: LoginConfig, account: str, answer: TokenAnswer) -> None:
    configured = config.accounts[account].refresh_token
    token = StoredToken(
        refresh_token=answer.refresh_token,
        obtained_at_ms=SystemWall().now_ms(),
        configured_fingerprint=None if configured is None else fingerprint(configured),
        user_id=answer.user_id,
        user_name=answer.user_name,
        is_premium=answer.is_premium,
        x_restrict=answer.x_restrict,
    )
    state_dir = config.storage.state_dir
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    TokenStore(token_folder(state_dir)).save(account, token)


def _tell(config: LoginConfig, account: str, answer: TokenAnswer) -> None:
    premium = "with premium" if answer.is_premium else "without premium"
    name = plain(answer.user_name) or "an unnamed user"
    click.echo(f"logged in: account {account!r} is {name} ({premium})")
    click.echo(f"it may see {VIEWS.get(answer.x_restrict, VIEWS[2])}")
    for note in config.notes:
        if note.key_path.startswith(f"accounts.{account}.refresh_token"):
            click.echo(
                f"note: {note.message}: once it is set, {note.key_path} takes precedence over this login; "
                "remove that key to use the login",
                err=True,
            )
    if daemon_runs(config.storage.state_dir):
        _tell_daemon(config)


def _tell_daemon(config: LoginConfig) -> None:
    try:
        trio.run(call, config.storage.control_socket, "accounts.check", {})
        click.echo("the running daemon was told of it")
    except (DaemonUnreachable, CallRefused) as error:
        click.echo(f"note: the daemon was not told, it looks by itself within a minute ({error})", err=True)
