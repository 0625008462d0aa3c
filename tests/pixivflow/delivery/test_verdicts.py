import errno
import gzip
import json
import socket
import ssl

import httpx
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from pixivflow.delivery.answers import WORDS
from pixivflow.delivery.verdicts import from_failure, read_answer
from protocol.verdicts import VerdictKind

ACCEPTED, REPLAYED, DUPLICATE = VerdictKind.ACCEPTED, VerdictKind.REPLAYED, VerdictKind.DUPLICATE
RETRY, REJECTED = VerdictKind.RETRY, VerdictKind.REJECTED


def flags(verdict):
    """Which of the three consequences a verdict has, as letters: attempt, breaker, pause."""
    return "a" * verdict.spends_attempt + "b" * verdict.feeds_breaker + "p" * verdict.pauses_route


@pytest.mark.parametrize(
    ("status", "kind", "consequences", "error_class"),
    [
        (200, ACCEPTED, "", None),
        (201, ACCEPTED, "", None),
        (202, ACCEPTED, "", None),
        (204, ACCEPTED, "", None),
        (301, RETRY, "p", "redirect"),
        (303, RETRY, "p", "redirect"),
        (307, RETRY, "p", "redirect"),
        (400, REJECTED, "", "http_400"),
        (401, RETRY, "p", "http_401"),
        (403, RETRY, "p", "http_403"),
        (404, RETRY, "p", "http_404"),
        (405, RETRY, "p", "http_405"),
        (408, RETRY, "ab", "http_408"),
        (409, RETRY, "a", "http_409"),
        (410, REJECTED, "", "http_410"),
        (413, REJECTED, "", "payload_too_large"),
        (415, REJECTED, "", "http_415"),
        (422, REJECTED, "", "http_422"),
        (425, RETRY, "ab", "http_425"),
        (429, RETRY, "", "http_429"),
        (500, RETRY, "ab", "http_500"),
        (502, RETRY, "ab", "http_502"),
        (503, RETRY, "b", "http_503"),
        (504, RETRY, "ab", "http_504"),
    ],
)
def test_a_status_without_a_word_decides(status, kind, consequences, error_class):
    verdict = read_answer(status, {}, b"")

    assert (verdict.kind, flags(verdict), verdict.error_class) == (kind, consequences, error_class)


@pytest.mark.parametrize(("word", "kind"), WORDS.items())
@pytest.mark.parametrize("status", [200, 400, 403, 409, 500])
def test_a_known_word_outranks_the_status(word, kind, status):
    verdict = read_answer(status, {}, f'{{"status": "{word}"}}'.encode())

    assert verdict.kind is kind
    assert not verdict.pauses_route
    assert verdict.spends_attempt is (kind is RETRY)


@pytest.mark.parametrize("status", [401, 407])
@pytest.mark.parametrize("word", [word for word, kind in WORDS.items() if kind in (REJECTED, RETRY)])
def test_no_word_refuses_a_work_for_lack_of_credentials(word, status):
    assert flags(read_answer(status, {}, f'{{"status": "{word}"}}'.encode())) == "p"


@pytest.mark.parametrize("written", ["Accepted", " ACCEPTED ", "already-accepted", "Already  Accepted"])
def test_words_are_known_in_any_spelling(written):
    assert read_answer(500, {}, f'{{"status": "{written}"}}'.encode()).kind in (ACCEPTED, REPLAYED)


@pytest.mark.parametrize("status", [200, 400, 422])
def test_an_unknown_word_is_asked_again(status):
    verdict = read_answer(status, {}, b'{"status": "frobnicated"}')

    assert (verdict.kind, verdict.error_class, flags(verdict)) == (RETRY, "answer_unknown", "a")


def test_an_unknown_word_keeps_what_a_retrying_status_says():
    assert flags(read_answer(401, {}, b'{"status": "unauthorized"}')) == "p"
    assert read_answer(503, {"Retry-After": "5"}, b'{"status": "maintenance"}').retry_after_s == 5


