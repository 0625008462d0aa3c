"""A workshop: the actors' real parts beside the look-alikes; and a bench: actors under virtual time, on an inline ledger."""

import dataclasses
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
import trio
import trio.testing

from actors.assembly import lanes
from actors.bells import Doorbells, FlightRecorder
from actors.coordinator import run_coordinator
from actors.core import Core, Pulse
from actors.heartbeat import run_heartbeat
from actors.outbox import run_outbox
from actors.parts import Parts, open_parts
from actors.supervisor import supervise
from pixivflow.clock import SystemWall, TrioWall
from pixivflow.config.load import load_config
from pixivflow.config.model import Config
from pixivflow.ledger.engine import connect_inline
from pixivflow.ledger.held import HeldLeases
from pixivflow.ledger.schema import MIGRATIONS
from pixivflow.operations.desk import Desk
from pixivflow.simulator.catalogue import Catalogue
from pixivflow.simulator.faults import Fault
from pixivflow.simulator.server import Simulator, SimulatorOptions, open_simulator
from protocol.messages import RunCell

TAG = "風景"
DEADLINE_S = 20.0
LOOK_S = 0.01
START_MS = 1_780_000_000_000
QUICK = 'retry_base = "20ms"\nretry_cap = "20ms"\n'
TARGET = f"""
[[targets]]
id = "land"
mode = "search"
tags = ["{TAG}"]
limit = 1
routes = ["channel"]
"""


@pytest.fixture
def quiet_logs():
    """Keep what actors log, for tests that ask for it."""
    with structlog.testing.capture_logs() as logs:
        yield logs


def config_of(folder: Path, text: str) -> Config:
    file = folder / "pixivflow.toml"
    file.write_text(text)
    return load_config(file, {})


@dataclasses.dataclass
class Workshop:
    """Real parts over loopback. Nothing runs by itself: `working` starts actors for a block."""

    simulator: Simulator
    parts: Parts

    @property
    def core(self) -> Core:
        return self.parts.core

    @property
    def posts(self):
        return self.simulator.receiver.posts

    @property
    def ledger(self):
        return self.core.ledger

    async def ask(self, method: str, **params: Any) -> Any:
        desk = Desk(self.ledger, self.core.wall, self.parts.config, self.core.ring)
        return msgspec.json.decode(msgspec.json.encode(await desk.methods()[method](params)))

    async def once(self, *targets: str) -> int:
        return (await self.ask("cells.once", targets=list(targets or ("land",))))[0]

    async def cell(self, cell_id: int) -> Mapping[str, Any]:
        return (await self.ask("cells.get", cell_id=cell_id))["cell"]

    async def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        return await self.ledger.read(_query, sql, values)

    async def change(self, sql: str, *values: Any) -> None:
        await self.ledger.write(lambda db: db.execute(sql, values).rowcount)

    async def until(self, cell_id: int, **facts: Any) -> Mapping[str, Any]:
        """Wait until the cell has these facts; a callable is asked."""
        return await self.row_until("cells", cell_id, **facts)

    async def row_until(self, table: str, row_id: int, **facts: Any) -> Mapping[str, Any]:
        row = None
        with trio.move_on_after(DEADLINE_S):
            while True:
                row = (await self.rows(f"SELECT * FROM {table} WHERE id = ?", row_id))[0]
                if all(f(row[name]) if callable(f) else row[name] == f for name, f in facts.items()):
                    return row
                await trio.sleep(LOOK_S)
        raise AssertionError(f"{table}:{row_id} never had {facts}: {row}")

    async def ended(self, cell_id: int) -> Mapping[str, Any]:
        return await self.until(cell_id, ended_at=lambda at: at is not None)

    async def due(self, cell_id: int) -> None:
        """Make a waiting cell due, and ring for it."""
        await self.change("UPDATE cells SET due_at = 0 WHERE id = ?", cell_id)
        self.core.ring(RunCell(cell_id))

    def seen(self, path: str) -> list[Any]:
        return [request for request in self.simulator.requests.seen if request.path.startswith(path)]

    def with_core(self, **changes: Any) -> "Workshop":
        """The same workshop with other things in its core."""
        parts = dataclasses.replace(self.parts, core=dataclasses.replace(self.core, **changes))
        return dataclasses.replace(self, parts=parts)

    def fault(self, match: str, kind: str, **more: Any) -> None:
        self.simulator.faults.add(Fault(match, kind, **more))

    @asynccontextmanager
    async def working(self, *, hands: bool = True, lanes_too: bool = True) -> AsyncGenerator[None]:
        """Run heartbeat, coordinator, hands and lanes for the block, then stop them as a shutdown does."""
        core, config = self.core, self.parts.config
        async with trio.open_nursery() as services:
            services.start_soon(run_heartbeat, core)
            async with trio.open_nursery() as workers:
                if hands:
                    pool = self.parts.handler_pool()
                    workers.start_soon(supervise, "hands", lambda: pool.run(core.bells.cells.clone()))
                    overlap = {schedule.id: schedule.overlap for schedule in config.schedules}
                    workers.start_soon(run_coordinator, core, core.bells.slots.clone(), overlap)
                if lanes_too:
                    workers.start_soon(run_outbox, core, lanes(config, core.wall))
                yield
                workers.cancel_scope.cancel()
            services.cancel_scope.cancel()


