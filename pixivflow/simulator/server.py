"""The whole simulator: three listeners, one handle."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime

import msgspec
import trio
from starlette.applications import Starlette
from starlette.routing import BaseRoute

from pixivflow.clock import SystemWall, Wall
from pixivflow.simulator import admin
from pixivflow.simulator.accounts import Accounts
from pixivflow.simulator.api import Illustrations
from pixivflow.simulator.catalogue import Catalogue
from pixivflow.simulator.connections import App, HttpServer, bind, port_of
from pixivflow.simulator.discovery import Discovery
from pixivflow.simulator.faults import Faults
from pixivflow.simulator.gallery import Gallery
from pixivflow.simulator.gate import Gate
from pixivflow.simulator.images import Images
from pixivflow.simulator.receiver import Receiver
from pixivflow.simulator.refusals import Refusal, answer_refusal, answer_unknown
from pixivflow.simulator.requests import RequestLog
from pixivflow.simulator.signin import BearerCheck, SignIn
from pixivflow.simulator.world import World


class SimulatorOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a simulator behaves. Port 0 takes a free one.

    ``image_bytes_per_s`` limits each connection; ``image_min_bytes`` pads originals, which stay decodable.
    ``account_x_restrict`` is what the account may see, as the sign-in answer says it.
    """

    host: str = "127.0.0.1"
    api_port: int = 0
    image_port: int = 0
    receiver_port: int = 0
    token_lifetime_s: float = 3600.0
    rotate_refresh_tokens: bool = False
    premium: bool = False
    account_x_restrict: int = 2
    api_latency_s: float = 0.0
    image_latency_s: float = 0.0
    receiver_latency_s: float = 0.0
    image_bytes_per_s: int | None = None
    image_min_bytes: int = 0
    dedup_work: bool = False


DEFAULTS = SimulatorOptions()


class Simulator:
    """A running simulator. The addresses have no slash at their end."""

    def __init__(
        self, world: World, *, receiver_url: str, faults: Faults, requests: RequestLog, receiver: Receiver
    ) -> None:
        self.api_url = world.api_url
        self.oauth_url = world.api_url
        self.image_url = world.image_url
        self.receiver_url = receiver_url
        self.catalogue = world.catalogue
        self.accounts = world.accounts
        self.faults = faults
        self.requests = requests
        self.receiver = receiver

    @property
    def refresh_token(self) -> str:
        """The newest valid refresh token."""
        return self.accounts.refresh_token


@asynccontextmanager
async def open_simulator(
    *,
    seed: int = 1,
    works: int = 120,
    catalogue: Catalogue | None = None,
    wall: Wall | None = None,
    options: SimulatorOptions = DEFAULTS,
) -> AsyncGenerator[Simulator]:
    """Serve a look-alike of Pixiv and a receiver until the block ends, then close at once.

    Without a catalogue one grows from the seed, with its works before the wall's now. An error of the block
    leaves as it is. Raises OSError when a port is taken.
    """
    wall = wall or SystemWall()
    now = datetime.fromtimestamp(wall.now_ms() / 1000, UTC)
    catalogue = catalogue or Catalogue(seed, works=works, now=now)
    async with AsyncExitStack() as stack:
        ports = (options.api_port, options.image_port, options.receiver_port)
        listeners = [await stack.enter_async_context(await bind(options.host, port)) for port in ports]
        urls = [f"http://{options.host}:{port_of(listener)}" for listener in listeners]
        accounts = Accounts(
            wall,
            lifetime_s=options.token_lifetime_s,
            rotate=options.rotate_refresh_tokens,
            premium=options.premium,
            x_restrict=options.account_x_restrict,
            seed=seed,
        )
        world = World(catalogue, wall, accounts, options.premium, urls[0], urls[1])
        simulator = Simulator(
            world,
            receiver_url=urls[2],
            faults=Faults(),
            requests=RequestLog(),
            receiver=Receiver(wall, dedup_work=options.dedup_work),
        )
        apps = _applications(world, simulator, options)
        async with _serving(list(zip(apps, listeners, strict=True))):
            yield simulator


@asynccontextmanager
async def _serving(pairs: Sequence[tuple[App, trio.SocketListener]]) -> AsyncGenerator[None]:
    servers = [HttpServer(app, listener) for app, listener in pairs]
    failure: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            for server in servers:
                nursery.start_soon(server.answer_clients)
            try:
                yield
            finally:
                for server in servers:
                    server.disconnect()
                nursery.cancel_scope.cancel("the simulator closes")
    except BaseExceptionGroup as group:
        failure = _sole(group)
    if failure is not None:
        raise failure


def _sole(error: BaseException) -> BaseException:
    """Give the block's own error out of the nursery's wrapping, when it is the only one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _applications(world: World, simulator: Simulator, options: SimulatorOptions) -> list[App]:
    faults, requests, receiver = simulator.faults, simulator.requests, simulator.receiver
    doors = [*admin.fault_routes(faults), *admin.log_routes(requests), *admin.work_routes(world)]
    api = _starlette(
        [*SignIn(world.accounts).routes(), *Illustrations(world).routes(), *Discovery(world).routes(), *doors]
    )
    gallery = Gallery(min_bytes=options.image_min_bytes)
    images = _starlette(Images(world, gallery, bytes_per_s=options.image_bytes_per_s).routes())
    channel = _starlette([*receiver.routes(), *admin.fault_routes(faults)])
    return [
        Gate(
            BearerCheck(api, world.accounts),
            "api",
            faults=faults,
            requests=requests,
            latency_s=options.api_latency_s,
        ),
        Gate(images, "image", faults=faults, requests=requests, latency_s=options.image_latency_s),
        Gate(
            channel,
            "receiver",
            faults=faults,
            requests=requests,
            latency_s=options.receiver_latency_s,
            on_unseen=receiver.note_unseen,
        ),
    ]


def _starlette(routes: Sequence[BaseRoute]) -> Starlette:
    return Starlette(routes=routes, exception_handlers={Refusal: answer_refusal, 404: answer_unknown})
