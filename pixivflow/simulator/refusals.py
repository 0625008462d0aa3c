"""Pixiv's error answers."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

_OAUTH = "Error occurred at the OAuth process. Please check your Access Token to fix this. Error Message: "
NO_WORK = "The artwork has been deleted or the artwork ID does not exist."
NO_USER = "User has left pixiv or the user ID does not exist."
NO_ENDPOINT = "Specified end-point doesn't exist"


class Refusal(Exception):
    """An error answer of the API, raised anywhere below an endpoint."""

    def __init__(self, status: int, *, message: str = "", user_message: str = "") -> None:
        super().__init__(message or user_message)
        self.status = status
        self.body = envelope(message=message, user_message=user_message)


def envelope(*, message: str = "", user_message: str = "") -> bytes:
    """Give the JSON around every API error."""
    error = {"user_message": user_message, "message": message, "reason": "", "user_message_details": {}}
    return msgspec.json.encode({"error": error})


def invalid(parameter: str, text: str) -> Refusal:
    """Give a parameter that does not validate: the message is a JSON document inside a string."""
    return Refusal(400, message=msgspec.json.encode({parameter: [text]}).decode())


def bad_token(reason: str) -> Refusal:
    """Give a token that is missing (``invalid_request``) or not good (``invalid_grant``)."""
    return Refusal(400, message=_OAUTH + reason)


def grant_refused(message: str, error: str) -> bytes:
    """Give the body of a refused token request."""
    system = {"system": {"message": message, "code": 1508}}
    return msgspec.json.encode({"has_error": True, "errors": system, "error": error})


def json_answer(content: object, status: int = 200) -> Response:
    """Give an answer in JSON."""
    return Response(msgspec.json.encode(content), status, media_type="application/json")


async def answer_refusal(_request: Request, refusal: Exception) -> Response:
    """Starlette's handler for `Refusal`."""
    assert isinstance(refusal, Refusal)  # noqa: S101  registered for this class only
    return Response(refusal.body, refusal.status, media_type="application/json")


async def answer_unknown(_request: Request, _error: Exception) -> Response:
    """Starlette's handler for paths that don't exist."""
    return Response(envelope(user_message=NO_ENDPOINT), 404, media_type="application/json")
