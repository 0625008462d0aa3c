import json

import msgspec
import pytest

from pixivflow.pixiv.pages import read_artist_page, read_detail, read_illust, read_page


def body(value):
    return json.dumps(value).encode()


def test_unknown_keys_are_ignored_and_all_but_the_id_may_be_missing():
    page = read_page(body({"illusts": [{"id": 5, "season_effect": None}], "next_url": None, "show_ai": True}))
    assert [illust.id for illust in page.illusts] == [5]


def test_nulls_count_as_not_said():
    illust = read_illust(
        body(
            {
                "id": 5,
                "title": None,
                "tags": [{"name": "a", "translated_name": None}, None],
                "user": None,
                "total_bookmarks": None,
                "meta_single_page": {"original_image_url": None},
                "meta_pages": None,
                "series": None,
            }
        )
    )
    assert (illust.title, illust.user.id, illust.total_bookmarks) == ("", None, None)
    assert [tag.name for tag in illust.tags] == ["a"]


def test_a_date_that_can_not_be_read_is_as_good_as_none():
    assert read_illust(body({"id": 5, "title": "x", "create_date": "0000-00-00"})).create_date is None


@pytest.mark.parametrize("bad", [None, "text", 5, [], {}, {"id": None}, {"id": "5"}, {"title": "no id"}])
def test_one_bad_entry_is_counted_and_does_not_end_the_page(bad):
    page = read_page(body({"illusts": [{"id": 1}, bad, {"id": 2}], "next_url": None}))
    assert [illust.id for illust in page.illusts] == [1, 2]
    assert page.unreadable == 1


@pytest.mark.parametrize("value", [{}, [], {"illusts": None}, {"illusts": {}}, {"error": {}}])
def test_an_answer_without_a_list_is_no_empty_page(value):
    with pytest.raises(msgspec.DecodeError):
        read_page(body(value))


@pytest.mark.parametrize("user", [None, {"id": None}, {}, {"id": 0}])
def test_an_artist_without_id_and_works_is_gone(user):
    assert read_artist_page(body({"user": user, "illusts": [], "next_url": None})).gone


def test_an_artist_without_works_is_not_gone():
    answer = read_artist_page(body({"user": {"id": 9}, "illusts": [], "next_url": None}))
    assert not answer.gone
    assert answer.page.illusts == ()


def test_an_answer_that_does_not_speak_of_the_artist_is_read_as_a_list():
    assert not read_artist_page(body({"illusts": [], "next_url": None})).gone


def test_a_detail_without_work_can_not_be_read():
    with pytest.raises(msgspec.DecodeError):
        read_detail(body({"illust": None}))
