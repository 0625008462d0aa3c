from datetime import datetime

import msgspec
import pytest

from pixivflow.download.errors import DownloadError, UnsupportedWork
from pixivflow.download.plan import facts_of, is_placeholder, plan_files
from pixivflow.pixiv.errors import WorkRestricted, WorkUnavailable
from pixivflow.pixiv.models import Illust, ImageUrls, MetaPage, SinglePage, Tag, User
from protocol.specs import CellSpec, Source

ORIGINAL = "https://i.pximg.net/img-original/img/2026/10/05/18/30/12/101_p"
LIMITED = "https://s.pximg.net/common/images/limit_sanity_level_360.png"


def spec(**changes: object) -> CellSpec:
    return CellSpec(target_id="t", account="main", source=Source(mode="search"), **changes)


def illust(*urls: str | None, **changes: object) -> Illust:
    work = Illust(
        id=101,
        title="灯台",
        user=User(id=17, name="雲野", account="kumono"),
        tags=(Tag("風景", "scenery"), Tag("夜", None)),
        create_date=datetime.fromisoformat("2026-10-05T18:30:12+09:00"),
        page_count=len(urls),
        meta_single_page=SinglePage(urls[0]) if len(urls) == 1 else SinglePage(),
        meta_pages=tuple(MetaPage(ImageUrls(original=url)) for url in urls) if len(urls) > 1 else (),
    )
    return msgspec.structs.replace(work, **changes)


def test_a_single_page_becomes_one_file():
    (planned,) = plan_files(illust(f"{ORIGINAL}0.png"), spec())
    assert (planned.page, planned.variant, planned.url) == (0, "original", f"{ORIGINAL}0.png")
    assert planned.path == "17-雲野/101_灯台_p0.png"


def test_each_page_keeps_its_own_extension_and_order():
    planned = plan_files(
        illust(f"{ORIGINAL}0.jpg", f"{ORIGINAL}1.PNG?x=1", f"{ORIGINAL}2.gif"), spec(path="{id}")
    )
    assert [file.path for file in planned] == ["101_p0.jpg", "101_p1.png", "101_p2.gif"]
    assert [file.page for file in planned] == [0, 1, 2]


def test_two_hundred_pages_have_two_hundred_paths():
    planned = plan_files(illust(*(f"{ORIGINAL}{page}.jpg" for page in range(200))), spec(path="{title}/{id}"))
    assert len({file.path for file in planned}) == 200


@pytest.mark.parametrize(
    "work",
    [
        illust(LIMITED),
        illust("https://s.pximg.net/common/images/limit_r18-360.png"),
        illust("https://mirror.example/common/images/limit_unviewable_360.png"),
        illust("https://s.pximg.net/anything.png"),
        illust(f"{ORIGINAL}0.jpg", LIMITED),
        illust(f"{ORIGINAL}0.jpg", visible=False),
        illust(f"{ORIGINAL}0.jpg", image_urls=ImageUrls(large=LIMITED)),
        illust(LIMITED, type="ugoira"),
    ],
)
def test_stubs_and_placeholders_are_restricted(work):
    with pytest.raises(WorkRestricted, match="illustration:101"):
        plan_files(work, spec())


@pytest.mark.parametrize(
    ("work", "word"),
    [
        (illust(f"{ORIGINAL.removesuffix('_p')}_ugoira0.jpg", type="ugoira"), "ugoira"),
        (illust(), "0 of 1"),
        (illust(None), "0 of 1"),
        (illust(f"{ORIGINAL}0.jpg", ""), "1 of 2"),
        (illust(f"{ORIGINAL}0.jpg", None), "1 of 2"),
        (illust(f"{ORIGINAL}0.jpg", page_count=3), "1 of 3"),
        (illust("https://i.pximg.net/img-original/101_p0"), "extension"),
        (illust("https://i.pximg.net/img-original/101_p0.php"), "extension"),
        (illust("https://["), "extension"),
    ],
)
def test_works_that_can_not_become_files_are_unsupported(work, word):
    with pytest.raises(UnsupportedWork, match=word) as caught:
        plan_files(msgspec.structs.replace(work, page_count=max(1, work.page_count)), spec())
    assert isinstance(caught.value, WorkUnavailable)
    assert isinstance(caught.value, DownloadError)


def test_a_page_count_that_was_not_said_is_counted():
    work = illust(f"{ORIGINAL}0.jpg", f"{ORIGINAL}1.jpg", page_count=1)
    assert len(plan_files(work, spec())) == 2
    assert facts_of(work).page_count == 2


def test_facts_carry_what_pixiv_said():
    facts = facts_of(illust(f"{ORIGINAL}0.jpg", caption="a<br />b", total_bookmarks=5, illust_ai_type=1))
    assert str(facts.work) == "illustration:101"
    assert facts.revision == "2026/10/05/18/30/12"
    assert (facts.author_id, facts.author_name, facts.author_account) == (17, "雲野", "kumono")
    assert facts.tags == ("風景", "夜")
    assert facts.translated_tags == ("scenery", None)
    assert facts.created_at == "2026-10-05T18:30:12+09:00"
    assert (facts.caption, facts.total_bookmarks, facts.total_view, facts.ai_type) == ("a<br />b", 5, None, 1)


def test_facts_of_a_bare_object_are_empty_and_not_wrong():
    facts = facts_of(Illust(id=5))
    assert (facts.author_id, facts.created_at, facts.revision, facts.page_count) == (0, "", "", 1)


def test_a_date_without_offset_is_one_in_japan():
    work = illust(f"{ORIGINAL}0.jpg", create_date=datetime.fromisoformat("2026-10-05T18:30:12"))
    assert facts_of(work).created_at == "2026-10-05T18:30:12+09:00"


def test_ordinary_addresses_are_no_placeholders():
    assert not is_placeholder(f"{ORIGINAL}0.jpg")
    assert not is_placeholder("http://127.0.0.1:9/img-original/limit_p0.jpg")
