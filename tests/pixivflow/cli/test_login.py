"""`login` against the simulator's token endpoint."""

import json
import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import trio

from pixivflow.cli.login import own_command
from pixivflow.config.locate import user_name
from pixivflow.pixiv.credentials import fingerprint
from pixivflow.simulator.faults import Fault
from pixivflow.simulator.server import SimulatorOptions, open_simulator

NOBODY = 65_534


def stored(site) -> dict | None:
    file = site.state / "tokens" / "main.json"
    return json.loads(file.read_text()) if file.exists() else None


async def test_a_token_from_standard_input_is_tried_and_stored_for_the_owner_alone(site) -> None:
    site.configure("")
    token = site.simulator.refresh_token
    ran = await site.ask("login", "--token", "-", stdin=f"{token}\n")
    assert ran.code == 0, ran
    assert "account 'main' is collector-example (without premium)" in ran.out
    assert "R-18 and R-18G" in ran.out
    assert stored(site)["refresh_token"] == token
    file = site.state / "tokens" / "main.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(site.state.stat().st_mode) == 0o700


async def test_the_token_is_never_shown(site) -> None:
    token = site.simulator.refresh_token
    ran = await site.ask("login", "--token", "-", stdin=token)
    assert token not in ran.out + ran.err


async def test_a_login_wins_over_the_token_in_the_configuration(site) -> None:
    site.configure('refresh_token = "older-token"')
    ran = await site.ask("login", "--token", "-", stdin=site.simulator.refresh_token)
    assert ran.code == 0, ran
    assert stored(site)["configured_fingerprint"] == fingerprint("older-token")
    assert (await site.run("once", "landscape")).code == 0


async def test_a_variable_that_is_not_set_here_does_not_stop_a_login(site) -> None:
    site.configure(
        'refresh_token = "${PIXIV_TOKEN}"', '[routes.other]\ntype = "multipart"\nurl = "${HOOK}"\n'
    )
    ran = await site.ask("login", "--token", "-", stdin=site.simulator.refresh_token)
    assert ran.code == 0, ran
    assert "PIXIV_TOKEN is not set" in ran.err
    assert "takes precedence" in ran.err
    assert "HOOK" not in ran.err


async def test_a_proxy_that_is_not_known_here_stops_a_login(site) -> None:
    site.file.write_text(site.file.read_text().replace("[pixiv]", '[pixiv]\nproxy = "${PROXY_ADDRESS}"'))
    ran = await site.ask("login", "--token", "-", stdin=site.simulator.refresh_token)
    assert ran.code == 65
    assert "PROXY_ADDRESS is not set" in ran.err


async def test_of_a_rotated_token_the_new_one_is_stored(tmp_path, make_site) -> None:
    async with open_simulator(options=SimulatorOptions(rotate_refresh_tokens=True)) as rotating:
        site = make_site(tmp_path, rotating)
        old = rotating.refresh_token
        assert (await site.ask("login", "--token", "-", stdin=old)).code == 0
        assert stored(site)["refresh_token"] == rotating.refresh_token != old


async def test_a_token_on_the_command_line_is_refused_with_the_reason(site) -> None:
    ran = await site.ask("login", "--token", "secret-token")
    assert ran.code == 2
    assert "process list" in ran.err
    assert "secret-token" not in ran.err


async def test_an_unknown_account_is_refused_with_the_known_ones(site) -> None:
    ran = await site.ask("login", "alice", "--token", "-", stdin="x")
    assert ran.code == 1
    assert "no account 'alice'" in ran.err
    assert "known: main" in ran.err


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault(match="/auth/token", kind="refuse_refresh"), "Pixiv refuses the refresh token"),
        (Fault(match="/auth/token", kind="html"), "the token endpoint"),
        (Fault(match="/auth/token", kind="reset"), "127.0.0.1"),
    ],
)
async def test_a_failed_login_stores_nothing_and_keeps_the_old_token(site, fault, text) -> None:
    token = site.simulator.refresh_token
    assert (await site.ask("login", "--token", "-", stdin=token)).code == 0
    before = stored(site)
    site.simulator.faults.add(fault)
    ran = await site.ask("login", "--token", "-", stdin=token)
    assert ran.code == 1
    assert text in ran.err
    assert "nothing was stored" in ran.err
    assert len(ran.err.splitlines()) == 1
    assert stored(site) == before


