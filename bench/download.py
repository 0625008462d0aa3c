"""140 images of 132 works through the whole daemon, beside a bare httpx loop of the same concurrency in one run.

Run: python -m bench.download [--works 132] [--latency-ms 60]. Budget: within 1.3x of the bound that
page_concurrency and the API calls set.
"""

import argparse
import json
import math
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import httpx
import trio
from rich.console import Console
from rich.table import Table

from bench.footprint import memory_mib
from pixivflow.cli.client import call
from pixivflow.pixiv.settings import PixivSettings
from pixivflow.simulator.catalogue import Catalogue
from pixivflow.simulator.server import SimulatorOptions, open_simulator

PAGE_CONCURRENCY = 6
CAPACITY = 4
API_S, IMAGE_S, RATE, SIZE = 0.150, 0.060, 4 * 2**20, 512 * 2**10
BUDGET = 1.3
DEADLINE_S = 300


async def serve(works: int, extra_pages: int) -> None:
    """A simulator of its own process: prints its addresses and the works, then serves until killed."""
    catalogue = Catalogue(works=0)
    ids = []
    for number in range(works):
        work = catalogue.make_work(page_count=2 if number < extra_pages else 1, type="illust", x_restrict=0)
        catalogue.add(work)
        ids.append(work.id)
    options = SimulatorOptions(
        api_latency_s=API_S, image_latency_s=IMAGE_S, image_bytes_per_s=RATE, image_min_bytes=SIZE
    )
    async with open_simulator(catalogue=catalogue, options=options) as simulator:
        await warm(simulator.api_url, simulator.refresh_token, ids)
        facts = {
            "api": simulator.api_url,
            "oauth": simulator.oauth_url,
            "image": simulator.image_url,
            "token": simulator.refresh_token,
            "ids": ids,
        }
        print(json.dumps(facts), flush=True)
        await trio.sleep_forever()


async def image_urls(api: str, token: str, ids: list[int]) -> list[str]:
    """Every page's address, asked side by side."""
    urls: list[str] = []
    async with httpx.AsyncClient(timeout=60) as http:
        settings = PixivSettings()
        body = {
            "grant_type": "refresh_token",
            "refresh_token": token,
            "client_id": settings.client_id,
            "client_secret": settings.client_secret,
        }
        access = (await http.post(f"{api}/auth/token", data=body)).json()["access_token"]
        limiter = trio.CapacityLimiter(16)

        async def detail(illust: int) -> None:
            async with limiter:
                answer = await http.get(
                    f"{api}/v1/illust/detail",
                    params={"illust_id": illust},
                    headers={"Authorization": f"Bearer {access}"},
                )
            facts = answer.json()["illust"]
            pages = [page["image_urls"]["original"] for page in facts["meta_pages"]]
            urls.extend(pages or [facts["meta_single_page"]["original_image_url"]])

        async with trio.open_nursery() as nursery:
            for illust in ids:
                nursery.start_soon(detail, illust)
    return urls


async def fetch_all(urls: list[str], concurrency: int) -> None:
    """The bare loop: bodies are read and dropped."""
    limiter = trio.CapacityLimiter(concurrency)
    async with httpx.AsyncClient(timeout=60, headers={"Referer": "https://app-api.pixiv.net/"}) as http:

        async def fetch(url: str) -> None:
            async with limiter, http.stream("GET", url) as response:
                async for _ in response.aiter_raw():
                    pass

        async with trio.open_nursery() as nursery:
            for url in urls:
                nursery.start_soon(fetch, url)


async def warm(api: str, token: str, ids: list[int]) -> None:
    """Let the simulator draw every picture once, so that neither side pays for it."""
    await fetch_all(await image_urls(api, token, ids), 32)


