"""A stage for the real daemon: look-alikes it talks to, a folder it lives in, and eyes from outside."""

import dataclasses
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import trio

from pixivflow.cli.client import DaemonUnreachable, call
from pixivflow.failpoints import VARIABLE
from pixivflow.simulator.catalogue import Catalogue, SimWork
from pixivflow.simulator.server import Simulator, SimulatorOptions, open_simulator

DEADLINE_S = 20.0
LOOK_S = 0.02
TAG = "風景"
SCHEDULE = "often"
NEVER = "0 0 29 2 *"
SIGKILLED = -signal.SIGKILL


@dataclasses.dataclass(frozen=True)
class Plan:
    """What stands in the configuration file. A target is (storage, routes)."""

    targets: Mapping[str, tuple[str, tuple[str, ...]]] = dataclasses.field(
        default_factory=lambda: {"one": ("persistent", ("channel",))}
    )
    cron: str = NEVER
    token: str | None = None
    receiver_url: str | None = None
    route_keys: str = 'retry_base = "50ms"\nretry_cap = "50ms"'
    download_dir: str = "downloads"
    cell_timeout: str = "5m"
    capacity: int = 1
    page_concurrency: int = 6
    extra_channels: tuple[str, ...] = ()
    """More routes that are as "channel" is."""


