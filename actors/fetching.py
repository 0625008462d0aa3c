"""A cell's files: plan them in the ledger, make them durable, record each, commit them together."""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath

import structlog
import trio
from msgspec.structs import replace

from actors.core import Core
from actors.failures import LeaseGone
from pixivflow import failpoints
from pixivflow.download.collect import fetch_pages
from pixivflow.download.errors import DiskFull, DownloadError
from pixivflow.download.plan import PlannedFile, facts_of, plan_files
from pixivflow.download.sidecar import sidecar_bytes, sidecar_path, write_sidecar
from pixivflow.download.store import Store, StoredFile
from pixivflow.ledger.cells import ClaimedCell
from pixivflow.ledger.files import (
    Artifact,
    NewArtifact,
    Root,
    artifacts_of_cell,
    commit_files,
    drop_artifact,
    plan_artifacts,
    record_artifact,
)
from pixivflow.pixiv.models import Illust
from protocol.payloads import WorkFacts
from protocol.specs import CellSpec
from protocol.works import WorkRef

log = structlog.get_logger(__name__)
SIDECAR = "sidecar"
ORIGINAL = "original"


class WorkLocks:
    """One lock a work: two cells never write the files of one work at the same time."""

    def __init__(self) -> None:
        self._locks: dict[WorkRef, tuple[trio.Lock, int]] = {}

    @asynccontextmanager
    async def holding(self, work: WorkRef) -> AsyncGenerator[None]:
        """Hold the work's lock for the block; nothing is kept of it afterwards."""
        lock, users = self._locks.get(work, (trio.Lock(), 0))
        self._locks[work] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(work)
            if users > 1:
                self._locks[work] = (lock, users - 1)


