import hashlib
import json

import pytest

from pixivflow.pixiv import oauth
from pixivflow.pixiv.errors import AuthFailed, Outage, RateLimited, ServerFailed
from pixivflow.pixiv.headers import app_headers
from pixivflow.pixiv.settings import PixivSettings

SETTINGS = PixivSettings()
REFRESH = oauth.refresh_request("SECRET-refresh", SETTINGS, 0)
CODE = oauth.code_request("SECRET-code", "SECRET-verifier", SETTINGS, 0)
JSON = "application/json"
USER = {
    "id": "90000001",
    "name": "someone",
    "mail_address": "SECRET@example.invalid",
    "is_premium": True,
    "x_restrict": 2,
}
GRANT = {"access_token": "SECRET-access", "expires_in": 3600, "refresh_token": "SECRET-new", "user": USER}


def body(value):
    return json.dumps(value).encode()


def refusal(status, value, request=REFRESH, retry_after_s=None):
    return oauth.read_refusal(status, JSON, body(value), request, retry_after_s)


def test_time_and_hash_are_those_of_the_application():
    headers = app_headers(SETTINGS, 1_790_000_000_123)
    assert headers["X-Client-Time"] == "2026-09-21T14:13:20+00:00"
    assert headers["App-OS"] in headers["User-Agent"].lower()
    assert headers["App-Version"] in headers["User-Agent"]


def test_the_hash_is_md5_of_the_time_and_the_secret():
    expected = hashlib.md5(b"1970-01-01T00:00:00+00:00salt").hexdigest()
    assert app_headers(PixivSettings(hash_secret="salt"), 0)["X-Client-Hash"] == expected


def test_token_requests_go_to_the_oauth_host():
    assert REFRESH.url == CODE.url == "https://oauth.secure.pixiv.net/auth/token"


def test_a_code_is_exchanged_with_its_verifier_and_the_registered_address():
    assert CODE.form["grant_type"] == "authorization_code"
    assert CODE.form["code_verifier"] == "SECRET-verifier"
    assert CODE.form["redirect_uri"] == "https://app-api.pixiv.net/web/v1/users/auth/pixiv/callback"


@pytest.mark.parametrize("answer", [GRANT, {"response": GRANT}, {**GRANT, "response": GRANT}])
def test_tokens_are_read_from_either_copy(answer):
    granted = oauth.read_answer(body(answer), REFRESH)
    assert (granted.access_token, granted.refresh_token) == ("SECRET-access", "SECRET-new")
    assert (granted.user_id, granted.user_name, granted.is_premium, granted.x_restrict) == (
        "90000001",
        "someone",
        True,
        2,
    )


def test_a_user_id_may_be_a_number_or_missing():
    assert oauth.read_answer(body({**GRANT, "user": {"id": 7}}), REFRESH).user_id == "7"
    assert oauth.read_answer(body({**GRANT, "user": None}), REFRESH).user_id is None


def test_an_answer_without_refresh_token_keeps_the_one_sent():
    assert (
        oauth.read_answer(body({**GRANT, "refresh_token": None}), REFRESH).refresh_token == "SECRET-refresh"
    )


@pytest.mark.parametrize(
    "answer",
    [
        b"{",
        b"[]",
        b"{}",
        body({**GRANT, "access_token": "with space"}),
        body({**GRANT, "access_token": "line\nbreak"}),
        body({**GRANT, "refresh_token": "ünicode"}),
        body({**GRANT, "access_token": ""}),
    ],
)
def test_tokens_that_can_not_be_used_are_a_server_fault(answer):
    with pytest.raises(ServerFailed) as caught:
        oauth.read_answer(answer, REFRESH)
    assert "SECRET" not in str(caught.value)


def test_a_code_answer_without_refresh_token_can_not_be_used():
    with pytest.raises(ServerFailed):
        oauth.read_answer(body({**GRANT, "refresh_token": None}), CODE)


def test_an_invalid_grant_is_a_refused_refresh_token():
    error = refusal(
        400, {"error": "invalid_grant", "errors": {"system": {"message": "Invalid refresh token"}}}
    )
    assert type(error) is AuthFailed
    assert "refresh token" in str(error)


def test_an_invalid_grant_for_a_code_says_to_start_again():
    error = refusal(400, {"error": "invalid_grant"}, CODE)
    assert type(error) is AuthFailed
    assert "start the login again" in str(error)


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (400, "invalid_client"),
        (400, "invalid_request"),
        (400, "unsupported_grant_type"),
        (403, "invalid_grant"),
    ],
)
def test_other_refusals_leave_the_credentials_valid(status, word):
    error = refusal(status, {"error": word})
    assert type(error) is ServerFailed
    assert word in str(error)


@pytest.mark.parametrize("status", [200, 403, 503])
def test_a_challenge_page_is_a_blocked_route(status):
    error = oauth.read_refusal(status, "text/html", b"<!DOCTYPE html>", REFRESH, None)
    assert type(error) is ServerFailed
    assert "challenge page" in str(error)


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 500, 502, 504])
def test_everything_unclear_is_an_outage_that_blames_no_credentials(status):
    for content in (b"", b"null", b'{"error":{"message":""}}', b'{"error":"Some Prose"}'):
        error = oauth.read_refusal(status, JSON, content, REFRESH, None)
        assert isinstance(error, Outage)
        assert not isinstance(error, AuthFailed)
        assert str(status) in str(error)


def test_a_rate_limit_carries_retry_after():
    error = refusal(429, {"error": "slow_down"}, retry_after_s=30.0)
    assert isinstance(error, RateLimited)
    assert error.retry_after_s == 30.0


def test_printed_forms_hold_no_secret():
    granted = oauth.read_answer(body(GRANT), REFRESH)
    assert "SECRET" not in repr((REFRESH, CODE, granted))
    assert "mail" not in repr(granted)