class Daemon:
    """One process of the daemon."""

    def __init__(self, process: trio.Process, stage: "Stage", log: Path) -> None:
        self.process = process
        self.stage = stage
        self.log = log

    @property
    def pid(self) -> int:
        return self.process.pid

    async def ask(self, method: str, **params: Any) -> Any:
        return await call(self.stage.socket, method, params)

    async def ready(self) -> None:
        """Return when it answers; fail when it ends before."""

        async def answers() -> bool:
            if self.process.poll() is not None:
                raise AssertionError(f"it ended with {self.process.returncode}\n{self.text()}")
            try:
                return bool((await self.ask("daemon.status"))["pid"] == self.pid)
            except DaemonUnreachable:
                return False

        await self.stage.until("the daemon answers", answers)

    async def trigger(self, key: str, target: str | None = None) -> str:
        made = await self.ask("schedules.trigger", schedule=SCHEDULE, now=True, key=key, target=target)
        return str(made["slot_id"])

    async def trigger_and_die(self, key: str) -> None:
        """Trigger where the daemon may die before it has answered."""
        try:
            await self.trigger(key)
        except DaemonUnreachable as lost:
            if not lost.sent:
                raise

    async def slot(self, slot_id: str) -> dict[str, Any]:
        return dict(await self.ask("slots.get", slot_id=slot_id))

    async def slot_ends(self, slot_id: str) -> str:
        """Return the status that the slot comes to."""
        found: dict[str, Any] = {}

        async def ended() -> bool:
            nonlocal found
            found = (await self.slot(slot_id))["slot"]
            return found["ended_at"] is not None

        await self.stage.until(f"slot {slot_id} ends", ended)
        return str(found["status"])

    async def ended(self, within_s: float = DEADLINE_S) -> int:
        """Return the exit code."""
        with trio.move_on_after(within_s):
            return await self.process.wait()
        raise AssertionError(f"the daemon still runs after {within_s} s\n{self.text()}")

    async def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return await self.ended()

    @property
    def was_ready(self) -> bool:
        """Whether it got as far as taking orders."""
        return any(event["event"] == "ready" for event in self.events())

    def text(self) -> str:
        return self.log.read_text(errors="replace")[-12_000:]

    def events(self) -> list[dict[str, Any]]:
        """The log's lines."""
        lines = self.log.read_text(errors="replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]


class Stage:
    """A folder, a simulator, and the daemons started there one after another."""

    def __init__(self, folder: Path, simulator: Simulator, plan: Plan) -> None:
        self.folder = folder
        self.simulator = simulator
        self.daemons: list[Daemon] = []
        self.plan = plan
        self.write_config()

    @property
    def config(self) -> Path:
        return self.folder / "pixivflow.toml"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def socket(self) -> Path:
        return self.state / "control.sock"

    @property
    def downloads(self) -> Path:
        return self.folder / self.plan.download_dir

    @property
    def inbox(self) -> Path:
        return self.folder / "inbox"

    def write_config(self, **changes: Any) -> None:
        """Write the file, changed in parts of its plan."""
        self.plan = dataclasses.replace(self.plan, **changes)
        self.config.write_text(_config_text(self.plan, self.simulator))

    async def start(
        self,
        failpoint: str | None = None,
        *,
        env: Mapping[str, str] | None = None,
        arguments: tuple[str, ...] = (),
        program: tuple[str, ...] = ("-m", "pixivflow"),
    ) -> Daemon:
        """Start a daemon and return at once; ``program`` is given to the interpreter."""
        log = self.folder / f"daemon-{len(self.daemons)}.log"
        environment = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
        environment.update(env or {})
        if failpoint is not None:
            environment[VARIABLE] = failpoint
        with log.open("wb") as out:
            process = await trio.lowlevel.open_process(
                [sys.executable, *program, "-c", str(self.config), "run", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=environment,
                cwd=self.folder,
            )
        daemon = Daemon(process, self, log)
        self.daemons.append(daemon)
        return daemon

    async def start_ready(
        self, failpoint: str | None = None, *, env: Mapping[str, str] | None = None
    ) -> Daemon:
        """Start a daemon and return when it answers."""
        daemon = await self.start(failpoint, env=env)
        await daemon.ready()
        return daemon

    async def until(self, what: str, look: Callable[[], Awaitable[bool]]) -> None:
        """Look again and again until it is true; fail at the deadline with the daemon's log."""
        with trio.move_on_after(DEADLINE_S):
            while not await look():  # noqa: ASYNC110 - what happens in another process sets no event here
                await trio.sleep(LOOK_S)
            return
        raise AssertionError(f"not within {DEADLINE_S:.0f} s: {what}\n{self.logs()}")

    async def until_asked(self, prefix: str, times: int = 1) -> None:
        """Wait for a request at the look-alikes."""
        with trio.move_on_after(DEADLINE_S):
            await self.simulator.requests.until(lambda log: log.count(prefix) >= times)
            return
        raise AssertionError(f"not within {DEADLINE_S:.0f} s: {times} requests to {prefix}\n{self.logs()}")

    def logs(self) -> str:
        return "\n".join(f"--- {daemon.log.name}\n{daemon.text()}" for daemon in self.daemons)

    @contextmanager
    def ledger(self) -> Iterator[sqlite3.Connection]:
        """Read what a dead daemon left, on a copy: looking changes nothing."""
        with tempfile.TemporaryDirectory() as folder:
            for path in self.state.glob("ledger.db*"):
                if not path.name.endswith("-shm"):
                    shutil.copy(path, folder)
            with closing(sqlite3.connect(Path(folder) / "ledger.db")) as connection:
                connection.row_factory = sqlite3.Row
                yield connection

    def rows(self, sql: str, *values: object) -> list[dict[str, Any]]:
        with self.ledger() as connection:
            if not connection.execute("PRAGMA user_version").fetchone()[0]:
                return []  # whoever was killed had not made the tables
            return [dict(row) for row in connection.execute(sql, values)]

    def live_rows(self, sql: str) -> list[Any]:
        """Look over the shoulder of a running daemon; a reader cannot write or checkpoint."""
        address = f"{(self.state / 'ledger.db').as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            return connection.execute(sql).fetchall()

    def let_time_pass(self) -> None:
        """Make the waits of a stopped daemon's rows and routes belong to the past, as hours would."""
        with closing(sqlite3.connect(self.state / "ledger.db")) as connection, connection:
            for queue in ("cells", "outbox"):
                connection.execute(f"UPDATE {queue} SET due_at = created_at WHERE state = 'pending'")
            connection.execute("UPDATE accounts SET cooldown_until = NULL")
            connection.execute(
                """UPDATE routes SET breaker = json_set(breaker, '$.opened_at_ms', 1, '$.probing_since_ms', NULL)
                   WHERE breaker ->> '$.opened_at_ms' IS NOT NULL"""
            )

    def add_newer_work(self) -> SimWork:
        """Add what a selection made now would take first."""
        catalogue = self.simulator.catalogue
        work = catalogue.make_work(tags=(TAG,), bookmarks=99_999, views=999_999, width=120, height=160)
        catalogue.add(work)
        return work

    def kill_all(self) -> None:
        for daemon in self.daemons:
            if daemon.process.poll() is None:
                daemon.process.kill()


_NOT_INHERITED = frozenset({VARIABLE, "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "PIXIVFLOW_CONFIG"})


@asynccontextmanager
async def open_stage(
    folder: Path,
    plan: Plan | None = None,
    *,
    pages: int = 1,
    works: int = 3,
    catalogue: Catalogue | None = None,
    options: SimulatorOptions | None = None,
) -> AsyncGenerator[Stage]:
    """Set a stage with ``works`` works, all alike, of so many pages; daemons still alive at the end are killed."""
    if catalogue is None:
        catalogue = Catalogue(works=0)
        for _ in range(works):
            catalogue.add(
                catalogue.make_work(
                    tags=(TAG,), page_count=pages, extensions=("jpg", "png"), width=120, height=160
                )
            )
    async with open_simulator(catalogue=catalogue, options=options or SimulatorOptions()) as simulator:
        stage = Stage(folder, simulator, plan or Plan())
        try:
            yield stage
        except BaseException:
            print(stage.logs())  # noqa: T201 - shown with the failure
            raise
        finally:
            stage.kill_all()
            with trio.move_on_after(DEADLINE_S, shield=True):
                for daemon in stage.daemons:
                    await daemon.process.wait()


def _config_text(plan: Plan, simulator: Simulator) -> str:
    token = simulator.refresh_token if plan.token is None else plan.token
    account = f"refresh_token = {json.dumps(token)}" if token else ""
    receiver = plan.receiver_url or simulator.receiver_url
    names = ", ".join(json.dumps(name) for name in plan.targets)
    targets = "\n".join(_target_text(name, *facts) for name, facts in plan.targets.items())
    channels = "\n".join(
        _channel_text(name, receiver, plan.route_keys) for name in ("channel", *plan.extra_channels)
    )
    return f"""
[storage]
state_dir = "state"
download_dir = {json.dumps(plan.download_dir)}
min_free = "0B"
page_concurrency = {plan.page_concurrency}
[pixiv]
api_url = "{simulator.api_url}"
oauth_url = "{simulator.oauth_url}"
image_url = "{simulator.image_url}"
pace = "0s"
[logging]
format = "json"
[accounts.main]
{account}
capacity = {plan.capacity}
[[schedules]]
id = "{SCHEDULE}"
cron = "{plan.cron}"
targets = [{names}]
timeout = "{plan.cell_timeout}"
{targets}
{channels}
[routes.inbox]
type = "folder"
path = "inbox"
{plan.route_keys}
"""


def _channel_text(name: str, receiver: str, keys: str) -> str:
    return f"""
[routes.{name}]
type = "multipart"
url = "{receiver}/submissions"
fields = {{ title = "{{{{title}}}}", work = "{{{{id}}}}" }}
{keys}
"""


def _target_text(name: str, storage: str, routes: tuple[str, ...]) -> str:
    return f"""
[[targets]]
id = "{name}"
mode = "search"
tags = ["{TAG}"]
limit = 1
scan_limit = 20
storage = "{storage}"
routes = [{", ".join(json.dumps(route) for route in routes)}]
"""