def test_a_mere_error_word_leaves_a_failing_status_as_it_is():
    assert read_answer(400, {}, b'{"status": "error"}').kind is REJECTED
    assert read_answer(500, {}, b'{"status": "error"}').error_class == "http_500"


def test_a_mere_error_word_under_a_success_is_asked_again():
    verdict = read_answer(200, {}, b'{"status": "error", "message": "disk"}')

    assert (verdict.kind, verdict.error_class, verdict.spends_attempt) == (RETRY, "answer_failed", True)


def test_processing_under_200_is_no_success():
    assert read_answer(200, {}, b'{"status": "processing"}').error_class == "answer_processing"


def test_processing_under_503_waits_without_spending():
    assert flags(read_answer(503, {}, b'{"status": "processing"}')) == "b"


def test_a_rejection_of_something_too_large_says_so():
    assert read_answer(413, {}, b'{"status": "rejected"}').error_class == "payload_too_large"


@pytest.mark.parametrize(
    ("flag", "kind"), [("duplicate", DUPLICATE), ("reused", DUPLICATE), ("replayed", REPLAYED)]
)
def test_a_yes_beside_a_success_makes_it_more_exact(flag, kind):
    assert read_answer(200, {}, f'{{"status": "ok", "{flag}": true}}'.encode()).kind is kind
    assert read_answer(200, {}, f'{{"{flag}": true}}'.encode()).kind is kind
    assert read_answer(200, {}, f'{{"{flag}": false}}'.encode()).kind is ACCEPTED
    assert read_answer(400, {}, f'{{"{flag}": true}}'.encode()).kind is REJECTED


@pytest.mark.parametrize(
    "body", [b"", b"OK", b"[1]", b'"accepted"', b"{broken", b"\xff\xfe", b"[" * 100_000, b"{}"]
)
def test_a_success_without_a_word_is_a_success(body):
    assert read_answer(200, {}, body).kind is ACCEPTED


@pytest.mark.parametrize("status", ["200", "true", "null", "{}", '""'])
def test_a_status_member_that_is_no_word_is_ignored(status):
    assert read_answer(200, {}, b'{"status": %s}' % status.encode()).kind is ACCEPTED
    assert read_answer(400, {}, b'{"status": %s}' % status.encode()).kind is REJECTED


def test_digits_and_words_in_a_text_classify_nothing():
    verdict = read_answer(500, {}, b'{"message": "review 409123 timed out, rejected with 400"}')

    assert (verdict.kind, verdict.error_class) == (RETRY, "http_500")


@pytest.mark.parametrize(
    ("body", "remote_id"),
    [
        (b'{"id": 7}', "7"),
        (b'{"status": "accepted", "id": "abc"}', "abc"),
        (b'{"id": 1, "submission_id": 2}', "2"),
        (b'{"id": true}', None),
        (b'{"id": {"a": 1}}', None),
    ],
)
def test_the_remote_id_is_taken_from_the_answer(body, remote_id):
    assert read_answer(200, {}, body).remote_id == remote_id


def test_a_compressed_answer_is_read_though_nobody_asked_for_it():
    body = gzip.compress(b'{"status": "processing"}')

    assert read_answer(200, {"Content-Encoding": "gzip"}, body).kind is RETRY
    assert read_answer(200, {"Content-Encoding": "gzip"}, b"no gzip").kind is ACCEPTED


def test_a_compressed_bomb_stays_small():
    body = gzip.compress(b" " * 50_000_000)

    assert read_answer(400, {"content-encoding": "gzip"}, body).detail == "HTTP 400"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "120"}, 120.0),
        ({"retry-after": "0"}, 0.0),
        ({"Retry-After": "864000"}, 86_400.0),
        ({"Retry-After": "9" * 400}, 86_400.0),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "１２"}, None),
        ({}, None),
        ({"Retry-After": "Mon, 30 Nov 2026 23:01:00 GMT", "Date": "Mon, 30 Nov 2026 23:00:00 GMT"}, 60.0),
        ({"Retry-After": "Mon, 30 Nov 2026 22:00:00 GMT", "Date": "Mon, 30 Nov 2026 23:00:00 GMT"}, 0.0),
        ({"Retry-After": "Mon, 30 Nov 2026 23:01:00 GMT"}, 30.0),
        ({"Retry-After": "Mon, 30 Nov 99999999999999999999 23:01:00 GMT"}, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503, 500, 401])
