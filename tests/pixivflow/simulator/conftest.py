from contextlib import asynccontextmanager
from datetime import UTC, datetime

import httpx
import pytest
import trio

from pixivflow.simulator.catalogue import JST, Catalogue
from pixivflow.simulator.server import DEFAULTS, open_simulator

NOW = datetime(2026, 11, 20, 15, tzinfo=JST)
CLIENT = {
    "client_id": "MOBrBDS8blbauoSck0ZfDbtuzpyT",
    "client_secret": "lsACyCD94FhDUtGTXi3QzcFE2uU1hqtDaKeqrdwj",
}
REFERER = {"Referer": "https://app-api.pixiv.net/"}


class SettableWall:
    def __init__(self, now: datetime = NOW) -> None:
        self.now = now

    def now_ms(self) -> int:
        return round(self.now.astimezone(UTC).timestamp() * 1000)


class Driver:
    """A client that is signed in."""

    def __init__(self, simulator, http, wall) -> None:
        self.simulator = simulator
        self.http = http
        self.wall = wall
        self.token = ""

    async def sign_in(self) -> dict:
        form = CLIENT | {"grant_type": "refresh_token", "refresh_token": self.simulator.refresh_token}
        answer = await self.http.post(f"{self.simulator.oauth_url}/auth/token", data=form)
        if answer.status_code == 200:
            self.token = answer.json()["access_token"]
        return answer.json()

    async def get(self, path: str, **params) -> httpx.Response:
        url = path if path.startswith("http") else self.simulator.api_url + path
        headers = {"Authorization": f"Bearer {self.token}"}
        return await self.http.get(url, params=params or None, headers=headers)

    async def ids(self, path: str, **params) -> list[int]:
        answer = await self.get(path, **params)
        assert answer.status_code == 200, answer.text
        return [illust["id"] for illust in answer.json()["illusts"]]

    async def walk(self, path: str, **params) -> list[int]:
        found = []
        url = str(httpx.URL(self.simulator.api_url + path, params=params))
        while url is not None:
            page = (await self.get(url)).json()
            found += [illust["id"] for illust in page["illusts"]]
            url = page["next_url"]
        return found

    async def image(self, url: str, method: str = "GET", **headers) -> httpx.Response:
        url = url if url.startswith("http") else self.simulator.image_url + url
        return await self.http.request(method, url, headers=REFERER | headers)


@asynccontextmanager
async def driven(catalogue=None, options=DEFAULTS, wall=None):
    wall = wall or SettableWall()
    catalogue = catalogue or Catalogue(7, now=wall.now)
    with trio.fail_after(30):
        async with (
            open_simulator(catalogue=catalogue, wall=wall, options=options) as simulator,
            httpx.AsyncClient(trust_env=False, timeout=10) as http,
        ):
            driver = Driver(simulator, http, wall)
            await driver.sign_in()
            simulator.requests.clear()
            yield driver


@pytest.fixture
def drive():
    return driven


@pytest.fixture
async def driver():
    async with driven() as driver:
        yield driver
