"""Going on with the work that a cell already owns."""

from pixivflow.pixiv.models import Illust
from pixivflow.selection.sources import Pixiv
from protocol.works import WorkKind, WorkRef


async def recover(pixiv: Pixiv, work: WorkRef) -> Illust:
    """Fetch the bound work as it is now. No filter and no dedup is asked: it was chosen before.

    Raises WorkDeleted or WorkRestricted where it can't be had any more (never take another in its place),
    Outage where it may be had later, ValueError for a work that is no illustration.
    """
    if work.kind is not WorkKind.ILLUSTRATION:
        raise ValueError(f"{work}: only illustrations can be collected in this release")
    return await pixiv.illust_detail(work.id)
