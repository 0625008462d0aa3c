import pytest

from pixivflow.config.load import load_config
from pixivflow.ledger.engine import connect_inline
from pixivflow.ledger.schema import MIGRATIONS
from pixivflow.operations.desk import Desk

NOW = 1_780_000_000_000
CONFIG = """
[storage]
state_dir = "state"
download_dir = "downloads"
[accounts.main]
refresh_token = "t"
[[schedules]]
id = "hourly"
cron = "0 * * * *"
targets = ["land", "sea", "off"]
timeout = "7m"
[[schedules]]
id = "idle"
cron = "0 0 1 1 *"
targets = ["off"]
[[targets]]
id = "land"
mode = "search"
tags = ["x"]
limit = 1
routes = ["inbox"]
storage = "cache"
[[targets]]
id = "sea"
mode = "search"
tags = ["y"]
limit = 1
[[targets]]
id = "off"
enabled = false
mode = "search"
tags = ["z"]
limit = 1
[routes.inbox]
type = "folder"
path = "inbox"
"""


class SettableWall:
    def __init__(self) -> None:
        self.now = NOW

    def now_ms(self) -> int:
        return self.now


class Office:
    """A desk on a ledger of its own; ``rung`` has what it rang."""

    def __init__(self, ledger, config) -> None:
        self.ledger = ledger
        self.wall = SettableWall()
        self.config = config
        self.rung = []
        self.methods = Desk(ledger, self.wall, config, self.rung.append).methods()

    async def ask(self, method, **params):
        return await self.methods[method](params)

    async def rows(self, sql):
        return await self.ledger.read(lambda db: db.execute(sql).fetchall())


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "pixivflow.toml"
    file.write_text(CONFIG)
    return load_config(file, {})


@pytest.fixture
def ledger(tmp_path):
    with connect_inline(tmp_path / "ledger.db", MIGRATIONS, durable=False) as opened:
        yield opened


@pytest.fixture
async def office(ledger, config):
    return Office(ledger, config)


@pytest.fixture
async def bare_office(ledger):
    """Without a configuration, as for a command that only looks."""
    return Office(ledger, None)