def write_config(folder: Path, facts: dict[str, str]) -> Path:
    """The daemon's configuration."""
    path = folder / "pixivflow.toml"
    path.write_text(
        f"""[pixiv]
api_url = "{facts["api"]}"
oauth_url = "{facts["oauth"]}"
image_url = "{facts["image"]}"
pace = "0s"
[accounts.main]
refresh_token = "{facts["token"]}"
capacity = {CAPACITY}
[storage]
state_dir = "state"
download_dir = "files"
page_concurrency = {PAGE_CONCURRENCY}
min_free = "0B"
"""
    )
    return path


def start_daemon(config: Path, log: Path) -> subprocess.Popen[bytes]:
    """The real daemon, its log in a file."""
    with log.open("wb") as sink:
        return subprocess.Popen([sys.executable, "-m", "pixivflow", "-c", str(config), "run"], stderr=sink)


async def until_ready(log: Path) -> None:
    """Wait until the daemon says that it is ready."""
    while b'"ready"' not in log.read_bytes():  # noqa: ASYNC110, ASYNC240 - another process's state, a small file
        await trio.sleep(0.05)


async def through_the_daemon(folder: Path, facts: dict[str, str], ids: list[int]) -> tuple[float, float]:
    """Seconds from the order to the last commit, and the daemon's peak memory in MiB."""
    config = write_config(folder, facts)
    daemon = start_daemon(config, folder / "log")
    ask = partial(call, folder / "state" / "control.sock")
    try:
        with trio.fail_after(DEADLINE_S):
            await until_ready(folder / "log")
            began = time.monotonic()
            await ask("cells.get_works", {"works": ids})
            while await ask("cells.list", {"open": True, "limit": 1}):  # noqa: ASYNC110 - another process's state
                await trio.sleep(0.05)
            took = time.monotonic() - began
        cells = await ask("cells.list", {"limit": len(ids)})
        bad = [cell for cell in cells if cell["status"] != "submitted"]
        if bad:
            raise SystemExit(f"{len(bad)} works failed, the first: {bad[0]}")
        return took, memory_mib(daemon.pid, "VmHWM")
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(10)


async def measure(works: int, images: int) -> None:
    """Measure both in one run and print."""
    command = [
        sys.executable,
        "-m",
        "bench.download",
        "--serve",
        "--works",
        str(works),
        "--images",
        str(images),
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: ASYNC220 - before anything else runs
    assert server.stdout is not None
    try:
        facts = json.loads(server.stdout.readline())
        ids = facts.pop("ids")
        urls = await image_urls(facts["api"], facts["token"], ids)
        began = time.monotonic()
        await fetch_all(urls, PAGE_CONCURRENCY)
        bare = time.monotonic() - began
        with tempfile.TemporaryDirectory() as folder:
            took, memory = await through_the_daemon(Path(folder), facts, ids)
    finally:
        server.kill()
        server.wait()
    image_bound = math.ceil(len(urls) / PAGE_CONCURRENCY) * (IMAGE_S + SIZE / RATE)
    api_bound = math.ceil(works / CAPACITY) * API_S
    bound = max(image_bound, api_bound)
    table = Table(
        "what", "seconds", "of the bound", title=f"{len(urls)} images of {works} works, 512 KiB each"
    )
    table.add_row(
        f"bound by {PAGE_CONCURRENCY} connections", f"{image_bound:.2f}", f"{image_bound / bound:.2f}"
    )
    table.add_row(f"bound by the API, capacity {CAPACITY}", f"{api_bound:.2f}", f"{api_bound / bound:.2f}")
    table.add_row("bare httpx loop, images only", f"{bare:.2f}", f"{bare / bound:.2f}")
    table.add_row("the daemon, selection to commit", f"{took:.2f}", f"{took / bound:.2f} (budget {BUDGET})")
    Console().print(table)
    Console().print(f"the daemon's peak memory: {memory:.1f} MiB")


def main() -> None:
    """Measure, or serve for the measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--works", type=int, default=132)
    parser.add_argument("--images", type=int, default=140)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        trio.run(serve, options.works, options.images - options.works)
    else:
        trio.run(measure, options.works, options.images)


if __name__ == "__main__":
    main()
