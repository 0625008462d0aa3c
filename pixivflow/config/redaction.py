"""What of a configured value may be shown."""

import re

MASK = "***"
_USERINFO = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)?[^/?#]*@")
_PARAMETER = re.compile(r"([?&;#])([^=&;#]+)=([^&;#]*)")
_SECRET_PART = re.compile(
    r"token|secret|passw|pwd|credential|signature|cookie|session|apikey|authori[sz]ation", re.IGNORECASE
)
_SECRET_WORDS = frozenset({"key", "auth", "sig", "pass"})


def is_secret_name(name: str) -> bool:
    """Whether a value of this name is likely to be a secret."""
    words = re.split(r"[^a-z]+", name.lower())
    return _SECRET_PART.search(name) is not None or not _SECRET_WORDS.isdisjoint(words)


def redact_url(url: str) -> str:
    """Return the address with user, password and telling parameters replaced by ``***``."""
    shown = _USERINFO.sub(lambda match: f"{match[1] or ''}{MASK}@", url)
    return _PARAMETER.sub(_parameter, shown)


def _parameter(match: re.Match[str]) -> str:
    value = MASK if is_secret_name(match[2]) else match[3]
    return f"{match[1]}{match[2]}={value}"