class Fetcher:
    """Brings a bound work to disk.

    ``roots`` are the folders that the ledger's paths are relative to. ``naming`` is shared with the cleaner: a path
    is not planned while it is being removed.
    """

    def __init__(self, core: Core, store: Store, roots: dict[Root, Path], naming: trio.Lock) -> None:
        self._core = core
        self._store = store
        self._roots = roots
        self._naming = naming
        self._locks = WorkLocks()

    async def fetch(
        self, claimed: ClaimedCell, spec: CellSpec, illust: Illust, report: str | None
    ) -> tuple[WorkFacts, tuple[Artifact, ...]]:
        """Store all files of the work and commit them; returns what a delivery needs.

        Raises `LeaseGone`, `PathTaken`, the errors of the download and those of Pixiv.
        """
        facts = facts_of(illust)
        async with self._locks.holding(illust.ref):
            planned = _placed(plan_files(illust, spec), claimed, spec)
            async with self._naming:
                artifacts = await self._plan(claimed, spec, facts, planned, report)
            failpoints.reach("cell.planned")
            await self._store_files(claimed, spec, facts, planned, artifacts)
            if not await self._core.ledger.write(commit_files, claimed.lease, facts, self._core.now()):
                raise LeaseGone
        failpoints.reach("cell.committed")
        return facts, await self._core.ledger.read(artifacts_of_cell, claimed.lease.id)

    async def intact(self, artifacts: tuple[Artifact, ...]) -> bool:
        """Whether every stored file is still on disk with its length."""
        for artifact in artifacts:
            recorded = _recorded(artifact)
            if recorded is None or not await self._store.known(
                self._roots[artifact.root], artifact.path, recorded
            ):
                return False
        return bool(artifacts)

    async def _plan(
        self,
        claimed: ClaimedCell,
        spec: CellSpec,
        facts: WorkFacts,
        planned: tuple[PlannedFile, ...],
        report: str | None,
    ) -> tuple[Artifact, ...]:
        files = [NewArtifact(file.page, file.variant, file.path) for file in planned]
        if spec.sidecar and spec.storage == "persistent":
            files.append(NewArtifact(-1, SIDECAR, sidecar_path(planned)))
        artifacts = await self._core.ledger.write(
            plan_artifacts,
            claimed.lease,
            facts.work,
            facts.revision,
            files,
            root=_root(spec),
            owner=_owner(claimed, spec),
            now=self._core.now(),
            report=report,
        )
        if artifacts is None:
            raise LeaseGone
        return artifacts

    async def _store_files(
        self,
        claimed: ClaimedCell,
        spec: CellSpec,
        facts: WorkFacts,
        planned: tuple[PlannedFile, ...],
        artifacts: tuple[Artifact, ...],
    ) -> None:
        pages = {artifact.page: artifact for artifact in artifacts if artifact.variant != SIDECAR}
        located = tuple(replace(file, path=pages[file.page].path) for file in planned)

        async def record(file: PlannedFile, stored: StoredFile) -> None:
            await self._record(claimed, pages[file.page], stored)

        if not self._core.held.usable(claimed.lease, self._core.now()):
            raise LeaseGone
        stored = await fetch_pages(
            self._store,
            located,
            self._roots[_root(spec)],
            record=record,
            skip={
                page: file for page, artifact in pages.items() if (file := _recorded(artifact)) is not None
            },
            on_bytes=lambda _: self._core.held.progress(claimed.lease, self._core.now()),
        )
        for artifact in artifacts:
            if artifact.variant == SIDECAR and artifact.status == "planned":
                await self._write_sidecar(
                    claimed, spec, facts, artifact, tuple(zip(located, stored, strict=True))
                )

    async def _write_sidecar(
        self,
        claimed: ClaimedCell,
        spec: CellSpec,
        facts: WorkFacts,
        artifact: Artifact,
        files: tuple[tuple[PlannedFile, StoredFile], ...],
    ) -> None:
        slot_id, target_id = claimed.slot_id, spec.target_id
        data = sidecar_bytes(facts, files, slot_id=slot_id, target_id=target_id, path=artifact.path)
        root = self._roots[artifact.root]
        written = False
        try:
            await write_sidecar(root, facts, files, slot_id=slot_id, target_id=target_id, path=artifact.path)
            written = True
        except DiskFull:
            raise
        except DownloadError as error:  # it describes the work, and is no part of it
            log.warning("sidecar_not_written", work=str(facts.work), path=artifact.path, error=str(error))
        if not written:
            await self._drop(claimed, artifact)
            return
        stored = StoredFile(len(data), hashlib.sha256(data).hexdigest(), "application/json")
        await self._record(claimed, artifact, stored)

    async def _record(self, claimed: ClaimedCell, artifact: Artifact, stored: StoredFile) -> None:
        now = self._core.now()
        recorded = await self._core.ledger.write(
            record_artifact, claimed.lease, artifact.id, stored.bytes, stored.sha256, stored.media_type, now
        )
        if not recorded:
            raise LeaseGone
        self._core.held.progress(claimed.lease, now)

    async def _drop(self, claimed: ClaimedCell, artifact: Artifact) -> None:
        if not await self._core.ledger.write(drop_artifact, claimed.lease, artifact.id, self._core.now()):
            raise LeaseGone


def _root(spec: CellSpec) -> Root:
    return "state" if spec.storage == "cache" else "download"


def _owner(claimed: ClaimedCell, spec: CellSpec) -> str:
    return f"cell:{claimed.lease.id}" if spec.storage == "cache" else "archive"


def _placed(
    planned: tuple[PlannedFile, ...], claimed: ClaimedCell, spec: CellSpec
) -> tuple[PlannedFile, ...]:
    """Put a cache target's files into the cell's own folder."""
    if spec.storage != "cache":
        return planned
    folder = PurePosixPath("cache", claimed.slot_id or f"adhoc-{claimed.lease.id}", claimed.target_id)
    return tuple(replace(file, path=str(folder / file.path)) for file in planned)


def _recorded(artifact: Artifact) -> StoredFile | None:
    if artifact.bytes is None or artifact.sha256 is None:
        return None
    return StoredFile(artifact.bytes, artifact.sha256, artifact.media_type or "")
