"""One run of a cell, from its claim to its commit: choose or recover, fetch, hand over to the outbox."""

import dataclasses
from collections.abc import Mapping
from contextlib import suppress
from pathlib import PurePosixPath

import msgspec
import trio

from actors.choosing import choose, encode_report
from actors.core import Core
from actors.failures import LeaseGone
from actors.fetching import ORIGINAL, Fetcher
from pixivflow import failpoints
from pixivflow.delivery.freeze import effective_fields, freeze
from pixivflow.delivery.settings import RouteSettings
from pixivflow.download.errors import FileGone
from pixivflow.ledger.binding import unbind
from pixivflow.ledger.cells import ClaimedCell
from pixivflow.ledger.files import Artifact, artifacts_of_cell, read_facts
from pixivflow.ledger.leases import Lease
from pixivflow.ledger.outbox import Committed, NewIntent, commit_delivery
from pixivflow.pixiv.errors import WorkUnavailable
from pixivflow.pixiv.models import Illust
from pixivflow.selection.recovery import recover
from pixivflow.selection.scan import Nothing
from pixivflow.selection.sources import Pixiv
from protocol.messages import Changed, OutboxReady, RunCell
from protocol.payloads import PayloadFile, WorkFacts
from protocol.specs import CellSpec
from protocol.states import CellStatus
from protocol.works import WorkRef


class RouteTerms(msgspec.Struct, frozen=True):
    """What a new intent of a route is given: settings to freeze by, texts, and its limits."""

    settings: RouteSettings
    fields: dict[str, str]
    max_attempts: int
    expire_after_s: float


@dataclasses.dataclass(frozen=True, slots=True)
class Account:
    """A Pixiv login with its client and its capacity: how many cells may select with it at once."""

    name: str
    pixiv: Pixiv
    capacity: trio.CapacityLimiter

    def take_nowait(self, lease: Lease) -> None:
        """Take a place for ``lease`` if one is free just now; else its selection waits for one."""
        with suppress(trio.WouldBlock):
            self.capacity.acquire_on_behalf_of_nowait(lease)

    async def take(self, lease: Lease) -> None:
        """Wait for a place, unless ``lease`` has one."""
        await trio.lowlevel.checkpoint()
        if not self._has(lease):
            await self.capacity.acquire_on_behalf_of(lease)

    def give_back(self, lease: Lease) -> None:
        """Free the place of ``lease``, if it has one."""
        if self._has(lease):
            self.capacity.release_on_behalf_of(lease)

    def _has(self, lease: Lease) -> bool:
        return lease in self.capacity.statistics().borrowers


class UnknownRoute(Exception):
    """A cell names a route that the configuration does not have."""


class Collector:
    """Runs cells. It decides nothing about failures: they are raised to the hand."""

    def __init__(self, core: Core, fetcher: Fetcher, routes: Mapping[str, RouteTerms]) -> None:
        self._core = core
        self._fetcher = fetcher
        self._routes = routes

    async def resume(
        self, claimed: ClaimedCell, spec: CellSpec, account: Account, work: WorkRef
    ) -> Committed:
        """Go on with the work that the cell owns; another is never taken in its place."""
        if claimed.status is CellStatus.ARTIFACT_READY:
            facts = await self._core.ledger.read(read_facts, work)
            artifacts = await self._core.ledger.read(artifacts_of_cell, claimed.lease.id)
            if facts is not None and await self._fetcher.intact(artifacts):
                return await self._submit(claimed, spec, facts, artifacts)
        illust = await recover(account.pixiv, work)
        return await self._finish(claimed, spec, account, illust, None)

    async def select(self, claimed: ClaimedCell, spec: CellSpec, account: Account) -> Committed | Nothing:
        """Choose a work and finish it; a work that turns out to be gone is unbound, and the next one is tried."""
        refused: frozenset[WorkRef] = frozenset()
        while True:
            await account.take(claimed.lease)
            try:
                chosen = await choose(self._core, account.pixiv, claimed, spec, refused)
            finally:
                account.give_back(claimed.lease)
                self._core.ring(RunCell(claimed.lease.id))  # a cell may have waited for the capacity
            if isinstance(chosen, Nothing):
                return chosen
            try:
                return await self._finish(claimed, spec, account, chosen.illust, encode_report(chosen.report))
            except WorkUnavailable as verdict:
                gone = verdict
            work = chosen.illust.ref
            if not await self._core.ledger.write(unbind, claimed.lease, work, self._core.now()):
                raise gone
            refused |= {work}

    async def _finish(
        self, claimed: ClaimedCell, spec: CellSpec, account: Account, illust: Illust, report: str | None
    ) -> Committed:
        try:
            facts, artifacts = await self._fetcher.fetch(claimed, spec, illust, report)
        except (
            FileGone
        ):  # replaced since it was listed: its detail has the new address, or says that it is gone
            again = await account.pixiv.illust_detail(illust.id)
            facts, artifacts = await self._fetcher.fetch(claimed, spec, again, report)
        return await self._submit(claimed, spec, facts, artifacts)

    async def _submit(
        self, claimed: ClaimedCell, spec: CellSpec, facts: WorkFacts, artifacts: tuple[Artifact, ...]
    ) -> Committed:
        files = [_payload_file(artifact) for artifact in artifacts if artifact.variant == ORIGINAL]
        intents = [self._intent(route, claimed, spec, facts, files) for route in spec.routes]
        committed = await self._core.ledger.write(
            commit_delivery, claimed.lease, facts.revision, intents, self._core.now()
        )
        if committed is None:
            raise LeaseGone
        failpoints.reach("cell.delivering")
        for route in committed.routes:
            self._core.ring(OutboxReady(route))
        self._core.ring(Changed("cell", str(claimed.lease.id)))
        return committed

    def _intent(
        self, route: str, claimed: ClaimedCell, spec: CellSpec, facts: WorkFacts, files: list[PayloadFile]
    ) -> NewIntent:
        terms = self._routes.get(route)
        if terms is None:
            raise UnknownRoute(
                f"route {route!r} of target {spec.target_id!r} is not in the configuration any more"
            )
        payload = freeze(
            terms.settings,
            effective_fields(terms.fields, spec.fields),
            facts,
            files,
            slot_id=claimed.slot_id,
            target_id=spec.target_id,
        )
        return NewIntent(payload, terms.max_attempts, self._core.now() + round(terms.expire_after_s * 1000))


def _payload_file(artifact: Artifact) -> PayloadFile:
    return PayloadFile(
        artifact_id=artifact.id,
        root=artifact.root,
        path=artifact.path,
        name=PurePosixPath(artifact.path).name,
        bytes=artifact.bytes or 0,
        sha256=artifact.sha256 or "",
        media_type=artifact.media_type or "application/octet-stream",
    )
