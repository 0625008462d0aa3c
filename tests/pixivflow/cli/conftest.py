"""A site to work at: a configuration against a simulator, the command line as processes, and a real daemon."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import structlog
import trio

from pixivflow.cli.client import DaemonUnreachable, call
from pixivflow.cli.exits import expected_errors
from pixivflow.cli.root import root
from pixivflow.simulator.server import Simulator, open_simulator

PATIENCE_S = 20
KEPT = frozenset({"PATH", "LANG", "LC_ALL", "PYTHONPATH"})
"""What a command needs of the environment; PYTHONPATH, so that it is the tree under test that runs."""
CONFIG = """
[pixiv]
api_url = "{api}"
oauth_url = "{oauth}"
image_url = "{image}"
pace = "0s"
[accounts.main]
{token}
[storage]
state_dir = "state"
download_dir = "works"
min_free = "0B"
[[schedules]]
id = "yearly"
cron = "0 0 1 1 *"
targets = ["landscape", "single"]
[[schedules]]
id = "often"
cron = "*/5 * * * *"
timezone = "Asia/Tokyo"
targets = ["landscape"]
enabled = false
[[targets]]
id = "landscape"
mode = "ranking"
limit = 1
scan_limit = 20
routes = ["channel"]
[[targets]]
id = "single"
mode = "search"
tags = ["風景"]
limit = 1
scan_limit = 20
routes = ["channel"]
[[targets]]
id = "nothing"
mode = "search"
tags = ["no-such-tag-anywhere"]
limit = 1
enabled = false
routes = ["channel"]
[routes.channel]
type = "multipart"
url = "{receiver}/submissions"
retry_base = "500ms"
"""


class Ran:
    """How a command ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err
        assert "Traceback" not in err, err
        assert "Traceback" not in out, out

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def __repr__(self) -> str:
        return f"<exit {self.code}>\n{self.out}\n--- standard error\n{self.err}"


class Site:
    """A folder with a configuration, and the means to run commands in it."""

    def __init__(self, folder: Path, simulator: Simulator) -> None:
        self.folder = folder
        self.simulator = simulator
        self.state = folder / "state"
        self.socket = self.state / "control.sock"
        self.file = folder / "pixivflow.toml"
        self.log = folder / "daemon.log"
        self.configure(f'refresh_token = "{simulator.refresh_token}"')

    def configure(self, token: str, more: str = "") -> None:
        """Write the configuration, with a line for the account and more at the end."""
        world = self.simulator
        text = CONFIG.format(
            api=world.api_url,
            oauth=world.oauth_url,
            image=world.image_url,
            receiver=world.receiver_url,
            token=token,
        )
        self.file.write_text(text + more)
        self.file.chmod(0o600)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in KEPT}
        return {**kept, "HOME": str(self.folder), "TZ": "UTC", "PYTHONFAULTHANDLER": "1"}

    def command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "pixivflow", "-c", str(self.file), *args]

    async def run(self, *args: str, stdin: bytes = b"") -> Ran:
        """Run one command to its end."""
        with trio.fail_after(PATIENCE_S):
            done = await trio.run_process(
                self.command(*args),
                stdin=stdin,
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                cwd=self.folder,
                env=self.environment,
            )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    async def ask(self, *args: str, stdin: str = "") -> Ran:
        """Run one command inside this process, in a thread: the same code without the start of an interpreter.

        For commands that handle no signals; what `run` does is the real thing.
        """
        with trio.fail_after(PATIENCE_S):
            return await trio.to_thread.run_sync(self._in_process, args, stdin)

    def _in_process(self, args: tuple[str, ...], stdin: str) -> Ran:
        out, err, code = io.StringIO(), io.StringIO(), 0
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "stdin", io.StringIO(stdin))
            patch.setenv("HOME", str(self.folder))
            try:
                with expected_errors():
                    root(["-c", str(self.file), *args], prog_name="pixivflow")
            except SystemExit as ended:
                code = int(ended.code or 0)
            finally:
                structlog.reset_defaults()
        return Ran(code, out.getvalue(), err.getvalue())

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for what another process does."""
        with trio.fail_after(PATIENCE_S):
            await trio.lowlevel.checkpoint()
            while not condition():  # noqa: ASYNC110 - no event of ours tells of another process
                await trio.sleep(0.02)

    @asynccontextmanager
    async def started(self, *args: str) -> AsyncGenerator[trio.Process]:
        """Start a command that goes on; killed at the end if it still runs."""
        with self.log.open("ab") as log:
            process = await trio.lowlevel.open_process(
                self.command(*args),
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=self.environment,
            )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()

    @asynccontextmanager
    async def daemon(self) -> AsyncGenerator[trio.Process]:
        """Run a daemon for the block, and see that it ends well. On a failure its log is shown."""
        async with self.started("run") as process:
            try:
                await self.answers(process)
                yield process
                if process.returncode is None:
                    process.send_signal(signal.SIGTERM)
                with trio.fail_after(PATIENCE_S):
                    assert await process.wait() == 0
            except BaseException as error:
                error.add_note(f"the daemon's log:\n{self.log.read_text()[-6000:]}")
                raise

    async def answers(self, process: trio.Process) -> None:
        """Wait until the daemon's socket answers."""
        with trio.fail_after(PATIENCE_S):
            while True:
                assert process.returncode is None, "the daemon ended at its start"
                try:
                    await call(self.socket, "daemon.status", {})
                except DaemonUnreachable:
                    await trio.sleep(0.05)
                else:
                    return


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    async with open_simulator() as running:
        yield running


@pytest.fixture
def make_site() -> type[Site]:
    return Site


@pytest.fixture
def site(tmp_path: Path, simulator: Simulator) -> Site:
    return Site(tmp_path, simulator)


@pytest.fixture
async def daemon(site: Site) -> AsyncIterator[trio.Process]:
    """A daemon that runs at the site during the test."""
    async with site.daemon() as process:
        yield process
