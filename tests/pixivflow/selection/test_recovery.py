import pytest

from pixivflow.pixiv.errors import WorkDeleted, WorkRestricted
from pixivflow.selection.recovery import recover
from protocol.works import WorkKind, WorkRef


async def test_a_bound_work_is_recovered_without_any_filter(shelf, illust):
    work = illust(42, x_restrict=2, is_muted=True)
    shelf.add(work)
    assert await recover(shelf, WorkRef.parse("illustration:42")) == work


async def test_recovery_of_a_work_that_is_gone_says_so(shelf):
    with pytest.raises(WorkDeleted):
        await recover(shelf, WorkRef.parse("illustration:42"))


async def test_recovery_takes_no_stub_for_the_work(shelf, illust):
    shelf.add(illust(42, visible=False))
    with pytest.raises(WorkRestricted, match="illustration:42"):
        await recover(shelf, WorkRef.parse("illustration:42"))


async def test_a_novel_is_not_recovered_as_an_illustration_of_the_same_number(shelf, illust):
    shelf.add(illust(42))
    with pytest.raises(ValueError, match="novel:42"):
        await recover(shelf, WorkRef(WorkKind.NOVEL, 42))