def _query(db, sql, values):
    cursor = db.execute(sql, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def catalogue_of(works: int = 3) -> Catalogue:
    """A few plain works with the tag, newest last."""
    catalogue = Catalogue(5, works=0, now=datetime(2026, 5, 1, tzinfo=UTC))
    for number in range(works):
        hours = catalogue.now.timestamp() - 3600 * (works - number)
        catalogue.add(
            catalogue.make_work(
                created=datetime.fromtimestamp(hours, UTC),
                tags=(TAG,),
                width=32,
                height=32,
                author=catalogue.authors[0],
            )
        )
    return catalogue


WORKSHOP = """
[storage]
state_dir = "state"
download_dir = "downloads"
{storage}
[pixiv]
api_url = "{simulator.api_url}"
oauth_url = "{simulator.oauth_url}"
image_url = "{simulator.image_url}"
pace = "0s"
{pixiv}
[accounts.main]
refresh_token = "{token}"
capacity = {capacity}
{text}
[routes.channel]
type = "multipart"
url = "{simulator.receiver_url}/submissions"
{route}
"""


@asynccontextmanager
async def open_workshop(
    folder: Path,
    text: str = TARGET,
    *,
    route: str = QUICK,
    catalogue: Catalogue | None = None,
    options: SimulatorOptions | None = None,
    token: str | None = None,
    storage: str = "",
    capacity: int = 1,
    pixiv: str = "",
    simulator: Simulator | None = None,
) -> AsyncGenerator[Workshop]:
    """Start the look-alikes (or use running ones) and build the parts that are pointed at them."""
    async with AsyncExitStack() as stack:
        if simulator is None:
            opened = open_simulator(
                catalogue=catalogue or catalogue_of(), options=options or SimulatorOptions()
            )
            simulator = await stack.enter_async_context(opened)
        config = config_of(
            folder,
            WORKSHOP.format(
                simulator=simulator,
                text=text,
                route=route,
                pixiv=pixiv,
                capacity=capacity,
                storage=storage or 'min_free = "0B"',
                token=token or simulator.refresh_token,
            ),
        )
        parts = await stack.enter_async_context(open_parts(config, SystemWall()))
        yield Workshop(simulator, parts)


@pytest.fixture
def workshops(tmp_path, quiet_logs) -> Callable[..., Any]:
    """Give the opener of workshops in this test's folder."""

    def opened(text: str = TARGET, **more: Any) -> Any:
        return open_workshop(tmp_path, text, **more)

    return opened


@pytest.fixture
async def workshop(tmp_path, quiet_logs):
    async with open_workshop(tmp_path) as made:
        yield made


@dataclasses.dataclass
class Bench:
    """Actors under virtual time: an inline ledger, a wall that moves with trio's clock, no sockets."""

    core: Core
    folder: Path

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        [answer] = self.core.ledger._reader.run([lambda db: _query(db, sql, values)])
        return answer.unwrap()

    def write(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        [answer] = self.core.ledger._writer.run([lambda db: fn(db, *args, **kwargs)])
        return answer.unwrap()

    def change(self, sql: str, *values: Any) -> None:
        self.write(lambda db: db.execute(sql, values).rowcount)

    @asynccontextmanager
    async def running(self, *actors: Callable[[], Any]) -> AsyncGenerator[None]:
        """Run actors beside the block and cancel them at its end."""
        async with trio.open_nursery() as nursery:
            for actor in actors:
                nursery.start_soon(actor)
            yield
            nursery.cancel_scope.cancel()


@contextmanager
def bench_in(folder: Path, *, start_ms: int = START_MS, routes: tuple[str, ...] = (), **more: Any):
    """Open a bench on the folder's ledger. Call it inside `trio.run`, so that civil time starts now."""
    with connect_inline(folder / "ledger.db", MIGRATIONS, durable=False, **more) as ledger:
        bells = Doorbells(routes, FlightRecorder())
        try:
            wall = TrioWall(start_ms)
            yield Bench(Core(ledger, HeldLeases(), bells, wall, random.Random(3), "bench", Pulse()), folder)
        finally:
            bells.close()


@dataclasses.dataclass
class Benches:
    """Opens benches in one test's folder."""

    folder: Path

    def __call__(self, **more: Any) -> Any:
        return bench_in(self.folder, **more)

    def config(self, text: str) -> Config:
        return config_of(self.folder, text)

    def ms(self, instant: str) -> int:
        """Milliseconds of an ISO instant."""
        return round(datetime.fromisoformat(instant).timestamp() * 1000)


@pytest.fixture
def benches(tmp_path, quiet_logs):
    """For tests that also ask for `autojump_clock`: time jumps whenever all tasks sleep."""
    return Benches(tmp_path)
