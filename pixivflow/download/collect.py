"""All pages of a work side by side: each recorded as soon as it is durable, one error for the whole."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import trio

from pixivflow import failpoints
from pixivflow.download.errors import DiskFull
from pixivflow.download.plan import PlannedFile
from pixivflow.download.store import Store, StoredFile

RECORD_S = 5.0
Record = Callable[[PlannedFile, StoredFile], Awaitable[None]]


async def fetch_pages(
    store: Store,
    planned: Sequence[PlannedFile],
    root: Path,
    *,
    record: Record,
    skip: Mapping[int, StoredFile],
    on_bytes: Callable[[int], None] | None = None,
) -> tuple[StoredFile, ...]:
    """Fetch all pages and give them in the order of ``planned``.

    ``skip`` has the pages that are recorded already: one that is still there with its length is taken as it is,
    any other is fetched and recorded again. The first failure cancels the rest and is raised by itself, but a full
    disk goes before all others. Cancellation from outside goes before every failure; only then may a ``.part`` stay.
    """
    done: dict[int, StoredFile] = {}

    async def fetch(index: int, file: PlannedFile) -> None:
        stored = await store.fetch(file.url, root, file.path, on_bytes=on_bytes)
        failpoints.reach("download.renamed")
        with trio.fail_after(RECORD_S, shield=True):  # what is durable is not fetched twice
            await record(file, stored)
        failpoints.reach("download.recorded")
        done[index] = stored

    async def keep(index: int, file: PlannedFile) -> None:
        if await store.known(root, file.path, skip[file.page]):
            done[index] = skip[file.page]
        else:
            await fetch(index, file)

    failure = await _side_by_side(
        [partial(keep if file.page in skip else fetch, index, file) for index, file in enumerate(planned)]
    )
    if failure is not None:
        await store.drop_parts(root, [file.path for index, file in enumerate(planned) if index not in done])
        raise failure
    return tuple(done[index] for index in range(len(planned)))


async def _side_by_side(jobs: Sequence[Callable[[], Awaitable[None]]]) -> Exception | None:
    """Run all and give the chief error, which then can be raised with the cause it has and without a group."""
    await trio.lowlevel.checkpoint()
    try:
        async with trio.open_nursery() as nursery:
            for job in jobs:
                nursery.start_soon(job)
    except BaseExceptionGroup as group:
        errors, others = group.split(Exception)
        if errors is None or others is not None:
            raise (others or group) from None
        return chief_error(errors)
    return None


def chief_error(group: ExceptionGroup[Exception]) -> Exception:
    """Give the first error of the group, or the full disk in it."""
    leaves = _leaves(group)
    return next((error for error in leaves if isinstance(error, DiskFull)), leaves[0])


def _leaves(group: ExceptionGroup[Exception]) -> list[Exception]:
    found: list[Exception] = []
    for error in group.exceptions:
        found.extend(_leaves(error) if isinstance(error, ExceptionGroup) else [error])
    return found
