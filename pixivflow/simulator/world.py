"""What every part of the simulated Pixiv looks at."""

from datetime import UTC, datetime

import msgspec

from pixivflow.clock import Wall
from pixivflow.simulator.accounts import Accounts
from pixivflow.simulator.catalogue import Catalogue, SimWork


class World(msgspec.Struct, frozen=True):
    """Catalogue, clock, account, and the two addresses that answers carry."""

    catalogue: Catalogue
    wall: Wall
    accounts: Accounts
    premium: bool
    api_url: str
    image_url: str

    @property
    def now(self) -> datetime:
        """The instant by the given clock."""
        return datetime.fromtimestamp(self.wall.now_ms() / 1000, UTC)

    def timeline(self) -> tuple[SimWork, ...]:
        """Give the works that have appeared, oldest first, the deleted ones among them."""
        return self.catalogue.timeline(self.now)

    def find(self, work_id: int) -> SimWork | None:
        """Give a work that has appeared and is not deleted."""
        work = self.catalogue.works.get(work_id)
        return work if work and not work.deleted and work.created <= self.now else None
