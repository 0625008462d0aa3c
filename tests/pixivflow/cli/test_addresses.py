"""Which texts name one illustration."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pixivflow.cli.addresses import AddressRefused, parse_work


@pytest.mark.parametrize(
    "text",
    [
        "123456",
        " 123456\n",
        "illustration:123456",
        "https://www.pixiv.net/artworks/123456",
        "http://pixiv.net/artworks/123456/",
        "www.pixiv.net/artworks/123456",
        "<https://www.pixiv.net/artworks/123456>",
        "https://www.pixiv.net/en/artworks/123456?lang=en#big_0",
        "https://www.pixiv.net/zh-cn/artworks/123456",
        "https://www.pixiv.net/i/123456",
        "https://touch.pixiv.net/artworks/123456",
        "https://phixiv.net/en/artworks/123456",
        "https://www.pixiv.net/member_illust.php?mode=medium&illust_id=123456",
        "https://www.pixiv.net/en/member_illust.php?illust_id=123456&mode=manga",
        "pixiv://illusts/123456",
        "https://i.pximg.net/img-original/img/2026/11/20/01/02/03/123456_p0.png",
        "https://i.pximg.net/img-original/img/2026/11/20/01/02/03/123456_ugoira0.jpg",
        "https://i.pximg.net/c/600x1200_90/img-master/img/2026/11/20/01/02/03/123456_p12_master1200.jpg",
        "https://i.pximg.net/img-master/img/2026/11/20/01/02/03/123456-0123456789abcdef0123456789abcdef_p0.jpg",
        "http://i1.pixiv.net/img-original/img/2014/01/02/03/04/05/123456_p0.jpg",
        "http://img.pixiv.net/img/account/123456.jpg",
        "http://i2.pixiv.net/img12/img/account/123456_big_p1.png",
    ],
)
def test_a_form_that_means_one_illustration_gives_its_id(text):
    assert parse_work(text) == 123456


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "no work"),
        ("0", "no id of a work"),
        ("-5", "no work"),
        ("9999999999999999", "no id of a work"),
        ("12345678901234567890", "no work"),
        ("１２３", "no work"),
        ("novel:5", "no work"),
        ("https://www.pixiv.net/artworks/unlisted/AbCdEfGhIjKlMnOpQrSt", "an unlisted work"),
        ("https://www.pixiv.net/users/11", "a user"),
        ("https://www.pixiv.net/users/11/artworks", "a user"),
        ("https://www.pixiv.net/users/11/bookmarks/artworks", "bookmarks"),
        ("https://www.pixiv.net/member_illust.php?id=11", "no work"),
        ("https://www.pixiv.net/member_illust.php?illust_id=1&illust_id=2", "no work"),
        ("https://www.pixiv.net/novel/show.php?id=5", "a novel"),
        ("https://www.pixiv.net/n/5", "a novel"),
        ("pixiv://novels/5", "a novel"),
        ("pixiv://users/5", "a user"),
        ("https://www.pixiv.net/user/1/series/2", "a series"),
        ("https://www.pixiv.net/tags/風景/artworks", "a search"),
        ("https://www.pixiv.net/ranking.php?mode=daily", "a ranking"),
        ("https://example.com/artworks/123456", "no work"),
        ("https://www.pixiv.net.example.com/artworks/123456", "no work"),
        ("ftp://www.pixiv.net/artworks/123456", "no work"),
        ("https://[::1/artworks/1", "no work"),
        ("https://www.pixiv.net/artworks/123456/more", "no work"),
    ],
)
def test_another_form_is_refused_with_what_it_is_and_what_is_accepted(text, found):
    with pytest.raises(AddressRefused) as refused:
        parse_work(text)
    assert found in str(refused.value)
    assert "https://www.pixiv.net/artworks/123456" in str(refused.value)


def test_a_refusal_shows_no_control_characters_and_is_short():
    with pytest.raises(AddressRefused) as refused:
        parse_work("\x1b[31m" + "x" * 5000)
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 400


@given(st.text(max_size=200))
def test_any_text_is_an_id_or_refused(text):
    try:
        assert parse_work(text) > 0
    except AddressRefused:
        return
