"""Takes secrets out of log events, also inside addresses and exception texts."""

import re
from collections.abc import MutableMapping
from typing import Any, Final

HIDDEN: Final = "***"
_SECRET_KEYS: Final = re.compile(r"token|secret|password|authorization|cookie|verifier", re.IGNORECASE)
_IN_TEXT: Final = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"), rf"\1 {HIDDEN}"),
    (
        re.compile(
            r"(?i)([?&](?:token|access_token|refresh_token|key|secret|code|sig|signature)=)[^&\s\"']+"
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(://)[^/\s:@]+:[^/\s@]+@"), rf"\1{HIDDEN}@"),
    (re.compile(r"(/bot)\d+:[A-Za-z0-9_-]+"), rf"\1{HIDDEN}"),
)


def redact(text: str) -> str:
    """Return the text with everything that looks like a secret hidden."""
    for pattern, replacement in _IN_TEXT:
        text = pattern.sub(replacement, text)
    return text


def redact_event(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Redact one log event; a structlog processor."""
    for key, value in event.items():
        event[key] = (
            HIDDEN if _SECRET_KEYS.search(key) and isinstance(value, str) and value else _redacted(value)
        )
    return event


def _redacted(value: Any) -> Any:
    match value:
        case str():
            return redact(value)
        case BaseException():
            return redact(repr(value))
        case dict():
            return {key: _redacted(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_redacted(inner) for inner in value]
        case _:
            return value
