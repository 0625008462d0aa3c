"""JSON-RPC 2.0 on the wire."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.rpc import (
    Code,
    Error,
    Failure,
    Request,
    Response,
    UnreadableAnswer,
    decode_answer,
    decode_request,
    encode,
    failure,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
IDS = st.none() | st.integers(-(2**63), 2**63 - 1) | st.text()


@given(IDS, st.text(), st.dictionaries(st.text(), JSON, max_size=3))
def test_a_request_comes_back_as_it_was(
    request_id: int | str | None, method: str, params: dict[str, Any]
) -> None:
    assert decode_request(encode(Request(method, params, request_id))) == Request(method, params, request_id)


@given(IDS, JSON)
def test_a_result_comes_back_as_it_was(request_id: int | str | None, result: Any) -> None:
    assert decode_answer(encode(Response(request_id, result))) == Response(request_id, result)


@given(IDS, st.sampled_from(Code), st.text(), JSON)
def test_a_failure_comes_back_as_it_was(
    request_id: int | str | None, code: Code, message: str, data: Any
) -> None:
    answer = failure(request_id, code, message, data)
    assert decode_answer(encode(answer)) == answer


def test_messages_name_their_protocol() -> None:
    assert json.loads(encode(Request("daemon.status", {"a": 1}, 7))) == {
        "jsonrpc": "2.0",
        "method": "daemon.status",
        "params": {"a": 1},
        "id": 7,
    }


def test_a_request_without_id_wants_no_answer() -> None:
    request = decode_request('{"jsonrpc": "2.0", "method": "m"}')
    assert isinstance(request, Request)
    assert not request.wants_answer
    assert "id" not in json.loads(encode(request))


def test_an_id_of_null_wants_an_answer() -> None:
    request = decode_request('{"jsonrpc": "2.0", "method": "m", "id": null}')
    assert isinstance(request, Request)
    assert request.wants_answer


@pytest.mark.parametrize(
    ("message", "request_id", "code"),
    [
        ("{", None, Code.PARSE_ERROR),
        (b"\xff\xfe", None, Code.PARSE_ERROR),
        ("", None, Code.PARSE_ERROR),
        ("[]", None, Code.INVALID_REQUEST),
        ("7", None, Code.INVALID_REQUEST),
        ('{"method": "m", "id": 3}', 3, Code.INVALID_REQUEST),
        ('{"jsonrpc": "1.0", "method": "m", "id": "x"}', "x", Code.INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "id": 3}', 3, Code.INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "method": 5, "id": 3}', 3, Code.INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "method": "m", "id": {}}', None, Code.INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "method": "m", "params": [1], "id": 3}', 3, Code.INVALID_PARAMS),
    ],
)
def test_what_is_no_request_becomes_its_failure(message: str | bytes, request_id: object, code: Code) -> None:
    answer = decode_request(message)
    assert isinstance(answer, Failure)
    assert (answer.id, answer.error.code) == (request_id, code)


@given(st.binary() | st.text())
def test_no_message_breaks_the_reader(message: str | bytes) -> None:
    assert isinstance(decode_request(message), Request | Failure)


@pytest.mark.parametrize(
    "message", ["", "{}", '{"jsonrpc": "2.0", "id": 1}', '{"jsonrpc": "2.0", "result": 1}', "[]"]
)
def test_what_is_no_answer_is_unreadable(message: str) -> None:
    with pytest.raises(UnreadableAnswer):
        decode_answer(message)


def test_a_code_that_only_the_peer_knows_is_kept() -> None:
    answer = decode_answer('{"jsonrpc": "2.0", "id": 1, "error": {"code": -32099, "message": "odd"}}')
    assert answer == Failure(1, Error(-32099, "odd"))
