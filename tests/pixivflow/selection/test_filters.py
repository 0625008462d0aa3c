from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pixivflow.pixiv.models import Illust, ImageUrls, MetaPage, SinglePage, Tag
from pixivflow.selection.filters import Refusal, rating, refusal
from pixivflow.selection.report import SkipCode
from protocol.specs import Filters

LIMITED = "https://s.pximg.net/common/images/limit_sanity_level_360.png"
HYPHENATED = "https://s.pximg.net/common/images/limit_r18-360.png"


def page(address: str | None) -> MetaPage:
    return MetaPage(ImageUrls(original=address))


@pytest.fixture
def refuse(illust, now_ms):
    def ask(filters: Filters | None = None, **facts) -> Refusal | None:
        return refusal(illust(1, **facts), filters or Filters(), now_ms)

    return ask


PASSES = [
    ({}, {}),
    ({"min_bookmarks": 100}, {"total_bookmarks": 100}),
    ({"max_bookmarks": 100}, {"total_bookmarks": 100}),
    ({"min_views": 0}, {"total_view": 0}),
    ({"ai": "exclude"}, {"illust_ai_type": 0}),
    ({"ai": "exclude"}, {"illust_ai_type": 1}),
    ({"ai": "only"}, {"illust_ai_type": 2}),
    ({"ai": "any"}, {"illust_ai_type": 2}),
    ({"exclude_tags": ("cat",)}, {"tags": (Tag("cats", "caterpillar"),)}),
    ({"exclude_tags": ("",)}, {"tags": (Tag("", None),)}),
    ({"max_pages": 1}, {}),
    ({"since": "2026-01-02", "until": "2026-01-02"}, {}),
    ({}, {"type": "manga"}),
    ({}, {"total_bookmarks": None, "total_view": None, "create_date": None}),
]


@pytest.mark.parametrize(("filters", "facts"), PASSES)
def test_a_work_within_the_filters_is_not_refused(refuse, filters, facts):
    assert refuse(Filters(**filters), **facts) is None


FILTERED = [
    ({"min_bookmarks": 500}, {"total_bookmarks": 12}, "min_bookmarks = 500: 12"),
    ({"min_bookmarks": 500}, {"total_bookmarks": None}, "min_bookmarks = 500: unknown"),
    ({"min_bookmarks": 0}, {"total_bookmarks": None}, "min_bookmarks = 0: unknown"),
    ({"max_bookmarks": 5}, {"total_bookmarks": 6}, "max_bookmarks = 5: 6"),
    ({"max_bookmarks": 5}, {"total_bookmarks": None}, "max_bookmarks = 5: unknown"),
    ({"min_views": 10}, {"total_view": 9}, "min_views = 10: 9"),
    ({"min_views": 10}, {"total_view": None}, "min_views = 10: unknown"),
    ({"ai": "exclude"}, {"illust_ai_type": 2}, "ai = exclude: AI-generated"),
    ({"ai": "only"}, {"illust_ai_type": 0}, "ai = only: illust_ai_type 0"),
    ({"min_pages": 2}, {}, "min_pages = 2: 1"),
    ({"since": "2026-01-03"}, {}, "since = 2026-01-03: 2026-01-02"),
    ({"until": "YESTERDAY"}, {}, "until = 2026-01-01: 2026-01-02"),
    ({"since": "TODAY"}, {"create_date": None}, "since = 2026-01-02: unknown"),
    ({}, {"is_muted": True}, "muted by the account"),
    ({"exclude_tags": ("CAT",)}, {"tags": (Tag("猫", "Cat"),)}, "exclude_tags: Cat"),
    ({"exclude_tags": ("ネコ",)}, {"tags": (Tag("ﾈｺ"),)}, "exclude_tags: ﾈｺ"),
    ({"exclude_tags": ("Ｃａｔ",)}, {"tags": (Tag("cAT"),)}, "exclude_tags: cAT"),
]


@pytest.mark.parametrize(("filters", "facts", "detail"), FILTERED)
def test_a_filtered_work_names_the_filter_and_the_values(refuse, filters, facts, detail):
    assert refuse(Filters(**filters), **facts) == Refusal(SkipCode.FILTERED, detail)


@pytest.mark.parametrize(
    ("r18", "r18g", "passing"),
    [
        ("exclude", "exclude", {0}),
        ("include", "exclude", {0, 1}),
        ("exclude", "include", {0, 2}),
        ("include", "include", {0, 1, 2}),
        ("only", "exclude", {1}),
        ("exclude", "only", {2}),
        ("only", "include", {1, 2}),
        ("include", "only", {1, 2}),
        ("only", "only", {1, 2}),
    ],
)
def test_the_two_adult_ratings_are_chosen_apart(refuse, r18, r18g, passing):
    filters = Filters(r18=r18, r18g=r18g)
    assert {level for level in (0, 1, 2) if refuse(filters, x_restrict=level) is None} == passing


def test_the_rating_filter_says_what_the_work_is_and_what_was_asked(refuse):
    assert refuse(x_restrict=2) == Refusal(SkipCode.FILTERED, "rated R-18G: r18 = exclude, r18g = exclude")


@pytest.mark.parametrize(("tag", "level"), [("R-18", 1), ("r-18", 1), ("Ｒ-18G", 2), ("R-180", 0)])
def test_the_rating_tag_counts_where_the_rating_is_missing(illust, tag, level):
    assert rating(illust(1, x_restrict=0, tags=(Tag(tag),))) == level