def test_retry_after_is_obeyed_up_to_a_day(headers, seconds, status):
    at_23_00_30 = 1_796_079_630_000

    assert read_answer(status, headers, b"", now_ms=at_23_00_30).retry_after_s == seconds


def test_a_date_without_any_clock_is_no_wait():
    assert read_answer(503, {"Retry-After": "Mon, 30 Nov 2026 23:01:00 GMT"}, b"").retry_after_s is None


def test_a_detail_is_one_line_that_quotes_the_receiver():
    verdict = read_answer(422, {}, b'{"message": "bad\\r\\ntitle\\u2028here"}')

    assert verdict.detail == "HTTP 422: bad title here"


def test_a_web_page_is_not_quoted():
    assert read_answer(502, {}, b"<html><h1>Bad Gateway</h1>").detail == "HTTP 502"
    assert read_answer(502, {}, b"upstream down\n").detail == "HTTP 502: upstream down"


@given(st.integers(100, 999), st.binary(max_size=200), st.dictionaries(st.text(), st.text(), max_size=3))
def test_any_answer_gets_a_verdict_on_one_line(status, body, headers):
    verdict = read_answer(status, headers, body)

    assert verdict.detail.isprintable()
    assert len(verdict.detail) <= 300


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda v: st.lists(v) | st.dictionaries(st.sampled_from(["status", "id", "message", "duplicate"]), v),
    )
)
def test_any_json_gets_a_verdict(value):
    assert read_answer(200, {}, json.dumps(value).encode()).kind is not VerdictKind.UNCERTAIN


def caused(outer, inner):
    outer.__cause__ = inner
    return outer


UNSENT = [
    (caused(httpx.ConnectError("x"), socket.gaierror(socket.EAI_NONAME, "no")), "name_resolution"),
    (caused(httpx.ConnectError("x"), ssl.SSLCertVerificationError("no")), "tls"),
    (caused(httpx.ConnectError("x"), OSError(errno.ECONNREFUSED, "no")), "connect"),
    (caused(httpx.ConnectError("x"), ExceptionGroup("all", [OSError(errno.ENETUNREACH, "no")])), "connect"),
    (caused(httpx.ConnectTimeout("x"), trio.TooSlowError()), "connect_timeout"),
    (httpx.ProxyError("407"), "proxy"),
    (trio.TooSlowError(), "upload_timeout"),
    (httpx.WriteError("x"), "upload_broken"),
    (httpx.RemoteProtocolError("x"), "upload_broken"),
]


@pytest.mark.parametrize(("exc", "error_class"), UNSENT)
def test_a_request_that_did_not_get_through_spends_no_attempt(exc, error_class):
    verdict = from_failure(exc, request_written=False)

    assert (verdict.kind, verdict.error_class, flags(verdict)) == (RETRY, error_class, "b")


@pytest.mark.parametrize(
    ("exc", "error_class"),
    [
        (trio.TooSlowError(), "answer_timeout"),
        (httpx.ReadTimeout("x"), "answer_timeout"),
        (httpx.ReadError("x"), "answer_lost"),
        (httpx.RemoteProtocolError("x"), "answer_lost"),
    ],
)
def test_silence_after_the_whole_request_spends_an_attempt(exc, error_class):
    verdict = from_failure(exc, request_written=True)

    assert (verdict.kind, verdict.error_class, flags(verdict)) == (RETRY, error_class, "ab")


def test_a_request_that_can_not_be_written_pauses_the_route():
    assert flags(from_failure(httpx.LocalProtocolError("x"), request_written=False)) == "p"


def test_the_text_of_an_error_is_not_repeated():
    error = caused(httpx.ConnectError("http://user:secret@host"), OSError(errno.ECONNREFUSED, "secret"))

    assert "secret" not in from_failure(error, request_written=False).detail
    assert "Connection refused" in from_failure(error, request_written=False).detail
