import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pixivflow.pixiv.classify import classify, parse_retry_after
from pixivflow.pixiv.errors import (
    AccessDenied,
    AccessTokenRefused,
    AuthFailed,
    NotFound,
    PixivError,
    RateLimited,
    RequestRefused,
    ServerFailed,
)

JSON = "application/json; charset=UTF-8"
HTML = b"<!DOCTYPE html><html></html>"
OAUTH = "Error occurred at the OAuth process. Please check your Access Token to fix this. Error Message: "


def envelope(message="", user_message=""):
    return json.dumps({"error": {"message": message, "user_message": user_message}}).encode()


@pytest.mark.parametrize("status", [400, 403, 429, 200])
@pytest.mark.parametrize("message", ["Rate Limit", "rate limit exceeded"])
def test_rate_limit_is_read_under_any_status(status, message):
    assert isinstance(classify(status, JSON, envelope(message)), RateLimited)


@pytest.mark.parametrize("body", [b"", HTML, b"{}", b"slow down"])
def test_429_is_a_rate_limit_whatever_its_body(body):
    assert isinstance(classify(429, "text/html", body), RateLimited)


def test_a_rate_limit_carries_retry_after():
    error = classify(429, JSON, b"", retry_after_s=12.5)
    assert isinstance(error, RateLimited)
    assert error.retry_after_s == 12.5


@pytest.mark.parametrize("ending", ["invalid_grant", "invalid_request"])
def test_only_the_oauth_sentence_makes_a_400_a_token_error(ending):
    assert type(classify(400, JSON, envelope(OAUTH + ending))) is AccessTokenRefused


def test_a_validation_400_names_the_parameter_and_is_no_token_error():
    error = classify(400, JSON, envelope('{"offset":["offset must be no more than 5000"]}'))
    assert type(error) is RequestRefused
    assert error.parameters == ("offset",)
    assert "offset must be no more than 5000" in str(error)


def test_a_400_without_details_is_a_refused_request():
    assert type(classify(400, JSON, envelope(user_message="Invalid request."))) is RequestRefused


def test_a_403_with_envelope_is_withheld():
    assert type(classify(403, JSON, envelope(user_message="restricted"))) is AccessDenied


def test_a_401_is_a_matter_of_credentials():
    assert type(classify(401, JSON, envelope("no"))) is AuthFailed


def test_a_404_with_envelope_is_not_found_in_any_language():
    assert type(classify(404, JSON, envelope(user_message="該当作品は削除されました"))) is NotFound


def test_a_retired_endpoint_is_not_read_as_not_found():
    error = classify(404, JSON, envelope(user_message="Specified end-point doesn't exist."))
    assert type(error) is RequestRefused


def test_a_404_without_envelope_is_not_read_as_not_found():
    assert type(classify(404, "text/plain", b"gone")) is RequestRefused


@pytest.mark.parametrize("status", [200, 302, 403, 404, 503])
@pytest.mark.parametrize("content_type", ["text/html; charset=UTF-8", "application/json"])
def test_html_is_a_challenge_page_and_not_bad_credentials(status, content_type):
    error = classify(status, content_type, HTML)
    assert type(error) is ServerFailed
    assert "challenge page" in str(error)
    assert "not bad credentials" in str(error)
    assert error.blocked == (status < 500)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_5xx_passes_with_json_and_without(status):
    for body in (envelope("oops"), b"", b"oops"):
        error = classify(status, JSON, body)
        assert type(error) is ServerFailed
        assert not error.blocked


def test_a_success_with_an_error_inside_is_a_server_fault():
    assert type(classify(200, JSON, envelope("General Error"))) is ServerFailed


def test_the_envelope_of_the_web_is_understood_too():
    assert isinstance(classify(500, JSON, b'{"error":true,"message":"Rate Limit","body":[]}'), RateLimited)


@given(st.integers(100, 599), st.sampled_from([JSON, "text/html", ""]), st.binary(max_size=60))
def test_every_answer_is_classified(status, content_type, body):
    assert isinstance(classify(status, content_type, body), PixivError)


@given(
    st.integers(200, 599),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.dictionaries(st.sampled_from(["error", "message", "user_message"]), inner),
    ),
)
def test_every_json_answer_is_classified(status, value):
    assert isinstance(classify(status, JSON, json.dumps(value).encode()), PixivError)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("60", 60.0),
        (" 0 ", 0.0),
        ("999999999", 86_400.0),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0),
        ("Thu, 01 Jan 1970 00:01:40 -0000", 90.0),
        ("Thu, 01 Jan 1970 00:00:01 GMT", 0.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(value, expected):
    assert parse_retry_after(value, now_ms=10_000) == expected
