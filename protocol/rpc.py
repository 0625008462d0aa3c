"""JSON-RPC 2.0 as the doors speak it: one request or one answer a message, params as an object, no batches."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Literal

import msgspec

MAX_MESSAGE_BYTES = 1024 * 1024
"""The largest message either side takes."""

RequestId = int | str | None


class Code(IntEnum):
    """What kind of failure an answer reports."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL = -32603
    REFUSED = -32000
    """The method understood the request and declines; ``data`` may say more."""
    TOO_LARGE = -32001
    """The answer would not fit into one message."""


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call. Without an ``id`` it is a notification, which nobody answers."""

    method: str
    params: Mapping[str, Any] = {}
    id: RequestId | msgspec.UnsetType = msgspec.UNSET

    @property
    def wants_answer(self) -> bool:
        """Whether the caller waits for an answer."""
        return not isinstance(self.id, msgspec.UnsetType)


class Response(msgspec.Struct, frozen=True):
    """What a method returned; on the wire any value that msgspec can encode."""

    id: RequestId
    result: Any


class Error(msgspec.Struct, frozen=True):
    """Why there is no result. ``code`` is a `Code` or one that only the peer knows."""

    code: int
    message: str
    data: Any = None


class Failure(msgspec.Struct, frozen=True):
    """An answer without result; the id is None where the request could not be read."""

    id: RequestId
    error: Error


class UnreadableAnswer(ValueError):
    """A message that is no answer."""


class _RequestHead(msgspec.Struct, frozen=True):
    id: RequestId = None


class _WireRequest(msgspec.Struct, frozen=True):
    jsonrpc: Literal["2.0"]
    method: str
    params: dict[str, Any] = {}
    id: RequestId | msgspec.UnsetType = msgspec.UNSET


class _WireAnswer(msgspec.Struct, frozen=True):
    jsonrpc: Literal["2.0"]
    id: RequestId
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: Error | msgspec.UnsetType = msgspec.UNSET


def failure(request_id: RequestId, code: Code, message: str, data: Any = None) -> Failure:
    """Return the answer that says what went wrong."""
    return Failure(request_id, Error(code, message, data))


def encode(message: Request | Response | Failure) -> bytes:
    """Return a message as JSON; raises `TypeError` or `ValueError` for a result that is none."""
    fields = {
        name: value for name, value in msgspec.structs.asdict(message).items() if value is not msgspec.UNSET
    }
    return msgspec.json.encode({"jsonrpc": "2.0", **fields})


def decode_request(message: str | bytes) -> Request | Failure:
    """Read a request; what is none comes back as the failure to answer it with."""
    try:
        wire = msgspec.json.decode(message, type=_WireRequest)
    except msgspec.ValidationError as error:
        params = "$.params" in str(error)
        return failure(_id_of(message), Code.INVALID_PARAMS if params else Code.INVALID_REQUEST, str(error))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return failure(None, Code.PARSE_ERROR, str(error))
    return Request(wire.method, wire.params, wire.id)


def decode_answer(message: str | bytes) -> Response | Failure:
    """Read an answer; raises `UnreadableAnswer`."""
    try:
        wire = msgspec.json.decode(message, type=_WireAnswer)
        if isinstance(wire.error, Error):
            return Failure(wire.id, wire.error)
        if isinstance(wire.result, msgspec.UnsetType):
            raise UnreadableAnswer("the answer has neither result nor error")
        return Response(wire.id, msgspec.json.decode(wire.result))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableAnswer(f"the answer is no JSON-RPC 2.0: {error}") from error


def _id_of(message: str | bytes) -> RequestId:
    """Return the id of a request that is otherwise wrong, None if it has none that can be read."""
    try:
        return msgspec.json.decode(message, type=_RequestHead).id
    except msgspec.ValidationError:
        return None
