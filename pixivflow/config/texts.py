"""Checks of single texts: addresses, cron expressions, zones, days, ids.

Every check raises ValueError, whose text begins with "expected".
"""

import re
import string
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

import httpx
from croniter import CroniterError, croniter

from pixivflow.config.problems import nearest

ID_EXPECTED = "an id of letters, digits, _ and -, at most 64, beginning with a letter or digit"
URL_EXPECTED = "an address such as https://host.example/path"
PROXY_EXPECTED = "a proxy such as socks5://127.0.0.1:1080 (http, https, socks5 or socks5h)"
LANGUAGE_EXPECTED = 'a language tag such as "en" or "zh-cn"'
CRON_EXPECTED = 'five cron fields such as "0 8 * * *", or six, the last one for seconds'
ZONE_EXPECTED = 'an IANA time zone such as "Asia/Tokyo"'
DAY_EXPECTED = "a day in quotes: YYYY-MM-DD, TODAY, YESTERDAY or LAST_N_DAYS:n"
RANKING_DAY_EXPECTED = "a day in quotes: YYYY-MM-DD, TODAY or YESTERDAY"
RANKING_EXPECTED = 'a ranking such as "day", "week", "month", "day_male" or "day_r18"'
PATH_EXPECTED = 'a path template such as "{author_id}/{id}_p{page}"'

RANKINGS = (
    *("day", "week", "month", "day_male", "day_female", "week_original", "week_rookie"),
    *("day_manga", "week_manga", "month_manga", "week_rookie_manga", "week_original_manga"),
    *("day_ai", "day_r18_ai", "day_r18", "day_male_r18", "day_female_r18", "week_r18"),
    *("day_r18_manga", "week_r18_manga", "week_r18g", "week_r18g_manga", "day_r18g_manga"),
)
"""Pixiv's rankings of illustrations."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")
_LAST_DAYS = re.compile(r"LAST_N_DAYS:[1-9][0-9]{0,4}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_OWN_HEADERS = frozenset(
    {"connection", "content-type", "content-length", "transfer-encoding", "host", "idempotency-key"}
)


def one_of(choices: Iterable[str]) -> str:
    """Return the choices, for a message."""
    quoted = [f'"{choice}"' for choice in choices]
    return quoted[0] if len(quoted) == 1 else f"one of {', '.join(quoted)}"


def check_text(text: str) -> None:
    """Refuse an empty text and one with control characters."""
    if not text.strip() or _CONTROL.search(text):
        raise ValueError("expected a text of at least one character, on one line")


check_one_line = check_text


def check_texts(items: tuple[str, ...]) -> None:
    """Refuse empty entries."""
    for item in items:
        if not item.strip() or _CONTROL.search(item):
            raise ValueError("expected texts of at least one character, each on one line")


def check_distinct(items: tuple[str, ...]) -> None:
    """Refuse an entry that is there twice."""
    twice = sorted({item for item in items if items.count(item) > 1})
    if twice:
        raise ValueError(f'expected each id once, "{twice[0]}" is there twice')


def check_id(text: str) -> None:
    """Refuse what can't be an id."""
    if not _ID.fullmatch(text):
        raise ValueError(f"expected {ID_EXPECTED}")


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuse what can't be sent as a header, and headers that are not the user's to set."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f'expected header names such as Authorization, found "{name}"')
        if name.lower() in _OWN_HEADERS:
            raise ValueError(f"expected headers of your own; {name} is set by PixivFlow")
        if _CONTROL.search(value) or not value.isascii() or value != value.strip():
            raise ValueError(f"expected plain ASCII on one line, no spaces around it, as the value of {name}")


def check_fields(fields: Mapping[str, str]) -> None:
    """Refuse form fields without a name."""
    if not all(name.strip() and not _CONTROL.search(name) for name in fields):
        raise ValueError("expected a name for every field")


def check_language(text: str) -> None:
    """Refuse what is no language tag."""
    if not _LANGUAGE.fullmatch(text):
        raise ValueError(f"expected {LANGUAGE_EXPECTED}")


def check_cron(text: str) -> None:
    """Refuse what is no cron expression of 5 or 6 fields, or never comes due (such as 30 February)."""
    fields = text.split()
    if len(fields) not in (5, 6):
        raise ValueError(f"expected {CRON_EXPECTED}")
    weekday_counts = not fields[4].startswith(("*", "?"))  # then a day that never comes does no harm
    try:
        croniter.expand(text, strict=not weekday_counts)
    except (CroniterError, ValueError, KeyError) as error:
        reason = re.sub(r"^\[.*?\] (is not acceptable[.,]? ?)?", "", str(error)) or "not acceptable"
        raise ValueError(f"expected {CRON_EXPECTED} ({reason})") from None


def check_zone(text: str) -> None:
    """Refuse what is no IANA zone name."""
    known = available_timezones()
    if text not in known:
        likely = nearest(text, known)
        raise ValueError(f"expected {ZONE_EXPECTED}" + (f', did you mean "{likely}"?' if likely else ""))
    ZoneInfo(text)


def check_day(text: str) -> None:
    """Refuse what names no day."""
    if not (text in ("TODAY", "YESTERDAY") or _LAST_DAYS.fullmatch(text) or _is_date(text)):
        raise ValueError(f"expected {DAY_EXPECTED}")


def check_ranking_day(text: str) -> None:
    """Refuse what names no single day."""
    if not (text in ("TODAY", "YESTERDAY") or _is_date(text)):
        raise ValueError(f"expected {RANKING_DAY_EXPECTED}")


def check_ranking(text: str) -> None:
    """Refuse what Pixiv has no ranking for."""
    if text not in RANKINGS:
        likely = nearest(text, RANKINGS)
        raise ValueError(f"expected {RANKING_EXPECTED}" + (f', did you mean "{likely}"?' if likely else ""))


def check_path_template(text: str) -> None:
    """Refuse templates that are malformed, leave their folder, or give two works one path."""
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError as error:
        raise ValueError(f"expected {PATH_EXPECTED} ({error})") from None
    if text.startswith(("/", "~")) or ".." in text.split("/") or text.endswith("/") or _CONTROL.search(text):
        raise ValueError(f"expected {PATH_EXPECTED}, below download_dir and without an ending slash")
    if "id" not in names:
        raise ValueError(f"expected {PATH_EXPECTED}, with {{id}}: without it, works would share one path")


def read_path(text: str) -> Path:
    """Return a path as written, still relative."""
    if not text or "\0" in text:
        raise ValueError("expected a path")
    return Path(text)


def read_url(text: str) -> str:
    """Return an HTTP address as written."""
    url = _parsed(text)
    if url is None or url.scheme not in ("http", "https") or not url.host:
        raise ValueError(f"expected {URL_EXPECTED}")
    return text


def read_base_url(text: str) -> str:
    """Return an HTTP address that paths are appended to, without its ending slash."""
    url = httpx.URL(read_url(text))
    if url.query or url.fragment:
        raise ValueError(f"expected {URL_EXPECTED}, without ? and #")
    return text.rstrip("/")


def read_proxy(text: str) -> str:
    """Return a proxy's address; an empty text means none."""
    if not text:
        return text
    url = _parsed(text)
    if url is None or url.scheme not in ("http", "https", "socks5", "socks5h") or not url.host:
        raise ValueError(f"expected {PROXY_EXPECTED}, or an empty text for none")
    return text


def _parsed(text: str) -> httpx.URL | None:
    if not text.isprintable() or " " in text:
        return None
    try:
        return httpx.URL(text)
    except httpx.InvalidURL:
        return None


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False
