"""Reading the parameters of a request, and writing the address of the next page."""

import re
from collections.abc import Collection
from datetime import date
from urllib.parse import urlencode

from starlette.requests import Request

from pixivflow.simulator.refusals import invalid

PAGE = 30
OFFSET_CAP = 5000
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


class Parameters:
    """A request's query; every reader raises the validation `Refusal` for a bad value."""

    def __init__(self, request: Request) -> None:
        self._query = request.query_params

    def text(self, name: str) -> str:
        """Give a required text."""
        value = self._query.get(name)
        if not value:
            raise invalid(name, f"{name} is required")
        return value

    def given(self, name: str) -> str | None:
        """Give a text, or None when it is missing or empty."""
        return self._query.get(name) or None

    def integer(self, name: str, default: int | None = None) -> int:
        """Give a number that is not negative; required without a default."""
        value = self._query.get(name)
        if value is None and default is not None:
            return default
        if value is None:
            raise invalid(name, f"{name} is required")
        if not (value.isascii() and value.isdigit()):
            raise invalid(name, f"{name} must be an integer")
        return int(value)

    def offset(self, cap: int | None = OFFSET_CAP) -> int:
        """Give the place in a list, up to a cap."""
        offset = self.integer("offset", 0)
        if cap is not None and offset > cap:
            raise invalid("offset", f"offset must be no more than {cap}")
        return offset

    def choice(self, name: str, allowed: Collection[str], default: str | None = None) -> str:
        """One of some words; required without a default."""
        value = self._query.get(name) or default
        if value is None:
            raise invalid(name, f"{name} is required")
        if value not in allowed:
            spoken = name if name == "restrict" else name.replace("_", " ").title()
            raise invalid(name, f"{spoken} contains invalid value")
        return value

    def day(self, name: str) -> date | None:
        """Give a calendar day, or None when it is missing."""
        value = self._query.get(name)
        if not value:
            return None
        refusal = invalid(name, f"{name} is not a valid date, expected YYYY-MM-DD")
        if not _DAY.fullmatch(value):
            raise refusal
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise refusal from None


def next_url(base: str, request: Request, cursor: str, value: int) -> str:
    """Give the address of the next page: every parameter of this request, and the moved cursor."""
    kept = [(key, text) for key, text in request.query_params.multi_items() if key != cursor]
    counts: dict[str, int] = {}
    written: list[tuple[str, str]] = []
    for key, text in kept:
        if key.endswith("[]"):
            number = counts.get(key, 0)
            counts[key] = number + 1
            written.append((f"{key[:-2]}[{number}]", text))
        else:
            written.append((key, text))
    return f"{base}{request.url.path}?{urlencode([*written, (cursor, str(value))])}"