def test_an_unknown_higher_rating_is_taken_for_the_highest(illust):
    assert rating(illust(1, x_restrict=3)) == 2


@pytest.mark.parametrize(
    ("facts", "detail"),
    [
        ({"visible": False}, "not visible to this account"),
        ({"meta_single_page": SinglePage(LIMITED)}, "limit_sanity_level_360"),
        ({"meta_single_page": SinglePage(HYPHENATED)}, "limit_r18-360"),
        ({"image_urls": ImageUrls(large=LIMITED)}, "limit_sanity_level_360"),
        (
            {"page_count": 2, "meta_pages": (page("https://i.pximg.net/1_p0.png"), page(LIMITED))},
            "limit_sanity_level_360",
        ),
        (
            {"meta_single_page": SinglePage("https://s.pximg.net/common/images/no_picture.png")},
            "a placeholder stands for a page",
        ),
    ],
)
def test_a_stub_is_restricted_and_says_of_which_kind(refuse, facts, detail):
    assert refuse(**facts) == Refusal(SkipCode.RESTRICTED, detail)


def test_filters_never_run_on_a_stub(refuse):
    nothing_passes = Filters(min_bookmarks=10**9, ai="only", since="2027-01-01", exclude_tags=("風景",))
    stub = refuse(nothing_passes, visible=False, is_muted=True, type="ugoira", x_restrict=2)
    assert stub is not None
    assert stub.code is SkipCode.RESTRICTED


@pytest.mark.parametrize("kind", ["ugoira", "hologram", ""])
def test_what_is_no_still_picture_is_unsupported(refuse, kind):
    assert refuse(type=kind) == Refusal(SkipCode.UNSUPPORTED_MEDIA, kind)


@pytest.mark.parametrize(
    ("facts", "detail"),
    [
        ({"meta_single_page": SinglePage()}, "no page has an address"),
        ({"meta_pages": (page("https://i.pximg.net/1_p0.png"), page(None))}, "page 1 has no address"),
        (
            {"page_count": 3, "meta_pages": (page("https://i.pximg.net/a"), page("https://i.pximg.net/b"))},
            "2 addresses for 3 pages",
        ),
    ],
)
def test_a_work_that_can_not_be_had_whole_has_invalid_metadata(refuse, facts, detail):
    assert refuse(**facts) == Refusal(SkipCode.INVALID_METADATA, detail)


def test_a_work_without_an_id_has_invalid_metadata(illust, now_ms):
    assert refusal(illust(0), Filters(), now_ms) == Refusal(SkipCode.INVALID_METADATA, "impossible id 0")


def test_a_missing_page_count_does_not_refuse_a_work_whose_pages_are_all_there(refuse):
    pages = tuple(page(f"https://i.pximg.net/1_p{number}.png") for number in range(3))
    assert refuse(Filters(min_pages=3, max_pages=3), meta_pages=pages, page_count=1) is None


def test_a_work_of_half_past_midnight_jst_is_of_today_although_utc_is_a_day_behind(refuse):
    created = datetime(2026, 1, 1, 15, 30, tzinfo=UTC)
    assert refuse(Filters(since="TODAY", until="TODAY"), create_date=created) is None


def test_a_day_that_can_not_be_read_is_an_error_and_not_a_refusal(refuse):
    with pytest.raises(ValueError, match="expected YYYY-MM-DD"):
        refuse(Filters(since="tomorrow"))


def bare(**facts) -> Illust:
    return Illust(id=1, meta_single_page=SinglePage("https://i.pximg.net/1_p0.png"), **facts)


@given(st.integers(0, 2000), st.integers(0, 2000), st.integers(0, 2000))
def test_a_bookmark_range_lets_in_exactly_what_lies_in_it(bookmarks, least, most):
    filters = Filters(min_bookmarks=least, max_bookmarks=most)
    refused = refusal(bare(total_bookmarks=bookmarks), filters, 0) is not None
    assert refused == (not least <= bookmarks <= most)


TAGS = st.text("aBzÄé猫ﾈネＡｂ-_()0", min_size=1, max_size=8)


@given(TAGS, st.booleans(), st.sampled_from([str.upper, str.lower, str.swapcase]))
def test_an_excluded_tag_refuses_itself_in_name_and_translation_whatever_its_case(tag, translated, cased):
    carried = Tag("other", cased(tag)) if translated else Tag(cased(tag))
    assert refusal(bare(tags=(carried,)), Filters(exclude_tags=(f" {tag}",)), 0) is not None


@given(
    st.builds(
        Illust,
        id=st.integers(-1, 5),
        type=st.sampled_from(["illust", "manga", "ugoira", ""]),
        x_restrict=st.integers(0, 3),
        page_count=st.integers(0, 3),
        visible=st.booleans(),
        is_muted=st.booleans(),
        total_bookmarks=st.none() | st.integers(0, 10),
        meta_single_page=st.builds(
            SinglePage, st.none() | st.sampled_from(["", LIMITED, "https://i.pximg.net/a"])
        ),
        create_date=st.none() | st.datetimes(),
    )
)
def test_what_passes_is_visible_still_and_whole(work):
    if refusal(work, Filters(), 0) is None:
        assert not work.restricted
        assert work.type in {"illust", "manga"}
        assert all(work.original_urls)
        assert len(work.original_urls) >= max(work.page_count, 1)
        assert work.x_restrict == 0
