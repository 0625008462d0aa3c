"""`pixivflow simulate`: the look-alike of Pixiv and the receiver in the foreground, for tries by hand."""

import signal

import click
import trio

from pixivflow.simulator.server import Simulator, SimulatorOptions, open_simulator

LAST_PORT = 65_535
PORTS = 3


def _port_base(_ctx: click.Context, _param: click.Parameter, value: int | None) -> int | None:
    last = LAST_PORT - PORTS + 1
    if value is not None and not 1 <= value <= last:
        raise click.BadParameter(f"expected a port from 1 to {last}; leave it out for free ports")
    return value


@click.command("simulate")
@click.option(
    "--port-base",
    type=int,
    callback=_port_base,
    metavar="N",
    help="Listen on N (API), N+1 (images) and N+2 (receiver). Free ports by default.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same works.")
@click.option(
    "--works",
    type=click.IntRange(0, 100_000),
    default=120,
    show_default=True,
    help="How many works there are.",
)
def simulate_command(port_base: int | None, seed: int, works: int) -> None:
    """Serve a look-alike of Pixiv and a receiver until Ctrl-C.

    Both are local; nothing is sent to Pixiv.
    """
    trio.run(_serve, _options(port_base), seed, works, strict_exception_groups=True)


def _options(port_base: int | None) -> SimulatorOptions:
    if port_base is None:
        return SimulatorOptions()
    return SimulatorOptions(api_port=port_base, image_port=port_base + 1, receiver_port=port_base + 2)


async def _serve(options: SimulatorOptions, seed: int, works: int) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with open_simulator(seed=seed, works=works, options=options) as simulator:
            click.echo(_welcome(simulator, works))
            async for _ in signals:
                break
    click.echo("stopped", err=True)


def connection(simulator: Simulator) -> str:
    """Return the part of a configuration (TOML) that leads to the simulator instead of Pixiv."""
    return f"""\
[pixiv]
api_url = "{simulator.api_url}"
oauth_url = "{simulator.oauth_url}"
image_url = "{simulator.image_url}"
pace = "100ms"

[accounts.main]
refresh_token = "{simulator.refresh_token}"
"""


def configuration(simulator: Simulator) -> str:
    """Return a whole configuration (TOML) that collects from the simulator and posts to its receiver."""
    return f"""\
{connection(simulator)}
[storage]
state_dir = "state"
download_dir = "downloads"

[[schedules]]
id = "often"
cron = "* * * * * */10"
targets = ["landscape"]

[[targets]]
id = "landscape"
mode = "search"
tags = ["風景"]
limit = 1
scan_limit = 30
routes = ["channel"]

[routes.channel]
type = "multipart"
url = "{simulator.receiver_url}/submissions"
readiness_url = "{simulator.receiver_url}/ready"
"""


def _welcome(simulator: Simulator, works: int) -> str:
    return f"""\
Pixiv (API, login)  {simulator.api_url}
images              {simulator.image_url}
receiver            {simulator.receiver_url}
refresh token       {simulator.refresh_token}
works               {works}, made up; Ctrl-C ends it

# ---- a configuration that uses them: save it as pixivflow.toml, then run: pixivflow -c pixivflow.toml run
{configuration(simulator)}# ---- end

See what was posted, and what Pixiv was asked:
  curl {simulator.receiver_url}/posts
  curl {simulator.api_url}/_simulator/requests

Order a fault (DELETE on the same address ends all faults):
  the next search is told to slow down
    curl {simulator.api_url}/_simulator/faults -d '{{"match": "/v1/search/illust", "kind": "rate_limit"}}'
  the next post is stored, but its answer is lost
    curl {simulator.receiver_url}/_simulator/faults -d '{{"match": "/submissions", "kind": "lose_answer"}}'"""
