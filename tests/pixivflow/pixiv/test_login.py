import base64
import contextlib
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pixivflow.pixiv.errors import AuthFailed, NetworkFailed, ServerFailed
from pixivflow.pixiv.login import begin_pkce, clean_refresh_token, code_from, exchange_code, try_refresh
from pixivflow.pixiv.settings import PixivSettings


def begun():
    return begin_pkce(PixivSettings(), lambda count: bytes(range(count)))


def test_the_verifier_is_43_url_safe_characters():
    assert begun().verifier == base64.urlsafe_b64encode(bytes(range(32))).decode().rstrip("=")
    assert len(begun().verifier) == 43


def test_the_address_carries_the_challenge_of_the_verifier():
    digest = hashlib.sha256(begun().verifier.encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    assert begun().url == (
        f"https://app-api.pixiv.net/web/v1/login?code_challenge={challenge}"
        "&code_challenge_method=S256&client=pixiv-android"
    )


def test_every_attempt_is_another():
    assert begin_pkce(PixivSettings()).verifier != begin_pkce(PixivSettings()).verifier


def test_an_attempt_does_not_show_its_verifier():
    assert begun().verifier not in repr(begun())


@pytest.mark.parametrize(
    "pasted",
    [
        "aB3-_x",
        "  aB3-_x\n",
        '"aB3-_x"',
        "'aB3-_x' ",
        "pixiv://account/login?code=aB3-_x&via=login",
        '"pixiv://account/login?code=aB3-_x&via=login"',
        "https://app-api.pixiv.net/web/v1/users/auth/pixiv/callback?state=s&code=aB3-_x",
        "https://app-api.pixiv.net/web/v1/users/auth/pixiv/callback?code=aB3-_x#top",
        "code=aB3-_x&via=login",
        "?code=aB3-_x",
    ],
)
def test_a_code_is_found_in_every_form(pasted):
    assert code_from(pasted) == "aB3-_x"


@pytest.mark.parametrize(
    "pasted",
    [
        "",
        "  ",
        "SECRET code",
        "https://www.pixiv.net/",
        "pixiv://account/login?via=SECRET",
        "code=",
        "SECRÈT",
        "https://[SECRET",
    ],
)
def test_what_holds_no_code_is_explained_and_not_repeated(pasted):
    with pytest.raises(ValueError, match="pixiv://account/login") as caught:
        code_from(pasted)
    assert "SECRET" not in str(caught.value)


@given(st.text())
def test_any_paste_gives_a_code_or_a_value_error(pasted):
    with contextlib.suppress(ValueError):
        assert code_from(pasted)


@pytest.mark.parametrize("text", ["abc-_1~", " abc-_1~\n", '"abc-_1~"', "abc-_1~\r\n"])
def test_a_refresh_token_is_freed_of_what_surrounds_it(text):
    assert clean_refresh_token(text) == "abc-_1~"


@pytest.mark.parametrize(
    "text", ["SECRET token", "SECRET\nSECRET", "SECRET\x00", "SECRÈT", "{SECRET}", "S" * 513]
)
def test_a_bad_refresh_token_is_refused_and_not_shown(text):
    with pytest.raises(ValueError, match="refresh token") as caught:
        clean_refresh_token(text)
    assert text not in str(caught.value)
    assert "SECR" not in str(caught.value)


def test_an_empty_refresh_token_is_refused():
    with pytest.raises(ValueError, match="empty"):
        clean_refresh_token(" \n")


async def test_a_code_is_exchanged_for_tokens(settings, pixiv):
    answer = await exchange_code("the-code", begun(), settings)
    assert (answer.access_token, answer.refresh_token, answer.user_name) == (
        "access-1",
        "refresh-0",
        "collector-example",
    )
    assert pixiv.asked[0].form["code"] == "the-code"
    assert pixiv.asked[0].form["code_verifier"] == begun().verifier
    assert pixiv.asked[0].method == "POST"


async def test_an_expired_code_says_to_start_again(settings, pixiv):
    pixiv.token_answers = [pixiv.refused_grant("The authorization code has expired")]
    with pytest.raises(AuthFailed, match="start the login again") as caught:
        await exchange_code("SECRET", begun(), settings)
    assert "SECRET" not in str(caught.value)


async def test_a_refresh_token_is_tried(settings):
    assert (await try_refresh("refresh-0", settings)).refresh_token == "refresh-0"


async def test_a_refused_refresh_token_is_told_from_a_disturbed_way(settings, pixiv):
    with pytest.raises(AuthFailed):
        await try_refresh("SECRET", settings)
    pixiv.token_answers = [pixiv.html(403)]
    with pytest.raises(ServerFailed, match="not bad credentials"):
        await try_refresh("refresh-0", settings)
    pixiv.token_answers = [pixiv.answer(body=b"{", cut=True)]
    with pytest.raises(NetworkFailed):
        await try_refresh("refresh-0", settings)
