"""Where a file holds secrets as they are."""

from collections.abc import Iterator, Mapping
from typing import Any

from pixivflow.config.problems import Keys
from pixivflow.config.redaction import is_secret_name, redact_url


def literal_secrets(tables: Mapping[str, Any]) -> Iterator[Keys]:
    """Return the values of a parsed file that are secrets, written out and not taken from the environment."""
    for at, key, value in _texts(tables, ()):
        if "${" in value or at[0] not in ("pixiv", "accounts", "routes") or "fields" in at:
            continue
        named = key == "refresh_token" or ("headers" in at and is_secret_name(key))
        if (named and value) or ("://" in value and redact_url(value) != value):
            yield at


def secret_fields(tables: Mapping[str, Any]) -> Iterator[Keys]:
    """Return the form fields whose value comes from the environment."""
    for at, _, value in _texts(tables, ()):
        if "fields" in at and "${" in value.replace("$${", ""):
            yield at


def _texts(value: Any, at: Keys) -> Iterator[tuple[Keys, str, str]]:
    """Every text below a value, with the way to it and the name of its key."""
    if isinstance(value, str):
        yield at, str(at[-1]), value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*at, index))
