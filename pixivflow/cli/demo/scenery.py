"""Where the demo happens: a folder with a real configuration in it."""

import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from pixivflow.cli.simulate import connection
from pixivflow.simulator.server import Simulator, SimulatorOptions
from pixivflow.unix_websocket import SocketPathTooLong, check_path

SCHEDULE: Final = "demo"
EVERY_S: Final = 3
CHANNEL: Final = "channel"
INBOX: Final = "inbox"
ROUTES: Final = MappingProxyType({"landscape": (CHANNEL,), "ranking": (CHANNEL,), "comic": (CHANNEL, INBOX)})
"""What each target owes to which routes, in each slot."""
PACE_OF_A_DEMO: Final = SimulatorOptions(
    api_latency_s=0.12, image_latency_s=0.15, receiver_latency_s=0.2, image_min_bytes=40_000
)
"""Slow enough to be watched."""


class BadPlace(Exception):
    """The demo can't have this folder; the text says why and what to do."""


class Place(msgspec.Struct, frozen=True):
    """The demo's folder, and what is where in it."""

    folder: Path

    @property
    def config(self) -> Path:
        """The configuration file."""
        return self.folder / "pixivflow.toml"

    @property
    def log(self) -> Path:
        """What the daemon logs."""
        return self.folder / "daemon.log"

    @property
    def state(self) -> Path:
        """The ledger, and what it needs."""
        return self.folder / "state"

    @property
    def downloads(self) -> Path:
        """What is kept."""
        return self.folder / "downloads"

    @property
    def inbox(self) -> Path:
        """The folder that one route delivers into."""
        return self.folder / "inbox"

    @property
    def socket(self) -> Path:
        """Where the daemon answers."""
        return self.state / "control.sock"


def make_place(keep: Path | None) -> Place:
    """Return an empty folder: ``keep``, or a new one among the temporary files. Raises `BadPlace`, OSError."""
    if keep is None:
        place = Place(Path(tempfile.mkdtemp(prefix="pixivflow-demo-")))
    else:
        place = Place(keep.absolute())
        place.folder.mkdir(parents=True, exist_ok=True)
        if any(place.folder.iterdir()):
            raise BadPlace(f"--keep {keep}: the folder is not empty; name an empty or a new one")
    try:
        check_path(place.socket)
    except SocketPathTooLong as error:
        raise BadPlace(f"{error}; choose a shorter folder with --keep DIR") from error
    return place


def configuration(simulator: Simulator) -> str:
    """Return the demo's configuration (TOML); its paths are relative to its file."""
    return f"""\
# Written by `pixivflow demo`; the addresses are those of its own look-alikes, which ended with it.
{connection(simulator)}
[storage]
state_dir = "state"
download_dir = "downloads"
min_free = "10MiB"

[[schedules]]
id = "{SCHEDULE}"
cron = "* * * * * */{EVERY_S}"              # the sixth field is the seconds
targets = ["landscape", "ranking", "comic"]

[[targets]]
id = "landscape"
mode = "search"
tags = ["風景"]
max_pages = 1
limit = 1
routes = ["{CHANNEL}"]

[[targets]]
id = "ranking"
mode = "ranking"
ranking = "day"
max_pages = 3
limit = 1
storage = "cache"                       # the file is dropped once it is delivered
routes = ["{CHANNEL}"]

[[targets]]
id = "comic"
mode = "search"
tags = ["漫画"]
min_pages = 3
max_pages = 6
limit = 1
routes = ["{CHANNEL}", "{INBOX}"]

[routes.{CHANNEL}]
type = "multipart"
url = "{simulator.receiver_url}/submissions"
readiness_url = "{simulator.receiver_url}/ready"
retry_base = "1s"

[routes.{INBOX}]
type = "folder"
path = "inbox"
"""
