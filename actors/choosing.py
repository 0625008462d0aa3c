"""A cell's selection: scan the source and bind the first candidate that no route has."""

import msgspec

from actors.core import Core
from actors.failures import LeaseGone
from pixivflow import failpoints
from pixivflow.download.plan import plan_files
from pixivflow.ledger.binding import Bound, Taken, already_had, bind
from pixivflow.ledger.cells import ClaimedCell
from pixivflow.pixiv.errors import WorkDeleted
from pixivflow.pixiv.models import Illust
from pixivflow.selection.candidates import open_candidates
from pixivflow.selection.report import ScanReport
from pixivflow.selection.scan import Chosen, Lost, Nothing, TakeAnswer, scan
from pixivflow.selection.sources import Pixiv
from protocol.specs import CellSpec
from protocol.works import WorkRef


def encode_report(report: ScanReport) -> str:
    """A scan's report as the ledger keeps it."""
    return msgspec.json.encode(report).decode()


async def choose(
    core: Core, pixiv: Pixiv, claimed: ClaimedCell, spec: CellSpec, refused: frozenset[WorkRef]
) -> Chosen | Nothing:
    """Choose and bind a work; those in ``refused`` turned out to be gone in this very run.

    Raises `LeaseGone` when the cell is not ours any more, and what `scan` raises.
    """

    async def had(illust: Illust) -> bool:
        if illust.ref in refused:
            raise WorkDeleted(f"{illust.ref} could not be fetched")
        return await core.ledger.read(already_had, illust.ref, illust.revision, spec.routes)

    async def take(illust: Illust) -> TakeAnswer:
        plan_files(illust, spec)  # what can't become files is refused before it is bound
        if not core.held.usable(claimed.lease, core.now()):
            raise LeaseGone
        answer = await core.ledger.write(
            bind, claimed.lease, illust.ref, illust.revision, spec.routes, core.now()
        )
        match answer:
            case Bound():
                failpoints.reach("cell.bound")
                return TakeAnswer.TAKEN_BY_US
            case Taken():
                return TakeAnswer.DUPLICATE
            case _:
                return TakeAnswer.LOST

    now = core.now()
    candidates = open_candidates(pixiv, spec.source, spec.filters, now)
    result = await scan(candidates, spec, now_ms=now, already_had=had, take=take)
    if isinstance(result, Lost):
        raise LeaseGone
    return result