async def test_an_unreachable_host_is_named(site) -> None:
    text = site.file.read_text()
    site.file.write_text(
        text.replace(f'oauth_url = "{site.simulator.oauth_url}"', 'oauth_url = "http://127.0.0.1:1"')
    )
    ran = await site.ask("login", "--token", "-", stdin="some-token")
    assert ran.code == 1
    assert ran.err.startswith("pixivflow: Pixiv cannot be reached: look at the network of this host")
    assert "127.0.0.1: ConnectError" in ran.err
    assert stored(site) is None


@pytest.mark.parametrize(
    ("started_as", "command"),
    [
        ("/opt/x/bin/pixivflow", ("/opt/x/bin/pixivflow",)),
        ("/opt/x/pixivflow/__main__.py", (sys.executable, "-m", "pixivflow")),
    ],
)
def test_the_command_for_another_user_can_be_copied(started_as, command) -> None:
    assert own_command(started_as) == command


async def test_a_state_folder_of_somebody_else_is_refused_with_the_whole_command(site) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    site.state.mkdir()
    os.chown(site.state, NOBODY, -1)
    ran = await site.ask("login", "--token", "-", stdin="some-token")
    assert ran.code == 1
    assert f"run: sudo -u {shlex.quote(user_name(NOBODY))} " in ran.err
    assert ran.err.endswith(f" -c {site.file} login main\n")


async def test_an_empty_input_is_refused(site) -> None:
    ran = await site.ask("login", "--token", "-", stdin="\n")
    assert ran.code == 1
    assert "the refresh token is empty" in ran.err


@pytest.mark.parametrize("form", ["address", "code"])
async def test_the_browser_way_takes_a_pasted_address_or_code(site, form) -> None:
    site.configure("")
    site.simulator.faults.clear()
    async with _asking(site, "login") as conversation:
        shown = await conversation.until("Code or address")
        url = re.search(r"http://\S+/web/v1/login\?\S+", shown)[0]
        address = await _sign_in(url)
        if form == "code":
            await conversation.say("what is this?")
            assert "no code found" in await conversation.until("Code or address")
            address = parse_qs(urlsplit(address).query)["code"][0]
        await conversation.say(address)
        rest = await conversation.end()
    assert "is collector-example" in rest
    assert "30 seconds" in shown
    assert "developer tools" in shown
    assert stored(site)["refresh_token"] == site.simulator.refresh_token
    assert conversation.code == 0


async def test_a_code_that_has_expired_is_told_and_nothing_is_stored(site) -> None:
    site.configure("")
    ran = await site.ask("login", stdin="pixiv://account/login?code=abcdef&via=login\n")
    assert ran.code == 1
    assert "30 seconds" in ran.err
    assert stored(site) is None


async def test_a_running_daemon_uses_the_new_login_at_once(site) -> None:
    site.configure("")
    async with site.daemon():
        assert (await site.ask("status", "--json")).json["logins_needed"] == ["main"]
        ran = await site.ask("login", "--token", "-", stdin=site.simulator.refresh_token)
        assert "the running daemon was told of it" in ran.out
        assert (await site.run("once", "landscape")).code == 0
        assert (await site.ask("status", "--json")).json["logins_needed"] == []


class Conversation:
    """A command that asks questions."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self.code: int | None = None

    async def until(self, text: str) -> str:
        """Return what is printed up to a text."""
        seen = ""
        with trio.fail_after(20):
            while text not in seen:
                chunk = await self._process.stdout.receive_some()
                assert chunk, f"it ended before {text!r}: {seen}"
                seen += chunk.decode()
        return seen

    async def say(self, line: str) -> None:
        """Answer a question."""
        await self._process.stdin.send_all(line.encode() + b"\n")

    async def end(self) -> str:
        """Return the rest of the output, after the command's end."""
        with trio.fail_after(20):
            rest = b"".join([chunk async for chunk in self._process.stdout])
            self.code = await self._process.wait()
        return rest.decode()


@asynccontextmanager
async def _asking(site, *args: str) -> AsyncGenerator[Conversation]:
    process = await trio.lowlevel.open_process(
        site.command(*args),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=site.folder,
        env=site.environment,
    )
    try:
        yield Conversation(process)
    finally:
        if process.returncode is None:
            process.kill()
        with trio.CancelScope(shield=True):
            await process.stdin.aclose()
            await process.stdout.aclose()
            await process.wait()


async def _sign_in(url: str) -> str:
    """Log in as a browser would; return the address that it ends at."""
    async with httpx.AsyncClient(trust_env=False) as http:
        answer = await http.get(url)
        answer = await http.get(httpx.URL(url).join(answer.headers["location"]))
        return answer.headers["location"]
